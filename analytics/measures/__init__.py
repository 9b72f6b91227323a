"""Whole-graph measures on snapshots: each by the field's name, with its source and its bound.

They read `analytics.snapshot.GraphSnapshot` alone. scipy, networkit and rustworkx are imported
when a measure needs them, in the worker's process or in a notebook.
"""

from analytics.measures.assortativity import Mixing, type_assortativity
from analytics.measures.betweenness import betweenness_centrality
from analytics.measures.closeness import (
    closeness_centrality,
    harmonic_centrality,
    sampled_harmonic,
)
from analytics.measures.communities import Communities, communities, modularity
from analytics.measures.components import (
    strongly_connected_components,
    weakly_connected_components,
)
from analytics.measures.connectivity import articulation_points, bridges, immediate_dominators
from analytics.measures.cores import core_number
from analytics.measures.degree import degree
from analytics.measures.density import density
from analytics.measures.diameter import Diameter, diameter
from analytics.measures.groups import Groups
from analytics.measures.katz import katz_centrality
from analytics.measures.pagerank import pagerank
from analytics.measures.paths import Path, k_shortest_paths, shortest_path
from analytics.measures.sampled_betweenness import sampled_betweenness
from analytics.measures.scores import Scores
from analytics.measures.spectral import HubsAndAuthorities, eigenvector_centrality, hits
from analytics.measures.triangles import local_clustering, transitivity, triangles

__all__ = [
    "Communities",
    "Diameter",
    "Groups",
    "HubsAndAuthorities",
    "Mixing",
    "Path",
    "Scores",
    "articulation_points",
    "betweenness_centrality",
    "bridges",
    "closeness_centrality",
    "communities",
    "core_number",
    "degree",
    "density",
    "diameter",
    "eigenvector_centrality",
    "harmonic_centrality",
    "hits",
    "immediate_dominators",
    "k_shortest_paths",
    "katz_centrality",
    "local_clustering",
    "modularity",
    "pagerank",
    "sampled_betweenness",
    "sampled_harmonic",
    "shortest_path",
    "strongly_connected_components",
    "transitivity",
    "triangles",
    "type_assortativity",
    "weakly_connected_components",
]
