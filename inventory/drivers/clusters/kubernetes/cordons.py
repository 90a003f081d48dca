"""Cordoning nodes under our mark and returning them, other people's cordons left alone.

Every change names the version that it was decided on, so nothing that somebody does in between is
overwritten: the server answers 409, and it is looked at anew.
"""

import msgspec

from inventory.drivers.clusters.capabilities import ActResult, Outcome
from inventory.drivers.clusters.kubernetes import wire
from inventory.drivers.clusters.kubernetes.connection import MERGE, Connection, path_of
from inventory.drivers.clusters.kubernetes.errors import KubernetesError
from inventory.drivers.clusters.kubernetes.names import CORDON, MANAGER, checked_name
from inventory.drivers.clusters.kubernetes.nodes import cordon_of
from inventory.drivers.clusters.kubernetes.reads import until_of
from inventory.drivers.clusters.marks import is_owner, marked
from inventory.observations import FailureKind

_MOST_TRIES = 6
_NODE = msgspec.json.Decoder(wire.Node)


class Cordons:
    """The part of the driver that takes nodes out of scheduling."""

    _connection: Connection

    async def cordon(self, node: str, *, owner: str, reason: str, deadline: float) -> ActResult:
        """Makes the node take no new pods; those that run go on."""
        if not is_owner(owner):
            return ActResult(outcome=Outcome.REFUSED, detail=f"{owner[:80]!r} can't stand in a mark")
        return await self._changed(node, owner, marked(owner, reason), until_of(deadline))

    async def uncordon(self, node: str, *, owner: str, deadline: float) -> ActResult:
        """Lifts exactly this owner's cordon."""
        return await self._changed(node, owner, None, until_of(deadline))

    async def _changed(self, name: str, owner: str, mark: str | None, end: float) -> ActResult:
        """Sets or lifts (`mark` None) our cordon."""
        try:
            for _ in range(_MOST_TRIES):
                node = await read_node(self._connection, name, until=end)
                settled = _settled(node, owner, lift=mark is None)
                if settled is not None:
                    return settled
                body = {
                    "metadata": {
                        "resourceVersion": node.metadata.resource_version,
                        "annotations": {CORDON: mark},
                    },
                    "spec": {"unschedulable": True if mark is not None else None},
                }
                try:
                    path, query = path_of("api/v1", "nodes", name), {"fieldManager": MANAGER}
                    await self._connection.send("PATCH", path, until=end, query=query, body=body, content=MERGE)
                except KubernetesError as error:
                    if error.note != "conflict":
                        raise
                else:
                    return ActResult(outcome=Outcome.DONE)
        except KubernetesError as error:
            return error.result()
        detail = f"the node was changed by others {_MOST_TRIES} times meanwhile"
        return ActResult(outcome=Outcome.FAILED, detail=detail, kind=FailureKind.BUSY)


async def read_node(connection: Connection, name: str, *, until: float) -> wire.Node:
    """One node as it is now; KubernetesError "missing" when there is none of that name."""
    data = await connection.get(path_of("api/v1", "nodes", checked_name("node", name)), until=until)
    try:
        return _NODE.decode(data)
    except msgspec.DecodeError as error:
        raise KubernetesError(f"GET node {name}", FailureKind.PROTOCOL, f"no node: {error}") from error


def _settled(node: wire.Node, owner: str, *, lift: bool) -> ActResult | None:
    """The end of the act where nothing is to be changed."""
    if not node.spec.unschedulable:
        if not lift:
            return None
        return ActResult(outcome=Outcome.UNCHANGED, detail="the node is not cordoned; somebody lifted it")
    holder, text = cordon_of(node)
    if holder != owner or not owner:
        return ActResult(outcome=Outcome.HELD_BY_OTHER, detail=text[:2000])
    return None if lift else ActResult(outcome=Outcome.UNCHANGED, detail="cordoned under this mark already")
