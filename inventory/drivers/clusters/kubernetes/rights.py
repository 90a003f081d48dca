"""What our account may do, asked of the API server itself, and which rights each capability needs."""

import asyncio
from collections.abc import Mapping

import msgspec
from msgspec import Struct

from inventory.drivers.clusters.capabilities import Capability
from inventory.drivers.clusters.kubernetes.connection import Connection
from inventory.drivers.clusters.kubernetes.errors import KubernetesError
from inventory.observations import FailureKind

Right = tuple[str, str, str]  # verb, API group, resource (with its part after a slash)

_READ_PODS: tuple[Right, ...] = (
    ("list", "", "pods"),
    ("list", "", "nodes"),
    ("list", "batch", "jobs"),
    ("list", "apps", "replicasets"),
    ("list", "apps", "statefulsets"),
)
_NEEDED: Mapping[Capability, tuple[Right, ...]] = {
    Capability.NODES: (("list", "", "nodes"), ("list", "", "pods")),
    Capability.JOBS: _READ_PODS,
    Capability.FOLLOW: (
        *_READ_PODS,
        ("watch", "", "pods"),
        ("watch", "batch", "jobs"),
        ("get", "batch", "jobs"),
        ("get", "apps", "replicasets"),
        ("get", "apps", "statefulsets"),
    ),
    Capability.CORDON: (("get", "", "nodes"), ("patch", "", "nodes")),
    Capability.EVICT: (("get", "", "nodes"), ("list", "", "pods"), ("create", "", "pods/eviction")),
    Capability.SUBMIT: (("create", "batch", "jobs"), ("list", "", "nodes")),
    Capability.PLACE: (("create", "batch", "jobs"), ("get", "", "nodes")),
    Capability.HOLD: (("get", "batch", "jobs"), ("patch", "batch", "jobs")),
    Capability.REQUEUE: (("get", "batch", "jobs"), ("patch", "batch", "jobs")),
    Capability.CANCEL: (("get", "batch", "jobs"), ("delete", "batch", "jobs"), ("delete", "", "pods")),
    Capability.TENANTS: (
        ("create", "", "namespaces"),
        ("list", "", "namespaces"),
        ("create", "", "resourcequotas"),
        ("patch", "", "resourcequotas"),
        ("create", "", "limitranges"),
        ("create", "networking.k8s.io", "networkpolicies"),
        ("list", "scheduling.k8s.io", "priorityclasses"),
    ),
}
_PATH = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_AT_ONCE = 8


class _Status(Struct, frozen=True):
    allowed: bool = False


class _Review(Struct, frozen=True):
    status: _Status = _Status()


_REVIEW = msgspec.json.Decoder(_Review)


def needed_for(capability: Capability) -> tuple[Right, ...]:
    """The rights without which a capability is not there."""
    return _NEEDED.get(capability, ())


async def allowed(connection: Connection, *, until: float) -> dict[Right, bool]:
    """Of each right that something needs, whether our account has it in every namespace."""
    rights = sorted({right for needed in _NEEDED.values() for right in needed})
    slots = asyncio.Semaphore(_AT_ONCE)

    async def ask(right: Right) -> bool:
        async with slots:
            return await _ask(connection, right, until)

    return dict(zip(rights, await asyncio.gather(*map(ask, rights)), strict=True))


async def _ask(connection: Connection, right: Right, until: float) -> bool:
    verb, group, resource = right
    name, _, part = resource.partition("/")
    attributes = {"verb": verb, "group": group, "resource": name, "subresource": part}
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {key: value for key, value in attributes.items() if value}},
    }
    data = await connection.send("POST", _PATH, until=until, body=body)
    try:
        return _REVIEW.decode(data).status.allowed
    except msgspec.DecodeError as error:
        raise KubernetesError(f"POST {_PATH}", FailureKind.PROTOCOL, f"no review: {error}") from error
