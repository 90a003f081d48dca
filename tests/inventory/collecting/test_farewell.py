"""A BMC that answers and then does not let go: what it said is kept (I4)."""

import asyncio
from uuid import uuid4

import pytest
from django.utils import timezone

from inventory.observations import BmcReading, BmcTarget
from inventory.services import polling
from inventory.services.rounds import Round, run_round


class Clinging:
    """Answers a poll; its log-out never ends."""

    async def poll(self, *, deadline: float) -> BmcReading:
        return BmcReading(observed_at=timezone.now(), reached=True)

    async def close(self) -> None:
        await asyncio.Event().wait()


async def test_a_log_out_that_hangs_costs_no_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(polling, "open_bmc", lambda target, links: Clinging())
    monkeypatch.setattr(polling, "_CLOSE_SECONDS", 0.05)
    target = BmcTarget(protocol="redfish", address="192.0.2.1", port=443, username="u", password="p")
    answer = await polling.read_bmc(polling.BmcJob(uuid4(), target, {}, whole=False))
    assert answer.reading.reached


@pytest.mark.django_db
def test_a_read_past_its_deadline_is_one_line(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inventory.services.rounds._FAREWELL", 0.05)
    jobs, stored = [["a"]], []

    async def read(job: str) -> str:
        await asyncio.Event().wait()
        return job

    work = Round(
        987_001, lambda most: jobs.pop() if jobs else [], read, lambda _: 0.05, lambda *told: stored.append(told)
    )
    assert run_round(work).read == 1
    assert stored == [("a", None)]
    assert [(record.levelname, record.exc_info) for record in caplog.records] == [("WARNING", None)]
