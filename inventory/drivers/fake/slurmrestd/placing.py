"""Who starts now, and why the others wait: first come first served within a priority, with backfill.

A job that can't start plans the nodes on which it will fit first, by the time limits of what runs. A later
one may start before it only elsewhere, or if it ends by its limit before that moment.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from inventory.drivers.fake.slurmrestd.jobs import HOLDING, Job, Share, Wish
from inventory.drivers.fake.slurmrestd.places import Layout, Node, Reservation

_PLANNED_AHEAD = 10  # waiting jobs of a cluster that plan their start (bf_max_job_test)
_FAR = 365 * 24 * 3600  # s, for a run without limit


@dataclass(slots=True)
class _Room:
    """What is free on one node, and what comes back when by the limits of what runs there."""

    node: Node
    free: list[int]
    cpus: int
    returns: list[tuple[int, int, int]]  # when, cards, processors
    planned: int | None = None  # an earlier job wants this node from then on

    def fits(self, wish: Wish) -> bool:
        return (1 if wish.total else wish.cards) <= len(self.free) and wish.cpus <= self.cpus

    def fits_at(self, wish: Wish, now: int) -> int:
        """From when it fits."""
        cards, cpus = len(self.free), self.cpus
        for moment, more_cards, more_cpus in [(now, 0, 0), *sorted(self.returns)]:
            cards, cpus = cards + more_cards, cpus + more_cpus
            if -(-wish.all_cards // wish.count) <= cards and wish.cpus <= cpus:
                return moment
        return now + _FAR

    def take(self, cards: int, cpus: int, until: int) -> Share:
        taken, self.free = tuple(self.free[:cards]), self.free[cards:]
        self.cpus -= cpus
        self.returns.append((until, cards, cpus))
        return Share(self.node.name, taken, cpus)


class Board:
    """One look at the whole cluster; `starts` gives what can start, and tells the others their reason."""

    def __init__(
        self,
        layout: Layout,
        nodes: Mapping[str, Node],
        jobs: Collection[Job],
        reservations: Collection[Reservation],
        now: int,
    ) -> None:
        self._layout, self._now, self._reservations = layout, now, reservations
        self._rooms = {node.name: _Room(node, list(range(node.cards)), node.cpus, []) for node in nodes.values()}
        self._held: dict[str, int] = {}
        self._array: dict[int, int] = {}
        for job in jobs:
            if job.state in HOLDING:
                self._count(job)

    def _count(self, job: Job) -> None:
        until = max(job.limit_at or self._now + _FAR, self._now + 1)
        for share in job.shares:
            room = self._rooms[share.node]
            room.free = [index for index in room.free if index not in share.cards]
            room.cpus -= share.cpus
            room.returns.append((until, len(share.cards), share.cpus))
        self._note(job)

    def _note(self, job: Job) -> None:
        account = job.wish.account
        self._held[account] = self._held.get(account, 0) + job.wish.all_cards
        if job.array_id:
            self._array[job.array_id] = self._array.get(job.array_id, 0) + 1

    def starts(self, waiting: Iterable[Job]) -> Iterator[tuple[Job, list[Share]]]:
        """Each job with its shares, an array once for each task that fits. Reasons of the rest are set."""
        first: set[str] = set()
        planned = 0
        for job in waiting:
            rounds = len(job.tasks) or 1
            for _ in range(rounds):
                job.reason = self._bar(job)
                if job.reason:
                    break
                shares = self._placed(job.wish)
                if shares:
                    self._note(job)
                    yield job, shares
                    continue
                partition = job.wish.partition
                if planned < _PLANNED_AHEAD:
                    planned += 1
                    job.expected = self._plan(job.wish)
                job.reason = self._why(job.wish, partition not in first)
                first.add(partition)
                break

    def _bar(self, job: Job) -> str:
        """What keeps a job from being looked at, "" for nothing."""
        wish = job.wish
        if job.held:
            return "JobHeldUser"
        if job.eligible > self._now:
            return "BeginTime"
        if wish.at_once and self._array.get(job.array_id, 0) >= wish.at_once:
            return "JobArrayTaskLimit"
        account = self._layout.account(wish.account)
        most = None if account is None else account.cards
        if most is not None and self._held.get(wish.account, 0) + wish.all_cards > most:
            return "AssocGrpGRES"
        return ""

    def _rooms_of(self, wish: Wish) -> list[_Room]:
        """Nodes that could ever take it, in the order in which they are tried: the fullest first."""
        partition = self._layout.partition(wish.partition)
        names = wish.nodes or (partition.nodes if partition else ())
        rooms = [self._rooms[name] for name in names]
        rooms = [room for room in rooms if wish.card_type in ("", room.node.card_type) and room.node.available]
        return sorted(rooms, key=lambda room: (len(room.free), room.node.name))

    def _placed(self, wish: Wish) -> list[Share]:
        until = self._now + (_FAR if wish.limit is None else wish.limit * 60)
        rooms = [
            room
            for room in self._rooms_of(wish)
            if room.fits(wish)
            and (room.planned is None or until <= room.planned)
            and not self._reserved(room.node.name, wish, until)
        ]
        if len(rooms) < wish.count:
            return []
        if wish.total:  # the emptiest first, so that all of them fit
            rooms.sort(key=lambda room: (-len(room.free), room.node.name))
        chosen = sorted(rooms[: wish.count], key=lambda room: room.node.name)  # as the allocation lists them
        counts = wish.spread([len(room.free) for room in chosen])
        return [room.take(cards, wish.cpus, until) for room, cards in zip(chosen, counts, strict=False)]

    def _plan(self, wish: Wish) -> int:
        """Keep the nodes on which it will fit first; when that is, 0 for never."""
        by_time = sorted(
            ((room.fits_at(wish, self._now), room) for room in self._rooms_of(wish)),
            key=lambda pair: (pair[0], pair[1].node.name),
        )[: wish.count]
        if len(by_time) < wish.count:
            return 0
        moment = by_time[-1][0]
        for _, room in by_time:
            room.planned = moment if room.planned is None else min(room.planned, moment)
        return moment if moment < self._now + _FAR else 0

    def _reserved(self, node: str, wish: Wish, until: int) -> bool:
        return any(
            node in one.nodes and one.name != wish.reservation and one.start < until and one.end > self._now
            for one in self._reservations
        )

    def _why(self, wish: Wish, first: bool) -> str:
        absent = [name for name in wish.nodes if not self._rooms[name].node.available]
        if absent:
            return f"ReqNodeNotAvail, UnavailableNodes:{','.join(absent)}"
        until = self._now + (_FAR if wish.limit is None else wish.limit * 60)
        if wish.nodes and any(self._reserved(name, wish, until) for name in wish.nodes):
            return "ReqNodeNotAvail, Reserved for maintenance"
        return "Resources" if first else "Priority"
