"""Entities and relations of a text, without a model: rules and the graph's own names.

Cost: linear in the text, about a millisecond a thousand characters; at most `MOST_TEXT`
characters are read. What is found is meant to be right before it is meant to be complete.
"""

from __future__ import annotations

from typing import Final

from cortex.services.fabric.clauses import Stated, kind_by_role, statements_of
from cortex.services.fabric.grammar import tokens_of
from cortex.services.fabric.mentions import Mention, mentions_of
from cortex.services.fabric.values import (
    Entity,
    EntityKind,
    Extraction,
    NoVocabulary,
    Statement,
    Vocabulary,
)
from cortex.services.fabric.words import fold_name, iter_sentences

MOST_TEXT: Final = 100_000
MOST_ENTITIES: Final = 500
_EVERYDAY: Final = frozenset({EntityKind.TECHNOLOGY, EntityKind.CONCEPT})
_OF_TECHNOLOGY: Final = frozenset(
    {
        *("uses", "written_in", "written_with", "built_with", "built_on", "based_on", "runs_on"),
        *("migrated_from", "migrated_to", "replaces", "deployed_on", "implemented_in"),
        *("depends_on", "requires", "adopts", "prefers", "recommends", "used_for"),
    }
)


def extract(text: str, vocabulary: Vocabulary | None = None) -> Extraction:
    """Entities in the order of their first mention, and the relations between them.

    A name is as the text writes it first, without an article, version or possessive; each
    relation once. `vocabulary` are the names that the workspace's graph knows.
    """
    known = vocabulary or NoVocabulary()
    mentions: list[Mention] = []
    stated: list[Stated] = []
    for sentence in iter_sentences(text[:MOST_TEXT]):
        here = mentions_of(sentence.words, known)
        mentions += here
        if not sentence.asks and len(here) > 1:
            stated += statements_of(tokens_of(sentence.words, here))
        if len(mentions) > MOST_ENTITIES * 4:
            break
    return _collected(mentions, [s for s in stated if _differ(s) and _credible(s)])


def _differ(stated: Stated) -> bool:
    return fold_name(stated.source.entity.name) != fold_name(stated.target.entity.name)


def _credible(stated: Stated) -> bool:
    """Whether its unsure ends are where such names stand: a word of everyday language does
    nothing, and is a technology only where one is used."""
    source, target = stated.source, stated.target
    if not source.sure and source.entity.kind in _EVERYDAY:
        return False
    lower = target.entity.kind is EntityKind.TECHNOLOGY and not target.sure
    return not lower or stated.relation in _OF_TECHNOLOGY


def _collected(mentions: list[Mention], stated: list[Stated]) -> Extraction:
    kinds: dict[str, EntityKind] = {}
    for relation in stated:
        for mention, is_target in ((relation.source, False), (relation.target, True)):
            kind = kind_by_role(mention.entity.kind, relation.relation, is_target)
            kinds.setdefault(fold_name(mention.entity.name), kind)
    entities: dict[str, Entity] = {}
    for mention in mentions:
        key = fold_name(mention.entity.name)
        if key not in entities and (mention.sure or key in kinds):
            if len(entities) == MOST_ENTITIES:
                break
            kind = kinds.get(key, mention.entity.kind)
            entities[key] = Entity(mention.entity.name, kind)
    relations = dict.fromkeys(
        Statement(source.name, relation.relation, target.name)
        for relation in stated
        if (source := entities.get(fold_name(relation.source.entity.name)))
        and (target := entities.get(fold_name(relation.target.entity.name)))
    )
    return Extraction(tuple(entities.values()), tuple(relations))
