"""Rows as an Arrow table or a DataFrame, for those who have the extra `mcp-cortex[frames]`.

Columns have the types that a row's class states, so an empty answer has them too: text,
64-bit integers, doubles, lists of text; an instant is a timestamp in microseconds, UTC.
"""

from __future__ import annotations

import importlib
import types
import typing
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from analytics.queries import Query
from cortex.domain.activity import Row
from cortex.domain.errors import UnavailableError
from cortex.domain.instants import Instant, as_microseconds

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


def to_arrow(query: Query[Row], rows: Sequence[Row]) -> pa.Table:
    """The rows that answer a query, a column for each field.

    Raises UnavailableError that names the extra where pyarrow is not installed.
    """
    pa = _library("pyarrow")
    hints = typing.get_type_hints(query.row)
    columns: list[Any] = list(zip(*rows, strict=True)) if rows else [()] * len(hints)
    arrays = []
    for kind, column in zip(hints.values(), columns, strict=True):
        values: Sequence[Any] = column
        if _bare(kind) is Instant:
            values = [None if at is None else as_microseconds(at) for at in column]
        arrays.append(pa.array(values, type=_arrow_type(pa, kind)))
    return pa.table(arrays, names=list(hints))


def to_pandas(query: Query[Row], rows: Sequence[Row]) -> pd.DataFrame:
    """The same as a DataFrame.

    Raises UnavailableError that names the extra where pandas is not installed.
    """
    _library("pandas")
    return to_arrow(query, rows).to_pandas()


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UnavailableError(
            f"{name} is not installed ({error})",
            "Plain rows need nothing",
            "Run: pip install 'mcp-cortex[frames]'",
        ) from error


def _bare(kind: Any) -> Any:
    """The type without its None."""
    if isinstance(kind, types.UnionType) or typing.get_origin(kind) is typing.Union:
        [kind] = [each for each in typing.get_args(kind) if each is not types.NoneType]
    return kind


def _arrow_type(pa: Any, kind: Any) -> Any:
    bare = _bare(kind)
    if bare is Instant:
        return pa.timestamp("us", tz="UTC")
    if typing.get_origin(bare) is list:
        [member] = typing.get_args(bare)
        return pa.list_(_arrow_type(pa, member))
    return {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}[bare]
