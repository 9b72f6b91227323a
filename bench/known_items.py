"""Search quality on questions with one known answer: docstrings of Python's own library.

The packages are read in by the product's own ingest. The first line of a function's docstring
is a question, the function its answer: word for word; half of its longer words in any order,
as one asks who half remembers; or with its common verbs and nouns put otherwise. Left out
are lines of fewer than five words, and those that several functions share.
"""

from __future__ import annotations

import random
import re
import sysconfig
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, get_args

from cortex.config import load_settings
from cortex.domain.taxonomy import NodeType
from cortex.domain.values import Node, NodeId
from cortex.memory import Memory, open_memory

Wording = Literal["word for word", "half of the words", "in other words"]
WORDINGS: Final[tuple[Wording, ...]] = get_args(Wording)
PACKAGES: Final = ("json", "http", "concurrent")
_LEAST_WORDS: Final = 5
_LONG_WORD: Final = 4  # letters
# Written before any result was seen; a line in which fewer than two of them occur is not asked.
_OTHERWISE_TEXT: Final = """
return:give back, returns:gives back, send:transmit, sends:transmits, create:make,
creates:makes, parse:take apart, parses:takes apart, file:document, files:documents,
request:query, requests:queries, object:thing, objects:things, string:text, strings:texts,
execute:run, executed:run, executes:runs, call:invoke, calls:invokes, called:invoked,
function:routine, callable:routine, error:failure, errors:failures, exception:failure,
get:fetch, gets:fetches, set:assign, sets:assigns, add:append, adds:appends, remove:drop,
removes:drops, convert:turn, converts:turns, read:load, reads:loads, write:store,
writes:stores, check:verify, checks:verifies, list:sequence, value:content, values:contents,
name:label, names:labels, start:begin, starts:begins, stop:end, finish:end, close:shut,
wait:pause, waits:pauses, result:outcome, results:outcomes, message:note, connection:link,
server:host, client:caller, given:supplied, available:at hand, thread:worker, data:information,
line:row, lines:rows, number:count, response:reply
"""
_OTHERWISE: Final = dict(pair.strip().split(":") for pair in _OTHERWISE_TEXT.split(","))
_PATIENCE: Final = 300.0  # seconds for all vectors
_PAGE: Final = 1000


@dataclass(frozen=True, slots=True)
class Question:
    """`answer` is the id of the one node that is right."""

    text: str
    answer: NodeId


@dataclass(frozen=True, slots=True)
class Quality:
    """Means over the questions: the answer among the first five, and one by its rank in ten."""

    recall_at_5: float
    mrr: float
    questions: int


def library_memory(home: Path, packages: Sequence[str] = PACKAGES) -> Memory:
    """A memory of those packages, with every vector in place; the caller closes it."""
    memory = open_memory(load_settings(home=home, workspace="library", env={}))
    for name in packages:
        memory.ingest.ingest(Path(sysconfig.get_path("stdlib")) / name)
    memory.indexing.wait(None, _PATIENCE)
    return memory


def questions(
    memory: Memory, wording: Wording = "word for word", *, limit: int = 100, seed: int = 1
) -> list[Question]:
    """A seeded choice of at most `limit`, in the order of their answers' names."""
    found = [(_first_line(node), node) for node in _functions(memory)]
    times = Counter(line for line, _ in found)
    rng = random.Random(seed)
    asked = []
    for line, node in sorted(found, key=lambda each: (each[1].title, each[0])):
        text = _worded(line, wording, rng)
        if len(line.split()) >= _LEAST_WORDS and times[line] == 1 and text:
            asked.append(Question(text, node.id))
    chosen = sorted(rng.sample(range(len(asked)), min(limit, len(asked))))
    return [asked[at] for at in chosen]


def quality(memory: Memory, asked: Sequence[Question], perspectives: Sequence[str]) -> Quality:
    """Of `memory.search.rank` with those perspectives, fused as the memory is configured."""
    ranks = []
    for question in asked:
        found = memory.search.rank(question.text, top_k=10, perspectives=perspectives)
        ids = [hit.node.id for hit in found.hits]
        ranks.append(ids.index(question.answer) + 1 if question.answer in ids else 0)
    count = max(len(ranks), 1)
    return Quality(
        sum(0 < rank <= 5 for rank in ranks) / count,
        sum(1 / rank for rank in ranks if rank) / count,
        len(ranks),
    )


def _functions(memory: Memory) -> Iterator[Node]:
    cursor = None
    while True:
        page = memory.timeline.temporal_walk(
            node_types=[NodeType.ENTITY], limit=_PAGE, cursor=cursor
        )
        yield from (node for node in page.nodes if node.data.get("kind") in ("function", "method"))
        cursor = page.next_cursor
        if cursor is None:
            return


def _first_line(node: Node) -> str:
    """The docstring's, which the ingest puts below the signature."""
    lines = [line.strip() for line in node.text.splitlines()]
    starts = [at for at, line in enumerate(lines) if line.startswith(("def ", "async def "))]
    below = lines[starts[0] + 1 :] if starts else lines
    return next((line for line in below if line), "")


def _worded(line: str, wording: Wording, rng: random.Random) -> str:
    """The line as it is asked; empty where it cannot be asked so."""
    match wording:
        case "word for word":
            return line
        case "half of the words":
            words = [word for word in re.findall(r"\w+", line) if len(word) >= _LONG_WORD]
            return " ".join(rng.sample(words, (len(words) + 1) // 2))
        case "in other words":
            words = re.findall(r"\w+", line)
            other = [_OTHERWISE.get(word.lower(), word) for word in words]
            changed = sum(one != two for one, two in zip(words, other, strict=True))
            return " ".join(other) if changed > 1 else ""
