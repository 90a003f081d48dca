"""Tenants as namespaces: quota, limits, and a policy that keeps other tenants' traffic out.

Only namespaces that we made, or that were handed to us by our label, are changed.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Raw, Struct

from inventory.drivers.clusters.capabilities import ActResult, Outcome, QosSpec, TenantSpec
from inventory.drivers.clusters.kubernetes import wire
from inventory.drivers.clusters.kubernetes.accelerators import is_accelerator
from inventory.drivers.clusters.kubernetes.connection import MERGE, Connection, path_of
from inventory.drivers.clusters.kubernetes.errors import KubernetesError, refused
from inventory.drivers.clusters.kubernetes.names import (
    BY_TYPE,
    MANAGED_BY,
    MANAGER,
    SHARED,
    TENANT,
    checked_namespace,
)
from inventory.drivers.clusters.kubernetes.quantities import whole
from inventory.drivers.clusters.kubernetes.reads import now, until_of
from inventory.drivers.clusters.readings import QosReading, TenantReading, TenantsReading
from inventory.observations import FailureKind

ENFORCED = ("cards", "cards_by_type", "storage", "isolated", "default_cpus", "default_memory")
NO_QOS = "priority classes belong to the whole cluster: its administrator makes them (kubectl create priorityclass)"
QUOTA, LIMITS, POLICY = "sensaka", "sensaka", "sensaka-tenant"
_DESCRIPTION = "sensaka/description"
_QUOTAS, _LIMIT_RANGES = ("api/v1", "resourcequotas"), ("api/v1", "limitranges")
_POLICIES = ("networking.k8s.io", "networkpolicies")
_REQUESTS = "requests."


class _QuotaSpec(Struct, frozen=True):
    hard: wire.Quantities = {}


class _Quota(Struct, frozen=True):
    metadata: wire.Meta
    spec: _QuotaSpec = _QuotaSpec()


class _Class(Struct, frozen=True):
    metadata: wire.Meta
    value: int = 0


class _NodeCapacity(Struct, frozen=True):
    capacity: wire.Quantities = {}


class _NodeResources(Struct, frozen=True):
    status: _NodeCapacity = _NodeCapacity()


_QUOTA = msgspec.json.Decoder(_Quota)
_CLASS = msgspec.json.Decoder(_Class)
_NAMED = msgspec.json.Decoder(wire.Named)
_RESOURCES = msgspec.json.Decoder(_NodeResources)


class Tenants:
    """The part of the driver that keeps namespaces."""

    _connection: Connection

    async def read_tenants(self, *, deadline: float) -> TenantsReading:
        """All namespaces with their quotas, and the priority classes."""
        start, end = now(), until_of(deadline)
        listed = self._connection.listed
        try:
            spaces = (await listed("/api/v1/namespaces", _NAMED.decode, until=end)).items
            quotas = (await listed("/api/v1/resourcequotas", _QUOTA.decode, until=end)).items
            policies = (await listed("/apis/networking.k8s.io/v1/networkpolicies", _NAMED.decode, until=end)).items
            classes = (await listed("/apis/scheduling.k8s.io/v1/priorityclasses", _CLASS.decode, until=end)).items
        except KubernetesError as error:
            return TenantsReading(observed_at=start, complete=False, failures=(error.failure(),))
        isolated = {one.metadata.namespace for one in policies if one.metadata.name == POLICY}
        of_space: dict[str, list[_Quota]] = {}
        for quota in quotas:
            of_space.setdefault(quota.metadata.namespace, []).append(quota)
        tenants = tuple(_tenant(space.metadata, of_space.get(space.metadata.name, []), isolated) for space in spaces)
        qos = tuple(QosReading(name=one.metadata.name, priority=one.value) for one in classes)
        return TenantsReading(observed_at=start, tenants=tenants, qos=qos)

    async def ensure_tenant(self, tenant: TenantSpec, *, deadline: float) -> ActResult:
        """Makes the namespace where it is missing and sets its quota, limits and policy.

        `cards` holds for every accelerator resource of the cluster's nodes by itself: Kubernetes adds
        nothing up over resources. A type in `cards_by_type` is a resource's name.
        """
        end = until_of(deadline)
        try:
            name = checked_namespace(tenant.name)
            made = await self._ensure_namespace(name, tenant, end)
            if isinstance(made, ActResult):
                return made
            hard = await self._hard(tenant, end)
            quota = {"metadata": {"annotations": {BY_TYPE: ",".join(sorted(tenant.cards_by_type))}}}
            changed = [
                made,
                await self._ensure(name, _QUOTAS, QUOTA, {**quota, "spec": {"hard": hard}}, end),
                await self._ensure(name, _LIMIT_RANGES, LIMITS, _limit_range(tenant), end),
                await self._ensure(name, _POLICIES, POLICY, _policy() if tenant.isolated else None, end),
            ]
        except KubernetesError as error:
            return error.result()
        detail = _left_out(tenant)
        return ActResult(outcome=Outcome.DONE if any(changed) else Outcome.UNCHANGED, detail=detail, reference=name)

    async def _ensure_namespace(self, name: str, tenant: TenantSpec, end: float) -> bool | ActResult:
        """Whether it was made or changed; HELD_BY_OTHER for a namespace that is not ours."""
        labels = {MANAGED_BY: MANAGER, TENANT: name}
        annotations = {_DESCRIPTION: tenant.description}
        body = {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": name, "labels": labels, "annotations": annotations},
        }
        try:
            path, query = path_of("api/v1", "namespaces"), {"fieldManager": MANAGER}
            await self._connection.send("POST", path, until=end, query=query, body=body)
        except KubernetesError as error:
            if error.note != "exists":
                raise
        else:
            return True
        path = path_of("api/v1", "namespaces", name)
        meta = _NAMED.decode(await self._connection.get(path, until=end)).metadata
        if meta.labels.get(TENANT) != name:
            detail = f"the namespace was made by somebody else; to hand it over, label it {TENANT}={name}"
            return ActResult(outcome=Outcome.HELD_BY_OTHER, detail=detail)
        if meta.annotations.get(_DESCRIPTION, "") == tenant.description:
            return False
        change = {"metadata": {"annotations": annotations}}
        await self._connection.send("PATCH", path, until=end, query=query, body=change, content=MERGE)
        return True

    async def _hard(self, tenant: TenantSpec, end: float) -> dict[str, str]:
        hard = {} if tenant.storage is None else {f"{_REQUESTS}storage": str(tenant.storage)}
        if tenant.cards is not None:
            hard |= {f"{_REQUESTS}{name}": str(tenant.cards) for name in await self._resources(end)}
        for name, count in tenant.cards_by_type.items():
            if not is_accelerator(name):
                raise refused("tenant", f"{name[:100]!r} is no accelerator's resource: quota counts resources only")
            hard[f"{_REQUESTS}{name}"] = str(count)
        return hard

    async def _resources(self, end: float) -> set[str]:
        """Names of all accelerator resources that nodes have."""
        found: set[str] = set()

        def convert(raw: Raw) -> None:
            found.update(name for name in _RESOURCES.decode(raw).status.capacity if is_accelerator(name))

        await self._connection.listed("/api/v1/nodes", convert, until=end)
        return found or {"nvidia.com/gpu"}

    async def _ensure(
        self, namespace: str, kind: tuple[str, str], name: str, wanted: Mapping[str, Any] | None, end: float
    ) -> bool:
        """Makes, sets or (`wanted` None) removes one object of ours; whether that changed anything."""
        group, plural = kind
        root = group if "/" in group else f"apis/{group}/v1"
        query = {"fieldManager": MANAGER}
        path = path_of(root, "namespaces", namespace, plural, name)
        try:
            known = _NAMED.decode(await self._connection.get(path, until=end))
        except KubernetesError as error:
            if error.note != "missing":
                raise
            if wanted is None:
                return False
            meta = {"name": name, "labels": {MANAGED_BY: MANAGER}, **wanted.get("metadata", {})}
            body = {"metadata": meta, "spec": wanted["spec"]}
            await self._connection.send("POST", path.rpartition("/")[0], until=end, query=query, body=body)
            return True
        if wanted is None:
            await self._connection.send("DELETE", path, until=end)
            return True
        spec = msgspec.json.decode(known.spec) if bytes(known.spec) else {}
        annotations = wanted.get("metadata", {}).get("annotations", {})
        if _same(spec, wanted["spec"]) and all(
            known.metadata.annotations.get(key, "") == value for key, value in annotations.items()
        ):
            return False
        change = {"metadata": {"annotations": annotations}, "spec": _merge(spec, wanted["spec"])}
        await self._connection.send("PATCH", path, until=end, query=query, body=change, content=MERGE)
        return True

    async def ensure_qos(self, qos: QosSpec, *, deadline: float) -> ActResult:
        """Not supported."""
        return ActResult(outcome=Outcome.NOT_SUPPORTED, detail=NO_QOS, kind=FailureKind.NOT_SUPPORTED)


def _limit_range(tenant: TenantSpec) -> dict[str, Any] | None:
    """What a container gets that asks for nothing, and the largest volume; None where nothing is limited."""
    defaults: dict[str, str] = {}
    if tenant.default_cpus is not None:
        defaults["cpu"] = str(tenant.default_cpus)
    if tenant.default_memory is not None:
        defaults["memory"] = str(tenant.default_memory)
    limits: list[dict[str, Any]] = []
    if defaults:
        limits.append({"type": "Container", "default": defaults, "defaultRequest": defaults})
    if tenant.storage is not None:
        limits.append({"type": "PersistentVolumeClaim", "max": {"storage": str(tenant.storage)}})
    return {"spec": {"limits": limits}} if limits else None


def _policy() -> dict[str, Any]:
    """Lets in what comes from the same namespace, and from namespaces marked as shared (ingress, monitoring)."""
    sources = [{"podSelector": {}}, {"namespaceSelector": {"matchLabels": {SHARED: "true"}}}]
    return {"spec": {"podSelector": {}, "policyTypes": ["Ingress"], "ingress": [{"from": sources}]}}


def _same(known: Any, wanted: Any) -> bool:
    """Whether two specs say the same; quantities may be written otherwise ("1000" and "1k")."""
    if isinstance(known, dict) and isinstance(wanted, dict):
        return known.keys() == wanted.keys() and all(_same(known[key], wanted[key]) for key in known)
    if isinstance(known, list) and isinstance(wanted, list):
        return len(known) == len(wanted) and all(map(_same, known, wanted))
    if known == wanted:
        return True
    left, right = (whole(one) if isinstance(one, str | int) else None for one in (known, wanted))
    return left is not None and left == right


def _merge(known: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    """A merge patch from one spec to the other: what is no longer wanted is null (RFC 7396)."""
    patch: dict[str, Any] = {key: None for key in known if key not in wanted}
    for key, value in wanted.items():
        before = known.get(key)
        patch[key] = _merge(before, value) if isinstance(before, dict) and isinstance(value, dict) else value
    return patch


def _tenant(meta: wire.Meta, quotas: list[_Quota], isolated: set[str]) -> TenantReading:
    hard: dict[str, int] = {}
    by_type: set[str] = set()
    for quota in quotas:
        by_type.update(name for name in quota.metadata.annotations.get(BY_TYPE, "").split(",") if name)
        for name, text in quota.spec.hard.items():
            number = whole(text)
            if number is not None:
                hard[name] = min(number, hard.get(name, number))
    cards = {
        name.removeprefix(_REQUESTS): count
        for name, count in hard.items()
        if name.startswith(_REQUESTS) and is_accelerator(name.removeprefix(_REQUESTS))
    }
    common = {count for name, count in cards.items() if name not in by_type}
    single = common.pop() if len(common) == 1 else None
    typed = {name: count for name, count in cards.items() if name in by_type or single is None}
    return TenantReading(
        name=meta.name,
        cards=single,
        cards_by_type=tuple(sorted(typed.items())),
        storage=hard.get(f"{_REQUESTS}storage"),
        isolated=meta.name in isolated,
        ours=meta.labels.get(TENANT) == meta.name,
    )


def _left_out(tenant: TenantSpec) -> str:
    fields = [name for name in ("parent", "users", "qos") if getattr(tenant, name)]
    fields += ["card_seconds"] if tenant.card_seconds is not None else []
    return f"not enforced by Kubernetes: {', '.join(fields)}" if fields else ""
