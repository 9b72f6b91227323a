"""What is found in a text: entities, relations between them, and the closed list of kinds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from cortex.domain.values import NodeId


class EntityKind(StrEnum):
    """What an entity is: a closed list.

    `project` is whatever is built and named, a repository or a service; `concept` a thing
    that is none of the others.
    """

    AGENT = "agent"
    PERSON = "person"
    ORGANIZATION = "organization"
    PROJECT = "project"
    TECHNOLOGY = "technology"
    PATTERN = "pattern"
    FILE = "file"
    IDENTIFIER = "identifier"
    CONCEPT = "concept"


ACTORS = frozenset({EntityKind.AGENT, EntityKind.PERSON, EntityKind.ORGANIZATION})


@dataclass(frozen=True, slots=True)
class Entity:
    """A thing by its name as the text writes it."""

    name: str
    kind: EntityKind


@dataclass(frozen=True, slots=True)
class Statement:
    """`source relation target`, by the names of two entities of the same text."""

    source: str
    relation: str
    target: str


@dataclass(frozen=True, slots=True)
class Extraction:
    """Entities in the order of first mention, each once; relations in the text's order."""

    entities: tuple[Entity, ...]
    relations: tuple[Statement, ...]


class Term(Protocol):
    """A name of the graph: the node that bears it."""

    @property
    def node_id(self) -> NodeId: ...
    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> EntityKind: ...


class Vocabulary(Protocol):
    """Names that a graph knows, by their folded words (`words.fold_name`)."""

    def longest(self, first: str) -> int:
        """Words of the longest name that begins with this folded word, 0 without any."""
        ...

    def find(self, folded: str) -> Term | None:
        """What bears this name."""
        ...


class NoVocabulary:
    """The vocabulary of an empty graph."""

    def longest(self, first: str) -> int:
        return 0

    def find(self, folded: str) -> Term | None:
        return None
