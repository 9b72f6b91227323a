"""Putting the rows of one transaction back, with the triggers of the schema at work.

Idea: not row by row from behind, for triggers answer each step with steps of their own, but
by what is to be there in the end: first what is to go goes (relations, then nodes from the
leaves up), then what is missing comes (nodes, then relations, each under its old key), then
what differs is set. Corner: a session between two parents would be a second root for a
moment, so it is a task for that moment.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cortex.domain.errors import ConflictError
from cortex.domain.taxonomy import NodeType, RelationType
from cortex.domain.values import WorkspaceId
from cortex.store.database import Transaction
from cortex.store.undo import ENTITIES, Image, Key, Step, fields_of


def take_back(transaction: Transaction, place: WorkspaceId, step: Step) -> dict[Key, Image]:
    """Give every row of the step its image from before; the images that they had.

    Raises ConflictError where a row is not what the step left, where something later stands
    in the way, or where anything but the step's rows would change.
    """
    now = _require_untouched(transaction, place, step)
    since = transaction.generation().seq
    differing = {key: image for key, image in step.before.items() if image != now[key]}
    disguised = _remove(transaction, step, now, differing)
    _return(transaction, place, step, now, differing)
    _set(transaction, {**disguised, **differing})
    _verify(transaction, step, since)
    return now


def _require_untouched(
    transaction: Transaction, place: WorkspaceId, step: Step
) -> dict[Key, Image]:
    log, tx = transaction.undo_log, step.logged.tx
    if not step.entities <= frozenset(ENTITIES):
        raise ConflictError(
            f"transaction {tx} changed more than nodes, relations and waves",
            "Valid: a change of these",
            "Take back another one with tx",
        )
    left = log.images_after(step)
    images = map(fields_of, _known(step.before, left))
    places = {each["workspace_id"] for each in images if "workspace_id" in each}
    if places | step.workspaces != {place}:  # a wave names none: its node does
        raise ConflictError(
            f"transaction {tx} is not of {place!r} alone ({', '.join(sorted(places))})",
            "Valid: one after a workspace was renamed or merged, in that workspace",
            "cortex workspace rename gives the old name back",
        )
    now = log.images(step.before)
    touched = [key for key in step.before if now[key] != left[key]]
    if touched:
        raise _in_the_way(transaction, step, touched)
    return now


def _known(*images: Mapping[Key, Image]) -> Iterable[str]:
    return (image for each in images for image in each.values() if image is not None)


def _in_the_way(transaction: Transaction, step: Step, keys: Iterable[Key]) -> ConflictError:
    """What changed these rows later, and stands."""
    log = transaction.undo_log
    later = [
        each
        for each in log.later(keys, step.last)
        if each.tx != transaction.tx
        and not log.took_back(each.tx)
        and log.taken_back_by(each.tx) is None
    ]
    named = ", ".join(f"{each.tx} (at {each.at} by {each.actor})" for each in later[:5])
    more = f" and {len(later) - 5} more" if len(later) > 5 else ""
    return ConflictError(
        f"transaction {step.logged.tx} cannot be taken back: what it changed was changed again "
        f"later, in {named or 'an undo'}{more}",
        "Valid: a transaction whose changes still stand as it left them",
        "Take the later ones back first, newest first",
    )


def _remove(
    transaction: Transaction,
    step: Step,
    now: Mapping[Key, Image],
    differing: Mapping[Key, Image],
) -> dict[Key, Image]:
    """What is to go; the images of sessions that are tasks for now."""
    log = transaction.undo_log
    going = {key: now[key] for key, image in differing.items() if image is None}
    relations = {key[1]: fields_of(image) for key, image in going.items()
                 if key[0] == "relation" and image is not None}  # fmt: skip
    nodes = {fields_of(image)["id"]: fields_of(image) for key, image in going.items()
             if key[0] == "node" and image is not None}  # fmt: skip
    for (entity, key), image in going.items():
        if entity == "wave" and image is not None:
            transaction.waves.drop(key)
    others = {key for key in log.touching(list(nodes)) if ("relation", key) not in going}
    others -= log.followers(list(others))
    if others:
        raise _in_the_way(transaction, step, [("relation", key) for key in others])
    children = [r["to_id"] for r in relations.values() if r["type"] == RelationType.CONTAINS]
    sessions = [
        node.key
        for node in transaction.nodes.by_ids([each for each in children if each not in nodes])
        if node.type is NodeType.SESSION
    ]
    disguised = log.images(("node", key) for key in sessions)
    log.disguise(sessions)
    # A relation of a node that goes, goes with it: it would leave a session without parent.
    transaction.relations.delete(
        [key for key, each in relations.items() if each["to_id"] not in nodes]
    )
    depth: dict[str, int] = {}
    for node in nodes:
        above, at = [node], nodes[node]["parent_id"]
        while at in nodes and at not in depth:
            above.append(at)
            at = nodes[at]["parent_id"]
        for each in reversed(above):
            depth[each] = depth.get(nodes[each]["parent_id"], -1) + 1
    leaves_first = sorted(nodes, key=lambda each: -depth[each])
    transaction.nodes.delete([nodes[each]["rowkey"] for each in leaves_first])
    return disguised


def _return(
    transaction: Transaction,
    place: WorkspaceId,
    step: Step,
    now: Mapping[Key, Image],
    differing: Mapping[Key, Image],
) -> None:
    log = transaction.undo_log
    missing = {key: image for key, image in sorted(differing.items())
               if image is not None and now[key] is None}  # fmt: skip
    for (entity, _), image in missing.items():
        if entity == "node":
            fields = fields_of(image)
            if fields["type"] == NodeType.SESSION and fields["parent_id"] is None:
                root = transaction.nodes.root(place)
                if root is not None:
                    raise _in_the_way(transaction, step, [("node", root.key)])
            log.insert("node", image)
    for (entity, _), image in missing.items():
        if entity == "wave":
            log.insert("wave", image)
        elif entity == "relation":
            fields = fields_of(image)
            ends = transaction.nodes.by_ids([fields["from_id"], fields["to_id"]])
            if len(ends) < 2:
                raise ConflictError(
                    f"transaction {step.logged.tx} cannot be taken back: a relation that it "
                    f"removed joins {fields['from_id']} and {fields['to_id']}, and one is gone",
                    "Valid: a transaction whose nodes are there",
                    "Take the later deletion back first",
                )
            others = log.in_the_way(image)
            if others:
                raise _in_the_way(transaction, step, [("relation", key) for key in others])
            log.insert("relation", image)


def _set(transaction: Transaction, wanted: Mapping[Key, Image]) -> None:
    """Write what is there and differs still."""
    log = transaction.undo_log
    for key, image in log.images(wanted).items():
        target = wanted[key]
        if image != target and image is not None and target is not None:
            log.update(key[0], target)


def _verify(transaction: Transaction, step: Step, since: int) -> None:
    log = transaction.undo_log
    started = log.changed_since(since)
    present = log.images({**started, **step.before})
    astray = [
        key for key, image in present.items() if image != step.before.get(key, started.get(key))
    ]
    # Links that the follower made go with a node that goes, and are in this transaction's log.
    kept = log.followers([key for entity, key in astray if entity == "relation"])
    astray = [key for key in astray if key[0] != "relation" or key[1] not in kept]
    if astray:
        raise _in_the_way(transaction, step, astray)
