"""Draining nodes under our mark and returning them, other people's reasons left alone.

Slurm has no compare-and-set: between looking and acting a few milliseconds remain in which a reason
that somebody sets is overwritten by a drain. `UNDRAIN` is used to return a node because it takes
the drain away only, and leaves a node DOWN that is DOWN.
"""

from inventory.drivers.clusters.capabilities import ActResult, EvictionResult, Outcome
from inventory.drivers.clusters.marks import earlier_of, is_owner, marked
from inventory.drivers.clusters.readings import ClusterNode
from inventory.drivers.clusters.slurm.doors import Doors, checked_name, done, unchanged, until
from inventory.drivers.clusters.slurm.errors import SlurmError
from inventory.drivers.clusters.slurm.places import reading_of_node
from inventory.drivers.clusters.slurm.reads import node_entry
from inventory.drivers.clusters.slurm.versions import NEW_FORM

NO_EVICTION = "a drained node's jobs run to their end; requeue or cancel those that are to go"


class Cordons:
    """The part of the driver that takes nodes out of scheduling."""

    def __init__(self, doors: Doors) -> None:
        self._doors = doors

    async def cordon(self, node: str, *, owner: str, reason: str, deadline: float) -> ActResult:
        """Drains the node; running jobs go on. A down node's own reason is kept behind ours."""
        end = until(deadline)
        if not is_owner(owner):
            return ActResult(outcome=Outcome.REFUSED, detail=f"{owner[:80]!r} can't stand in a mark")
        try:
            seen = await self._seen(node, end)
            if seen.cordoned:
                ours = seen.owner == owner
                return unchanged("drained under this mark already") if ours else _held(seen)
            await self._update(node, end, state="DRAIN", reason=marked(owner, reason, earlier=seen.reason))
        except SlurmError as error:
            return error.result()
        return done()

    async def uncordon(self, node: str, *, owner: str, deadline: float) -> ActResult:
        """Ends our drain and puts an earlier reason back; a drain without our mark stays."""
        end = until(deadline)
        try:
            seen = await self._seen(node, end)
            if not seen.cordoned:
                return unchanged("the node is not drained; somebody lifted it")
            if seen.owner != owner or not owner:
                return _held(seen)
            await self._update(node, end, state="UNDRAIN")
            earlier = earlier_of(seen.reason)
            if earlier and (await self._seen(node, end)).owner == owner:  # still down: its reason was not cleared
                await self._update(node, end, reason=earlier)
        except SlurmError as error:
            return error.result()
        return done()

    async def evict(self, node: str, *, owner: str, deadline: float) -> EvictionResult:
        """Slurm knows no eviction."""
        return EvictionResult(outcome=Outcome.NOT_SUPPORTED, detail=NO_EVICTION)

    async def _seen(self, node: str, end: float) -> ClusterNode:
        name = checked_name("node", node)
        return reading_of_node(await node_entry(self._doors, name, until=end))

    async def _update(self, node: str, end: float, *, state: str = "", reason: str = "") -> None:
        rest = self._doors.rest
        if rest is not None and (await rest.interface(until=end)).number >= NEW_FORM:
            body = ({"state": [state]} if state else {}) | ({"reason": reason} if reason else {})
            await rest.send("POST", f"node/{node}", body=body, until=end)
            return
        words = ([f"State={state}"] if state else []) + ([f"Reason={reason}"] if reason else [])
        command = self._doors.commands(f"change node {node}")
        await command.run("scontrol", "update", f"NodeName={node}", *words, until=end)


def _held(node: ClusterNode) -> ActResult:
    by = f" ({node.reason_by})" if node.reason_by else ""
    return ActResult(outcome=Outcome.HELD_BY_OTHER, detail=f"{node.reason or 'drained without a reason'}{by}")
