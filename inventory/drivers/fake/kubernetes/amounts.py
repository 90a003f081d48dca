"""Quantities and what pods ask for, as the stand-in's scheduler and quota count them."""

from fractions import Fraction
from typing import Any

from inventory.drivers.fake.kubernetes.store import Object

_UNITS = {
    "m": Fraction(1, 1000), "k": Fraction(10**3), "M": Fraction(10**6), "G": Fraction(10**9), "T": Fraction(10**12),
    "Ki": Fraction(2**10), "Mi": Fraction(2**20), "Gi": Fraction(2**30), "Ti": Fraction(2**40),
}  # fmt: skip


def number(quantity: Any) -> Fraction:
    """The number of a quantity; ValueError for nonsense."""
    text = str(quantity)
    for unit in sorted(_UNITS, key=len, reverse=True):
        if text.endswith(unit):
            return Fraction(text.removesuffix(unit)) * _UNITS[unit]
    return Fraction(text)


def is_extended(resource: str) -> bool:
    """Whether a resource is a device plugin's, counted in whole ones."""
    return "/" in resource and not resource.startswith("kubernetes.io/")


def asked(pod_spec: Object) -> dict[str, Fraction]:
    """What a pod takes: its containers together, or one init container where that is more."""
    total: dict[str, Fraction] = {}
    for container in pod_spec.get("containers") or ():
        for name, value in _requests(container).items():
            total[name] = total.get(name, Fraction(0)) + value
    for container in pod_spec.get("initContainers") or ():
        for name, value in _requests(container).items():
            total[name] = max(total.get(name, Fraction(0)), value)
    return total


def _requests(container: Object) -> dict[str, Fraction]:
    resources = container.get("resources") or {}
    given = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return {name: number(value) for name, value in given.items()}


def finished(pod: Object) -> bool:
    """Whether a pod's containers have all ended."""
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")
