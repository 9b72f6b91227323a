"""What a model wants to read before a question, and before a text that may answer it.

A retrieval model is trained with them; without them it finds less. The rule follows the last
part of the model's name, so that it holds for fastembed's list, a folder, Ollama's names
(`bge-large:335m`) and other endpoints alike. The first line that fits decides; a name that
fits none (all-MiniLM, paraphrase-…, gte, jina, bge-m3, granite, text-embedding-3-…) needs
nothing. Sources: the models' cards; fastembed's own descriptions say which of its models
need prefixes, and it adds none by itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Prefixes:
    """Put before each question, and before each passage, as they stand."""

    query: str = ""
    passage: str = ""


NO_PREFIXES: Final = Prefixes()
E5: Final = Prefixes("query: ", "passage: ")

_SENTENCE: Final = Prefixes("Represent this sentence for searching relevant passages: ")
_TASK: Final = "Given a web search query, retrieve relevant passages that answer the query"

_RULES: Final = (
    # name, as a regular expression                                         prefixes
    (r"\be5-.*instruct", Prefixes(f"Instruct: {_TASK}\nQuery: ")),
    (r"\be5-mistral", Prefixes(f"Instruct: {_TASK}\nQuery: ")),
    (r"\be5\b", E5),
    (r"nomic-embed-text", Prefixes("search_query: ", "search_document: ")),
    (r"^bge-(small|base|large)-zh", Prefixes("为这个句子生成表示以用于检索相关文章：")),
    (r"^bge-(small|base|large)\b", _SENTENCE),
    (r"^mxbai-embed-large", _SENTENCE),
    (r"arctic-embed2|arctic-embed-.*v2", Prefixes("query: ")),
    (r"arctic-embed", _SENTENCE),
    (r"embeddinggemma", Prefixes("task: search result | query: ", "title: none | text: ")),
    (r"qwen3-embedding", Prefixes(f"Instruct: {_TASK}\nQuery:")),
    (r"^stella[-_]en", Prefixes(f"Instruct: {_TASK}.\nQuery: ")),
)


def prefixes_of(name: str) -> Prefixes:
    """The prefixes that a model of this name wants; none for a name that no rule knows."""
    last = name.lower().rpartition("/")[2]
    for pattern, prefixes in _RULES:
        if re.search(pattern, last):
            return prefixes
    return NO_PREFIXES
