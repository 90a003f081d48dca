"""Which resources are accelerators, of what kind, and what a pod takes of them. Pure.

Names are those of the vendors' device plugins: nvidia.com/gpu, nvidia.com/mig-1g.10gb and their shared
forms, amd.com/gpu and partitions, gpu.intel.com/i915 and xe, habana.ai/gaudi, huawei.com/Ascend910.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from inventory.drivers.clusters.kubernetes import wire
from inventory.drivers.clusters.kubernetes.quantities import whole
from inventory.drivers.clusters.readings import Accelerators, CardKind

PRODUCT = "nvidia.com/gpu.product"
_STRATEGY = "nvidia.com/gpu.sharing-strategy"
_REPLICAS = "nvidia.com/gpu.replicas"
_MIG = re.compile(r"^nvidia\.com/mig-([0-9a-z.+]+?)(\.shared)?$")
_AMD = re.compile(r"^amd\.com/((?:spx|dpx|tpx|qpx|cpx)_nps[0-9])$")
_INTEL = re.compile(r"^gpu\.intel\.com/(?:i915|xe)$")
_HABANA = re.compile(r"^habana\.ai/(gaudi[0-9]*)$")
_ASCEND = re.compile(r"^huawei\.com/(Ascend[0-9A-Za-z]+)(-[0-9][0-9a-z.]*)?$")
_WHOLE_MIG = re.compile(r"-MIG-([0-9a-z.+]+)$")  # the product's name where all cards are cut alike
_PRODUCTS = {
    "amd.com/": ("amd.com/gpu.product-name", "amd.com/gpu.family"),
    "gpu.intel.com/": ("gpu.intel.com/product", "gpu.intel.com/family"),
    "huawei.com/": ("node.kubernetes.io/npu.chip.name", "accelerator-type"),
}
LABELS = (PRODUCT, _STRATEGY, _REPLICAS, *(label for pair in _PRODUCTS.values() for label in pair))


@dataclass(frozen=True, slots=True)
class Offer:
    """What one resource stands for on one node."""

    kind: CardKind
    type: str


def offer_of(resource: str, labels: Mapping[str, str]) -> Offer | None:
    """What a resource is on a node with these labels; None when it is no accelerator."""
    if resource.startswith("nvidia.com/"):
        return _nvidia(resource, labels)
    if match := _AMD.match(resource):
        partition = match[1]
        if partition.startswith("spx"):
            return Offer(CardKind.CARD, _product(resource, labels) or "amd")
        return Offer(CardKind.MIG, partition)
    if resource == "amd.com/gpu":
        return Offer(CardKind.CARD, _product(resource, labels) or "amd")
    if _INTEL.match(resource):
        return Offer(CardKind.CARD, _product(resource, labels) or "intel")
    if match := _HABANA.match(resource):
        return Offer(CardKind.CARD, match[1])
    if match := _ASCEND.match(resource):
        if match[2]:  # a virtual NPU: a fixed part of a chip
            return Offer(CardKind.MIG, f"{match[1]}{match[2]}")
        return Offer(CardKind.CARD, _product(resource, labels) or match[1])
    return None


def _nvidia(resource: str, labels: Mapping[str, str]) -> Offer | None:
    product = labels.get(PRODUCT, "").removesuffix("-SHARED") or "nvidia"
    if match := _MIG.match(resource):
        return Offer(CardKind.SHARD if match[2] else CardKind.MIG, match[1])
    if resource == "nvidia.com/gpu.shared":
        return Offer(_shared_kind(labels), product)
    if resource != "nvidia.com/gpu":
        return None
    replicas = whole(labels.get(_REPLICAS)) or 1
    if replicas > 1 and labels.get(_STRATEGY, "none") != "none":
        return Offer(_shared_kind(labels), product)
    if match := _WHOLE_MIG.search(product):
        return Offer(CardKind.MIG, match[1])
    return Offer(CardKind.CARD, product)


def _shared_kind(labels: Mapping[str, str]) -> CardKind:
    return CardKind.MPS if labels.get(_STRATEGY) == "mps" else CardKind.SHARD


def _product(resource: str, labels: Mapping[str, str]) -> str:
    names = _PRODUCTS[resource.partition("/")[0] + "/"]
    return next((labels[name] for name in names if labels.get(name)), "")


def is_accelerator(resource: str) -> bool:
    """Whether a resource is an accelerator of any kind."""
    return offer_of(resource, {}) is not None


def asked_of(
    containers: Iterable[wire.Container] | None, init_containers: Iterable[wire.Container] = ()
) -> dict[str, int]:
    """Accelerators that a pod takes: its containers and sidecars together, or one init container if that is more.

    This is how the scheduler counts (Kubernetes, "Init containers", resource sharing).
    """
    total: dict[str, int] = {}
    first: dict[str, int] = {}
    for container in containers or ():
        _add(total, container)
    for container in init_containers:
        if container.restart_policy == "Always":
            _add(total, container)
        else:
            for name, count in _of(container):
                first[name] = max(first.get(name, 0), count)
    names = total.keys() | first.keys()
    return {name: max(total.get(name, 0), first.get(name, 0)) for name in names}


def _add(total: dict[str, int], container: wire.Container) -> None:
    for name, count in _of(container):
        total[name] = total.get(name, 0) + count


def _of(container: wire.Container) -> list[tuple[str, int]]:
    if container.resources is None:
        return []
    # Devices can't be overcommitted: requests equal limits, and either may be left out.
    merged = container.resources.limits | container.resources.requests
    return [(name, count) for name, text in merged.items() if "/" in name and (count := _count(name, text))]


def _count(name: str, text: str | int) -> int:
    return (whole(text) or 0) if is_accelerator(name) else 0


def accelerators_of(
    capacity: wire.Quantities, allocatable: wire.Quantities, labels: Mapping[str, str], used: Mapping[str, int]
) -> tuple[Accelerators, ...]:
    """What a node has. What the kubelet tells as capacity and not as allocatable is unhealthy."""
    found = []
    for resource in sorted(capacity):
        offer = offer_of(resource, labels) if "/" in resource else None
        total = whole(capacity[resource]) or 0
        if offer is None or total <= 0:
            continue
        free = whole(allocatable.get(resource)) or 0
        found.append(
            Accelerators(
                kind=offer.kind,
                type=offer.type,
                resource=resource,
                total=total,
                unhealthy=max(0, total - free),
                used=used.get(resource, 0),
            )
        )
    return tuple(found)
