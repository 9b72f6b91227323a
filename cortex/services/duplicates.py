"""Texts that say nearly the same.

Idea: equal texts are grouped; of the others each is compared with those of its type that
share one of its rarest words, as near duplicates do, by edit distance. Cost: linear in the
texts, times at most 4 words and 24 texts a word. Corners: two texts without a common word,
or more than 24 that share no rarer one, are not compared.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from rapidfuzz import fuzz

from cortex.domain.values import NodeId
from cortex.store.health import Saying

ALIKE: Final = 85.0  # per cent, as adding a node says of `similar`
_WORD: Final = re.compile(r"\w+")
_RAREST: Final = 4
_TOGETHER: Final = 24


def near_duplicates(sayings: Sequence[Saying]) -> list[tuple[NodeId, NodeId]]:
    """(older, newer) for each text that a newer one nearly repeats; `sayings` newest first.

    Each older one is named once, beside the newest text like it.
    """
    found: dict[int, int] = {}
    first: dict[tuple[str, str], int] = {}
    for at, saying in enumerate(sayings):
        said = (saying.type, saying.text)
        if said in first:
            found[at] = first[said]
        else:
            first[said] = at
    for newer, older in _candidates(sayings, list(first.values())):
        if older in found and found[older] <= newer:
            continue
        if fuzz.ratio(sayings[newer].text, sayings[older].text, score_cutoff=ALIKE):
            found[older] = newer
    return [(sayings[older].id, sayings[newer].id) for older, newer in sorted(found.items())]


def _candidates(sayings: Sequence[Saying], places: Sequence[int]) -> Iterator[tuple[int, int]]:
    words = {at: set(_WORD.findall(sayings[at].text.casefold())) for at in places}
    common = Counter(word for each in words.values() for word in each)
    together: dict[tuple[str, str], list[int]] = {}
    for at in places:
        shared = [word for word in words[at] if common[word] > 1]
        for word in sorted(shared, key=lambda word: (common[word], word))[:_RAREST]:
            group = together.setdefault((sayings[at].type, word), [])
            if len(group) < _TOGETHER:
                group.append(at)
    for group in together.values():
        for place, newer in enumerate(group):
            for older in group[place + 1 :]:
                yield newer, older
