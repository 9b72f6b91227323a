"""The commands with which people look at single memories and correct them."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cortex.cli.app import app
from cortex.domain.errors import (
    AmbiguousError,
    ConflictError,
    CortexError,
    InvalidError,
    NotFoundError,
)
from cortex.domain.taxonomy import Status
from cortex.domain.values import Node
from cortex.memory import Memory
from cortex.services.fields import Fields
from tests.harness import ROOT
from tests.local import start_cortex


def cortex(memory: Memory, *arguments: str) -> str:
    """What a command printed; an error of ours is raised."""
    home = str(memory.settings.home)
    place = [] if arguments[0] == "workspace" else ["--workspace", "w"]
    done = CliRunner().invoke(app, [*arguments, "--home", home, *place], terminal_width=100)
    if isinstance(done.exception, CortexError):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.stdout


def add(memory: Memory, kind: str = "fact", text: str = "Tokens expire", **more: Any) -> str:
    fields = {name: more.pop(name) for name in ("title", "tags", "data") if name in more}
    return memory.adding.add_node(kind, Fields(text=text, **fields), **more).id


def node(memory: Memory, node_id: str) -> Node:
    return memory.inspecting.locate(node_id)


def test_show_prints_the_whole_text_data_relations_both_ways_chain_and_files(
    memory: Memory, tmp_path: Path
) -> None:
    (tmp_path / "jwt.py").write_text("def check(): ...\n")
    task = add(memory, "task", "Sign tokens")
    text = "HS256 [bold]not markup[/bold] " + "long " * 100 + "end"
    old = add(memory, "decision", text, parent=task, data={"owner": "ann"}, files=["gone.py:3"])
    new = memory.mutation.supersede(old, Fields(text="RS256")).new_id
    assert new is not None
    shown = cortex(memory, "show", old[:8])
    words = " ".join(shown.split())
    assert " ".join(text.split()) in words
    assert "owner" in words
    assert "ann" in words
    assert f"! {old[:8]} decision" in words
    assert f"is superseded by {new}" in words
    assert f"{new[:8]} active" in words
    assert f"← contains {task[:8]} task Sign tokens" in words
    assert f"← supersedes {new[:8]}" in words
    assert "gone.py:3" in words
    found = json.loads(cortex(memory, "show", old, "--json"))
    assert found["node"]["text"] == text
    assert [each["id"] for each in found["chain"]] == [new, old]


def test_a_prefix_copied_from_another_workspace_is_found_without_naming_it(memory: Memory) -> None:
    other = add(memory, text="Water the plants", workspace="garden")
    assert memory.inspecting.locate(other[:8]).workspace_id == "garden"
    with pytest.raises(NotFoundError, match="workspace 'w'"):
        memory.inspecting.locate(other[:8], "w")


def test_a_path_that_two_other_workspaces_know_is_refused_with_both(memory: Memory) -> None:
    for place in ("a", "b"):
        add(memory, files=["src/x.py"], workspace=place)
    with pytest.raises(AmbiguousError, match=r"in a; .* in b\. Pass --workspace"):
        memory.inspecting.locate("src/x.py")


def test_edit_changes_what_is_named_and_merges_data(memory: Memory) -> None:
    fact = add(memory, title="Old", tags=["x"], data={"keep": 1, "drop": 2})
    said = cortex(
        memory, "edit", fact, "--title", "New", "--tags", "a, b", "--data", '{"drop": null}'
    )
    assert "changed drop, tags, title" in said
    data = node(memory, fact).data
    assert (data["title"], data["tags"], data["keep"]) == ("New", ["a", "b"], 1)
    assert "drop" not in data


def test_edit_without_options_saves_what_the_editor_wrote_and_only_a_change(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fact = add(memory, text="Tokens expire after 24 hours")
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nsed -i s/24/12/ "$1"\n')
    editor.chmod(0o700)
    monkeypatch.setenv("VISUAL", str(editor))
    assert "changed text" in cortex(memory, "edit", fact)
    assert node(memory, fact).text == "Tokens expire after 12 hours"
    before = memory.generation()
    monkeypatch.setenv("VISUAL", "true")
    assert "nothing changed" in cortex(memory, "edit", fact)
    monkeypatch.setenv("VISUAL", "truncate -s 0")
    assert "nothing changed" in cortex(memory, "edit", fact)
    assert memory.generation() == before


def test_an_edit_does_not_overwrite_what_an_agent_wrote_meanwhile(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fact = add(memory, text="one")
    editor = tmp_path / "editor"
    edit = f"{sys.executable} -m cortex edit {fact} --text agent --home {memory.settings.home}"
    editor.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} {edit} >/dev/null\necho mine > "$1"\n')
    editor.chmod(0o700)
    monkeypatch.setenv("VISUAL", str(editor))
    with pytest.raises(ConflictError, match="Yours, not saved: mine"):
        cortex(memory, "edit", fact)
    assert node(memory, fact).text == "agent"


def test_a_missing_editor_and_broken_data_are_said_in_one_line(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    fact = add(memory)
    monkeypatch.setenv("VISUAL", "/no/such/editor")
    with pytest.raises(InvalidError, match="VISUAL or EDITOR"):
        cortex(memory, "edit", fact)
    with pytest.raises(InvalidError, match="not JSON"):
        cortex(memory, "edit", fact, "--data", "{")


def test_pin_keeps_and_off_lets_go(memory: Memory) -> None:
    fact = add(memory)
    assert ": pinned\n" in cortex(memory, "pin", fact)
    assert node(memory, fact).pinned
    assert "pinned already" in cortex(memory, "pin", fact)
    cortex(memory, "pin", fact, "--off")
    assert not node(memory, fact).pinned


def test_archive_with_cascade_takes_what_is_below_and_restore_brings_one_back(
    memory: Memory,
) -> None:
    task = add(memory, "task", "Task")
    fact = add(memory, parent=task)
    assert "with 1 below it" in cortex(memory, "archive", task, "--cascade")
    assert node(memory, fact).status is Status.ARCHIVED
    assert ": active" in cortex(memory, "restore-node", fact)
    assert node(memory, fact).status is Status.ACTIVE
    assert node(memory, task).status is Status.ARCHIVED


def test_a_superseded_node_comes_back_stale(memory: Memory) -> None:
    old = add(memory)
    memory.mutation.supersede(old, Fields(text="Tokens never expire"))
    cortex(memory, "archive", old)
    assert "it is stale" in cortex(memory, "restore-node", old)
    assert node(memory, old).status is Status.STALE


def test_delete_without_a_terminal_and_without_yes_is_refused_with_2(memory: Memory) -> None:
    fact = add(memory)
    with start_cortex(memory.settings.home, "delete", fact, "-w", "w") as process:
        _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "would be deleted" in err
    assert "Valid: --yes" in err
    assert node(memory, fact).id == fact


def test_delete_on_a_terminal_shows_what_would_go_and_does_what_is_answered(
    memory: Memory,
) -> None:
    task = add(memory, "task", "Task")
    fact = add(memory, text="A fact below", parent=task)
    command = [sys.executable, "-m", "cortex", "delete", task, "--cascade", "-w", "w"]
    command += ["--home", str(memory.settings.home)]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    for answer, code in (("n", 1), ("y", 0)):
        far, near = pty.openpty()
        os.write(far, f"{answer}\n".encode())
        done = subprocess.run(command, stdin=near, capture_output=True, text=True, env=env)
        os.close(far)
        os.close(near)
        assert done.returncode == code, done.stderr
        assert "with 1 below it" in done.stderr
        assert "A fact below" in done.stderr
    with pytest.raises(NotFoundError):
        node(memory, fact)


def test_sessions_below_one_that_is_deleted_go_with_it(memory: Memory) -> None:
    outer = add(memory, "session", "Outer")
    for text in ("one", "two"):
        add(memory, parent=add(memory, "session", text, parent=outer))
    done = json.loads(cortex(memory, "delete", outer, "--cascade", "--yes", "--json"))
    assert len(done["deleted"]) == 5


def test_relate_joins_refreshes_and_keeps_a_verb_of_ones_own(memory: Memory) -> None:
    a, b = add(memory, text="A fact"), add(memory, "decision", "A decision")
    assert "joined: supports" in cortex(memory, "relate", a, "supports", b, "--weight", "0.5")
    assert "refreshed: supports" in cortex(memory, "relate", a, "supports", b)
    cortex(memory, "relate", a, "related_to", b, "--label", "smells like")
    assert "related_to:smells like" in cortex(memory, "show", a)
    with pytest.raises(InvalidError, match="Valid: contains, "):
        cortex(memory, "relate", a, "suports", b)


def test_the_history_of_a_node_says_who_changed_what(memory: Memory) -> None:
    fact = add(memory, text="Tokens expire after 24 hours", title="Expiry")
    cortex(memory, "edit", fact, "--text", "Tokens expire after 12 hours")
    cortex(memory, "archive", fact)
    cortex(memory, "delete", fact, "--yes")
    said = cortex(memory, "history", fact[:8])
    assert "text: Tokens expire after 24 hours" in said
    assert "→ Tokens expire after 12 hours" in said
    assert "status: active → archived" in said
    assert "deleted by cli#" in said
    assert "made by python#" in said
    changes = json.loads(cortex(memory, "history", fact, "--json"))["changes"]
    assert [change["op"] for change in changes] == ["delete", "update", "update", "insert"]
    assert changes[1]["fields"] == {"status": {"before": "active", "after": "archived"}}


def test_the_history_of_a_workspace_names_what_was_asked(memory: Memory) -> None:
    assert "No visits in 'w' yet" in cortex(memory, "history")
    add(memory, text="Tokens expire")
    memory.search.graph_search("tokens")
    assert memory.history.flush(wait=10)
    assert "“tokens” Tokens" in cortex(memory, "history")


def test_the_timeline_is_bounded_by_its_window(memory: Memory) -> None:
    add(memory, text="Tokens expire")
    assert "created" in cortex(memory, "timeline", "--from", "2020-01-01")
    assert "Nothing happened" in cortex(memory, "timeline", "--to", "2020-01-01")
    assert len(json.loads(cortex(memory, "timeline", "--json", "-n", "1"))["events"]) == 1


def test_the_shell_completes_nodes_and_workspaces_without_touching_the_file(
    memory: Memory,
) -> None:
    fact = add(memory)
    home = str(memory.settings.home)

    def offered(*words: str, incomplete: str) -> list[str]:
        line = " ".join(["cortex", *words, incomplete])
        done = subprocess.run(
            [sys.executable, "-m", "cortex"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT),
                "CORTEX_HOME": home,
                "CORTEX_WORKSPACE_ID": "w",
                "_CORTEX_COMPLETE": "complete_bash",
                "COMP_WORDS": line,
                "COMP_CWORD": str(len(words) + 1),
            },
        )
        assert not done.stderr
        return done.stdout.split()

    before = memory.generation()
    assert offered("show", incomplete=fact[:3]) == [fact]
    assert offered("workspace", "delete", incomplete="w") == ["w"]
    assert memory.generation() == before


def test_completion_offers_nothing_where_there_is_no_memory(tmp_path: Path) -> None:
    env = {"_CORTEX_COMPLETE": "complete_bash", "COMP_WORDS": "cortex show a", "COMP_CWORD": "2"}
    env |= {**os.environ, "PYTHONPATH": str(ROOT), "CORTEX_HOME": str(tmp_path / "none"), **env}
    done = subprocess.run(
        [sys.executable, "-m", "cortex"], stdin=subprocess.DEVNULL, capture_output=True, env=env
    )
    assert (done.stdout.strip(), done.stderr) == (b"", b"")
    assert not (tmp_path / "none").exists()


def test_a_command_ends_with_its_code_while_a_background_thread_still_runs(tmp_path: Path) -> None:
    script = """
import atexit, sys, threading, time
from cortex.__main__ import main
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
atexit.register(print, "the interpreter unwound its threads")
sys.argv = ["cortex", "status", "--home", sys.argv[1], "--json"]
main()
"""
    ended = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ended.returncode == 0
    assert "unwound" not in ended.stdout
    assert json.loads(ended.stdout)["generation"] == 0
