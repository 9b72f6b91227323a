"""A sentence as the grammar of clauses sees it: mentions, words, marks; and its closed classes.

The classes are the words that cannot change who does what (articles, adverbs, heads like
"cluster"), those that take part in a verb, and those at which a search ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from cortex.services.fabric.mentions import Mention
from cortex.services.fabric.verbs import PREPOSITIONS
from cortex.services.fabric.words import Word, listed

Token = str | Mention

BE: Final = listed("is are was were be been being gets got get")
AUX: Final = listed("has have had will can must does do did shall")
DOUBT: Final = listed("would could should might may if unless whether")
NOT: Final = listed("not never no longer cannot neither nor nobody none hardly without")
ADVERBS: Final = listed(
    "now also currently still already always usually often mostly then recently finally just "
    "only again later today yesterday both first once even internally itself themselves all "
    "since anyway instead soon never"
)
ARTICLES: Final = listed(
    "the a an our its their his her your my this that these those both some all any every each"
)
HEADS: Final = listed(
    "service services cluster clusters app apps application applications server servers "
    "database databases team module client clients instance instances pipeline pipelines job "
    "jobs code library libraries framework layer backend frontend function functions class "
    "method component components package script scripts agent file files endpoint model index "
    "table queue queues topic topics cache driver container containers node nodes worker "
    "workers api gateway project repo repository plugin engine tool tools stack extension "
    "exporter connector consumer consumers producer tokens approach pattern dashboard "
    "dashboards pods tests"
)
FUNCTION: Final = (
    PREPOSITIONS
    | BE
    | AUX
    | DOUBT
    | NOT
    | listed(
        "and or but so because while when where which who whom whose what why how than as though "
        "although until before after during between among about against per he she it they we you "
        "i them him us me there here not instead , ; ( ) 's"
    )
)


def tokens_of(words: Sequence[Word], mentions: Sequence[Mention]) -> list[Token]:
    """Lower-case words, marks of punctuation, and mentions in their places."""
    starts = {mention.start: mention for mention in mentions}
    tokens: list[Token] = []
    at = 0
    while at < len(words):
        mention = starts.get(at)
        last = words[mention.stop - 1] if mention else words[at]
        if "(" in words[at].lead:
            tokens.append("(")
        tokens.append(mention or words[at].low.replace("’", "'"))
        if last.possessive:
            tokens.append("'s")
        if ")" in last.trail:
            tokens.append(")")
        if any(mark in last.trail for mark in ";:—–"):
            tokens.append(";")
        elif "," in last.trail:
            tokens.append(",")
        at = mention.stop if mention else at + 1
    return tokens
