"""Bipolar hypervectors: a seeded codebook, bind, bundle, permute, similarity, clean-up memory.

Idea: in 10,000 dimensions two random vectors of ±1 are nearly orthogonal (similarity 0, deviation
1/√10,000 = 0.01), so whatever lies five deviations above 0 was put there. `bind` is the
elementwise product, its own inverse; `bundle` the sign of the sum, alike to each of its parts;
`permute` the cyclic shift, which tells places apart in products that commute. A triple is
subject ⊙ ρ(relation) ⊙ ρ²(object); a bundle of triples, unbound with two places, gives a noisy
third one, and the clean-up memory the item that was meant.

Cost: a product, sum or shift is one pass over 10 kB. An item is 1,250 bytes of SHAKE-128, 7 µs;
clean-up reads 1,250 bytes a candidate (xor and popcount) and is exact.

Corners: a bundle of nothing is refused; ties of an even bundle are settled by its own parts and
the codebook's seed, whatever their order. A part alone in a bundle of n keeps the similarity
C(n − 1, ⌊(n − 1) / 2⌋) / 2^(n − 1) ≈ √(2 / πn); at 100 that is 0.08, above the 0.05 that counts as
signal in more than 99 % of cases. More triples belong into several bundles.

Sources: Plate, Holographic reduced representations, IEEE Transactions on Neural Networks 6(3),
1995 (clean-up memory, capacity of superpositions); Gayler, Vector symbolic architectures answer
Jackendoff's challenges, 2003 (multiply, add, permute); Kanerva, Hyperdimensional computing,
Cognitive Computation 1(2), 2009 (bipolar codes, majority, analogies).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Hypervector = NDArray[np.int8]
Packed = NDArray[np.uint8]

DIMENSIONS: Final = 10_000
BYTES: Final = DIMENSIONS // 8
CAPACITY: Final = 100
"""Parts a bundle of which at least 99 % are recalled above the threshold."""
SIGMAS: Final = 5.0
THRESHOLD: Final = SIGMAS / math.sqrt(DIMENSIONS)
"""Similarity, 0.05: one of 3.5 million unrelated vectors comes so near by chance."""
_SUBJECT, _RELATION, _OBJECT = 0, 1, 2
_WORDS: Final = -(-BYTES // 8)


class Codebook:
    """The vector of every name, computed from seed and name: nothing is stored.

    The same on every machine and in every process: the bits are SHAKE-128 (FIPS 202) of both.
    """

    def __init__(self, seed: int = 1) -> None:
        self.seed = seed
        self._prefix = f"cortex hypervector {seed}\x00".encode()

    def packed(self, names: Sequence[str]) -> Packed:
        """A row of 1,250 bytes for each name; a bit that is set means −1."""
        rows = b"".join(
            hashlib.shake_128(self._prefix + name.encode("utf-8", "surrogatepass")).digest(BYTES)
            for name in names
        )
        return np.frombuffer(rows, np.uint8).reshape(len(names), BYTES)

    def items(self, names: Sequence[str]) -> Hypervector:
        """(names, 10,000) of ±1."""
        return unpack(self.packed(names))

    def item(self, name: str) -> Hypervector:
        """(10,000,) of ±1."""
        vector: Hypervector = self.items([name])[0]
        return vector

    def bundle(self, vectors: Hypervector) -> Hypervector:
        """The sign of the sum of (n, 10,000) vectors, n ≥ 1; in whatever order they stand.

        Where as many say +1 as −1, a vector decides that follows from seed and parts. One and
        the same for all bundles would make any two pairs alike by a quarter. Raises ValueError
        for no vector.
        """
        if vectors.ndim != 2 or not len(vectors):
            raise ValueError(f"a bundle of shape {vectors.shape} has no parts")
        total = vectors.sum(axis=0, dtype=np.int32)
        signs: Hypervector = np.sign(total).astype(np.int8)
        if not (total == 0).any():
            return signs
        product: Hypervector = np.multiply.reduce(vectors, axis=0)
        ties = self.item("tie") * permute(product)  # unshifted, it is the same sign at every tie
        return np.asarray(np.where(total == 0, ties, signs), np.int8)


def bind(*vectors: Hypervector) -> Hypervector:
    """The elementwise product: unlike each factor; bound with one again, the rest is left."""
    bound = vectors[0]
    for vector in vectors[1:]:
        bound = np.multiply(bound, vector)
    return bound


def permute(vector: Hypervector, places: int = 1) -> Hypervector:
    """Shifted cyclically by `places`, back where that is negative; rows of a matrix alike."""
    return np.roll(vector, places, axis=-1)


def similarity(one: Hypervector, other: Hypervector) -> float:
    """The normalised dot product, in [−1, 1]: 1 for the same, about 0 for unrelated ones."""
    product = np.multiply(one, other)
    return int(product.sum(dtype=np.int64)) / product.size


def expected_similarity(parts: int) -> float:
    """Of a bundle of unrelated vectors with each of its `parts` ≥ 1, in (0, 1]."""
    most = parts - 1
    return math.comb(most, most // 2) / (1 << most)


def pack(vectors: Hypervector) -> Packed:
    """An eighth of the bytes: a bit that is set means −1, so that xor is `bind`."""
    return np.packbits(vectors < 0, axis=-1)


def unpack(packed: Packed) -> Hypervector:
    """±1 again, of vectors with 10,000 dimensions."""
    bits = np.unpackbits(packed, axis=-1, count=DIMENSIONS).view(np.int8)
    return np.asarray(1 - 2 * bits, np.int8)


def triple(subject: Hypervector, relation: Hypervector, object_: Hypervector) -> Hypervector:
    """One statement, or a row for each of several: the place of each part is its shift."""
    return bind(subject, permute(relation, _RELATION), permute(object_, _OBJECT))


def missing(
    bundles: Hypervector,
    *,
    subject: Hypervector | None = None,
    relation: Hypervector | None = None,
    object_: Hypervector | None = None,
) -> Hypervector:
    """What stands at the one place that is not given, noisy; a row for each bundle.

    Raises ValueError unless exactly two places are given.
    """
    places = ((_SUBJECT, subject), (_RELATION, relation), (_OBJECT, object_))
    absent = [place for place, part in places if part is None]
    if len(absent) != 1:
        raise ValueError(f"{3 - len(absent)} places of a triple are given instead of two")
    known = [permute(part, place) for place, part in places if part is not None]
    return permute(bind(bundles, *known), -absent[0])


class Match(NamedTuple):
    """An item of the clean-up memory.

    `similarity` in [−1, 1]; `margin` ≥ 0 is by how much it is above the best item that was not
    recalled (above 0 where all were).
    """

    item: str
    similarity: float
    margin: float


class CleanUp:
    """The items that a noisy vector may mean, compared exactly, one and all.

    Memory: 1,256 bytes an item.
    """

    def __init__(self, items: Sequence[str], packed: Packed) -> None:
        """`packed` has the row of each item, as `Codebook.packed` gives it."""
        self.items = tuple(items)
        self._rows = _words(packed)

    def similarities(self, vectors: Hypervector) -> NDArray[np.float64]:
        """Of each item with a vector; with the nearest one where there are several rows."""
        best = np.full(len(self.items), -1.0)
        for row in np.atleast_2d(vectors):
            differing = np.bitwise_count(self._rows ^ _words(pack(row))).sum(axis=1, dtype=np.int64)
            np.maximum(best, 1.0 - 2.0 * differing / DIMENSIONS, out=best)
        return best

    def recall(self, vectors: Hypervector, threshold: float = THRESHOLD) -> list[Match]:
        """The items at or above the threshold, nearest first, ties by item; [] for noise."""
        scores = self.similarities(vectors)
        below = scores[scores < threshold]
        floor = max(float(below.max()), 0.0) if len(below) else 0.0
        found = [
            Match(self.items[at], float(scores[at]), float(scores[at]) - floor)
            for at in np.flatnonzero(scores >= threshold)
        ]
        return sorted(found, key=lambda match: (-match.similarity, match.item))

    def nearest(self, vectors: Hypervector) -> Match | None:
        """The nearest item, however far, and its lead over the second; None without items."""
        if not self.items:
            return None
        scores = self.similarities(vectors)
        first, *rest = sorted(range(len(scores)), key=lambda at: (-scores[at], self.items[at]))
        second = float(scores[rest[0]]) if rest else 0.0
        return Match(self.items[first], float(scores[first]), float(scores[first]) - second)


def _words(packed: Packed) -> NDArray[Any]:
    """The same bits in whole words of 64, the rest zeros."""
    padded = np.zeros((*packed.shape[:-1], _WORDS * 8), np.uint8)
    padded[..., :BYTES] = packed
    return padded.view(np.uint64)
