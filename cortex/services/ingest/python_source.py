"""Python source as entities: what its docstrings say, never its code (ADR-007).

Modules, classes, functions and methods that have a docstring, and the classes and the
module around them. Definitions under if, try, with and loops count; those inside a
function do not.
"""

from __future__ import annotations

import ast
import copy
import os
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from cortex.domain.taxonomy import NodeType
from cortex.domain.values import MAX_TEXT, MAX_TITLE, clean, shorten
from cortex.services.ingest.pieces import Keys, Parsed, Piece, SourceFile, lines_of, trimmed

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Definition = _Function | ast.ClassDef

_DEFAULT: Final = 40
_BODY: Final = ":\n    pass"


@dataclass(frozen=True, slots=True)
class _Item:
    """A definition worth a piece: documented itself, or around one that is."""

    node: _Definition
    kind: str
    docstring: str
    members: tuple[_Item, ...]


def parse_python(source: SourceFile, text: str) -> Parsed:
    """Its documented definitions, containers first; or the problem that stops Python too."""
    nul = text.find("\0")
    if nul >= 0:
        return Parsed((), f"{source.relative}:{text.count(chr(10), 0, nul) + 1}: NUL byte")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an invalid escape is its author's concern
            tree = ast.parse(text)
        lines = lines_of(text)
        _, last = trimmed(lines, 0, len(lines))
        return Parsed(tuple(_pieces(tree, module_name(source), max(last, 1))))
    except SyntaxError as error:
        return Parsed((), f"{source.relative}:{error.lineno or 1}: {error.msg}")
    except (RecursionError, MemoryError):  # MemoryError is how 3.11's parser says too deep
        return Parsed((), f"{source.relative}:1: nested too deeply to be parsed")
    except ValueError as error:
        return Parsed((), f"{source.relative}:1: {error}")


def module_name(source: SourceFile) -> str:
    """The dotted name by the relative path, after the packages that the root is in."""
    parts = list(PurePosixPath(source.relative).with_suffix("").parts)
    folder = source.path.absolute().parent
    for _ in parts[1:]:
        folder = folder.parent
    if parts[-1] == "__init__":
        parts.pop()
    packages: list[str] = []
    while folder.name and os.path.isfile(folder / "__init__.py"):
        packages.insert(0, folder.name)
        folder = folder.parent
    return ".".join(packages + parts) or source.path.absolute().parent.name


def _pieces(tree: ast.Module, module: str, last_line: int) -> Iterator[Piece]:
    docstring = _docstring(tree)
    items = _items(tree.body, "function")
    if not docstring and not items:
        return
    keys = Keys()
    key = keys.take("<module>")
    yield Piece(
        key=key,
        type=NodeType.ENTITY,
        title=shorten(module, MAX_TITLE),
        text=_text(f"module {module}", docstring),
        line=1,
        end_line=last_line,
        data={"kind": "module", "qualname": ""},
    )
    for item in items:
        yield from _item_pieces(item, module, "", key, "", keys)


def _item_pieces(
    item: _Item, module: str, qualifier: str, parent: str, prefix: str, keys: Keys
) -> Iterator[Piece]:
    """The item's piece, then its members'.

    `prefix` is the parent's key and a dot, so that the methods of the second of two
    classes of one name stay apart from those of the first.
    """
    qualname = qualifier + item.node.name
    key = keys.take(prefix + item.node.name)
    yield Piece(
        key=key,
        type=NodeType.ENTITY,
        title=shorten(f"{module}.{qualname}", MAX_TITLE),
        text=_text(_signature(item.node), item.docstring),
        line=item.node.lineno,
        end_line=item.node.end_lineno or item.node.lineno,
        parent_key=parent,
        data={"kind": item.kind, "qualname": qualname},
    )
    for member in item.members:
        yield from _item_pieces(member, module, f"{qualname}.", key, f"{key}.", keys)


def _items(body: Sequence[ast.stmt], function_kind: str) -> tuple[_Item, ...]:
    items: list[_Item] = []
    for node in _definitions(body):
        docstring = _docstring(node)
        if isinstance(node, ast.ClassDef):
            members = _items(node.body, "method")
            if docstring or members:
                items.append(_Item(node, "class", docstring, members))
        elif docstring:
            items.append(_Item(node, function_kind, docstring, ()))
    return tuple(items)


def _definitions(body: Sequence[ast.stmt]) -> Iterator[_Definition]:
    """The definitions of a body in its order, through statements that hold statements."""
    pending: list[ast.AST] = list(reversed(body))
    while pending:
        node = pending.pop()
        if isinstance(node, _Definition):
            yield node
            continue
        inner = [
            child
            for child in ast.iter_child_nodes(node)
            if isinstance(child, ast.stmt | ast.excepthandler | ast.match_case)
        ]
        pending.extend(reversed(inner))


def _docstring(node: _Definition | ast.Module) -> str:
    return clean(ast.get_docstring(node) or "").strip()


def _text(signature: str, docstring: str) -> str:
    return f"{signature}\n{docstring}".strip()[:MAX_TEXT]


def _signature(node: _Definition) -> str:
    """`@decorator` lines without arguments, then `def name(args) -> ret` or `class Name(Base)`."""
    bare = copy.copy(node)
    bare.body = [ast.Pass()]
    bare.decorator_list = [
        decorator.func if isinstance(decorator, ast.Call) else decorator
        for decorator in node.decorator_list
    ]
    if not isinstance(bare, ast.ClassDef):
        args = copy.copy(bare.args)
        args.defaults = [_brief(default) for default in args.defaults]
        args.kw_defaults = [default and _brief(default) for default in args.kw_defaults]
        bare.args = args
    return clean(ast.unparse(bare)).removesuffix(_BODY)


def _brief(default: ast.expr) -> ast.expr:
    """The default value, or `...` for one so long that it is code."""
    return default if len(ast.unparse(default)) <= _DEFAULT else ast.Constant(...)
