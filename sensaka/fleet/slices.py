"""MIG layouts of cards and their instances."""

from collections.abc import Sequence
from dataclasses import dataclass

from sensaka.fleet.workload import Demand

_FIRST_INSTANCE = {"1g": 7, "2g": 3, "4g": 1}


@dataclass
class Partitioning:
    """The MIG layout of one card; a new generation has new instance UUIDs."""

    profiles: tuple[str, ...]
    generation: int = 0


@dataclass(frozen=True, slots=True)
class SliceState:
    """One MIG instance as it is now; `activity` is 0-100 of the instance, memory in bytes."""

    uuid: str
    profile: str
    instance_id: str
    memory_total: int
    memory_used: int
    activity: float
    demand: Demand


def instance_ids(profiles: Sequence[str]) -> list[str]:
    """GPU instance ids as the driver gives them: each size has its own range, three and four slices share one."""
    following = dict(_FIRST_INSTANCE)
    result: list[str] = []
    for name in profiles:
        kind = "4g" if name.startswith("3g") else name[:2]
        result.append(str(following[kind]))
        following[kind] += 1
    return result
