"""Which texts go through a model together: as many as memory allows.

What a run of onnxruntime takes grows with its texts times the square of the longest one's
tokens, and its arena keeps the most that it ever took. Four full texts of 512 tokens raised a
process by 420 MB; one by 100, at the same pace, since one thread gains nothing by more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, TypeVar

MOST_TEXTS: Final = 4  # 32 texts at once take 220 MB more and are slower
MOST_TOKENS: Final = 768  # padding included: four usual chunks of 600 characters, one full one
_T = TypeVar("_T")


def batches(texts: Sequence[_T], tokens: Sequence[int]) -> Iterator[list[_T]]:
    """The texts in their order, in groups of at most MOST_TEXTS and, unless it is one text alone,
    MOST_TOKENS once each is padded to the longest. `tokens` are those of each text."""
    group: list[_T] = []
    longest = 0
    for text, count in zip(texts, tokens, strict=True):
        longer = max(longest, count)
        full = len(group) == MOST_TEXTS or longer * (len(group) + 1) > MOST_TOKENS
        if group and full:
            yield group
            group, longer = [], count
        group.append(text)
        longest = longer
    if group:
        yield group
