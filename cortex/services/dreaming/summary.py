"""The text of a pattern: sentences of its memories, word for word.

Idea: the memories are given nearest the centre first; of each, the sentence whose words most of
the others share is taken. A word weighs by how many memories use it, function words nothing; a
sentence by the weights of its words over the root of their number, so that length alone does
not win. Extractive, without a model: the same memories give the same text.
Source: centroid-based summarization, Radev, Jing, Styś, Tam, Information Processing and
Management 40, 2004. Corner: sentences with the same words are said once.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

from cortex.domain.values import shorten
from cortex.store.tokens import query_tokens

SENTENCES: Final = 3
_LONGEST: Final = 400
_READ: Final = 4000  # characters of a memory: what it begins with is what it is about
_END: Final = re.compile(r"(?<=[.!?…])[\"'”’»)\]]*\s+|(?<=[。！？｡])|\n+")


def extract(texts: Sequence[str]) -> str:
    """Up to three sentences of these texts, one a line, in the order of the texts."""
    sentences = [sentences_of(text) for text in texts]
    words = [[frozenset(query_tokens(each)) for each in one] for one in sentences]
    weight: Counter[str] = Counter()
    for one in words:
        weight.update(frozenset().union(*one))
    chosen: list[str] = []
    said: set[frozenset[str]] = set()
    for text, bags in zip(sentences, words, strict=True):
        scored = [(_score(bag, weight), -at) for at, bag in enumerate(bags) if bag not in said]
        if scored:
            at = -max(scored)[1]
            said.add(bags[at])
            chosen.append(shorten(text[at], _LONGEST))
        if len(chosen) == SENTENCES:
            break
    return "\n".join(chosen)


def sentences_of(text: str) -> list[str]:
    """The sentences of a text in order; a line of its own is one."""
    return [part.strip() for part in _END.split(text[:_READ]) if part.strip()]


def _score(words: frozenset[str], weight: Counter[str]) -> float:
    return sum(weight[word] for word in words) / math.sqrt(len(words)) if words else 0.0
