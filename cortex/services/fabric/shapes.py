"""What a word is by its form alone: a file, an identifier, a role, a system's name.

Each rule looks at one word. They are tried in order, the surest first; a word that fits none
says nothing. Cost: a few regular expressions a word.
"""

from __future__ import annotations

import re
from typing import Final

from cortex.services.fabric.values import EntityKind
from cortex.services.fabric.words import Word, listed

_EXTENSIONS: Final = listed(
    "py pyi ipynb js mjs cjs jsx ts tsx vue svelte java kt kts scala go rs rb php c h cc cpp "
    "hpp cs fs swift m lua pl sh bash zsh ps1 bat sql graphql proto thrift html htm css scss "
    "sass less md mdx rst txt adoc tex json jsonl json5 yaml yml toml ini cfg conf env "
    "properties xml csv tsv parquet avro db sqlite lock log tf tfvars hcl gradle cmake mk "
    "dockerfile pem crt key pdf png svg jpg gif zip tar gz whl jar war ex exs erl hs clj dart "
    "r jl zig nix service ejs hbs j2 tmpl"
)
_PLAIN_FILES: Final = listed(
    "dockerfile makefile jenkinsfile vagrantfile procfile gemfile rakefile justfile "
    "cmakelists.txt .gitignore .dockerignore .env .npmrc .editorconfig"
)
_FOLDERS: Final = listed(
    "src lib tests test docs doc app apps pkg cmd internal config configs scripts bin tools "
    "packages api web server client deploy infra migrations etc var usr opt home tmp charts "
    "terraform frontend backend examples assets static public .github .circleci node_modules"
)
_ROLES: Final = listed(
    "engineer dev developer architect writer reviewer tester analyst designer planner "
    "researcher manager lead admin administrator agent assistant bot auditor coder editor "
    "expert specialist scientist coordinator maintainer debugger critic strategist coach "
    "advisor orchestrator curator moderator programmer consultant sre dba qa refactorer "
    "summarizer"
)
_SYSTEMS: Final = listed(
    "service services api app web ui hub console page portal site gateway server client "
    "worker job queue cron daemon cli sdk lib core db store cache proxy router engine "
    "pipeline crm erp cms bus frontend backend dashboard admin mobile desktop backoffice "
    "platform suite kit plugin operator agentd mesh relay bridge adapter connector svc ms bff "
    "etl index registry catalog inbox mailer ledger mapper resolver loader importer exporter"
)
# "-er" and "-or" name what does something, and a few words that only look so.
_DOER: Final = re.compile(r"[a-z]{2,}(?:er|or)$")
_NO_DOER: Final = listed("over under after other better higher lower later never per or for")

_IDENTIFIER: Final = (
    re.compile(r"[A-Za-z0-9]*[a-z0-9]+(?:_[A-Za-z0-9]+)+"),  # snake_case
    re.compile(r"_{0,2}[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+_{0,2}"),
    re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+"),  # SCREAMING_SNAKE
    re.compile(r"[A-Z][a-z0-9]+(?:[A-Z]+[a-z0-9]*)+"),  # CamelCase
    re.compile(r"[a-z][a-z0-9]*(?:[A-Z][A-Za-z0-9]+)+"),  # camelCase
    re.compile(r"[A-Z]{2,}[a-z]+[A-Za-z0-9]*[A-Z][A-Za-z0-9]*"),  # HTTPServerError
    re.compile(r"[A-Z]{2,10}-\d+"),  # POL-358
    re.compile(r"(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}"),  # a commit
    re.compile(r"[A-Za-z_]\w*(?:[.:#]{1,2}[A-Za-z_]\w*)*\(\)"),  # a call
    re.compile(r"[A-Za-z_]\w*(?:::[A-Za-z_]\w*)+"),  # C++ and Rust paths
    re.compile(r"/[a-z0-9{}_-]+(?:/[a-z0-9{}:_-]+)*"),  # a route
    re.compile(r"--[a-z][a-z0-9-]+"),  # an option
)
_MOMENT: Final = re.compile(r"\d{4}-\d{2}-\d{2}|\d{1,2}:\d{2}")
_DOTTED: Final = re.compile(r"[A-Za-z_]\w+(?:\.[A-Za-z_]\w+)+")
_DOMAIN: Final = re.compile(r"(?:\w+\.)+(?:com|org|net|io|dev|co|eu|de|uk|ru|gov|edu|ai)", re.I)
_HYPHENATED: Final = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+){1,4}")
_HANDLE: Final = re.compile(r"@[A-Za-z][\w-]*")
_PACKAGE: Final = re.compile(r"@[a-z][\w-]*/[a-z][\w.-]*")
_ABBREVIATION: Final = re.compile(r"(?:[A-Za-z]\.)+[A-Za-z]?")


_LINE: Final = re.compile(r":\d+(-\d+)?$")


def file_shape(text: str) -> bool:
    """Whether the word is a path or the name of a file."""
    if "://" in text or text.startswith("@") or text.endswith("()"):
        return False
    low = text.lower()
    name = low.rstrip("/").rpartition("/")[2]
    stem, dot, extension = _LINE.sub("", name).rpartition(".")
    if "/" not in low.strip("/"):
        return low in _PLAIN_FILES or (
            bool(dot and stem) and extension in _EXTENSIONS and not _ABBREVIATION.fullmatch(text)
        )
    first = low.lstrip("./~").partition("/")[0]
    known = bool(dot and stem) and extension in _EXTENSIONS
    return known or name in _PLAIN_FILES or first in _FOLDERS or low.startswith(("./", "../", "~/"))


def shape_of(word: Word) -> tuple[EntityKind, bool] | None:
    """The kind of a word by its form, and whether it is sure of it; None for a plain word.

    What is unsure becomes an entity only where a relation names it.
    """
    text = word.text
    if text.isalpha() and text[1:].islower() and not word.quoted:
        return (EntityKind.FILE, True) if text.lower() in _PLAIN_FILES else None
    if _PACKAGE.fullmatch(text):
        return EntityKind.TECHNOLOGY, True
    if file_shape(text):
        return EntityKind.FILE, True
    if _HANDLE.fullmatch(text):
        return EntityKind.PERSON, True
    if "://" in text or "@" in text or _DOMAIN.fullmatch(text):
        return None
    if text.endswith("/") and len(text) > 1:
        return EntityKind.FILE, True
    if _MOMENT.match(text):
        return None
    if any(rule.fullmatch(text) for rule in _IDENTIFIER):
        return EntityKind.IDENTIFIER, True
    if _DOTTED.fullmatch(text) and not _ABBREVIATION.fullmatch(text):
        return EntityKind.IDENTIFIER, True
    if _HYPHENATED.fullmatch(text):
        return _hyphenated(text)
    if word.quoted and len(text) > 1:
        return EntityKind.IDENTIFIER, True
    return None


def _hyphenated(text: str) -> tuple[EntityKind, bool] | None:
    last = text.rpartition("-")[2]
    if last in _ROLES:
        return EntityKind.AGENT, True
    if last in _SYSTEMS:
        return EntityKind.PROJECT, True
    if last in _QUALITIES or text.partition("-")[0] in _PREFIXES:
        return None
    if _DOER.fullmatch(last) and last not in _NO_DOER:
        return EntityKind.PROJECT, True
    if last.endswith(("ed", "ing", "en", "ly", "able", "ible", "ive", "ous", "al", "ic", "less")):
        return None
    return EntityKind.PROJECT, False


# Ends and beginnings of compounds that say how a thing is, not what.
_QUALITIES: Final = listed(
    "only first time term level wide like free ready safe off up out in by to on end date day "
    "week month year hour minute second scale side way line size point style rate old new hoc "
    "go good bad self one two three known aware friendly specific heavy light oriented prone "
    "proof long short"
)
_PREFIXES: Final = listed(
    "non pre post re un anti multi semi sub super inter intra cross self well ill half all so "
    "high low long short real near follow read write up down built ad de in on off per once "
    "one two three"
)
