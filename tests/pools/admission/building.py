"""Requests to a managed cluster, and one turn of everything that the clock would do."""

from dataclasses import dataclass
from typing import Any

from django.utils import timezone

from inventory.drivers.fake.scheduler import FakeRun
from pools.models import Allocation, Launch, PriorityClass, Request, RequestEvent, Spec
from pools.selectors.reasons import Told, told
from pools.services.admission import Admitted, admit
from pools.services.launching.carrying_out import Done, carry_out_due
from tests.pools.ledger.conftest import Ledger


@dataclass
class Managed:
    """A ledger, a spec of one card, and two priority classes."""

    ledger: Ledger
    spec: Spec
    normal: PriorityClass
    urgent: PriorityClass

    def ask(self, count: int = 1, **fields: Any) -> Request:
        now = timezone.now()
        base: dict[str, Any] = {
            "project": self.ledger.red.project, "spec": self.spec, "pool": self.ledger.pool, "priority": self.normal,
            "launch": Launch.SCRIPT, "script": "#!/bin/sh\nsleep 60\n", "time_limit": 3600, "state": "queued",
            "state_since": now, "submitted_at": now, "waited_since": now, "count": count,
        }  # fmt: skip
        return Request.objects.create(**(base | fields))

    def admit(self) -> Admitted:
        return admit(self.ledger.pool)

    def launch(self) -> Done:
        """The errands to the cluster, as if leases had run out by now."""
        Request.objects.update(leased_until=None)
        return carry_out_due()

    def turn(self, seconds: float = 10) -> None:
        """What the clock does: read the cluster, follow, admit, talk to the cluster, read what came of it."""
        self.ledger.follow(seconds)
        self.admit()
        self.launch()
        self.ledger.follow(0)

    def reasons(self, request: Request) -> list[Told]:
        request.refresh_from_db()
        return told(request.reasons)

    def held(self, request: Request) -> list[tuple[str, int | None]]:
        """(node, minor) of what the request holds now."""
        rows = Allocation.objects.filter(request=request, span__endswith=None).order_by("node__name", "card__minor")
        return [(node, minor) for node, minor in rows.values_list("node__name", "card__minor")]

    def history(self, request: Request) -> list[str]:
        return list(RequestEvent.objects.filter(request=request).order_by("id").values_list("event", flat=True))

    def runs(self) -> list[FakeRun]:
        return self.ledger.lab.fake.scheduler.runs
