"""What an answer must say so that its reader is not misled."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cortex.config import load_settings
from cortex.memory import Memory, open_memory
from tests.harness import call, connected, refused
from tests.local import ask, told

ROOT = Path(__file__).parent.parent


def test_a_backward_walk_shows_each_relation_as_it_is_stored(memory: Memory) -> None:
    thought = ask(memory, "graph_add_node", type="thought", text="it is slow")["id"]
    decision = ask(memory, "graph_add_node", type="decision", text="add an index")["id"]
    ask(memory, "graph_add_relation", from_id=thought, to_id=decision, type="leads_to")
    text = told(memory, "graph_walk", start_id=decision, direction="backward")
    assert text.splitlines()[1].startswith("<-leads_to- ")
    forward = told(memory, "graph_walk", start_id=thought)
    assert forward.splitlines()[1].startswith("-leads_to-> ")


def test_the_desktop_points_from_a_superseded_anchor_to_its_head(memory: Memory) -> None:
    old = ask(memory, "graph_add_node", type="decision", text="use REST")["id"]
    ask(memory, "desktop_focus", node_id=old)
    new = ask(memory, "graph_supersede", old_id=old, text="use GraphQL")["new_id"]
    desktop = ask(memory, "desktop_open")
    assert desktop["anchor"]["node_id"] == old
    assert desktop["anchor"]["superseded_by"]["id"] == new
    assert f"superseded by {new}" in told(memory, "desktop_open")


def test_the_desktop_tells_a_returning_agent_who_was_here_and_where_it_stopped(home: Path) -> None:
    settings = load_settings(home=home, workspace="w", env={})
    first = open_memory(settings, client="yesterday")
    node = ask(first, "graph_add_node", type="task", title="Auth module")["id"]
    ask(first, "desktop_focus", node_id=node)
    assert ask(first, "desktop_open")["last_session"] is None
    first.close()
    second = open_memory(settings, client="today")
    desktop = ask(second, "desktop_open")
    second.close()
    assert desktop["last_session"]["actor"].startswith("yesterday#")
    assert (desktop["anchor"]["node_id"], desktop["anchor"]["title"]) == (node, "Auth module")


def test_a_walk_names_the_head_of_what_is_superseded_in_it(memory: Memory) -> None:
    thought = ask(memory, "graph_add_node", type="thought", text="it is slow")["id"]
    old = ask(memory, "graph_add_node", type="decision", text="add an index")["id"]
    ask(memory, "graph_add_relation", from_id=thought, to_id=old, type="leads_to")
    new = ask(memory, "graph_supersede", old_id=old, text="add a cache")["new_id"]
    assert any(new in note for note in ask(memory, "graph_walk", start_id=thought)["notes"])


@pytest.mark.parametrize("backward", [False, True])
def test_a_verb_of_ones_own_keeps_its_direction(memory: Memory, backward: bool) -> None:
    first = ask(memory, "graph_add_node", type="entity", title="billing")["id"]
    second = ask(memory, "graph_add_node", type="entity", title="ledger")["id"]
    source, target = (second, first) if backward else (first, second)
    ask(
        memory, "graph_add_relation", from_id=source, to_id=target, type="related_to",
        data={"label": "feeds"},
    )  # fmt: skip
    assert f"{source[:8]} -related_to:feeds-> {target[:8]}" in told(
        memory, "graph_get_node", node_id=first
    )


def test_a_hot_node_shows_who_contains_whom(memory: Memory) -> None:
    task = ask(memory, "graph_add_node", type="task", title="Auth")["id"]
    ask(memory, "graph_add_node", type="goal", text="10k RPS", parent_id=task)
    assert "<-contains- Auth" in told(memory, "desktop_open")


def test_a_short_text_in_data_is_found_by_keyword_and_shown(memory: Memory) -> None:
    data = {"kind": "host", "address": "10.0.0.1"}
    node = ask(memory, "graph_add_node", type="entity", title="gateway", data=data)["id"]
    assert ask(memory, "graph_search", query="10.0.0.1")["hits"][0]["id"] == node
    assert "10.0.0.1" in told(memory, "graph_get_node", node_id=node)


def test_a_text_that_is_cut_says_so(memory: Memory) -> None:
    node = ask(memory, "graph_add_node", type="note", text="word " * 20_000)["id"]
    assert "cut at" in told(memory, "graph_get_node", node_id=node)


def test_a_workspaces_root_is_no_hit(memory: Memory) -> None:
    ask(memory, "desktop_open", workspace_id="payments")
    assert ask(memory, "graph_search", query="payments")["hits"] == []


def test_a_prefix_of_another_projects_hit_leads_to_it(memory: Memory) -> None:
    text = "the gateway checks tokens"
    node = ask(memory, "graph_add_node", type="fact", text=text, workspace_id="other")["id"]
    assert ask(memory, "graph_get_node", node_id=node[:8])["node"]["id"] == node


def test_types_without_vectors_are_named_when_searched_by_meaning(memory: Memory) -> None:
    ask(memory, "graph_add_node", type="task", title="rotate keys")
    found = ask(memory, "vector_search", query="rotate keys", types=["task"])
    assert found["hits"] == []
    assert "no vectors" in found["notes"][0]


@pytest.mark.anyio
async def test_a_tool_that_was_left_out_is_not_called_unknown(home: Path) -> None:
    async with connected(home) as client:
        await call(client, "desktop_open")
    async with connected(home, "--read-only") as client:
        assert "started without it" in await refused(client, "graph_add_node", type="fact")


def test_the_model_leaves_nothing_in_the_users_cache(tmp_path: Path) -> None:
    code = (
        "from pathlib import Path; import sys; from cortex.vectors.embedder import Embedder; "
        "from cortex.vectors.models import resolve_model; "
        "Embedder(resolve_model(None), cache_dir=Path(sys.argv[1]), idle_seconds=9).warm()"
    )
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
    subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "models")], env=env, check=True, timeout=60
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["models"]
