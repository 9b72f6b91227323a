"""The kinds of nodes and relations: the one list that schema, tools and docs derive from."""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType
from typing import Final, TypeVar

from cortex.domain.errors import InvalidError


class NodeType(StrEnum):
    """17 types; the order is that of the concept, and the position is the code in arrays."""

    ENTITY = "entity"
    FACT = "fact"
    DECISION = "decision"
    CHUNK = "chunk"
    THOUGHT = "thought"
    QUESTION = "question"
    HYPOTHESIS = "hypothesis"
    ACTION = "action"
    ERROR = "error"
    NOTE = "note"
    PATTERN = "pattern"
    GOAL = "goal"
    CONSTRAINT = "constraint"
    SESSION = "session"
    TASK = "task"
    SUBTASK = "subtask"
    FILEREF = "fileref"


class RelationType(StrEnum):
    """22 types in 5 families; the position is the code in arrays."""

    CONTAINS = "contains"
    DECOMPOSES_TO = "decomposes_to"
    BELONGS_TO = "belongs_to"
    DERIVES_FROM = "derives_from"
    SUPPORTS = "supports"
    CONTRADICTS = "contradicts"
    RELATED_TO = "related_to"
    QUESTIONS = "questions"
    ANSWERS = "answers"
    INDEXES = "indexes"
    EXTRACTED_FROM = "extracted_from"
    REFERENCES = "references"
    IMPLEMENTS = "implements"
    RELATES_TO_FILE = "relates_to_file"
    SEQUEL_TO = "sequel_to"
    SUPERSEDES = "supersedes"
    LEADS_TO = "leads_to"
    RESOLVES = "resolves"
    TRIGGERS = "triggers"
    DEPENDS_ON = "depends_on"
    BLOCKS = "blocks"
    CONSTRAINED_BY = "constrained_by"


class Status(StrEnum):
    """Life of a node; the position is the code in arrays."""

    ACTIVE = "active"
    STALE = "stale"
    ARCHIVED = "archived"


class Layer(StrEnum):
    """The concept's three layers of the vector index."""

    ENTITY = "entity"
    CHUNK = "chunk"
    FACT = "fact"


class Action(StrEnum):
    """What the navigation history records."""

    FOCUS = "focus"
    BRANCH = "branch"
    TRAVERSE = "traverse"
    SEARCH = "search"
    OPEN = "open"


NODE_TYPES: Final = tuple(NodeType)
RELATION_TYPES: Final = tuple(RelationType)
STATUSES: Final = tuple(Status)

NODE_CODE: Final = MappingProxyType({kind: code for code, kind in enumerate(NODE_TYPES)})
RELATION_CODE: Final = MappingProxyType({kind: code for code, kind in enumerate(RELATION_TYPES)})
STATUS_CODE: Final = MappingProxyType({kind: code for code, kind in enumerate(STATUSES)})

VECTORISED: Final = frozenset(NODE_TYPES[:13])

_LAYERS: Final = MappingProxyType(
    {
        NodeType.ENTITY: Layer.ENTITY,
        NodeType.PATTERN: Layer.ENTITY,
        NodeType.CHUNK: Layer.CHUNK,
        NodeType.NOTE: Layer.CHUNK,
    }
)

R = RelationType
FAMILIES: Final = MappingProxyType(
    {
        "hierarchical": (R.CONTAINS, R.DECOMPOSES_TO, R.BELONGS_TO),
        "semantic": (
            R.DERIVES_FROM,
            R.SUPPORTS,
            R.CONTRADICTS,
            R.RELATED_TO,
            R.QUESTIONS,
            R.ANSWERS,
        ),
        "index": (
            R.INDEXES,
            R.EXTRACTED_FROM,
            R.REFERENCES,
            R.IMPLEMENTS,
            R.RELATES_TO_FILE,
        ),
        "chronological": (R.SEQUEL_TO, R.SUPERSEDES, R.LEADS_TO, R.RESOLVES, R.TRIGGERS),
        "dependency": (R.DEPENDS_ON, R.BLOCKS, R.CONSTRAINED_BY),
    }
)

SYMMETRIC: Final = frozenset({R.CONTRADICTS, R.RELATED_TO})
HIERARCHY: Final = (R.CONTAINS, R.DECOMPOSES_TO)
FILE_RELATIONS: Final = FAMILIES["index"]
REASONING: Final = (
    R.SEQUEL_TO,
    R.LEADS_TO,
    R.TRIGGERS,
    R.RESOLVES,
    R.DERIVES_FROM,
    R.SUPPORTS,
    R.ANSWERS,
    R.SUPERSEDES,
)
ACYCLIC: Final = frozenset({R.CONTAINS, R.SUPERSEDES})

N = NodeType
_ANY: Final = frozenset(NODE_TYPES)
_TASKS: Final = frozenset({N.TASK, N.SUBTASK})
_STATEMENTS: Final = frozenset({N.FACT, N.THOUGHT, N.HYPOTHESIS, N.NOTE, N.CHUNK})

# The From → To column of the concept, read with its own examples. A relation off this
# column is kept, with a note: free use is data, not an error.
ENDS: Final = MappingProxyType(
    {
        R.CONTAINS: (_ANY, _ANY),
        R.DECOMPOSES_TO: (_TASKS | {N.GOAL}, _TASKS),
        R.BELONGS_TO: (frozenset({N.FILEREF}), _TASKS),
        R.DERIVES_FROM: (_ANY, _ANY),
        R.SUPPORTS: (
            _STATEMENTS,
            frozenset({N.DECISION, N.FACT, N.HYPOTHESIS, N.GOAL}),
        ),
        R.CONTRADICTS: (_ANY, _ANY),
        R.RELATED_TO: (_ANY, _ANY),
        R.QUESTIONS: (frozenset({N.QUESTION}), _ANY),
        R.ANSWERS: (_STATEMENTS | {N.DECISION}, frozenset({N.QUESTION})),
        R.INDEXES: (frozenset({N.ENTITY, N.PATTERN}), frozenset({N.FILEREF})),
        R.EXTRACTED_FROM: (_STATEMENTS, frozenset({N.FILEREF})),
        R.REFERENCES: (frozenset({N.DECISION}), frozenset({N.FILEREF})),
        R.IMPLEMENTS: (frozenset({N.ACTION}), frozenset({N.FILEREF})),
        R.RELATES_TO_FILE: (_ANY, frozenset({N.FILEREF})),
        R.SEQUEL_TO: (_ANY, _ANY),
        R.SUPERSEDES: (_ANY, _ANY),
        R.LEADS_TO: (_ANY, _ANY),
        R.RESOLVES: (frozenset({N.ACTION, N.DECISION}), frozenset({N.ERROR, N.QUESTION})),
        R.TRIGGERS: (_ANY, _ANY),
        R.DEPENDS_ON: (_TASKS, _TASKS),
        R.BLOCKS: (frozenset({N.ERROR, N.TASK, N.SUBTASK, N.CONSTRAINT}), _TASKS),
        R.CONSTRAINED_BY: (frozenset({N.DECISION}) | _TASKS, frozenset({N.CONSTRAINT})),
    }
)

# What `files=[…]` writes, by the node's type (contracts: graph_add_node).
_FILE_RELATION: Final = MappingProxyType(
    {
        N.ENTITY: R.INDEXES,
        N.PATTERN: R.INDEXES,
        N.DECISION: R.REFERENCES,
        N.ACTION: R.IMPLEMENTS,
        N.FACT: R.EXTRACTED_FROM,
        N.CHUNK: R.EXTRACTED_FROM,
        N.NOTE: R.EXTRACTED_FROM,
        N.THOUGHT: R.EXTRACTED_FROM,
        N.HYPOTHESIS: R.EXTRACTED_FROM,
    }
)
del R, N


def layer_of(kind: NodeType) -> Layer | None:
    """The vector layer of a node type; None for the four types that have no vector."""
    if kind not in VECTORISED:
        return None
    return _LAYERS.get(kind, Layer.FACT)


def file_relation(kind: NodeType) -> RelationType:
    """The relation by which a node of this type points to a file."""
    return _FILE_RELATION.get(kind, RelationType.RELATES_TO_FILE)


def off_taxonomy(kind: RelationType, source: NodeType, target: NodeType) -> str | None:
    """A note when the ends are off the From → To column, else None."""
    sources, targets = ENDS[kind]
    if source in sources and target in targets:
        return None
    if kind in SYMMETRIC and source in targets and target in sources:
        return None
    return f"{kind} usually does not join {source} to {target}; kept as given"


K = TypeVar("K", NodeType, RelationType, Status, Layer)


def parse_kind(kinds: type[K], text: str, field: str) -> K:
    """The member that `text` names, whatever its case and surrounding spaces.

    Raises InvalidError with the valid names.
    """
    try:
        return kinds(text.strip().lower().replace("-", "_").replace(" ", "_"))
    except ValueError:
        home = {
            NodeType: "A kind of your own: type 'entity' with data.kind",
            RelationType: "A verb of your own: type 'related_to' with data.label",
        }.get(kinds, "Use one of these")
        raise InvalidError(
            f"{field} {text!r} is unknown", "Valid: " + ", ".join(kinds), home
        ) from None
