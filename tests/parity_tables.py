"""The tables at one moment, what their rows say, and their log undone."""

from __future__ import annotations

import json
import re
import sqlite3
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final

from cortex.domain.taxonomy import VECTORISED

Row = dict[str, Any]
Rows = dict[int, Row]

_NODES: Final = "SELECT * FROM nodes ORDER BY rowkey"
_RELATIONS: Final = "SELECT * FROM relations ORDER BY rowkey"
_LOG: Final = """
SELECT seq, at, entity, key, op, before FROM changes WHERE seq > :since ORDER BY seq
"""
_NEWEST: Final = """
SELECT COALESCE((SELECT at FROM changes ORDER BY seq DESC LIMIT 1), ''),
       (SELECT COALESCE(MAX(key), 0) FROM changes WHERE entity = 'node')
"""


class Tables:
    """Every node and relation at one moment, and the log since a number, by one read."""

    def __init__(self, shell: sqlite3.Connection, since: int = 0) -> None:
        shell.execute("BEGIN")
        self.nodes: Rows = {row["rowkey"]: dict(row) for row in shell.execute(_NODES)}
        self.relations: Rows = {row["rowkey"]: dict(row) for row in shell.execute(_RELATIONS)}
        self.log = [dict(row) for row in shell.execute(_LOG, {"since": since})]
        [self.last_at, self.newest_key] = shell.execute(_NEWEST).fetchone()
        shell.execute("COMMIT")
        self.seq = self.log[-1]["seq"] if self.log else since
        self.data: dict[int, Row] = {
            key: json.loads(row["data"]) for key, row in self.nodes.items()
        }

    def said(self, key: int) -> tuple[str, str]:
        """Title and text of a node: what is embedded."""
        title, text = self.data[key].get("title"), self.data[key].get("text")
        return title if isinstance(title, str) else "", text if isinstance(text, str) else ""

    def is_vectorised(self, key: int) -> bool:
        """Whether meaning finds a node: its type is one of the 13, and it says something."""
        return self.nodes[key]["type"] in VECTORISED and any(self.said(key))

    def words(self, key: int) -> set[str]:
        """Every word that finds a node."""
        data = self.data[key]
        parts = [*self.said(key), str(data.get("path") or ""), *data.get("tags", ())]
        return set(re.findall(r"\w+", " ".join(parts)))

    def undone(self) -> tuple[Rows, Rows]:
        """The tables before the log's entries, each taken back by its image, newest first."""
        tables = {"node": dict(self.nodes), "relation": dict(self.relations)}
        for change in reversed(self.log):
            table, key = tables[change["entity"]], change["key"]
            present = table.pop(key, None)
            assert (present is None) == (change["op"] == "delete"), f"{change} fits no row"
            if change["op"] != "insert":
                before = json.loads(change["before"])
                if change["entity"] == "relation":
                    before["weight"] = float(before["weight"])
                table[key] = before
        return tables["node"], tables["relation"]

    def check_rules(self) -> None:
        """Invariant 6, whoever wrote."""
        by_id = {row["id"]: row for row in self.nodes.values()}
        parents = {(row["parent_id"], row["id"]) for row in by_id.values() if row["parent_id"]}
        ends: dict[str, list[tuple[str, str]]] = {"contains": [], "supersedes": []}
        for row in self.relations.values():
            near, far = by_id[row["from_id"]], by_id[row["to_id"]]
            assert near["workspace_id"] == far["workspace_id"] == row["workspace_id"]
            if row["type"] in ends:
                ends[row["type"]].append((row["from_id"], row["to_id"]))
        assert sorted(ends["contains"]) == sorted(parents), "parent_id and contains differ"
        for kind, pairs in ends.items():
            graph = TopologicalSorter[str]()
            for source, target in pairs:
                graph.add(target, source)
            try:
                graph.prepare()
            except CycleError as error:
                raise AssertionError(f"a cycle in {kind}: {error.args[1]}") from error
        active = [old for _, old in ends["supersedes"] if by_id[old]["status"] == "active"]
        assert not active, f"superseded, and active: {active}"
