"""A question parsed: its words, the entities that it hints at, and what it is after.

"What pagination approach did database-engineer recommend?" has the words "pagination
approach recommend", the hints database-engineer and pagination, and asks for a decision.
Who is asked about comes first among the hints and is left out of the words: it says whose
answer is wanted, not which. Cost: linear in the question.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from cortex.domain.taxonomy import NodeType
from cortex.services.fabric.mentions import Mention, mentions_of
from cortex.services.fabric.values import ACTORS, Vocabulary
from cortex.services.fabric.words import Word, fold_name, iter_sentences, listed

MOST_QUESTION: Final = 2_000
MOST_HINTS: Final = 8


class Intent(StrEnum):
    """What kind of memory a question is after."""

    DECISION = "decision"
    PATTERN = "pattern"
    ERROR = "error"
    TASK = "task"
    FILE = "file"
    FACT = "fact"


# The first whose stem begins a word of the question; a fact where none does.
_CUES: Final = (
    (Intent.DECISION, "decid decision chose choos recommend prefer agreed why approv propos"),
    (Intent.ERROR, "error fail bug crash exception broke incident outage"),
    (Intent.PATTERN, "pattern approach practice convention technique strategy principle"),
    (Intent.TASK, "task todo next plan goal milestone deadline backlog"),
    (Intent.FILE, "file path where module folder"),
)
NODE_TYPES: Final = MappingProxyType(
    {
        Intent.DECISION: frozenset({NodeType.DECISION, NodeType.CONSTRAINT}),
        Intent.PATTERN: frozenset({NodeType.PATTERN}),
        Intent.ERROR: frozenset({NodeType.ERROR, NodeType.ACTION}),
        Intent.TASK: frozenset({NodeType.TASK, NodeType.SUBTASK, NodeType.GOAL}),
        Intent.FILE: frozenset({NodeType.FILEREF}),
        Intent.FACT: frozenset[NodeType](),
    }
)
# What a question is made of beside what it asks for.
_ASKING: Final = listed(
    "a an and any are as at about be been but by can could did do does for from had has have "
    "how i if in into is it its me my no not of on or our please shall should so tell than "
    "that the their them then there these they this those to us use used was we were what "
    "when where which who whom whose why will with would you your"
)


@dataclass(frozen=True, slots=True)
class Parsed:
    """`query` are the words that say what is wanted; `entity_hints` names, actors first."""

    query: str
    entity_hints: tuple[str, ...]
    intent: Intent


def parse(question: str, vocabulary: Vocabulary) -> Parsed:
    """Words, hints and intent of a question; of a long one its beginning."""
    words: list[Word] = []
    mentions: list[Mention] = []
    for sentence in iter_sentences(question[:MOST_QUESTION]):
        for mention in mentions_of(sentence.words, vocabulary):
            start = mention.start + len(words)
            mentions.append(Mention(start, mention.stop + len(words), mention.entity, mention.sure))
        words += sentence.words
    actors = [mention for mention in mentions if mention.entity.kind in ACTORS]
    silent = {at for mention in actors for at in range(mention.start, mention.stop)}
    query = " ".join(
        word.text for at, word in enumerate(words) if at not in silent and word.low not in _ASKING
    )
    hints: dict[str, str] = {}
    for mention in (*actors, *mentions):
        hints.setdefault(fold_name(mention.entity.name), mention.entity.name)
    named = tuple(hints.values())[:MOST_HINTS]
    return Parsed(query or " ".join(named), named, _intent(words))


def _intent(words: list[Word]) -> Intent:
    for intent, cues in _CUES:
        stems = tuple(cues.split())
        if any(word.low.startswith(stems) for word in words):
            return intent
    return Intent.FACT
