"""Verbs that join two entities: their forms, and the name that a relation gets.

A relation is named by its verb in the third person (`uses`, `depends_on`), or by its
participle where a thing is described (`written_in`, `used_for`). `relation_name` brings any
wording of either to that name, so that "used", "was using" and "use" are one relation.
Cost: a dictionary look-up a word.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from cortex.domain.taxonomy import RelationType
from cortex.services.fabric.words import listed

_REGULAR: Final = """
use recommend call implement own maintain manage create design develop fix review approve propose
suggest select prefer adopt introduce replace extend inherit import include contain support expose
provide handle trigger cause block monitor test validate generate parse store cache log index query
fetch load render serve wrap invoke require need deploy host configure define integrate consume
produce publish emit process authenticate encrypt sign verify document refactor migrate move remove
deprecate drop delete add update upgrade report discover open close merge assign mentor join acquire
start orchestrate coordinate supervise sync benchmark profile debug investigate power back follow
combine compare override depend rely work connect talk listen subscribe belong communicate interact
switch live point refer push pull consist collaborate save export route forward proxy schedule
scale train evaluate automate implement return accept reject raise throw resolve register enforce
track audit analyze inspect scan format lint compile package ship release roll limit protect secure
guard isolate cover mock patch apply launch found derive base rename locate describe license assess
collect aggregate convert transform translate map embed rank score order mount bind delegate
escalate notify alert request ask order advise champion supersede subclass trust oppose target
integrate specify mandate transfer persist retain supply ingest stream replicate transition
"""
_IRREGULAR: Final = """
write writes wrote written writing; build builds built built building; choose chooses chose chosen
choosing; read reads read read reading; run runs ran run running; lead leads led led leading; send
sends sent sent sending; find finds found found finding; drive drives drove driven driving; keep
keeps kept kept keeping; rewrite rewrites rewrote rewritten rewriting; put puts put put putting; set
sets set set setting; hold holds held held holding; teach teaches taught taught teaching; pick picks
picked picked picking; split splits split split splitting; swap swaps swapped swapped swapping; wrap
wraps wrapped wrapped wrapping; ship ships shipped shipped shipping; map maps mapped mapped mapping;
log logs logged logged logging; drop drops dropped dropped dropping; debug debugs debugged debugged
debugging; prefer prefers preferred preferred preferring; refer refers referred referred referring;
emit emits emitted emitted emitting; embed embeds embedded embedded embedding; scan scans scanned
scanned scanning; plan plans planned planned planning; sync syncs synced synced syncing; feed feeds
fed fed feeding; break breaks broke broken breaking; submit submits submitted submitted submitting;
commit commits committed committed committing; transfer transfers transferred transferred
transferring; leave leaves left left leaving
"""
_IRREGULAR_ENTRIES: Final = tuple(
    tuple(entry.split()) for entry in _IRREGULAR.replace("\n", " ").split(";") if entry.strip()
)


class Form(NamedTuple):
    """What a word may be: the verb's third person and participle, and which forms it is."""

    third: str
    participle: str
    base: bool
    past: bool
    done: bool
    going: bool


def _regular(base: str) -> tuple[str, str, str]:
    if base.endswith("y") and base[-2] not in "aeiou":
        return base[:-1] + "ies", base[:-1] + "ied", base + "ing"
    if base.endswith("e"):
        return base + "s", base + "d", base[:-1] + "ing"
    third = base + ("es" if base.endswith(("s", "sh", "ch", "x", "z")) else "s")
    return third, base + "ed", base + "ing"


def _forms() -> dict[str, Form]:
    forms: dict[str, Form] = {}
    irregular = {entry[0] for entry in _IRREGULAR_ENTRIES}
    for base in _REGULAR.split():
        if base not in irregular:
            third, past, going = _regular(base)
            _enter(forms, base, third, past, past, going)
    for base, third, past, done, going in _IRREGULAR_ENTRIES:
        _enter(forms, base, third, past, done, going)
    return forms


def _enter(forms: dict[str, Form], base: str, third: str, past: str, done: str, going: str) -> None:
    for word in (base, third, past, done, going):
        forms.setdefault(
            word,
            Form(third, done, word == base, word == past, word == done, word == going),
        )


FORMS: Final = _forms()

# Particles that a verb takes before its object.
PREPOSITIONS: Final = listed(
    "on in to from with at for by of via through under into onto over as against using"
)
# Verbs that reach the second entity over what they carry: "writes its logs to Kafka".
CARRYING: Final = frozenset(
    {
        *(("stores", "in"), ("keeps", "in"), ("saves", "in"), ("saves", "to"), ("caches", "in")),
        *(("writes", "to"), ("publishes", "to"), ("sends", "to"), ("pushes", "to")),
        *(("exports", "to"), ("reports", "to"), ("logs", "to"), ("forwards", "to")),
        *(("reads", "from"), ("fetches", "from"), ("loads", "from"), ("imports", "from")),
        *(("pulls", "from"), ("consumes", "from"), ("emits", "to")),
        *(("deploys", "to"), ("deploys", "on"), ("routes", "to"), ("streams", "to")),
        *(("persists", "in"), ("persists", "to"), ("collects", "from"), ("ingests", "from")),
    }
)

# Verbs that reach it over a particle at once: "runs on X". Others are nouns there: "calls to X".
INTRANSITIVE: Final = listed(
    "runs works depends relies connects talks listens subscribes belongs communicates "
    "interacts switches moves migrates transitions lives points refers pushes pulls consists "
    "collaborates writes reads publishes sends reports deploys logs integrates inherits "
    "derives builds imports exports fetches loads consumes leads proxies forwards routes "
    "syncs stores saves persists streams collects ingests emits delegates escalates binds "
    "mounts registers sits resolves reaches falls posts hooks plugs feeds wraps defers hands "
    "scales converts ports upgrades queries renders compiles serializes joins reacts responds "
    "replies speaks uploads downloads"
)

_AUXILIARY: Final = re.compile(
    r"^(?:(?:is|are|was|were|be|been|being|has|have|had|will|can|must|does|do|did|get|gets|got)_)+"
)
# Where another wording says the same relation.
_SAME: Final = {
    "utilizes": "uses",
    "utilises": "uses",
    "employs": "uses",
    "leverages": "uses",
    "made_with": "built_with",
    "built_using": "built_with",
    "written_using": "written_with",
    "runs_in": "runs_on",
    "deployed_to": "deployed_on",
    "deployed_in": "deployed_on",
    "hosted_in": "hosted_on",
    "works_for": "works_at",
    "employed_by": "works_at",
    "employed_at": "works_at",
}
_TYPES: Final = {
    "depends_on": RelationType.DEPENDS_ON,
    "relies_on": RelationType.DEPENDS_ON,
    "requires": RelationType.DEPENDS_ON,
    "needs": RelationType.DEPENDS_ON,
    "blocks": RelationType.BLOCKS,
    "triggers": RelationType.TRIGGERS,
    "causes": RelationType.LEADS_TO,
    "leads_to": RelationType.LEADS_TO,
    "resolves": RelationType.RESOLVES,
    "fixes": RelationType.RESOLVES,
    "supports": RelationType.SUPPORTS,
    "implements": RelationType.IMPLEMENTS,
    "derives_from": RelationType.DERIVES_FROM,
    "derived_from": RelationType.DERIVES_FROM,
    "based_on": RelationType.DERIVES_FROM,
    "belongs_to": RelationType.BELONGS_TO,
    "part_of": RelationType.BELONGS_TO,
    "references": RelationType.REFERENCES,
    "refers_to": RelationType.REFERENCES,
}


def relation_name(wording: str) -> str:
    """The canonical name of a relation in any of its wordings.

    "used" → uses, "was written in" → written_in, "relied on" → relies_on. A wording with no
    known verb is only brought to lower case with underscores.
    """
    name = re.sub(r"[\s\-]+", "_", wording.strip().lower())
    bare = _AUXILIARY.sub("", name)
    described = bare != name and not name.startswith(("has_", "have_", "had_", "will_", "can_"))
    head, _, rest = bare.partition("_")
    form = FORMS.get(head)
    if form is not None:
        stays = form.done and rest and (described or not (form.past or form.base))
        stays = stays or f"{head}_{rest}" in _STATIVE
        head = form.participle if stays else form.third
    bare = f"{head}_{rest}" if rest else head
    return _SAME.get(bare, bare)


# Participle and particle that describe a thing, whoever did it.
_STATIVE: Final = frozenset(
    f"{verb}_{particle}"
    for verb in listed("written built implemented deployed hosted stored defined located described")
    for particle in listed("in on with to by using at for")
) | frozenset(
    {
        *("used_for", "used_in", "used_by", "based_on", "backed_by", "powered_by", "assigned_to"),
        *("documented_in", "configured_in", "configured_with", "configured_via", "cached_in"),
        *("derived_from", "designed_for", "protected_by", "replaced_by", "replaced_with"),
        *("migrated_from", "migrated_to", "exposed_via", "tested_with", "managed_by", "renamed_to"),
    }
)


def relation_type(name: str) -> RelationType | None:
    """Which of the 22 types says it; None for a verb that stays a label."""
    return _TYPES.get(name)
