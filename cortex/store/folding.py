"""The form in which words are compared: lower case, composed, without accents."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

# After decomposition: what is written over or under a letter, and what nobody sees. Cyrillic
# keeps its breve (й is no и) and loses its stress and the dots of ё.
_ACCENTS: Final = re.compile(
    "(?<![\u0400-\u052f])[\u0300-\u036f]+|[\u0300\u0301]|(?<=\u0435)\u0308"
    "|[\u0591-\u05bd\u05bf\u05c1\u05c2\u0640\u064b-\u065f\u0670\u00ad\u200c\u200d\ufe00-\ufe0f]"
)


def fold(text: str) -> str:
    """Compatibility form, lower case, without accents; composed again."""
    if text.isascii():
        return text.lower()
    plain = _ACCENTS.sub("", unicodedata.normalize("NFKD", text).casefold())
    return unicodedata.normalize("NFC", plain)
