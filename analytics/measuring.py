"""Measures through the worker, in the words of those who ask: ranks and groups of one workspace."""

from __future__ import annotations

from collections.abc import Sequence

from analytics.client import Worker
from analytics.queries import Centrality, Communities, CommunityRow, RankRow


class WorkerMeasures:
    """Each answer with the log's seq that it reflects."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def rank(
        self,
        workspace: str,
        measure: str,
        relations: Sequence[str],
        node_types: Sequence[str],
        from_time: str | None,
        to_time: str | None,
        limit: int,
    ) -> tuple[Sequence[RankRow], int]:
        """The best nodes by a measure."""
        asked = Centrality(
            workspace, measure, tuple(relations), tuple(node_types), from_time, to_time, limit
        )
        answer = self._worker.ask(asked)
        return answer.rows, answer.generation.seq

    def group(
        self,
        workspace: str,
        relations: Sequence[str],
        node_types: Sequence[str],
        limit: int,
        members: int,
    ) -> tuple[Sequence[CommunityRow], int]:
        """The largest communities."""
        asked = Communities(
            workspace, tuple(relations), tuple(node_types), take=limit, members=members
        )
        answer = self._worker.ask(asked)
        return answer.rows, answer.generation.seq
