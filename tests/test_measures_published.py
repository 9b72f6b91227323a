"""Public graphs give the values that their sources publish."""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from measures_data import data_folder, directed, undirected

from analytics import measures
from analytics.snapshot import GraphSnapshot


def snap(file: str) -> GraphSnapshot:
    lines = (data_folder("graphs") / file).read_text().splitlines()
    pairs = (line.split() for line in lines if not line.startswith("#"))
    return directed((int(near), int(far)) for near, far in pairs)


def metis(path: Path) -> list[tuple[int, int]]:
    """Edges of an unweighted METIS file, numbered from 0, each once."""
    _, *lines = path.read_text().splitlines()
    rows = enumerate(lines)
    return [(at, int(near) - 1) for at, line in rows for near in line.split() if int(near) > at]


@pytest.fixture(scope="module")
def votes() -> GraphSnapshot:
    return snap("wiki-Vote.txt")


@pytest.fixture(scope="module")
def mails() -> GraphSnapshot:
    return snap("email-Eu-core.txt")


def test_snap_wiki_vote(votes: GraphSnapshot) -> None:
    assert (len(votes), len(votes.source)) == (7115, 103689)
    assert measures.weakly_connected_components(votes).size[0] == 7066
    assert measures.strongly_connected_components(votes).size[0] == 1300
    assert measures.triangles(votes).values.sum() == 3 * 608389
    assert measures.local_clustering(votes).values.mean() == pytest.approx(0.1409, abs=5e-5)
    assert measures.diameter(votes) == measures.Diameter(7, 7)


def test_snap_email_eu_core(mails: GraphSnapshot) -> None:
    assert (len(mails), len(mails.source)) == (1005, 25571)
    assert measures.weakly_connected_components(mails).size[0] == 986
    strong = measures.strongly_connected_components(mails)
    assert (len(strong), strong.size[0]) == (203, 803)
    assert measures.triangles(mails).values.sum() == 3 * 105461
    assert measures.local_clustering(mails).values.mean() == pytest.approx(0.3994, abs=5e-5)
    assert measures.diameter(mails) == measures.Diameter(7, 7)


@pytest.mark.parametrize("ways", [True, False])
def test_sampled_betweenness_of_a_real_graph_is_nearer_than_it_says(
    mails: GraphSnapshot, ways: bool
) -> None:
    exact = measures.betweenness_centrality(mails, directed=ways)
    found = measures.sampled_betweenness(mails, directed=ways)
    assert found.error_bound is not None
    assert np.abs(found.values - exact.values).max() <= found.error_bound
    assert exact.ranking(1)[0] in found.ranking(3)


def test_the_file_of_the_karate_club_is_the_club() -> None:
    edges = metis(data_folder("graphs") / "karate.graph")
    club = {tuple(sorted(edge)) for edge in nx.karate_club_graph().edges}
    assert set(edges) == club


def test_the_karate_club_has_its_published_values() -> None:
    club = undirected(nx.karate_club_graph().edges)
    assert measures.triangles(club).values.sum() == 3 * 45
    raw = measures.betweenness_centrality(club, directed=False, normalized=False)
    assert raw.values[0] == pytest.approx(231.0714, abs=5e-5)
    scaled = measures.betweenness_centrality(club, directed=False)
    assert scaled.values[0] == pytest.approx(0.4376, abs=5e-5)
    # 0.4198 is the optimum (Brandes et al. 2008); a heuristic comes near and never above.
    assert 0.41 < measures.communities(club, weighted=False).modularity < 0.41985


@pytest.mark.parametrize(("file", "least"), [("jazz.graph", 0.43), ("karate.graph", 0.41)])
def test_leiden_comes_near_the_best_modularity_known(file: str, least: float) -> None:
    graph = undirected(metis(data_folder("graphs") / file))
    found = measures.communities(graph)
    assert least < found.modularity < 0.4452
