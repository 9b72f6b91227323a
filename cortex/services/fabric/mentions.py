"""Where a sentence names an entity: the graph's names, known names, forms, people.

Rules go from the surest to the least sure, the longest name first, left to right, so that
each word belongs to one mention. A weak mention (`sure` False) becomes an entity only where
a relation names it. Cost: words times the longest name. Precision is meant to be high:
a capitalised word that begins a sentence, and says nothing else, is no name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from cortex.services.fabric import lexicon
from cortex.services.fabric.shapes import shape_of
from cortex.services.fabric.values import Entity, EntityKind, Vocabulary
from cortex.services.fabric.words import Word, fold_name, joined, listed

_ARTICLES: Final = frozenset({"the", "a", "an"})
_TEAM: Final = listed(
    "team guild squad tribe chapter department platform group council committee crew office"
)
_COMPANY: Final = listed(
    "inc inc. corp corp. corporation gmbh ag ltd ltd. llc plc co. labs foundation university "
    "institute technologies systems solutions consulting bank"
)
_TITLES: Final = listed("dr dr. mr mr. mrs mrs. ms ms. prof prof.")
_PARTICLES: Final = listed("van von de der den da di del la le bin al")
_DATES: Final = listed(
    "monday tuesday wednesday thursday friday saturday sunday january february march april "
    "may june july august september october november december mon tue wed thu fri sat sun jan "
    "feb mar apr jun jul aug sep sept oct nov dec q1 q2 q3 q4 utc gmt cet pst est christmas "
    "easter am pm"
)
_LINE: Final = re.compile(r":\d+(-\d+)?$")
# Words that begin with a capital for reasons of grammar, or that name no one thing.
PLAIN: Final = listed(
    "i a an the this that these those it its we you he she they there here our your my his "
    "her their who what when where why how which and or but if then so as at by for from in "
    "into of off on onto out over to up with without within about after before since until "
    "while during because although though unless whether not no yes ok okay also too very "
    "just only even still yet again now today tomorrow yesterday never always often sometimes "
    "usually maybe perhaps please remember note everyone everybody someone somebody anyone "
    "anybody nobody none nothing something anything everything each every all any some most "
    "many few several both either neither another other such one two three four five six "
    "seven eight nine ten first second third last next new old is are was were be been do "
    "does did has have had can could will would should may might must let lets let's don't "
    "doesn't didn't can't won't isn't aren't english german french spanish russian chinese "
    "greek latin roman arabic indian italian portuguese dutch turkish polish japanese "
    "european american internet api apis sdk ui ux id ids url urls uri pr prs qa sla "
    "slo kpi todo fixme faq ci cd cpu gpu ram ssd mb gb kb tb ms ceo cto cfo vp hr it's i'm "
    "i've we're we've staging production prod dev db os ai ml llm llms legal sales marketing "
    "support finance engineering ops devops security product design management according"
)
_SAYING: Final = listed(
    "said says told tells thinks thought decided decides wants wanted asked asks suggested "
    "suggests recommended recommends proposed proposes prefers preferred reviewed reviews "
    "approved wrote writes fixed reported explained noticed believes insisted agreed joined "
    "leads led manages managed owns works worked mentors argued noted confirmed complained "
    "promised refused"
)


class Mention(NamedTuple):
    """Words `start` to `stop` (exclusive) of a sentence name this entity."""

    start: int
    stop: int
    entity: Entity
    sure: bool


def _lexicon() -> dict[str, Entity]:
    known: dict[str, Entity] = {}
    for kind, names in (
        (EntityKind.TECHNOLOGY, lexicon.TECHNOLOGIES),
        (EntityKind.PATTERN, lexicon.PATTERNS),
        (EntityKind.ORGANIZATION, lexicon.ORGANIZATIONS),
        (EntityKind.CONCEPT, lexicon.CONCERNS),
    ):
        for name in names:
            known.setdefault(fold_name(name), Entity(name, kind))
    return known


_KNOWN: Final = _lexicon()


def _longest(names: Iterable[str]) -> dict[str, int]:
    longest: dict[str, int] = {}
    for name in names:
        parts = name.split()
        longest[parts[0]] = max(longest.get(parts[0], 0), len(parts))
    return longest


_LONGEST: Final = _longest(_KNOWN)


def mentions_of(words: Sequence[Word], vocabulary: Vocabulary) -> list[Mention]:
    """The mentions of a sentence, left to right, without overlap."""
    found: list[Mention] = []
    folded = [fold_name(word.text) for word in words]
    at = 0
    while at < len(words):
        mention = (
            _in_graph(words, folded, at, vocabulary)
            or _person(words, at)
            or _known(words, folded, at)
            or _shaped(words, at)
            or _proper(words, at)
        )
        if mention is None:
            at += 1
            continue
        found.append(mention)
        at = mention.stop
    return found


def graph_names(words: Sequence[Word], vocabulary: Vocabulary) -> list[Mention]:
    """The mentions of names of the graph alone: a quarter of the cost."""
    folded = [fold_name(word.text) for word in words]
    found: list[Mention] = []
    at = 0
    while at < len(words):
        mention = _in_graph(words, folded, at, vocabulary)
        if mention is not None:
            found.append(mention)
        at = mention.stop if mention else at + 1
    return found


def _named(words: Sequence[Word], start: int, stop: int, kind: EntityKind, sure: bool) -> Mention:
    name = " ".join(word.text for word in words[start:stop])
    return Mention(start, stop, Entity(name, kind), sure)


def _in_graph(
    words: Sequence[Word], folded: Sequence[str], at: int, vocabulary: Vocabulary
) -> Mention | None:
    longest = vocabulary.longest(folded[at].partition(" ")[0])
    for stop in range(min(at + longest, len(words)), at, -1):
        span = words[at:stop]
        if not joined(span) or span[0].low in _ARTICLES:
            continue
        term = vocabulary.find(" ".join(folded[at:stop]))
        if term is not None:
            # A plain word that is some node's title ("Notes") is a mention where it is written so.
            text = span[0].text
            plain = text.isalpha() and text[1:].islower()
            sure = len(span) > 1 or text == term.name or not plain
            return _named(words, at, stop, term.kind, sure)
    return None


def _known(words: Sequence[Word], folded: Sequence[str], at: int) -> Mention | None:
    longest = _LONGEST.get(folded[at].partition(" ")[0], 0)
    for stop in range(min(at + longest, len(words)), at, -1):
        span = words[at:stop]
        if not joined(span) or span[0].low in _ARTICLES:
            continue
        text = " ".join(word.text for word in span)
        name = " ".join(folded[at:stop])
        entity = _KNOWN.get(name)
        if entity is None and stop - at > 1:
            entity = _KNOWN.get(name.removesuffix("s"))
        if entity is not None and stop - at == 1 and "-" in text and "-" not in entity.name:
            continue  # "api-gateway" is somebody's own, not the API Gateway
        if entity is None or (entity.name.startswith(".") and not text.startswith(".")):
            continue
        sure = entity.kind is not EntityKind.CONCEPT
        if entity.name in lexicon.CASED:
            # Its lower-case form is an English word, and so may be its capital after a full stop.
            sure = text == entity.name and (at > 0 or _goes_on(words, stop))
            if not sure and text.isupper():
                return None
        if sure and words[stop - 1].capital and entity.kind is EntityKind.TECHNOLOGY:
            stop = _extended(words, stop)
        return _named(words, at, stop, entity.kind, sure)
    return None


def _extended(words: Sequence[Word], stop: int) -> int:
    """The end of a product's name that goes on: "Kafka" of "Kafka Connect"."""
    if _is_headline(words):
        return stop
    while stop < len(words) and joined(words[stop - 1 : stop + 1]) and _is_proper(words[stop]):
        if words[stop].text in lexicon.GIVEN_NAMES or fold_name(words[stop].text) in _KNOWN:
            break
        stop += 1
    return stop


def _goes_on(words: Sequence[Word], stop: int) -> bool:
    """Whether a verb in the third person follows, as after a name and its version."""
    if stop < len(words) and words[stop].text[:1].isdigit():
        stop += 1
    after = words[stop].low if stop < len(words) else ""
    return words[stop - 1].possessive or (
        after in {"is", "was", "has", "and", "can", "will", "does"}
        or (after.endswith(("s", "ed")) and not after.endswith("ss"))
    )


def _person(words: Sequence[Word], at: int) -> Mention | None:
    start = at
    if words[at].low in _TITLES and at + 1 < len(words) and words[at + 1].capital:
        at += 1
    elif words[at].text not in lexicon.GIVEN_NAMES:
        return None
    stop = at + 1
    while stop < len(words) and joined(words[stop - 1 : stop + 1]):
        word = words[stop]
        if word.capital and word.text.isalpha() and word.low not in PLAIN:
            stop += 1
        elif (
            word.low in _PARTICLES
            and stop + 1 < len(words)
            and joined(words[stop : stop + 2])
            and words[stop + 1].capital
        ):
            stop += 2
        else:
            break
    if words[stop - 1].low in _TEAM | _COMPANY:
        return _named(words, start, stop, EntityKind.ORGANIZATION, True)
    person = _named(words, start, stop, EntityKind.PERSON, True)
    if start < at and words[start].trail.startswith("."):
        dotted = person.entity.name.replace(" ", ". ", 1)
        return person._replace(entity=Entity(dotted, EntityKind.PERSON))
    return person


def _shaped(words: Sequence[Word], at: int) -> Mention | None:
    shape = shape_of(words[at])
    if shape is None:
        return None
    kind, sure = shape
    text = words[at].text
    name = _LINE.sub("", text) if kind is EntityKind.FILE else text
    return Mention(at, at + 1, Entity(name, kind), sure)


def _is_proper(word: Word) -> bool:
    text = word.text
    return (
        word.capital
        and len(text) > 1
        and text.replace("-", "").replace("'", "", text[1] in "'’").isalpha()
        and not (text.isupper() and len(text) > 1)
        and word.low not in PLAIN
        and word.low not in _DATES
    )


def _is_headline(words: Sequence[Word]) -> bool:
    """Whether capitals say nothing here: most of the longer words have one, as in a title."""
    longer = [word for word in words if len(word.text) > 3 and word.text.isalpha()]
    return len(longer) > 2 and 2 * sum(word.capital for word in longer) > len(longer)


def _proper(words: Sequence[Word], at: int) -> Mention | None:
    """A run of capitalised words: a team, a company, a person who speaks, some name."""
    if not _is_proper(words[at]):
        return None
    stop = at + 1
    while stop < len(words) and joined(words[stop - 1 : stop + 1]) and _is_proper(words[stop]):
        stop += 1
    last = words[stop - 1].low
    after = words[stop].low if stop < len(words) else ""
    long = stop - at > 1
    if long and last in _TEAM | _COMPANY:
        return _named(words, at, stop, EntityKind.ORGANIZATION, True)
    begins = at == 0 or words[at - 1].trail != "" or bool(words[at].lead) or _is_headline(words)
    if after in {"team", "guild", "squad"}:
        return _named(words, at, stop, EntityKind.ORGANIZATION, True)
    if after in _SAYING and (long or not words[at].low.endswith(("s", "ing"))):
        return _named(words, at, stop, EntityKind.PERSON, not begins or long)
    if begins:
        return _named(words, at, stop, EntityKind.PROJECT, False)
    return _named(words, at, stop, EntityKind.PROJECT, True)


def kind_of(name: str) -> EntityKind:
    """What a name by itself says it is; `concept` where it says nothing."""
    known = _KNOWN.get(fold_name(name))
    if known is not None:
        return known.kind
    words = name.split()
    if words and words[0] in lexicon.GIVEN_NAMES:
        return EntityKind.PERSON
    shape = shape_of(Word(name, "", "", False)) if len(words) == 1 else None
    return shape[0] if shape else EntityKind.CONCEPT
