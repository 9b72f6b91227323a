"""Keys in texts: known by their shape, flagged on every way in, kept out where that is set."""

from __future__ import annotations

import json
import random
import string
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from cortex.config import load_settings
from cortex.domain.errors import InvalidError
from cortex.domain.secrets import find_secrets
from cortex.memory import Memory, open_memory
from cortex.services.fields import Fields
from cortex.tools.catalogue import TOOLS
from tests.harness import wired
from tests.local import ask, told


def drawn(length: int, alphabet: str = string.ascii_letters + string.digits, seed: int = 1) -> str:
    """A value made up at run time, so that nothing here looks like a key to a scanner."""
    chance = random.Random(seed)
    return "".join(chance.choice(alphabet) for _ in range(length))


BASE32 = string.ascii_uppercase + "234567"
KEYS: dict[str, Callable[[], str]] = {
    "an AWS access key": lambda: "AK" + "IA" + drawn(16, BASE32),
    "a GitHub token": lambda: "gh" + "p_" + drawn(36),
    "a GitLab token": lambda: "glp" + "at-" + drawn(20),
    "a Slack token": lambda: "xo" + "xb-" + drawn(12, string.digits) + "-" + drawn(24),
    "a Slack webhook": lambda: (
        "https://hooks.sla" + "ck.com/services/T" + drawn(8, BASE32) + "/B" + drawn(8, BASE32)
        + "/" + drawn(24)
    ),
    "an Anthropic key": lambda: "sk-" + "ant-api03-" + drawn(60),
    "an OpenAI key": lambda: "sk-" + "proj-" + drawn(48),
    "a Google API key": lambda: "AI" + "za" + drawn(35),
    "a Google client secret": lambda: "GOC" + "SPX-" + drawn(28),
    "a Stripe key": lambda: "sk_" + "live_" + drawn(24),
    "an npm token": lambda: "np" + "m_" + drawn(36),
    "a PyPI token": lambda: "py" + "pi-AgE" + drawn(80),
    "a Hugging Face token": lambda: "h" + "f_" + drawn(34),
    "a SendGrid key": lambda: "S" + "G." + drawn(22) + "." + drawn(43),
    "a JSON web token": lambda: "ey" + "J" + drawn(30) + ".ey" + "J" + drawn(60) + "." + drawn(43),
    "a private key": lambda: "-----BEGIN RSA PRI" + "VATE KEY-----\n" + drawn(64) + "\n",
    "a password in a URL": lambda: "postgres://app:" + drawn(12) + "7x@db.internal/main",
    "a password or key": lambda: "the password is " + "tR4" + "vQ9" + "zL2",
}  # fmt: skip


@pytest.mark.parametrize("kind", KEYS)
def test_a_key_of_this_kind_is_known_by_its_shape(kind: str) -> None:
    assert find_secrets(f"deploy with {KEYS[kind]()} from the vault") == [kind]


@pytest.mark.parametrize(
    "text",
    [
        "ghp_" + "x" * 36,
        "Set ANTHROPIC_API_KEY=sk-ant-your-key-here-please-and-thanks",
        "password = os.environ['DB_PASSWORD']",
        "token: RS256-signed, checked in src/auth/jwt.py",
        "next_token = 'b0f4583e-998b-4880-9069-3fbe45738b43'",
        "postgres://user:password@localhost/db",
        "The secret of the sauce is sha256sum and patience",
        "AKIAIOSFODNN7" + "EXAMPLE",
        "-----BEGIN PRIVATE KEY----- is how such a file begins",
        "commit 3a7bd3e2360a3d29eea436fcfb7e44c735d117c4",
        "api_key: ${API_KEY}",
        "",
    ],
)
def test_what_only_speaks_of_keys_is_none(text: str) -> None:
    assert find_secrets(text) == []


def test_nothing_in_the_standard_library_s_own_words_is_taken_for_a_key() -> None:
    folder = Path(sysconfig.get_paths()["stdlib"])
    texts = {path: path.read_text("utf-8", "replace") for path in folder.glob("*.py")}
    assert len(texts) > 100
    assert {str(path): kinds for path, text in texts.items() if (kinds := find_secrets(text))} == {}


WRITES: dict[str, Callable[[str, str], tuple[str, dict[str, Any]]]] = {
    "text": lambda s, n: ("graph_add_node", {"type": "fact", "text": s}),
    "title": lambda s, n: ("graph_add_node", {"type": "fact", "title": s}),
    "tags[0]": lambda s, n: ("graph_add_node", {"type": "fact", "title": "t", "tags": [s]}),
    "path": lambda s, n: ("graph_add_node", {"type": "fileref", "path": s}),
    "files[0]": lambda s, n: ("graph_add_node", {"type": "fact", "title": "t", "files": [s]}),
    "a.b": lambda s, n: (
        "graph_add_node",
        {"type": "fact", "title": "t", "data": {"a": {"b": s}}},
    ),
    "update": lambda s, n: ("graph_update_node", {"node_id": n, "text": s}),
    "supersede": lambda s, n: ("graph_supersede", {"old_id": n, "text": s}),
    "vector_store": lambda s, n: ("vector_store", {"text": s}),
    "metadata": lambda s, n: ("vector_store", {"text": "t", "metadata": {"k": s}}),
    "subtask 2": lambda s, n: ("graph_decompose", {"task_id": n, "subtasks": ["one", s]}),
    "relation": lambda s, n: (
        "graph_add_relation",
        {"from_id": n, "to_id": "{other}", "type": "related_to", "data": {"label": s}},
    ),
    "store_memory": lambda s, n: ("store_memory", {"text": s}),
}


def written(memory: Memory, way: str, secret: str) -> dict[str, Any]:
    node = memory.adding.add_node("task", Fields(title="a task")).id
    other = memory.adding.add_node("task", Fields(title="another")).id
    name, arguments = WRITES[way](secret, node)
    if arguments.get("to_id"):
        arguments["to_id"] = other
    return ask(memory, name, **arguments)


@pytest.mark.parametrize("way", WRITES)
def test_a_key_is_flagged_by_kind_and_never_repeated(memory: Memory, way: str) -> None:
    secret = KEYS["a GitHub token"]()
    answer = written(memory, way, secret)
    notes = [note for note in answer["notes"] if "a GitHub token" in note]
    assert len(notes) >= 1
    assert secret not in " ".join(notes)


@pytest.fixture
def strict(home: Path) -> Iterator[Memory]:
    env = {"CORTEX_NO_SECRETS": "1"}
    with closing(open_memory(load_settings(home=home, workspace="w", env=env))) as memory:
        yield memory


@pytest.mark.parametrize("way", WRITES)
def test_with_no_secrets_a_key_is_refused_and_nothing_of_it_stays(
    strict: Memory, home: Path, way: str
) -> None:
    secret = KEYS["a GitHub token"]()
    with pytest.raises(InvalidError, match="a GitHub token") as caught:
        written(strict, way, secret)
    assert secret not in str(caught.value)
    ask(strict, "graph_search", query=secret)
    strict.history.flush(5)
    stem = secret.encode()
    files = [file for file in home.rglob("*") if file.is_file()]
    assert home / "cortex.db" in files
    assert not [file for file in files if stem in file.read_bytes()]


def test_the_switch_of_the_server_refuses_keys(home: Path) -> None:
    with wired(home, "--no-secrets") as wire:
        done = wire.call("graph_add_node", type="fact", text=KEYS["an npm token"]())
    assert done["isError"]
    assert done["content"][0]["text"].startswith("invalid: it looks like it holds a secret")


def notes_with_key(folder: Path) -> Path:
    folder.mkdir()
    key = KEYS["an AWS access key"]()
    text = f"# Deploy\n\nRun it.\n\n## Keys\n\nUse {key} here.\n\n### Below\n\nZebra.\n"
    (folder / "notes.md").write_text(text)
    return folder


def test_ingest_reports_a_key_with_its_place(memory: Memory, tmp_path: Path) -> None:
    report = memory.ingest.ingest(notes_with_key(tmp_path / "docs"))
    [line] = report.secrets
    assert line.endswith("notes.md:5 looks like an AWS access key")
    assert report.nodes == 3


def test_with_no_secrets_ingest_leaves_out_that_piece_alone(strict: Memory, tmp_path: Path) -> None:
    report = strict.ingest.ingest(notes_with_key(tmp_path / "docs"))
    assert [line.rpartition(", ")[2] for line in report.secrets] == ["left out"]
    assert report.nodes == 2
    assert strict.search.keyword_search("zebra").hits


def test_an_import_leaves_out_what_looks_like_a_key(strict: Memory, tmp_path: Path) -> None:
    said = {"name": "Deploy", "entityType": "job", "observations": [KEYS["a Stripe key"](), "ok"]}
    file = tmp_path / "memory.jsonl"
    file.write_text(json.dumps({"type": "entity", **said}) + "\n")
    report = strict.importing.import_memory(file)
    assert (report.entities, report.observations, report.skipped) == (1, 1, 1)


def test_every_writing_tool_that_takes_text_is_among_the_ways_tested() -> None:
    taking = {"text", "title", "data", "metadata", "new_data", "subtasks"}
    tools = {
        tool.name
        for tool in TOOLS
        if tool.writes and taking & tool.input_schema["properties"].keys()
    }
    tested = {way("s", "n")[0] for way in WRITES.values()}
    # Names alone are stored of a text's entities; a session has a title.
    assert tools - tested <= {"extract_entities", "session_start"}


def test_names_that_look_like_keys_become_no_entities(memory: Memory) -> None:
    key = KEYS["a GitHub token"]()
    text = f"The Billing service uses {key} for Redis."
    assert key not in told(memory, "graph_search", query="Redis")
    ask(memory, "extract_entities", text=text, store=True)
    assert key not in json.dumps(ask(memory, "temporal_walk"))
