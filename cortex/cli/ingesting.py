"""What `cortex ingest` prints: once, as a dry run, or a line for each round of a watch."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

import typer
from rich.text import Text

from cortex.cli.looking import dump, err, out, progress, table, wait_for_vectors
from cortex.domain.errors import CortexError, InvalidError

if TYPE_CHECKING:
    from cortex.memory import Memory
    from cortex.services.ingest.writing import Ingested

_SHOWN: Final = 20
_ENDS: Final = (signal.SIGINT, signal.SIGTERM)


def run_ingest(memory: Memory, path: Path, *, dry_run: bool, watch: bool, as_json: bool) -> None:
    """Ingest as the options say. Raises InvalidError for two that exclude each other."""
    if dry_run and watch:
        raise InvalidError(
            "--dry-run and --watch exclude each other",
            "Valid: one of them",
            "Look with --dry-run first, then --watch",
        )
    if watch:
        _follow(memory, path, as_json=as_json)
        return
    report = _behind_a_bar(memory, path, dry_run=dry_run)
    left = 0 if dry_run else wait_for_vectors(memory)
    if as_json:
        dump({**asdict(report), "pending": left})
        return
    if dry_run:
        _print_changes(report)
    out.print(Text(summary(report)))
    for reason, count in report.skipped.items():
        out.print(Text(f"skipped: {count} {reason}"))
    _print_problems(report)
    if left:
        err.print(f"{left} texts still wait for their vectors; cortex status says why")


def summary(report: Ingested) -> str:
    """What was done, in one line."""
    if not report.files + report.unchanged + report.missing:
        return "nothing to read here: Markdown, text and Python files are read"
    read = "would be read" if report.dry_run else "read"
    line = (
        f"{report.files} files {read}, {report.unchanged} unchanged: {report.nodes} nodes added, "
        f"{report.updated} updated, {report.gone} gone stale"
    )
    for count, what in (
        (report.renamed, "renamed"),
        (report.missing, "missing"),
        (report.returned, "back"),
    ):
        line += f"; {count} {what}" if count else ""
    return line + ("; stopped" if report.stopped else "")


def _behind_a_bar(
    memory: Memory, path: Path, *, dry_run: bool, stopped: Callable[[], bool] = lambda: False
) -> Ingested:
    with progress("reading") as bar:
        task = bar.add_task("reading", total=None)
        return memory.ingest.ingest(
            path,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
            dry_run=dry_run,
            stopped=stopped,
        )


def _print_changes(report: Ingested) -> None:
    rows = [
        (each.action, each.added, each.updated, each.stale,
         each.path if each.was is None else f"{each.was} → {each.path}")
        for each in report.changes
    ]  # fmt: skip
    if rows:
        out.print(table("", ("", "added", "updated", "stale", "file"), rows))


def _print_problems(report: Ingested) -> None:
    problems: Mapping[str, list[str]] = {
        "unreadable": report.unreadable,
        "problems": report.problems,
        "secrets": report.secrets,
    }
    for name, lines in problems.items():
        for line in lines[:_SHOWN]:
            err.print(Text(f"{name}: {line}"), style="yellow")
        if len(lines) > _SHOWN:
            err.print(Text(f"{name}: {len(lines) - _SHOWN} more; --json lists them"))


def _follow(memory: Memory, path: Path, *, as_json: bool) -> None:
    """One line a round on stdout, until a signal; the vectors follow in the background."""
    from cortex.services.ingest.watching import follow

    def told(round_: Ingested | CortexError) -> None:
        if isinstance(round_, CortexError):
            err.print(Text(f"cortex: {round_}"), style="yellow")
        elif as_json:
            _line({**asdict(round_), "generation": memory.generation()})
        elif round_.files + round_.unchanged + round_.missing or not rounds:
            out.print(Text(summary(round_)), soft_wrap=True)
            _print_problems(round_)
        rounds.append(None)

    rounds: list[None] = []
    with _until_signal() as stop:
        if not as_json:
            err.print(Text(f"watching {path}; Ctrl-C ends"))
        follow(
            memory.ingest,
            path,
            stop,
            told,
            first=lambda: _behind_a_bar(memory, path, dry_run=False, stopped=stop.is_set),
        )
    if not as_json:
        err.print(Text("stopped"))


def _line(value: Mapping[str, Any]) -> None:
    typer.echo(json.dumps(value, ensure_ascii=False))


@contextmanager
def _until_signal() -> Iterator[threading.Event]:
    """An event that the first Ctrl-C or SIGTERM sets: the file in hand is finished.

    A second one ends the process as it always would.
    """
    stop = threading.Event()
    before = {number: signal.getsignal(number) for number in _ENDS}

    def end(number: int, frame: FrameType | None) -> None:
        stop.set()
        for each, handler in before.items():
            signal.signal(each, handler)

    for number in _ENDS:
        signal.signal(number, end)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
