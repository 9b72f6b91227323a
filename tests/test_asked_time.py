"""The time that a question asks for, as a window in UTC."""

from __future__ import annotations

import subprocess
import sys

import pytest

from cortex.domain.instants import Instant
from cortex.services.retrieval.asked_time import window_of
from tests.harness import ROOT

NOW = Instant("2026-05-14T12:00:00.000000Z")  # a Thursday


def days(question: str) -> tuple[str | None, str | None]:
    """First and last day of the window, None where it is open."""
    window = window_of(question, NOW)
    assert window is not None
    return (window.start and window.start[:10], window.stop and window.stop[:10])


@pytest.mark.parametrize(
    ("question", "first", "last"),
    [
        ("what happened last week?", "2026-05-04", "2026-05-10"),
        ("What did we decide yesterday?", "2026-05-13", "2026-05-13"),
        ("errors of last Friday", "2026-05-08", "2026-05-08"),
        ("two weeks ago we met", "2026-04-27", "2026-05-03"),
        ("what was said in March", "2026-03-01", "2026-03-31"),
        ("what was said in May 2023", "2023-05-01", "2023-05-31"),
        ("What did Kevin do on January 5, 2024?", "2024-01-05", "2024-01-05"),
        ("on 8 May, 2023", "2023-05-08", "2023-05-08"),
        ("the release of 29.12.2023", "2023-12-29", "2023-12-29"),
        ("notes from 2026-05-01 to 2026-05-07", "2026-05-01", "2026-05-07"),
        ("between March 2024 and June 2024", "2024-03-01", "2024-06-30"),
        ("from 2023 to 2024", "2023-01-01", "2024-12-31"),
        ("since May", "2026-05-01", None),
        ("what changed since 2026-05-01?", "2026-05-01", None),
        ("after 25.12.2023", "2023-12-26", None),
        ("before March 2024", None, "2024-02-29"),
        ("until 2024", None, "2024-12-31"),
        ("When did Caroline go there in 2023?", "2023-01-01", "2023-12-31"),
        ("the last 3 days", "2026-05-11", "2026-05-14"),
        ("im März 2024", "2024-03-01", "2024-03-31"),
        ("letzte Woche", "2026-05-04", "2026-05-10"),
        ("la semana pasada", "2026-05-04", "2026-05-10"),
        ("что было на прошлой неделе", "2026-05-04", "2026-05-10"),
        ("15 марта 2024", "2024-03-15", "2024-03-15"),
    ],
)
def test_a_time_in_words_is_the_window_it_means(
    question: str, first: str | None, last: str | None
) -> None:
    assert days(question) == (first, last)


@pytest.mark.parametrize(
    "question",
    [
        "how are keys rotated",
        "may I march on?",
        "What may happen with port 2024?",
        "POL-358 in version 3.11",
        "release 2025-99-99",
        "the second thing that broke",
        "",
        "src/2024/report.py",
        "a" * 100_000,
    ],
)
def test_a_question_without_a_time_asks_for_none(question: str) -> None:
    assert window_of(question, NOW) is None


def test_the_latest_has_no_bounds() -> None:
    window = window_of("the latest decision", NOW)
    assert window is not None
    assert (window.start, window.stop, window.newest) == (None, None, True)


def test_the_latest_since_a_month_has_both() -> None:
    window = window_of("the most recent decision since March", NOW)
    assert window is not None
    assert (window.start, window.newest) == ("2026-03-01T00:00:00.000000Z", True)


@pytest.mark.parametrize(
    ("question", "loaded"), [("how are keys kept", "False"), ("March", "True")]
)
def test_the_library_is_imported_only_for_a_time_word(question: str, loaded: str) -> None:
    code = (
        "import sys; from cortex.services.retrieval.asked_time import window_of; "
        f"window_of({question!r}, {str(NOW)!r}); print('dateparser' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert done.stdout.strip() == loaded
