"""`cortex config`: this memory made known to the program in which an agent runs."""

from __future__ import annotations

import difflib
import os
import shutil
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cortex.cli.options import AsJson, Home, Workspace
from cortex.domain.errors import CortexError, InvalidError

if TYPE_CHECKING:
    from cortex.cli.host_formats import Host, Places, Platform, Scope
    from cortex.cli.host_writing import Written

commands = typer.Typer()

HostName = Annotated[
    str | None,
    typer.Argument(
        metavar="[HOST]",
        help="zoo, roo, kilo, cline, claude-code, cursor, vscode, codex, gemini, openclaw, "
        "opencode. None: the table of their files.",
    ),
]
Write = Annotated[bool, typer.Option("--write", help="Write the file; else only show it.")]
Project = Annotated[
    Path | None,
    typer.Option("--project", help="The project's file, in this folder. Default: this project."),
]
Global = Annotated[bool, typer.Option("--global", help="The user's file, for every project.")]


@commands.command("config")
def config(
    host: HostName = None,
    write: Write = False,
    project: Project = None,
    user: Global = False,
    home: Home = None,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Show or write the entry by which a host (Claude Code, Zoo, Cursor …) starts cortex."""
    from cortex.cli.host_files import snippet, with_entry
    from cortex.cli.host_formats import chosen
    from cortex.cli.host_writing import Written, read_text, write_text

    folder = project_folder(project)
    places = this_machine()
    if host is None:
        _print_table(places, folder, as_json=as_json)
        return
    known = find_host(host)
    scope = scope_of(known, project, user=user, files=known.files, places=places)
    path = chosen(known.files(scope, places, folder), folder)
    command = [*executable(), "serve", *_arguments(scope, folder, home, workspace)]
    entry = known.entry(command)
    written = None
    if write:
        text = read_text(path)
        try:
            new = with_entry(text, known.keys, entry, known.syntax)
        except CortexError as error:
            raise type(error)(f"{path}: {error.message}") from error
        written = write_text(path, text, new)
    shown = snippet(known.keys, entry, known.syntax)
    if as_json:
        print_answer(known, scope, path, shown, written, known.then)
        return
    print_text(path, shown, written or Written(path, changed=False), known.then, wrote=write)


def find_host(name: str) -> Host:
    """The host of this name. Raises InvalidError with the valid ones."""
    from cortex.cli.host_formats import HOSTS

    wanted = name.strip().lower().replace("_", "-")
    for host in HOSTS:
        if host.name == wanted:
            return host
    names = [host.name for host in HOSTS]
    near = difflib.get_close_matches(wanted, names, 1, 0.5)
    raise InvalidError(
        f"No host is called {name!r}",
        f"Valid: {', '.join(names)}",
        f"Did you mean {near[0]!r}" if near else "Any other host takes the entry of roo or cursor",
    )


def scope_of(host: Host, project: Path | None, *, user: bool, files: Any, places: Places) -> Scope:
    """The project's file or the user's: as asked, else the host's usual one, else the other."""
    if user and project is not None:
        raise InvalidError("--global and --project exclude each other", "", "Give one of them")
    there: dict[Scope, bool] = {
        scope: bool(files(scope, places, places.home)) for scope in ("project", "user")
    }
    asked: Scope | None = "user" if user else "project" if project is not None else None
    if asked is None:
        other: Scope = "user" if host.default == "project" else "project"
        return host.default if there[host.default] else other
    if not there[asked]:
        raise InvalidError(
            f"{host.title} has no {asked} file for this",
            f"Valid: {'--global' if asked == 'project' else '--project'}",
            "Leave the option out",
        )
    return asked


def project_folder(project: Path | None) -> Path:
    """The folder that is meant: as given, else the one with `.git` above, else this one.

    Raises InvalidError when it is no folder.
    """
    from cortex.config import project_root

    if project is None:
        return project_root(Path.cwd()) or Path.cwd()
    if not project.is_dir():
        raise InvalidError(f"{project} is no folder", "Valid: a folder", "Make it first")
    return project.absolute()


def this_machine() -> Places:
    """The places of the user who asks."""
    from cortex.cli.host_formats import Places

    platform: Platform = "linux"
    if sys.platform in ("win32", "darwin"):
        platform = sys.platform
    return Places(platform, os.environ)


def executable() -> list[str]:
    """What starts this install, by absolute path: hosts know neither its folder nor a PATH."""
    name = "cortex.exe" if sys.platform == "win32" else "cortex"
    installed = Path(sysconfig.get_path("scripts")) / name
    if installed.is_file():
        return [str(installed)]
    if Path(sys.argv[0]).stem == "cortex" and (found := shutil.which(sys.argv[0])):
        return [str(Path(found).absolute())]
    return [sys.executable, "-m", "cortex"]


def _arguments(scope: Scope, folder: Path, home: Path | None, workspace: str | None) -> list[str]:
    """A project's file names the project's workspace.

    The user's file names none unless asked: it serves every project, and the server finds out
    in which one it was started.
    """
    from cortex.config import load_settings

    if workspace is None and scope == "project":
        workspace = load_settings(cwd=folder).workspace
    place = ["--home", str(home.expanduser().absolute())] if home else []
    return [*(["--workspace", workspace] if workspace else []), *place]


def print_answer(
    host: Host, scope: Scope, path: Path, shown: str, written: Written | None, then: str
) -> None:
    """The same for programs."""
    from cortex.cli.looking import dump

    answer: dict[str, Any] = {
        "host": host.name,
        "scope": scope,
        "path": str(path),
        "content": shown,
        "written": written is not None,
        "changed": bool(written and written.changed),
        "backup": str(written.backup) if written and written.backup else None,
        "next": then,
    }
    dump(answer)


def print_text(path: Path, shown: str, written: Written, then: str, *, wrote: bool) -> None:
    """The path, then what was done, or what is to stand there and how it is written."""
    from rich.text import Text

    from cortex.cli.looking import out

    out.print(Text(str(path)), soft_wrap=True)
    if not wrote:
        out.print()
        out.print(Text(shown), soft_wrap=True)
        out.print("--write puts it there, beside what the file says already")
        return
    out.print("written" if written.changed else "unchanged: it says so already")
    if written.backup:
        out.print(Text(f"before: {written.backup}"), soft_wrap=True)
    out.print(Text(then), soft_wrap=True)


def _print_table(places: Places, folder: Path, *, as_json: bool) -> None:
    from rich.text import Text

    from cortex.cli.host_formats import HOSTS, chosen
    from cortex.cli.looking import dump, out

    def place(host: Host, scope: Scope) -> str:
        files: Sequence[Any] = host.files(scope, places, folder)
        return str(chosen(files, folder)) if files else ""

    rows: list[Mapping[str, str]] = [
        {
            "host": host.name,
            "title": host.title,
            "default": host.default,
            "project": place(host, "project"),
            "user": place(host, "user"),
        }
        for host in HOSTS
    ]
    if as_json:
        dump({"hosts": rows})
        return
    for row in rows:  # a path on one line, whatever the width: it is there to be copied
        line = f"{row['host']:<12} {row['title']:<12} {row[row['default']]}"
        out.print(Text(line), soft_wrap=True)
    out.print("\n`cortex config HOST` shows the entry, --write puts it there")
