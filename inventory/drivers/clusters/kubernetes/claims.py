"""Devices that pods claim (dynamic resource allocation, resource.k8s.io/v1). Pure.

A claim's allocation names driver, pool and device; the driver's ResourceSlices say which UUID or PCI
address that device has. Only drivers of accelerators count.
"""

from collections.abc import Iterable

from msgspec import Struct

from inventory.drivers.clusters.kubernetes import wire
from inventory.drivers.clusters.readings import Accelerators, CardBinding, CardKind

_DRIVERS = frozenset({"gpu.nvidia.com", "gpu.amd.com", "gpu.intel.com", "gaudi.intel.com", "npu.huawei.com"})
_Device = tuple[str, str, str]  # driver, pool, device


class _Value(Struct, frozen=True):
    string: str | None = None


class _SliceDevice(Struct, frozen=True):
    name: str
    attributes: dict[str, _Value] = {}


class _Pool(Struct, frozen=True):
    name: str = ""


class _SliceSpec(Struct, frozen=True, rename="camel"):
    driver: str = ""
    node_name: str = ""
    pool: _Pool = _Pool()
    devices: list[_SliceDevice] = []


class ResourceSlice(Struct, frozen=True):
    """Devices of one driver on one node."""

    spec: _SliceSpec


class _Result(Struct, frozen=True):
    driver: str = ""
    pool: str = ""
    device: str = ""


class _Devices(Struct, frozen=True):
    results: list[_Result] = []


class _Allocation(Struct, frozen=True):
    devices: _Devices = _Devices()


class _Consumer(Struct, frozen=True):
    resource: str = ""
    name: str = ""
    uid: str = ""


class _ClaimStatus(Struct, frozen=True, rename="camel"):
    allocation: _Allocation | None = None
    reserved_for: list[_Consumer] = []


class ResourceClaim(Struct, frozen=True):
    """What is claimed, what was given, and for which pods."""

    metadata: wire.Meta
    status: _ClaimStatus = _ClaimStatus()


def _text(device: _SliceDevice, name: str) -> str:
    """An attribute by its name, whatever domain stands before it."""
    for key, value in device.attributes.items():
        if key.rpartition("/")[2] == name and value.string:
            return value.string
    return ""


def devices_of(slices: Iterable[ResourceSlice]) -> dict[_Device, CardBinding]:
    """Every accelerator in the slices as a binding of one device."""
    found: dict[_Device, CardBinding] = {}
    for one in slices:
        spec = one.spec
        for device in spec.devices if spec.driver in _DRIVERS else ():
            profile, uuid = _text(device, "profile"), _text(device, "uuid")
            address = _text(device, "pciBusID") or _text(device, "pcieBusID")
            found[spec.driver, spec.pool.name, device.name] = CardBinding(
                node=spec.node_name,
                kind=CardKind.MIG if _text(device, "type") == "mig" else CardKind.CARD,
                type=(profile or _text(device, "productName") or spec.driver)[:200],
                count=1,
                uuids=(uuid,) if uuid else (),
                addresses=(address.lower(),) if address and not uuid else (),
            )
    return found


def bindings_of_claims(
    claims: Iterable[ResourceClaim], devices: dict[_Device, CardBinding]
) -> dict[tuple[str, str], tuple[CardBinding, ...]]:
    """What pods hold by claims, by namespace and name of the pod."""
    found: dict[tuple[str, str], tuple[CardBinding, ...]] = {}
    for claim in claims:
        results = claim.status.allocation.devices.results if claim.status.allocation else []
        held = tuple(device for one in results if (device := devices.get((one.driver, one.pool, one.device))))
        for consumer in claim.status.reserved_for if held else ():
            if consumer.resource == "pods":
                key = (claim.metadata.namespace, consumer.name)
                found[key] = found.get(key, ()) + held
    return found


def accelerators_by_node(devices: Iterable[CardBinding]) -> dict[str, tuple[Accelerators, ...]]:
    """What nodes offer by claims, by node; how much of it is used is not counted here."""
    counted: dict[str, dict[tuple[CardKind, str], int]] = {}
    for device in devices:
        kinds = counted.setdefault(device.node, {})
        kinds[device.kind, device.type] = kinds.get((device.kind, device.type), 0) + 1
    return {
        node: tuple(Accelerators(kind=kind, type=name, total=total) for (kind, name), total in sorted(kinds.items()))
        for node, kinds in counted.items()
    }
