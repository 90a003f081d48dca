"""Which devices a pod holds, as far as the API server is told. Pure.

The kubelet knows it exactly and tells it in the pod's status (ResourceHealthStatus, on by default from
Kubernetes 1.36 on), with the ids that the vendor's device plugin gave: a UUID at NVIDIA, a PCI address
at AMD, a number at Intel and Huawei. Huawei's plugin also writes an annotation. Claims of devices
(DRA) are in `claims`. Where nobody tells, the cards are unknown; the agent on the node may know.
"""

import re
from collections.abc import Mapping

from inventory.drivers.clusters.kubernetes import wire
from inventory.drivers.clusters.kubernetes.accelerators import Offer, offer_of
from inventory.drivers.clusters.readings import CardBinding, CardKind

_UUID = re.compile(r"^((?:GPU|MIG)-[0-9A-Za-z/-]{8,120}?)(?:::[0-9]+)?$", re.ASCII)  # ::N is a share's number
_PCI = re.compile(r"^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$", re.ASCII | re.IGNORECASE)
_NUMBERED = re.compile(r"^(?:card|Ascend[0-9A-Za-z]*-|accel)([0-9]{1,4})(?:-[0-9]{1,4})?$", re.ASCII)
_ASCEND_ANNOTATION = "huawei.com/AscendReal"


def bindings_of(
    pod: wire.Pod, asked: Mapping[str, int], labels: Mapping[str, str], claimed: tuple[CardBinding, ...] = ()
) -> tuple[tuple[CardBinding, ...], bool]:
    """What a pod holds, and whether that is all that it was given."""
    ids = _told_by_kubelet(pod)
    known = True
    found: list[CardBinding] = list(claimed)
    for resource, count in sorted(asked.items()):
        offer = offer_of(resource, labels)
        if offer is None or not count:
            continue
        given = ids.get(resource) or _told_by_annotation(pod, resource)
        binding = _binding(pod.spec.node_name, offer, count, given)
        if binding is None:
            known = False
        else:
            found.append(binding)
    return tuple(found), known


def _told_by_kubelet(pod: wire.Pod) -> dict[str, list[str]]:
    found: dict[str, dict[str, None]] = {}
    for status in (*pod.status.container_statuses, *pod.status.init_container_statuses):
        for devices in status.allocated_resources_status:
            ids = found.setdefault(devices.name, {})
            ids.update(dict.fromkeys(device.resource_id for device in devices.resources if device.resource_id))
    return {name: list(ids) for name, ids in found.items()}


def _told_by_annotation(pod: wire.Pod, resource: str) -> list[str]:
    if not resource.startswith("huawei.com/"):
        return []
    return [part.strip() for part in pod.metadata.annotations.get(_ASCEND_ANNOTATION, "").split(",") if part.strip()]


def _binding(node: str, offer: Offer, count: int, ids: list[str]) -> CardBinding | None:
    """One binding; None where the ids don't account for every device."""
    uuids = [match[1] for text in ids if (match := _UUID.match(text))]
    addresses = [text.lower() for text in ids if _PCI.match(text)]
    numbers = [int(match[1]) for text in ids if (match := _NUMBERED.match(text))]
    told = max(len(uuids), len(addresses), len(numbers))
    if told != count:
        return None
    if offer.kind in (CardKind.CARD, CardKind.MIG) and told != len({*uuids, *addresses, *numbers}):
        return None  # one device given twice: not whole ones
    return CardBinding(
        node=node,
        kind=offer.kind,
        type=offer.type[:200],
        count=count,
        uuids=tuple(dict.fromkeys(uuids)),
        addresses=tuple(dict.fromkeys(addresses)),
        indices=tuple(sorted(set(numbers))),
    )
