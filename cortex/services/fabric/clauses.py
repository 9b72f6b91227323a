"""Relations that a sentence states: subject, verb, object, where each is a mention.

Idea: at each verb form look left for the subject and right for the object, over words that
cannot change who does what (articles, adverbs, auxiliaries, "cluster"). Anything else ends
the search, and nothing is stated. A negation, a doubt ("might"), a condition or a question
states nothing. Passives turn round ("is used by"); a participle with a particle describes
("written in"); "and" and commas make lists; a verb after "and", or after "it", takes the
subject of the verb before.

Cost: words times the reach of one verb. Corners: a subject inside "nobody in X", or one that
belongs to another thing ("X's cache uses Y"), is no subject.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from cortex.services.fabric.grammar import ADVERBS, ARTICLES, BE, FUNCTION, HEADS, Token
from cortex.services.fabric.mentions import Mention
from cortex.services.fabric.objects import objects_of
from cortex.services.fabric.subjects import Left, left_of
from cortex.services.fabric.values import ACTORS, EntityKind
from cortex.services.fabric.verbs import (
    CARRYING,
    FORMS,
    INTRANSITIVE,
    PREPOSITIONS,
    Form,
    relation_name,
)

_CARRIED: Final = 4
_MOVING: Final = frozenset(
    {"migrates", "moves", "switches", "transitions", "converts", "ports", "upgrades", "swaps"}
)


class Stated(NamedTuple):
    """One relation between two mentions."""

    source: Mention
    relation: str
    target: Mention


def statements_of(tokens: Sequence[Token]) -> Iterator[Stated]:
    """The relations of one sentence, in its order."""
    before: tuple[Mention, ...] = ()
    objects: set[Mention] = set()
    for at, token in enumerate(tokens):
        if not isinstance(token, str) or token in BE:
            continue
        form = FORMS.get(token) or _unknown(tokens, at, token)
        if form is None:
            if token in {"part", "responsible"}:
                yield from _belonging(tokens, at, token, before)
            continue
        left = left_of(tokens, at, before, objects)
        if not left.subjects and not left.anyone:
            continue
        if left.subjects and _finite(form, token, left):
            before = left.subjects
        if left.denied:
            continue
        for stated in _right(tokens, at, form, token, left):
            objects.add(stated.target)
            yield stated


def _unknown(tokens: Sequence[Token], at: int, token: str) -> Form | None:
    """A verb of no list: one word in "-s" between two mentions, as in "nginx terminates TLS"."""
    if not (token.endswith("s") and len(token) > 4 and token.isalpha()) or token in HEADS:
        return None
    if at == 0 or not isinstance(tokens[at - 1], Mention) or token in FUNCTION | ADVERBS:
        return None
    after = next((t for t in tokens[at + 1 :] if t not in ARTICLES), None)
    before = tokens[at - 1]
    if not (isinstance(before, Mention) and before.sure):
        return None
    if not (isinstance(after, Mention) and after.sure) or token.endswith(
        ("ss", "ous", "ics", "us", "is")
    ):
        return None
    return Form(token, token, False, False, False, False)


def _finite(form: Form, token: str, left: Left) -> bool:
    return left.be or left.helped or form.third == token or form.past


def _right(
    tokens: Sequence[Token], verb: int, form: Form, token: str, left: Left
) -> Iterator[Stated]:
    """What the verb states of its subjects."""
    at = verb + 1
    while at < len(tokens) and tokens[at] in ADVERBS:
        at += 1
    after = tokens[at] if at < len(tokens) else ""
    described = left.be and form.done
    if not left.be and form.done and isinstance(after, str) and after in PREPOSITIONS:
        # "a cache written in Go", "UserService deployed on AWS": a thing does not deploy.
        things = all(s.entity.kind not in ACTORS for s in left.subjects)
        moved = form.third in _MOVING
        described = (things and not left.helped and not moved) or not form.past
        described = described and bool(left.subjects)
    if described:
        yield from _described(tokens, at, form, left)
        return
    if left.be and not form.going:
        return
    if form.going and not left.be:
        return
    bare = form.base and form.third != token and not form.past
    if bare and not (left.helped or len(left.subjects) > 1 or left.anyone):
        return
    yield from _active(tokens, at, form, left)


def _described(tokens: Sequence[Token], at: int, form: Form, left: Left) -> Iterator[Stated]:
    """A passive: "is used by X", "was replaced with X", "is written in X"."""
    by = at
    while by < len(tokens) and by - at < _CARRIED and isinstance(tokens[by], str):
        if tokens[by] in {"by", ",", ";", "and"}:
            break
        by += 1
    if by < len(tokens) and tokens[by] == "by":
        doers, _ = objects_of(tokens, by + 1)
        yield from (Stated(d, form.third, s) for d in doers for s in left.subjects)
        if doers:
            return
    yield from _particles(tokens, at, form.participle, left.subjects, form)


def _particles(
    tokens: Sequence[Token], at: int, verb: str, subjects: Sequence[Mention], form: Form
) -> Iterator[Stated]:
    """`verb_particle` to what follows each particle: "from X to Y"."""
    while at < len(tokens):
        particle = tokens[at]
        if not isinstance(particle, str) or particle not in PREPOSITIONS:
            return
        targets, end = objects_of(tokens, at + 1)
        for target in targets:
            for subject in subjects:
                if form.third == "replaces" and particle in {"with", "by"}:
                    yield Stated(target, form.third, subject)
                else:
                    yield Stated(subject, relation_name(f"{verb}_{particle}"), target)
        if not targets or end <= at or form.third not in _MOVING:
            return
        at = end


def _active(tokens: Sequence[Token], at: int, form: Form, left: Left) -> Iterator[Stated]:
    particle = tokens[at] if at < len(tokens) else ""
    moving = form.third in _MOVING
    if isinstance(particle, str) and particle in PREPOSITIONS:
        if form.third not in INTRANSITIVE or particle == "as":
            return
        verb = form.participle if moving else form.third
        yield from _particles(tokens, at, verb, left.subjects, form)
        return
    objects, end = objects_of(tokens, at)
    yield from (
        Stated(subject, relation_name(form.third), target)
        for subject in left.subjects
        for target in objects
    )
    if objects:
        yield from _after_objects(tokens, end, form, left, objects, moving)
        return
    # What is carried has no name: "reads its events from kafka".
    for gap in range(at, min(at + _CARRIED, len(tokens))):
        token = tokens[gap]
        if not isinstance(token, str) or token in {",", ";", "(", "and", "but"}:
            return
        if (form.third, token) in CARRYING:
            yield from _particles(tokens, gap, form.third, left.subjects, form)
            return


def _after_objects(
    tokens: Sequence[Token],
    at: int,
    form: Form,
    left: Left,
    objects: Sequence[Mention],
    moving: bool,
) -> Iterator[Stated]:
    particle = tokens[at] if at < len(tokens) else ""
    if particle == "for" and form.third == "uses":
        targets, _ = objects_of(tokens, at + 1)
        yield from (Stated(o, "used_for", t) for o in objects for t in targets)
    elif particle in {"with", "by"} and form.third == "replaces":
        targets, _ = objects_of(tokens, at + 1)
        yield from (Stated(t, form.third, o) for t in targets for o in objects)
    elif moving and particle in {"from", "to"}:
        yield from _particles(tokens, at, form.participle, objects, form)
    elif isinstance(particle, str) and (form.third, particle) in CARRYING:
        yield from _particles(tokens, at, form.third, left.subjects, form)


def _belonging(
    tokens: Sequence[Token], at: int, token: str, before: tuple[Mention, ...]
) -> Iterator[Stated]:
    """ "X is part of Y", "X is responsible for Y"."""
    particle = "of" if token == "part" else "for"
    if at + 1 >= len(tokens) or tokens[at + 1] != particle:
        return
    left = left_of(tokens, at, before, set())
    if left.be and not left.denied:
        targets, _ = objects_of(tokens, at + 2)
        name = f"{token}_{particle}"
        yield from (Stated(s, name, t) for s in left.subjects for t in targets)


def kind_by_role(kind: EntityKind, relation: str, is_target: bool) -> EntityKind:
    """A better kind for a name known only as a name, by what is said of it."""
    if kind is not EntityKind.PROJECT or not is_target:
        return kind
    if relation in {"works_at", "joins"}:
        return EntityKind.ORGANIZATION
    if relation in {"written_in", "uses", "migrated_to", "migrated_from", "built_with"}:
        return EntityKind.TECHNOLOGY
    return kind
