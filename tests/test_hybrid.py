"""The toolset `hybrid`: memories stored, searched, linked, strengthened, forgotten, observed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cortex.config import Settings, load_settings
from cortex.domain.errors import InvalidError
from cortex.domain.instants import Clock, Instant, before, later, now
from cortex.domain.wave_settings import WaveSettings
from cortex.memory import Memory, open_memory
from cortex.services.fields import Fields
from cortex.services.hybrid import coherence
from cortex.services.hybrid.recent import frequency
from cortex.services.neighbours import LEAST, MOST, K, links_of
from cortex.tools.catalogue import DEFAULT_SETS, TOOLS
from cortex.tools.registry import select
from tests.harness import connected
from tests.local import ask, told
from tests.parity import embedder

NAMES = (
    *("store_memory", "search", "search_semantic", "search_keyword", "search_recent"),
    *("forget", "boost", "relate", "find_related", "get_path"),
    *("session_start", "session_context", "status", "observe"),
)
SESSIONS = "The billing-api uses Redis for caching of sessions"
CACHE = "Redis keeps the sessions of the billing API in its cache"
TOKENS = "JWT tokens are checked in the gateway"
GATEWAY = "The gateway verifies the JWT token of each request"
CATS = "Cats sleep most of the day"


@pytest.fixture(scope="module")
def told_all(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Memory, dict[str, str]]]:
    """A memory with five texts, read and linked; tests that use it change nothing."""
    opened = remembering(settings(tmp_path_factory.mktemp("hybrid")))
    ids = {text: store(opened, text) for text in (SESSIONS, CACHE, TOKENS, GATEWAY, CATS)}
    settle(opened)
    yield opened, ids
    opened.close()


@pytest.fixture
def memory(home: Path) -> Iterator[Memory]:
    opened = remembering(settings(home))
    yield opened
    opened.close()


def remembering(chosen: Settings, clock: Clock = now) -> Memory:
    """A memory on the real file; the real model is one for all tests."""
    return open_memory(chosen, clock=clock, embedder=embedder())


def settings(home: Path, **waves: Any) -> Settings:
    plain = load_settings(home=home, workspace="w", env={})
    return replace(plain, waves=WaveSettings(**waves))


def store(memory: Memory, text: str, **fields: Any) -> str:
    return memory.hybrid.remembering.store(text, **fields).id


def settle(memory: Memory) -> None:
    """Wait for vectors, let the follower do what there is to do, and for what it wrote."""
    assert memory.indexing.wait(None, 60) == 0
    memory.hybrid.following.catch_up()
    assert memory.indexing.wait(None, 60) == 0


def links(memory: Memory, node: str) -> dict[str, float]:
    """The other ends of a memory's neighbour links, with their weights."""
    with memory.engine.database.read() as snapshot:
        found = snapshot.nodes.find(node)
        assert found is not None
        return {
            (link.to_id if link.from_id == node else link.from_id): link.weight
            for link in links_of(snapshot, found.id)
        }


def log(memory: Memory) -> int:
    return memory.generation()


# The set


def test_the_set_is_asked_for_by_name_and_is_no_default() -> None:
    hybrid = {tool.name for tool in select(TOOLS, "hybrid", False)}
    assert set(NAMES) <= hybrid
    assert not set(NAMES) & {tool.name for tool in select(TOOLS, DEFAULT_SETS, False)}


def test_the_list_of_its_tools_is_short() -> None:
    listed = [
        {"name": t.name, "title": t.title, "description": t.description, "schema": t.input_schema}
        for t in select(TOOLS, "hybrid", False)
    ]
    assert len(json.dumps(listed, ensure_ascii=False)) <= 24_000


def test_read_only_leaves_the_looking_ones() -> None:
    left = {tool.name for tool in select(TOOLS, "hybrid", True)} & set(NAMES)
    assert left == set(NAMES) - {"store_memory", "forget", "boost", "relate", "session_start"}


# Storing


def test_a_memory_is_stored_with_its_importance_as_amplitude(memory: Memory) -> None:
    stored = ask(memory, "store_memory", text="x marks it", importance=1, tags=["map"],
                 metadata={"source": "chat"})  # fmt: skip
    assert stored["amplitude"] == 2.0
    node = memory.reading.whole(stored["id"])
    assert (node.type.value, node.tags, node.data["source"]) == ("note", ("map",), "chat")
    assert memory.hybrid.waves.strength_of(node.id) == pytest.approx(2.0, abs=1e-3)


def test_storing_the_same_again_strengthens_what_says_it(memory: Memory) -> None:
    first = store(memory, CATS)
    again = ask(memory, "store_memory", text=CATS + ".")
    assert again["reinforced"] == [first]
    assert again["similar"][0]["id"] == first
    assert memory.hybrid.waves.strength_of(first) == pytest.approx(1.245, abs=0.01)


def test_a_retry_under_its_key_stores_once(memory: Memory) -> None:
    first = ask(memory, "store_memory", text=CATS, idempotency_key="k")
    assert ask(memory, "store_memory", text=CATS, idempotency_key="k")["id"] == first["id"]
    assert memory.status()["workspaces"]["w"]["nodes"] == 2


@pytest.mark.parametrize("importance", [-0.1, 1.1])
def test_importance_out_of_range_is_refused(memory: Memory, importance: float) -> None:
    with pytest.raises(InvalidError, match="Valid: 0 to 1"):
        store(memory, CATS, importance=importance)


def test_entities_of_a_memory_become_nodes_that_it_mentions(
    told_all: tuple[Memory, dict[str, str]],
) -> None:
    memory, ids = told_all
    found = ask(memory, "find_related", node_id=ids[SESSIONS], depth=1)
    assert {"billing-api", "Redis"} <= {node["title"] for node in found["nodes"]}
    said = [each["data"]["label"] for each in found["relations"] if not each["derived"]]
    assert "mentions" in said


def test_what_a_text_states_joins_its_entities(told_all: tuple[Memory, dict[str, str]]) -> None:
    memory, ids = told_all
    found = ask(memory, "find_related", node_id=ids[SESSIONS], depth=2)
    labels = {each["data"].get("label") for each in found["relations"]}
    assert {"uses", "mentions"} <= labels


# Neighbour links


def test_a_memory_is_linked_to_what_is_near_in_meaning(
    told_all: tuple[Memory, dict[str, str]],
) -> None:
    memory, ids = told_all
    assert set(links(memory, ids[SESSIONS])) == {ids[CACHE]}
    assert set(links(memory, ids[TOKENS])) == {ids[GATEWAY]}
    assert links(memory, ids[CATS]) == {}
    assert LEAST <= links(memory, ids[SESSIONS])[ids[CACHE]] <= 1.0


def test_neighbour_links_are_left_out_unless_asked_for(
    told_all: tuple[Memory, dict[str, str]],
) -> None:
    memory, ids = told_all
    stated = ask(memory, "find_related", node_id=ids[TOKENS], depth=1)
    assert ids[GATEWAY] not in {node["id"] for node in stated["nodes"]}
    assert "1 neighbours by likeness" in stated["notes"][0]
    asked = ask(memory, "find_related", node_id=ids[TOKENS], depth=1, include_derived=True)
    assert ids[GATEWAY] in {node["id"] for node in asked["nodes"]}
    reached = ask(memory, "graph_traverse", start_id=ids[TOKENS], direction="both", depth=1)
    assert ids[GATEWAY] not in {node["id"] for node in reached["nodes"]}


def test_doing_it_again_changes_nothing(told_all: tuple[Memory, dict[str, str]]) -> None:
    memory, ids = told_all
    with memory.engine.database.read() as snapshot:
        keys = [node.key for node in snapshot.nodes.by_ids(list(ids.values()))]
    before_it = log(memory)
    memory.hybrid.neighbours.link(keys, None)
    memory.hybrid.following.catch_up()
    assert log(memory) == before_it
    assert memory.hybrid.neighbours.behind() == 0


def test_links_are_signed_by_the_follower_and_move_no_updated_at(
    told_all: tuple[Memory, dict[str, str]],
) -> None:
    memory, ids = told_all
    with memory.engine.database.read() as snapshot:
        node = snapshot.nodes.find(ids[SESSIONS])
        assert node is not None
        actors = {row.actor for row in snapshot.changes.of_node(node.key)}
    assert node.updated_at == node.created_at
    assert not any(actor.startswith("neighbours") for actor in actors)


def test_a_changed_text_is_linked_anew(memory: Memory) -> None:
    one, two, three = store(memory, SESSIONS), store(memory, CACHE), store(memory, TOKENS)
    settle(memory)
    assert set(links(memory, one)) == {two}
    memory.mutation.update(one, Fields(text=GATEWAY))
    settle(memory)
    assert set(links(memory, one)) == {three}


def test_what_is_no_longer_active_loses_its_links_and_gets_them_back(memory: Memory) -> None:
    one, two = store(memory, SESSIONS), store(memory, CACHE)
    settle(memory)
    memory.mutation.update(two, Fields(), status="stale")
    settle(memory)
    assert links(memory, one) == {}
    memory.mutation.update(two, Fields(), status="active")
    settle(memory)
    assert set(links(memory, one)) == {two}


def test_a_stated_relation_takes_the_place_of_a_link(memory: Memory) -> None:
    one, two = store(memory, SESSIONS), store(memory, CACHE)
    settle(memory)
    ask(memory, "relate", from_id=one, to_id=two)
    settle(memory)
    assert links(memory, one) == {}
    found = ask(memory, "graph_traverse", start_id=one, relation="related_to", depth=1)
    assert [node["id"] for node in found["nodes"] if node["type"] == "note"] == [two]


def test_a_memory_has_so_many_links_and_no_more(home: Path) -> None:
    memory = remembering(settings(home, neighbours="on"))
    for at in range(MOST + 6):
        memory.adding.add_node("fact", Fields(text=f"The server number {at} runs in Frankfurt"))
    settle(memory)
    with memory.engine.database.read() as snapshot:
        nodes = snapshot.nodes.newest(memory.settings.workspace, 100)
        degrees = snapshot.neighbours.degrees([n.id for n in nodes if n.type.value == "fact"])
    assert min(degrees.values()) >= K
    assert max(degrees.values()) <= MOST
    memory.hybrid.neighbours.complete(memory.settings.workspace)
    before_it = log(memory)
    memory.hybrid.neighbours.complete(memory.settings.workspace)
    assert log(memory) == before_it
    memory.close()


def test_the_first_memory_is_linked_by_those_that_come_later(memory: Memory) -> None:
    first = store(memory, "The server number 0 runs in Frankfurt")
    settle(memory)
    assert links(memory, first) == {}
    for at in range(1, K + 4):
        store(memory, f"The server number {at} runs in Frankfurt")
    settle(memory)
    assert len(links(memory, first)) >= K


def test_other_writes_are_linked_only_where_that_is_set(home: Path) -> None:
    for chosen, linked in (("off", False), ("auto", False), ("on", True)):
        memory = remembering(settings(home / chosen, neighbours=chosen))
        one = memory.adding.add_node("fact", Fields(text=SESSIONS)).id
        memory.adding.add_node("fact", Fields(text=CACHE))
        settle(memory)
        assert bool(links(memory, one)) is linked
        memory.close()


def test_a_next_process_goes_on_where_one_ended(home: Path) -> None:
    memory = remembering(settings(home))
    one = store(memory, SESSIONS)
    settle(memory)
    two = store(memory, CACHE)
    memory.indexing.wait(None, 60)
    memory.close()
    memory = remembering(settings(home))
    assert memory.hybrid.neighbours.behind() >= 1
    settle(memory)
    assert set(links(memory, one)) == {two}
    memory.close()


def test_undoing_a_stored_memory_takes_its_links_along(memory: Memory) -> None:
    one, two = store(memory, SESSIONS), store(memory, CACHE)
    settle(memory)
    done = ask(memory, "memory_undo", actor="*")
    assert [node["id"] for node in done["nodes"]] == [two]
    assert links(memory, one) == {}
    ask(memory, "memory_undo", actor="*", redo=True)
    assert set(links(memory, one)) == {two}


def test_a_wrong_setting_is_refused_with_the_valid_ones(home: Path) -> None:
    with pytest.raises(InvalidError, match="auto, on, off"):
        load_settings(home=home, env={"CORTEX_NEIGHBOURS": "yes"})
    with pytest.raises(InvalidError, match="0 to 1"):
        load_settings(home=home, env={"CORTEX_SEARCH_STRENGTH": "2"})


# Searching


@pytest.mark.parametrize("name", ["search", "search_semantic", "search_keyword", "search_recent"])
def test_each_search_finds_what_was_asked_for(
    name: str, told_all: tuple[Memory, dict[str, str]]
) -> None:
    memory, ids = told_all
    hits = ask(memory, name, query="JWT token gateway", limit=2)["hits"]
    assert {hit["id"] for hit in hits} <= {ids[TOKENS], ids[GATEWAY]} | {
        hit["id"] for hit in hits if hit["type"] == "entity"
    }
    assert len(hits) == 2


def test_a_recent_search_keeps_to_its_window_and_prefers_the_new(home: Path) -> None:
    end = Instant("2026-05-12T20:00:00.000000Z")
    at = [before(end, hours=100)]
    memory = remembering(settings(home), clock=lambda: at[0])
    store(memory, "The port of the proxy is 8080, said long ago")
    at[0] = before(end, hours=20)
    older = store(memory, "The port of the proxy is 9090")
    at[0] = before(end, hours=1)
    newer = store(memory, "The port of the proxy is 9091")
    at[0] = end
    hits = ask(memory, "search_recent", query="port of the proxy", hours=24)["hits"]
    assert [hit["id"] for hit in hits] == [newer, older]
    everything = ask(memory, "search_recent", hours=24)["hits"]
    assert [hit["id"] for hit in everything] == [newer, older]
    assert everything[0]["score"] == pytest.approx(2 ** (-2 * 1 / 24), abs=1e-3)
    memory.close()


def test_what_is_opened_often_counts_up_to_twice() -> None:
    assert [frequency(0), frequency(1), frequency(1023), frequency(10**6)] == [1.0, 1.1, 2.0, 2.0]


@pytest.mark.parametrize("hours", [0, -1])
def test_a_window_without_hours_is_refused(memory: Memory, hours: float) -> None:
    with pytest.raises(InvalidError, match="hours"):
        memory.hybrid.recent.search("x", hours)


def test_strength_takes_part_in_ranking_only_where_that_is_set(home: Path) -> None:
    second = ""
    for weight, place in ((0.0, 1), (1.0, 0)):
        memory = remembering(settings(home / str(weight), search_strength=weight))
        ids = {text: store(memory, text) for text in (SESSIONS, CACHE, CATS)}
        memory.indexing.wait(None, 60)
        question = "what keeps the sessions of the API?"
        if not second:
            hits = ask(memory, "search", query=question)["hits"]
            second = next(hit["text"] for hit in hits[1:] if hit["text"] in ids)
        memory.hybrid.waves.boost(ids[second], 9.0)
        for text in ids.keys() - {second}:
            for _ in range(5):
                memory.hybrid.waves.weaken(ids[text])
        hits = ask(memory, "search", query=question)["hits"]
        assert [hit["text"] for hit in hits if hit["text"] in ids][place] == second
        memory.close()


# Forgetting


def test_forgetting_by_decay_halves_the_strength_and_a_boost_gives_it_back(memory: Memory) -> None:
    node = store(memory, CATS)
    gone = ask(memory, "forget", node_id=node)
    assert (gone["mode"], gone["status"]) == ("decay", "active")
    assert gone["strength"] == pytest.approx(0.5, abs=1e-3)
    assert ask(memory, "boost", node_id=node)["strength"] == pytest.approx(1.0, abs=1e-3)


def test_an_archived_memory_is_found_and_comes_back_by_a_focus(memory: Memory) -> None:
    node = store(memory, CATS)
    gone = ask(memory, "forget", node_id=node, mode="archive")
    assert "desktop_focus" in gone["back"]
    assert ask(memory, "search_keyword", query="cats sleep")["hits"][0]["status"] == "archived"
    memory.viewport.focus(node)
    assert memory.reading.whole(node).status.value == "active"


def test_a_deleted_memory_comes_back_by_an_undo(memory: Memory) -> None:
    node = store(memory, CATS, importance=0.9)
    gone = ask(memory, "forget", node_id=node, mode="delete")
    assert (gone["status"], gone["strength"]) == ("deleted", None)
    assert "memory_undo" in gone["back"]
    ask(memory, "memory_undo", actor="*")
    assert memory.hybrid.waves.strength_of(node) == pytest.approx(2**0.8, abs=1e-3)


def test_an_unknown_mode_of_forgetting_is_refused(memory: Memory) -> None:
    with pytest.raises(InvalidError, match="decay, archive, delete"):
        memory.hybrid.forgetting.forget("x", "burn")


# Relations


def test_a_contradiction_is_recorded_as_interference_and_resolves_nothing(memory: Memory) -> None:
    one = store(memory, "The API listens on port 8080")
    two = store(memory, "The API listens on port 9000, never on another one")
    linked = ask(memory, "relate", from_id=one, to_id=two, type="contradicts")
    assert linked["created"] is True
    [conflict] = ask(memory, "observe")["conflicts"]
    assert {node["id"] for node in conflict["nodes"]} == {one, two}
    assert conflict["interference"] == pytest.approx(-1.0, abs=1e-3)
    with memory.engine.database.read() as snapshot:
        relation = snapshot.relations.by_keys([k for k, _, _ in snapshot.neighbours.conflicts(
            memory.settings.workspace)])[0]  # fmt: skip
    assert relation.data["interference"] == pytest.approx(-1.0, abs=1e-3)
    assert {memory.reading.whole(node).status.value for node in (one, two)} == {"active"}
    for node in (one, two):
        assert memory.hybrid.waves.strength_of(node) == pytest.approx(1.0, abs=1e-3)


def test_a_path_leads_over_shared_entities(told_all: tuple[Memory, dict[str, str]]) -> None:
    memory, ids = told_all
    [path] = ask(memory, "get_path", from_id=ids[SESSIONS], to_id=ids[CACHE], k=1)["paths"]
    assert [node["id"] for node in path["nodes"]][::2] == [ids[SESSIONS], ids[CACHE]]
    near = ask(memory, "get_path", from_id=ids[SESSIONS], to_id=ids[CACHE], k=1,
               include_derived=True)["paths"][0]  # fmt: skip
    assert len(near["nodes"]) == 2


def test_no_path_names_the_tool_of_this_set(memory: Memory) -> None:
    one, two = store(memory, CATS), store(memory, TOKENS)
    assert "relate makes one" in told(memory, "get_path", from_id=one, to_id=two)


# Conversations


def test_a_session_holds_what_is_stored_in_it(memory: Memory) -> None:
    outside = ask(memory, "store_memory", text=TOKENS)
    session = ask(memory, "session_start", title="Auth")
    inside = ask(memory, "store_memory", text=CATS)
    assert outside["parent_id"] == session["parent_id"]
    assert inside["parent_id"] == session["session_id"]
    context = ask(memory, "session_context")
    assert context["session"]["id"] == session["session_id"]
    assert [node["id"] for node in context["recent"]] == [inside["id"]]


def test_the_context_of_a_conversation_stays_within_its_budget(memory: Memory) -> None:
    for at in range(8):
        store(memory, f"Decision {at} about the cache: " + "it stays small. " * 15)
    memory.indexing.wait(None, 60)
    context = ask(memory, "session_context", query="what about the cache?", max_chars=2000)
    assert context["hits"]
    assert context["truncated"] is True
    assert len(json.dumps(context, ensure_ascii=False, separators=(",", ":"))) <= 2000
    assert len(told(memory, "session_context", query="the cache", max_chars=2000)) <= 2000


# Looking


def test_status_says_what_the_contract_names(told_all: tuple[Memory, dict[str, str]]) -> None:
    memory, _ = told_all
    seen = ask(memory, "status")
    assert seen["waves"]["order_parameter"] == 1.0
    assert seen["waves"]["integration"] == 0.0  # sessions and tokens fall apart
    assert 0.0 < seen["waves"]["differentiation"] <= 1.0
    assert (seen["waves"]["components"], seen["waves"]["communities"]) == (2, 2)
    assert seen["index"]["pending"] == 0
    assert seen["generation"] == log(memory)
    assert seen["memories"] == seen["statuses"]["active"] - 1


def test_linked_memories_of_one_subject_are_integrated(memory: Memory) -> None:
    store(memory, SESSIONS), store(memory, CACHE)
    settle(memory)
    waves = ask(memory, "status")["waves"]
    assert (waves["integration"], waves["differentiation"]) == (1.0, 0.0)


def status_after_a_write(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, quick: float, kept: float, few: float
) -> tuple[int, dict[str, Any]]:
    """The generation that was looked at first, and a look after one more memory."""
    monkeypatch.setattr(coherence, "QUICK", quick)
    monkeypatch.setattr(coherence, "KEPT", kept)
    monkeypatch.setattr(coherence, "FEW", few)
    store(memory, SESSIONS), store(memory, CACHE)
    settle(memory)
    first = ask(memory, "status")["generation"]
    store(memory, CATS)
    return first, ask(memory, "status")


def test_what_took_long_to_measure_is_kept_and_says_of_when(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, seen = status_after_a_write(memory, monkeypatch, 0.0, 1e9, 1e9)
    assert seen["waves"]["as_of"]["generation"] == first < seen["generation"]
    assert seen["memories"] < seen["statuses"]["active"] - 1  # the session
    assert "changes ago" in told(memory, "status")


@pytest.mark.parametrize(
    ("quick", "kept", "few"),
    [(60.0, 1e9, 1e9), (0.0, 0.0, 1e9), (0.0, 1e9, 0.01)],
    ids=["it was quickly measured", "it is old", "much has changed"],
)
def test_the_measures_are_of_the_present_where(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, quick: float, kept: float, few: float
) -> None:
    _, seen = status_after_a_write(memory, monkeypatch, quick, kept, few)
    assert seen["waves"]["as_of"]["generation"] == seen["generation"] == log(memory)
    assert seen["memories"] == seen["statuses"]["active"] - 1  # the session
    assert "changes ago" not in told(memory, "status")


def test_observe_shows_clusters_by_their_strongest(
    told_all: tuple[Memory, dict[str, str]],
) -> None:
    memory, ids = told_all
    seen = ask(memory, "observe")
    clusters = [{node["id"] for node in each["members"]} for each in seen["clusters"]]
    assert {ids[SESSIONS], ids[CACHE]} in clusters
    assert {ids[TOKENS], ids[GATEWAY]} in clusters
    assert sum(seen["strength"]["counts"]) == seen["memories"] == sum(seen["phase"]["counts"])
    assert seen["memory"]["process_bytes"] > 0


def test_observe_tells_what_strengthened_and_what_fades(home: Path) -> None:
    at = [Instant("2026-05-12T20:00:00.000000Z")]
    memory = remembering(settings(home), clock=lambda: at[0])
    fading, risen = store(memory, CATS), store(memory, TOKENS)
    memory.hybrid.waves.boost(fading, 2.0)
    at[0] = later(at[0], days=40)
    memory.hybrid.waves.boost(risen, 1.0)
    seen = ask(memory, "observe")
    assert [node["id"] for node in seen["strengthened"]] == [risen]
    assert [node["id"] for node in seen["fading"]] == [fading]
    memory.close()


def test_looking_writes_nothing(memory: Memory) -> None:
    store(memory, CATS)
    settle(memory)
    before_it = log(memory)
    for name in ("status", "observe", "session_context"):
        ask(memory, name)
    assert log(memory) == before_it


def test_an_empty_memory_can_be_looked_at(memory: Memory) -> None:
    waves = ask(memory, "status")["waves"]
    assert (waves["order_parameter"], waves["integration"], waves["differentiation"]) == (0, 0, 0)
    assert ask(memory, "observe")["clusters"] == []
    assert ask(memory, "search_recent")["hits"] == []


@pytest.mark.anyio
async def test_over_stdio_a_stored_memory_is_linked_by_itself(home: Path) -> None:
    import anyio

    from tests.harness import call

    async with connected(home, "--tools", "hybrid") as client:
        await call(client, "session_start", title="A conversation")
        for text in (SESSIONS, CACHE):
            await call(client, "store_memory", text=text)
        with anyio.fail_after(60):
            while not (seen := await call(client, "status"))["waves"]["links"]:
                await anyio.sleep(0.2)
        assert seen["waves"]["integration"] == 1.0
        related = await call(client, "search", query="where are sessions cached?")
        assert len(related["hits"]) >= 2
