"""How keyword search finds facts of other languages asked in other forms of their words.

A memory holds the facts of `tests/inflected` (twenty a language) beside English distractors
made of a seed; each question is asked of the product's keyword search. Then the time that
texts take to become tokens, a language each.
Run: python -m bench.languages [--distractors N] [--seed S].
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from pathlib import Path

from bench.sentences import sentence
from bench.timing import header
from cortex.config import load_settings
from cortex.memory import Memory, open_memory
from cortex.services.fields import Fields
from cortex.store.tokens import indexed

_SETS: Path = Path(__file__).parents[1] / "tests" / "inflected"
_ROUNDS: int = 20


def read_sets() -> dict[str, list[dict[str, str]]]:
    """The facts and questions of each language, by its code."""
    return {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(_SETS.glob("*.json"))}


def tell(memory: Memory, texts: list[str]) -> None:
    """Add each text as a note."""
    for text in texts:
        memory.adding.add_node("note", Fields(text=text))


def recalled(memory: Memory, facts: list[dict[str, str]]) -> tuple[float, float]:
    """The share of questions whose fact is the first hit, and among five."""
    places = []
    for each in facts:
        hits = memory.search.keyword_search(each["question"], top_k=5).hits
        texts = [hit.node.text for hit in hits]
        places.append(texts.index(each["fact"]) if each["fact"] in texts else 5)
    first = sum(place == 0 for place in places)
    return first / len(facts), sum(place < 5 for place in places) / len(facts)


def pace(texts: list[str]) -> float:
    """Characters a millisecond of CPU that become tokens, the caches warm."""
    text = " ".join(texts)
    indexed(text)
    began = time.process_time()
    for _ in range(_ROUNDS):
        indexed(text)
    return len(text) * _ROUNDS / (time.process_time() - began) / 1_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--distractors", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=1)
    chosen, _ = parser.parse_known_args()
    rng = random.Random(chosen.seed)
    english = [sentence(rng) for _ in range(chosen.distractors)]
    sets = read_sets()
    print(f"{chosen.distractors} English distractors, seed {chosen.seed}; {header()}")
    print("\n| language | facts | R@1 | R@5 | characters/ms |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as home:
        memory = open_memory(load_settings(home=Path(home), workspace="bench", env={}))
        memory.engine.after_write = lambda: None
        tell(memory, [fact["fact"] for facts in sets.values() for fact in facts])
        tell(memory, english)
        for language, facts in sets.items():
            first, five = recalled(memory, facts)
            speed = pace([fact["fact"] for fact in facts])
            print(f"| {language} | {len(facts)} | {first:.2f} | {five:.2f} | {speed:.0f} |")
        print(f"| en | – | – | – | {pace(english[:100]):.0f} |")
        memory.close()


if __name__ == "__main__":
    main()
