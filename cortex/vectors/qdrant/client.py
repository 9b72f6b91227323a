"""One door to Qdrant: a collection of points, asked through qdrant-client.

The collection has a dense multivector per node (its chunks, cosine, scored by the best,
MAX_SIM), a sparse vector of its words (the server keeps the document frequencies), and the
payload of the concept with its indexes. Reserved points without vectors say whose
collection it is and up to where each workspace is pushed: they live in the collection
itself, so that dropping or restoring it takes them along. The client is imported with the
first call: 1.2 s of CPU.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

from cortex.domain.errors import UnavailableError
from cortex.domain.values import Generation, NodeId, WorkspaceId
from cortex.vectors.index import ScoredPoint, Vector, VectorFilter
from cortex.vectors.qdrant.circuit import Circuit
from cortex.vectors.qdrant.errors import Fault, MissingError, busy, refused, unanswered
from cortex.vectors.qdrant.filter import Json, named, not_newer, within
from cortex.vectors.qdrant.sparse import Sparse
from cortex.vectors.qdrant.values import Described, Entry, reserved_id

if TYPE_CHECKING:
    from qdrant_client import QdrantClient
    from qdrant_client.http import models

DENSE: Final = "dense"
WORDS: Final = "words"
WRITE_SECONDS: Final = 20
_KEYWORDS: Final = ("node_type", "layer", "tags", "status", "epoch")
_SHOWN: Final = ["workspace_id"]
_PAGE: Final = 1_000
_POOL: Final = 4  # of each ranking, for one hit of the fused one
_T = TypeVar("_T")


class Server:
    """Calls to one Qdrant; every failure is an UnavailableError, and the circuit hears of it.

    `connect` makes the client on first need. `place` names the server in messages.
    """

    def __init__(self, connect: Callable[[], QdrantClient], place: str, circuit: Circuit) -> None:
        self._connect = connect
        self._client: QdrantClient | None = None
        self.place = place
        self.circuit = circuit

    def describe(self, name: str) -> Described | None:
        """What the collection is; None when there is none of this name."""
        try:
            if not self._ask(lambda client: client.collection_exists(name)):
                return None
            info = self._ask(lambda client: client.get_collection(name))
            # Counted first: whoever makes it signs it before the first point goes in, so what
            # holds points and bears no name afterwards is not a collection in the making.
            points = self._ask(lambda client: client.count(name, exact=True)).count
            identity = self.reserved(name, ["identity"]).get("identity")
        except MissingError:
            return None  # dropped between two questions
        vectors = info.config.params.vectors
        dense = vectors.get(DENSE) if isinstance(vectors, dict) else None
        multi = dense is not None and dense.multivector_config is not None
        size = dense.size if dense and multi else None
        return Described(size, points, identity)

    def create(self, name: str, dimension: int) -> None:
        """Make the collection and its payload indexes."""
        from qdrant_client.http import models

        def make(client: QdrantClient) -> None:
            if not client.collection_exists(name):
                client.create_collection(
                    name,
                    vectors_config={
                        DENSE: models.VectorParams(
                            size=dimension,
                            distance=models.Distance.COSINE,
                            multivector_config=models.MultiVectorConfig(
                                comparator=models.MultiVectorComparator.MAX_SIM
                            ),
                        )
                    },
                    sparse_vectors_config={
                        WORDS: models.SparseVectorParams(modifier=models.Modifier.IDF)
                    },
                    timeout=WRITE_SECONDS,
                )
            tenant = models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True)
            schema = models.PayloadSchemaType
            fields: dict[str, Any] = dict.fromkeys(_KEYWORDS, schema.KEYWORD)
            fields |= {"workspace_id": tenant, "created_at": schema.DATETIME, "seq": schema.INTEGER}
            for field, kind in fields.items():
                client.create_payload_index(name, field, kind, timeout=WRITE_SECONDS)

        self._ask(make)

    def put(self, name: str, entries: Sequence[Entry], version: Generation) -> None:
        """Upsert; of a point that was read from a newer state of the store, nothing changes."""
        from qdrant_client.http import models

        points = [
            models.PointStruct(
                id=entry.id,
                payload={**entry.payload, "epoch": version.epoch, "seq": version.seq},
                vector={
                    DENSE: entry.rows,
                    WORDS: models.SparseVector(indices=entry.words[0], values=entry.words[1]),
                },
            )
            for entry in entries
        ]
        self._upsert(name, points, version)

    def reserve(
        self, name: str, values: Mapping[str, Mapping[str, Any]], version: Generation | None = None
    ) -> None:
        """Write reserved points; with a version, marks that only rise within its epoch."""
        from qdrant_client.http import models

        points = [
            models.PointStruct(id=reserved_id(key), payload={"reserved": key, **value}, vector={})
            for key, value in values.items()
        ]
        self._upsert(name, points, version)

    def reserved(self, name: str, keys: Sequence[str]) -> dict[str, dict[str, Any]]:
        """The payloads of the reserved points that exist."""
        ids = [reserved_id(key) for key in keys]
        found = self._ask(lambda client: client.retrieve(name, ids, with_payload=True))
        payloads = [record.payload or {} for record in found]
        return {str(payload.get("reserved")): payload for payload in payloads}

    def remove(
        self, name: str, ids: Sequence[NodeId], workspace: WorkspaceId | None = None
    ) -> None:
        """Delete points; with a workspace, only those that are in it."""
        from qdrant_client.http import models

        chosen = models.FilterSelector(filter=_filter(named(ids, workspace)))
        self._ask(lambda client: client.delete(name, chosen, wait=True, timeout=WRITE_SECONDS))

    def nearest(
        self,
        name: str,
        workspaces: Sequence[WorkspaceId],
        vector: Vector,
        top_k: int,
        where: VectorFilter,
    ) -> list[ScoredPoint]:
        """The points nearest by their best chunk, best first."""
        chosen = _filter(within(workspaces, where))
        rows = [vector.tolist()]
        found = self._ask(
            lambda client: client.query_points(
                name,
                query=rows,
                using=DENSE,
                query_filter=chosen,
                limit=top_k,
                with_payload=_SHOWN,
            )
        )
        return _scored(found.points)

    def fused(
        self,
        name: str,
        workspaces: Sequence[WorkspaceId],
        vector: Vector,
        words: Sparse,
        top_k: int,
        where: VectorFilter,
        k: int,
    ) -> list[ScoredPoint]:
        """Dense and sparse rankings, fused on the server by reciprocal ranks, best first."""
        from qdrant_client.http import models

        chosen = _filter(within(workspaces, where))
        asked = (
            ([vector.tolist()], DENSE),
            (models.SparseVector(indices=words[0], values=words[1]), WORDS),
        )
        prefetch = [
            models.Prefetch(query=query, using=using, filter=chosen, limit=top_k * _POOL)
            for query, using in asked
        ]
        fusion = models.RrfQuery(rrf=models.Rrf(k=k))
        found = self._ask(
            lambda client: client.query_points(
                name,
                prefetch=prefetch,
                query=fusion,
                limit=top_k,
                with_payload=_SHOWN,
            )
        )
        return _scored(found.points)

    def ids(self, name: str, workspace: WorkspaceId) -> frozenset[NodeId]:
        """Every node of a workspace."""
        chosen = _filter(within([workspace]))
        found: set[NodeId] = set()
        offset: Any = None
        while True:
            records, offset = self._ask(
                lambda client: client.scroll(
                    name,
                    scroll_filter=chosen,
                    limit=_PAGE,
                    offset=offset,  # noqa: B023 - it is called at once
                    with_payload=False,
                )
            )
            found.update(NodeId(str(record.id)) for record in records)
            if offset is None:
                return frozenset(found)

    def count(self, name: str, workspace: WorkspaceId) -> int:
        """How many nodes of a workspace there are."""
        chosen = _filter(within([workspace]))
        return self._ask(lambda client: client.count(name, count_filter=chosen, exact=True)).count

    def close(self) -> None:
        """Let go of the connections."""
        if self._client is not None:
            self._client.close()

    def _upsert(
        self, name: str, points: list[models.PointStruct], version: Generation | None
    ) -> None:
        unless = None if version is None else _filter(not_newer(version))
        self._ask(
            lambda client: client.upsert(
                name, points, wait=True, update_filter=unless, timeout=WRITE_SECONDS
            )
        )

    def _ask(self, call: Callable[[QdrantClient], _T]) -> _T:
        """One call through the circuit, its errors translated."""
        from qdrant_client.common.client_exceptions import QdrantException
        from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

        self.circuit.admit()
        try:
            if self._client is None:
                self._client = self._connect()
            answer = call(self._client)
        except ResponseHandlingException as error:
            raise self._heard(unanswered(error.source, self.place)) from error
        except QdrantException as error:
            raise self._heard(busy(self.place)) from error
        except UnexpectedResponse as error:
            raise self._heard(refused(error.status_code or 0, error.content, self.place)) from error
        except BaseException:
            self.circuit.abandoned()
            raise
        self.circuit.succeeded()
        return answer

    def _heard(self, fault: Fault) -> UnavailableError:
        if fault.out:
            self.circuit.failed(fault.error.message, at_once=fault.at_once)
        else:
            self.circuit.succeeded()  # it is there, and understood
        return fault.error


def connector(url: str, api_key: str | None, seconds: float) -> Callable[[], QdrantClient]:
    """How to make a client of a server; `seconds` is rounded up to whole ones."""

    def connect() -> QdrantClient:
        from qdrant_client import QdrantClient

        return QdrantClient(
            url=url,
            # Given as api_key over http, the client would warn into the host's log.
            headers={"api-key": api_key} if api_key else None,
            timeout=max(math.ceil(seconds), 1),
            check_compatibility=False,  # a request of its own, from a thread of its own
        )

    return connect


def _filter(conditions: Json) -> models.Filter:
    from qdrant_client.http import models

    return models.Filter.model_validate(conditions)


def _scored(points: Iterable[models.ScoredPoint]) -> list[ScoredPoint]:
    return [
        ScoredPoint(
            NodeId(str(point.id)),
            WorkspaceId(str((point.payload or {}).get("workspace_id"))),
            float(point.score),
            0,
        )
        for point in points
    ]
