"""Texts that look like keys: what their shape is called, never what they are.

Precision before recall: a warning that is often wrong is not read. A rule is a shape that its
issuer documents and chose to be told by (a prefix, a length, an alphabet), or a value named
as a password that looks drawn by lot. Placeholders (`ghp_xxxx…`, `your-key-here`, `${TOKEN}`)
are none. Cost: a plain search for each rule's sign, then its expression where the sign is
there, which begins at the sign and whose repetitions are possessive: linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

_WORD: Final = "A-Za-z0-9_-"


@dataclass(frozen=True, slots=True)
class Rule:
    """One shape: `signs` are texts of which one is in every match; `secret` its drawn part."""

    kind: str
    signs: tuple[str, ...]
    pattern: re.Pattern[str]


def _rule(kind: str, signs: str, pattern: str) -> Rule:
    return Rule(kind, tuple(signs.split()), re.compile(rf"(?<![{_WORD}])(?:{pattern})"))


RULES: Final[tuple[Rule, ...]] = (
    _rule(
        "an AWS access key",
        "AKIA ASIA",
        rf"(?:AKIA|ASIA)(?P<secret>[A-Z2-7]{{16}}+)(?![{_WORD}])",
    ),
    _rule(
        "a GitHub token",
        "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_",
        r"(?:gh[pousr]_(?P<secret>[A-Za-z0-9]{36,255}+)"
        r"|github_pat_(?P<secret2>[A-Za-z0-9_]{60,255}+))",
    ),
    _rule("a GitLab token", "glpat-", rf"glpat-(?P<secret>[.{_WORD}]{{20,255}}+)"),
    _rule(
        "a Slack token",
        "xoxb- xoxp- xoxa- xoxe- xoxr- xoxs- xapp-",
        r"(?:xox[abeprs]|xapp)-(?P<secret>[A-Za-z0-9-]{20,255}+)",
    ),
    _rule(
        "a Slack webhook",
        "hooks.slack.com/services/",
        r"hooks\.slack\.com/services/T[A-Z0-9]{6,20}+/B[A-Z0-9]{6,20}+/"
        r"(?P<secret>[A-Za-z0-9]{20,40}+)",
    ),
    _rule("an Anthropic key", "sk-ant-", rf"sk-ant-(?P<secret>[{_WORD}]{{20,255}}+)"),
    _rule(
        "an OpenAI key",
        "sk-",
        rf"sk-(?:(?:proj|svcacct|admin|None)-(?P<secret>[{_WORD}]{{20,255}}+)"
        rf"|(?P<secret2>[A-Za-z0-9]{{32,255}}+)(?![{_WORD}]))",
    ),
    _rule("a Google API key", "AIza", rf"AIza(?P<secret>[{_WORD}]{{35}}+)(?![{_WORD}])"),
    _rule("a Google client secret", "GOCSPX-", rf"GOCSPX-(?P<secret>[{_WORD}]{{28}}+)"),
    _rule(
        "a Stripe key",
        "sk_live_ rk_live_ whsec_",
        r"(?:[sr]k_live|whsec)_(?P<secret>[A-Za-z0-9]{24,255}+)",
    ),
    _rule("an npm token", "npm_", rf"npm_(?P<secret>[A-Za-z0-9]{{36}}+)(?![{_WORD}])"),
    _rule("a PyPI token", "pypi-AgE", rf"pypi-AgE(?P<secret>[{_WORD}]{{50,2000}}+)"),
    _rule("a Hugging Face token", "hf_", r"hf_(?P<secret>[A-Za-z0-9]{30,60}+)"),
    _rule("a SendGrid key", "SG.", rf"SG\.[{_WORD}]{{22}}+\.(?P<secret>[{_WORD}]{{43}}+)"),
    _rule(
        "a JSON web token",
        "eyJ",
        rf"eyJ[{_WORD}]{{10,4000}}+\.eyJ[{_WORD}]{{10,40000}}+\.(?P<secret>[{_WORD}]{{20,4000}}+)",
    ),
    _rule(
        "a private key",
        "PRIVATE",
        r"-----BEGIN (?:[A-Z0-9]{1,20}+ ){0,3}PRIVATE KEY(?: BLOCK)?-----(?:\s|\\[rn]){1,8}"
        r"(?:[A-Za-z-]{1,30}+: [^\r\n\\]{1,200}+(?:\s|\\[rn]){1,8}){0,6}"
        r"(?P<secret>[A-Za-z0-9+/=]{24,80}+)",
    ),
)
_IN_URL: Final = "a password in a URL"
_NAMED: Final = "a password or key"

_URL: Final = re.compile(r"://[^\s/:@?#]{1,100}+:(?P<secret>[^\s/@?#]{3,200}+)@[\w.-]")
_NAME: Final = (
    r"passw(?:or)?d|passphrase|passwd|pwd|secret|credentials?|"
    # A token to page with, to lock with, to upload with is no key.
    r"(?<![A-Za-z])(?:access|auth|bearer|refresh|api|bot|session|deploy)?[_-]?token|"
    r"bearer|api[_-]?key|access[_-]?key|secret[_-]?key|auth[_-]?key|private[_-]?key"
)
_SIGNS: Final = ("passw", "passphrase", "pwd", "secret", "credential", "token", "bearer", "key")
_NAME_ENDS: Final = re.compile(rf"(?:{_NAME})s?", re.IGNORECASE)
_ASSIGNED: Final = re.compile(
    rf"(?:{_NAME})[\"']?[ \t]{{0,4}}+(?:[:=]{{1,2}}|\bis\b)[ \t]{{0,4}}+"
    r"(?:bearer[ \t]{1,4})?(?P<quote>[\"'`]?)"
    r"(?P<secret>[A-Za-z0-9+/=_.!@#$%^&*~?-]{8,256}+)(?=[\"'`,;\s)\]}]|\Z)",
    re.IGNORECASE,
)
_HOLDS_PLACE: Final = re.compile(
    r"example|placeholder|change_?me|your|dummy|sample|redacted|replace|insert|xxxx|\*\*\*|\.\.\.|"
    r"12345678|abcdefgh|foobar|[<>{}]|\$\(",
    re.IGNORECASE,
)
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_PART: Final = re.compile(r"[A-Za-z0-9]+")


def find_secrets(text: str) -> list[str]:
    """The kinds of secrets that the text seems to hold, each once, in the order of the rules."""
    kinds = [
        rule.kind
        for rule in RULES
        if any(sign in text for sign in rule.signs)
        and any(_is_drawn(_secret(match)) for match in rule.pattern.finditer(text))
    ]
    if "://" in text and any(_is_password(match["secret"]) for match in _URL.finditer(text)):
        kinds.append(_IN_URL)
    if not kinds and _holds_assigned(text):
        kinds.append(_NAMED)
    return kinds


def iter_secrets(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """(field, kind) of every text in a JSON value; keys are read as well.

    A field is named as a person would: `text`, `data.db.password`, `tags[2]`.
    """
    match value:
        case str():
            kinds = find_secrets(value)
            last = name.rpartition(".")[2]
            if not kinds and _NAME_ENDS.search(last) and _is_random(value.strip()):
                kinds = [_NAMED]
            yield from ((name, kind) for kind in kinds)
        case Mapping():
            for key, item in value.items():
                for kind in find_secrets(str(key)):
                    yield (f"a key of {name}" if name else "a key of data", kind)
                yield from iter_secrets(item, f"{name}.{key}" if name else str(key))
        case list() | tuple():
            for place, item in enumerate(value):
                yield from iter_secrets(item, f"{name}[{place}]")


def _secret(match: re.Match[str]) -> str:
    groups = match.groupdict()
    return groups["secret"] or groups.get("secret2") or ""


def _is_drawn(secret: str) -> bool:
    """Whether it was drawn by lot, as documentation's placeholders are not."""
    return len(set(secret)) >= 8 and not _HOLDS_PLACE.search(secret)


def _is_password(secret: str) -> bool:
    """Whether the place of a password in a URL holds one."""
    plain = secret.lower() in {"password", "passwd", "pass", "pwd", "secret", "pw", "token", "user"}
    if plain or len(secret) < 6 or secret[0] in "$%[(" or _HOLDS_PLACE.search(secret):
        return False
    return any(sign.isdigit() for sign in secret) and any(sign.isalpha() for sign in secret)


def _holds_assigned(text: str) -> bool:
    lowered = text.lower()
    return any(sign in lowered for sign in _SIGNS) and any(
        _is_random(match["secret"]) for match in _ASSIGNED.finditer(text)
    )


def _is_random(value: str) -> bool:
    """Whether a value named as a secret looks like one, and not like code, a path or a name.

    Letters and digits alternate in what is drawn (`hT9xQ2vL`), and stand apart in what people
    name (`sha256`, `RS256-signed`, `my_token_v2`): at least three changes within one part.
    """
    if not 8 <= len(value) <= 256 or " " in value or _HOLDS_PLACE.search(value):
        return False
    if len(set(value)) < 7 or _UUID.fullmatch(value):
        return False
    return any(_changes(part[0]) >= 3 for part in _PART.finditer(value))


def _changes(part: str) -> int:
    """How often letters and digits take turns."""
    return sum(one.isdigit() != other.isdigit() for one, other in pairwise(part))
