"""The lock file: what pyproject.toml asks for is pinned there, with hashes and no place."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parent.parent
LOCK = (ROOT / ".ci" / "requirements.lock").read_text()
PINNED = {
    canonicalize_name(name): Version(version)
    for name, version in re.findall(r"^([A-Za-z0-9._-]+)==([^ ;\\]+)", LOCK, re.MULTILINE)
}


def asked() -> list[Requirement]:
    """What an install with the test extra needs, and what builds the package."""
    about = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project = about["project"]
    lines = project["dependencies"] + project["optional-dependencies"]["test"]
    return [Requirement(line) for line in lines + about["build-system"]["requires"]]


@pytest.mark.parametrize("requirement", asked(), ids=str)
def test_the_lock_satisfies_what_is_asked_for(requirement: Requirement) -> None:
    pinned = PINNED.get(canonicalize_name(requirement.name))
    assert pinned is not None, "run make lock"
    assert requirement.specifier.contains(pinned, prereleases=True), "run make lock"


def test_every_pin_has_a_hash() -> None:
    entries = re.split(r"^(?=[A-Za-z0-9])", LOCK, flags=re.MULTILINE)[1:]
    assert len(entries) >= len(PINNED) > 50
    assert [entry.split()[0] for entry in entries if "--hash=sha256:" not in entry] == []


def test_the_lock_names_no_index_and_no_place_of_a_machine() -> None:
    assert not re.search(r"https?://|file:|--index|--find-links|^-e|@ ", LOCK, re.MULTILINE)
