"""Nodes, partitions and reservations of the emulated Slurm."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class Node:
    """One node. `cards` gres of one `card_type`, numbered from 0; `memory` in MiB, times epoch seconds."""

    name: str
    cards: int = 8
    card_type: str = "h100"
    cpus: int = 96
    memory: int = 2_000_000
    features: tuple[str, ...] = ()
    address: str = "127.0.0.1"
    hostname: str = ""
    booted: int = 0
    drained: bool = False
    down: bool = False
    responding: bool = True
    reason: str = ""
    reason_by: str = ""
    reason_at: int = 0
    silent_since: int = 0

    @property
    def available(self) -> bool:
        """Whether it takes new work."""
        return not (self.drained or self.down) and self.responding

    def words(self, used: int) -> list[str]:
        """Its state as Slurm lists it, with `used` of its cards given out."""
        load = "IDLE" if not used else "ALLOCATED" if used >= self.cards else "MIXED"
        words = ["DOWN" if self.down else load]
        words += ["DRAIN"] if self.drained else []
        return words if self.responding else [*words, "NOT_RESPONDING"]

    def say(self, reason: str, by: str, at: int) -> None:
        """Set or clear the reason."""
        self.reason, self.reason_by, self.reason_at = (reason, by, at) if reason else ("", "", 0)


@dataclass(frozen=True, slots=True)
class Partition:
    """A queue over some nodes; `limit` is the longest run in minutes."""

    name: str
    nodes: tuple[str, ...]
    limit: int = 7 * 24 * 60
    tier: int = 1
    accounts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reservation:
    """Nodes kept for some accounts or users, or for maintenance, from `start` to `end`."""

    name: str
    nodes: tuple[str, ...]
    start: int
    end: int
    accounts: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Account:
    """An account with its users; `cards` is the most that its jobs hold at a time (GrpTRES)."""

    name: str
    users: tuple[str, ...] = ()
    description: str = ""
    organization: str = ""
    parent: str = "root"
    cards: int | None = None


@dataclass(frozen=True, slots=True)
class Qos:
    """A quality of service; waiting jobs are tried in the order of its priority."""

    name: str
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Layout:
    """What slurm.conf and the accounting say. `enforced`: only known accounts and their users may submit."""

    cluster: str
    partitions: tuple[Partition, ...]
    accounts: tuple[Account, ...] = ()
    qos: tuple[Qos, ...] = field(default=(Qos("normal", 1),))
    enforced: bool = False
    release: str = "24.11.5"

    def partition(self, name: str) -> Partition | None:
        """The partition of that name, the first for no name."""
        return next((one for one in self.partitions if name in ("", one.name)), None)

    def account(self, name: str) -> Account | None:
        """The account of that name."""
        return next((one for one in self.accounts if one.name == name), None)

    def priority(self, qos: str) -> int:
        """The priority of a quality of service, 0 for an unknown one."""
        return next((one.priority for one in self.qos if one.name == qos), 0)
