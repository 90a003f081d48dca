"""Work that holds cards, the samples of them, and passes at chosen times."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from inventory.models import Card, Job, Slice
from inventory.observations import CardValues
from inventory.services.samples import Sample, write_samples
from pools.models import Allocation, AllocationSource, IdleCase, Pool, Request
from pools.services.idling import Pass, look
from tests.pools.building import Team, World, allocation, request

MINUTE, HOUR = 60, 3600
GIB = 2**30


def some_hours_ago() -> datetime:
    """Passes go on from here for hours, and no sample is taken from the future."""
    return timezone.now().replace(microsecond=0) - timedelta(hours=8)


@dataclass
class Idling:
    """A world whose work began ten hours before `now`. Times are minutes before it; the pool looks at two hours."""

    place: World
    now: datetime = field(default_factory=some_hours_ago)

    def ago(self, minutes: float) -> datetime:
        return self.now - timedelta(minutes=minutes)

    def feed(
        self, unit: Card | Slice, percent: float, *, since: float = 240, until: float = 0, memory: int | None = None
    ) -> None:
        """Samples a minute apart, each of which holds no longer than that."""
        first = int(self.ago(since).timestamp())
        write_samples(
            [
                Sample(
                    unit.series, self.ago(since) + timedelta(seconds=second), "agent", 20,
                    CardValues(utilization=percent, memory_used=memory),
                )
                for second in range(0, int(self.ago(until).timestamp()) - first, MINUTE)
            ]
        )  # fmt: skip

    def request(self, cards: list[Card], *, team: Team | None = None, hours: float = 10, **fields: Any) -> Request:
        """A managed request that holds these cards."""
        own = team or self.place.red
        begun = self.now - timedelta(hours=hours)
        wish = request(
            self.place, own.project, submitter=own.member, state="running", started_at=begun, time_limit=86_400,
            count=len(cards), **{"name": "train", **fields},
        )  # fmt: skip
        for number, card in enumerate(cards):
            self.hold(
                card, own, hours=hours, request=wish, unit=number, source=AllocationSource.MANAGED, spec=wish.spec
            )
        return wish

    def job(self, cards: list[Card], *, team: Team | None = None, user: str = "ada", hours: float = 10) -> Job:
        """A job that its cluster's users started."""
        begun = self.now - timedelta(hours=hours)
        number = Job.objects.count() + 4711
        made = Job.objects.create(
            cluster=self.place.cluster, key=f"{number}.1", job_id=str(number), user=user, state="running",
            submitted_at=begun, started_at=begun, seen_at=self.now, cards=len(cards),
        )  # fmt: skip
        for card in cards:
            self.hold(card, team or self.place.red, hours=hours, job=made)
        return made

    def hold(self, card: Card, team: Team, *, hours: float = 10, **fields: Any) -> Allocation:
        span = (self.now - timedelta(hours=hours), None)
        return allocation(card, team, span=span, pool=self.place.pool, **fields)

    def policy(self, **fields: Any) -> None:
        Pool.objects.filter(pk=self.place.pool.pk).update(**fields)

    def look(self, later: float = 0) -> Pass:
        """A pass some minutes after now."""
        return look(now=self.now + timedelta(minutes=later))

    def case(self) -> IdleCase:
        return IdleCase.objects.get()


def opened(done: Pass) -> int:
    assert done.changed == done.opened, done
    return done.opened
