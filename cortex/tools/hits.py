"""Search results as an answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from cortex.domain.chunking import chunk
from cortex.domain.values import Node, shorten
from cortex.tools.registry import Answer
from cortex.tools.render import (
    STRUCTURED,
    Names,
    brief_json,
    fitting,
    joined,
    mark,
    names_of,
    node_line,
    own_words,
)

if TYPE_CHECKING:
    from cortex.memory import Memory
    from cortex.services.retrieval.context import Context, Place
    from cortex.services.retrieval.search import Found, Hit

_PASSAGE: Final = 600


def passage(hit: Hit) -> str:
    """The node's text, or of a long one the passage that matched."""
    text = hit.node.text
    if len(text) <= _PASSAGE:
        return text
    title = hit.node.data.get("title")
    pieces = chunk(text, title if isinstance(title, str) else "")
    piece = pieces[min(hit.chunk, len(pieces) - 1)]
    before = "…" if piece.start else ""
    after = "…" if piece.end < len(text) else ""
    return before + text[piece.start : piece.end].strip() + after


def _hit_json(hit: Hit, explain: bool, found: Found, names: Names) -> dict[str, Any]:
    node = hit.node
    shown: dict[str, Any] = {
        "id": node.id,
        "type": node.type.value,
        "title": node.title,
        "text": passage(hit),
        "score": round(hit.score, 4),
        "status": node.status.value,
        "workspace_id": node.workspace_id,
        "created_at": node.created_at,
        "tags": list(node.tags),
    }
    if names.unverified(node.id):
        shown["unverified"] = True
    if len(node.text) > _PASSAGE:
        shown["text_chars"] = len(node.text)
    shown |= own_words(node)
    if hit.via is not None:
        shown["matched_id"] = hit.via.id
        shown["note"] = f"the older wording matched: {shorten(hit.via.text or hit.via.title, 120)}"
    if hit.merged:
        shown["cross_validated"] = True
        shown["merged_ids"] = [other.id for other in hit.merged]
    if explain:
        shown["scores"] = dict(hit.scores)
        shown["ranks"] = dict(hit.ranks)
        shown["boosts"] = dict(hit.boosts)
    return shown


def _brief(nodes: Sequence[Node], names: Names) -> list[dict[str, Any]]:
    return [{"type": node.type.value, **brief_json(node, names=names)} for node in nodes]


def place_json(place: Place) -> dict[str, Any]:
    """A spot to read next."""
    return {
        "path": place.path,
        "line": place.line,
        "end_line": place.end_line,
        "freshness": place.freshness.value,
        "file_id": place.file_id,
        "node_id": place.node_id,
        "workspace_id": place.workspace_id,
    }


def place_text(place: Place, own: str = "") -> str:
    """path:line, with its freshness where the file changed, and its workspace if not `own`."""
    line = f":{place.line}" if place.line else ""
    mark = "" if place.freshness.value == "unchanged" else f" [{place.freshness.value}]"
    foreign = f" [in {place.workspace_id}]" if own and place.workspace_id != own else ""
    return f"{place.path}{line}{mark}{foreign}"


def _context_json(hit: Hit, context: Context, names: Names) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "id": hit.node.id,
        "parents": _brief(context.parents, names),
        "facts": _brief(context.facts, names),
        "decisions": _brief(context.decisions, names),
        "files": [place_text(place) for place in context.files],
    }
    return shown


def _ids_of(found: Found) -> list[str]:
    beside = [
        node
        for context in found.contexts
        for node in (*context.parents, *context.facts, *context.decisions)
    ]
    return list(dict.fromkeys(node.id for node in (*(hit.node for hit in found.hits), *beside)))


def found_answer(
    memory: Memory, found: Found, *, full: bool = False, explain: bool = False
) -> Answer:
    """Hits, and for graph_search their context and the files to read."""
    names = names_of(memory, _ids_of(found))
    hits = fitting(
        [_hit_json(hit, explain, found, names) for hit in found.hits], STRUCTURED * 6 // 10
    )
    shown = found.hits[: len(hits)]
    structured: dict[str, Any] = {
        "hits": hits,
        "total": found.total,
        "truncated": len(hits) < len(found.hits),
        "degraded": found.degraded,
        "pending": found.pending,
        "empty": found.empty,
        "notes": list(found.notes),
        "generation": found.generation,
    }
    lines = _head(found)
    if full:
        contexts = [
            _context_json(hit, context, names)
            for hit, context in zip(shown, found.contexts, strict=False)
        ]
        structured["context"] = fitting(contexts, STRUCTURED * 3 // 10)
        structured["files"] = fitting([place_json(p) for p in found.files], STRUCTURED // 10)
    for position, hit in enumerate(shown):
        lines.append(_hit_line(hit, names, memory.settings.workspace))
        if full:
            lines += _context_lines(found.contexts[position], names)
    if full and found.files:
        lines.append(
            "read next: "
            + ", ".join(place_text(place, memory.settings.workspace) for place in found.files[:8])
        )
    if explain:
        structured |= _why_json(found)
        lines += _why_lines(found, hits)
    return Answer(joined(lines), structured)


def _why_json(found: Found) -> dict[str, Any]:
    """What made the order: shares of the perspectives, the time asked for, what is left out."""
    window = found.window
    return {
        "shares": {name: round(share, 3) for name, share in found.shares.items()},
        "window": None
        if window is None
        else {
            "words": window.words,
            "from": window.start,
            "to": window.stop,
            "newest": window.newest,
        },
        "withheld": {
            why: {"count": left.count, "ids": list(left.ids)}
            for why, left in found.withheld.items()
        },
    }


def _why_lines(found: Found, hits: Sequence[dict[str, Any]]) -> list[str]:
    lines = []
    if found.shares:
        lines.append(
            "shares: " + ", ".join(f"{name} {share:.2f}" for name, share in found.shares.items())
        )
    if found.window is not None:
        start, stop = found.window.start or "…", found.window.stop or "…"
        lines.append(f"time asked for: {found.window.words} ({start} to {stop})")
    lines += [f"left out: {left.count} {why}" for why, left in found.withheld.items()]
    for hit in hits:
        boosts = f" boosts {hit['boosts']}" if hit["boosts"] else ""
        lines.append(f"{hit['id'][:8]} scores {hit['scores']} ranks {hit['ranks']}{boosts}")
    return lines


def _head(found: Found) -> list[str]:
    lines = [f"note: {note}" for note in found.notes]
    if found.degraded:
        lines.append(f"degraded: {found.degraded}")
    if found.pending:
        lines.append(f"{found.pending} texts are not in the vector index yet")
    if found.empty and not found.degraded:
        lines.append("no hits: nothing is indexed here yet")
    elif not found.hits:
        stale = found.withheld["stale"].count if "stale" in found.withheld else 0
        lines.append(
            "no hits"
            + (f" ({stale} stale ones left out; include_stale shows them)" if stale else "")
            + "; try other words, or desktop_open to look around"
        )
    return lines


def _hit_line(hit: Hit, names: Names, own: str) -> str:
    line = f"{hit.score:.2f} {node_line(hit.node, names, cut=0)}"
    if hit.node.workspace_id != own:
        line += f" [{hit.node.workspace_id}]"
    text = shorten(passage(hit), 300)
    if text and text != hit.node.title:
        line += f"\n   {text}"
    if hit.merged:
        said = "; ".join(shorten(other.text or other.title, 80) for other in hit.merged[:3])
        line += f"\n   (cross-validated: {len(hit.merged)} more say nearly the same: {said})"
    if hit.via is not None:
        line += f"\n   (the older wording matched: {shorten(hit.via.text or hit.via.title, 120)})"
    return line


def _named(node: Node, names: Names) -> str:
    return mark(node, names) + shorten(node.title, 60)


def _context_lines(context: Context, names: Names) -> list[str]:
    lines = []
    if context.parents:
        lines.append("   in: " + " < ".join(_named(node, names) for node in context.parents))
    for name, nodes in (("facts", context.facts), ("decisions", context.decisions)):
        if nodes:
            lines.append(f"   {name}: " + "; ".join(_named(node, names) for node in nodes))
    if context.files:
        lines.append("   files: " + ", ".join(place_text(place) for place in context.files))
    return lines
