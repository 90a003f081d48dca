"""Queues of Kueue and Volcano, where they are installed."""

import msgspec
from msgspec import Raw, Struct

from inventory.drivers.clusters.kubernetes import wire
from inventory.drivers.clusters.kubernetes.connection import Connection, path_of
from inventory.drivers.clusters.kubernetes.errors import KubernetesError
from inventory.drivers.clusters.readings import Queue
from inventory.observations import FailureKind

KUEUE = "kueue.x-k8s.io"
VOLCANO = "scheduling.volcano.sh"


class _Version(Struct, frozen=True, rename="camel"):
    group_version: str = ""


class _Group(Struct, frozen=True, rename="camel"):
    preferred_version: _Version = _Version()


class _KueueSpec(Struct, frozen=True, rename="camel"):
    stop_policy: str = ""


class _KueueQueue(Struct, frozen=True):
    metadata: wire.Meta
    spec: _KueueSpec = _KueueSpec()


class _VolcanoSpec(Struct, frozen=True):
    priority: int | None = None


class _VolcanoStatus(Struct, frozen=True):
    state: str = ""


class _VolcanoQueue(Struct, frozen=True):
    metadata: wire.Meta
    spec: _VolcanoSpec = _VolcanoSpec()
    status: _VolcanoStatus = _VolcanoStatus()


_GROUP = msgspec.json.Decoder(_Group)
_KUEUE = msgspec.json.Decoder(_KueueQueue)
_VOLCANO = msgspec.json.Decoder(_VolcanoQueue)


async def queueing_of(connection: Connection, *, until: float) -> dict[str, str]:
    """Which of the two is installed, with the version of its API that the server prefers."""
    found: dict[str, str] = {}
    for group in (KUEUE, VOLCANO):
        try:
            told = _GROUP.decode(await connection.get(path_of("apis", group), until=until))
        except KubernetesError as error:
            if error.note == "missing":
                continue
            raise
        except msgspec.DecodeError as error:
            raise KubernetesError(f"GET /apis/{group}", FailureKind.PROTOCOL, f"no group: {error}") from error
        version = told.preferred_version.group_version.rpartition("/")[2]
        if version:
            found[group] = version
    return found


async def read_queue_objects(connection: Connection, *, until: float) -> tuple[Queue, ...]:
    """All queues that work can name. Kueue's stand in namespaces: one name may be a queue in several."""
    installed = await queueing_of(connection, until=until)
    queues: dict[str, Queue] = {}

    def of_kueue(raw: Raw) -> None:
        one = _KUEUE.decode(raw)
        name = one.metadata.name
        known = queues.get(name) or Queue(name=name, up=False)
        accounts = tuple(sorted({*known.accounts, one.metadata.namespace}))
        up = known.up or one.spec.stop_policy in ("", "None")
        queues[name] = msgspec.structs.replace(known, accounts=accounts, up=up)

    def of_volcano(raw: Raw) -> None:
        one = _VOLCANO.decode(raw)
        name, up = one.metadata.name, one.status.state in ("", "Open")
        queues[name] = Queue(name=name, up=up, priority=one.spec.priority, default=name == "default")

    if KUEUE in installed:
        await connection.listed(path_of(f"apis/{KUEUE}/{installed[KUEUE]}", "localqueues"), of_kueue, until=until)
    if VOLCANO in installed:
        await connection.listed(path_of(f"apis/{VOLCANO}/{installed[VOLCANO]}", "queues"), of_volcano, until=until)
    return tuple(queues.values())
