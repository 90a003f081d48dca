"""What changed calls the tasks that look for it; a broker that is away costs nothing but time."""

from typing import Any

import pytest
from celery import Celery
from kombu.exceptions import OperationalError

from inventory import signals
from pools import signals as promises
from sensaka import nudges
from sensaka.schedule import BEAT_SCHEDULE


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []

    def send(name: str, **options: Any) -> None:
        assert options["expires"] <= 10
        assert options["retry"] is False
        found.append(name)

    monkeypatch.setattr(nudges.app.conf, "task_always_eager", False)
    monkeypatch.setattr(nudges.app, "send_task", send)
    return found


@pytest.mark.parametrize(
    ("signal", "tasks"),
    [
        (signals.jobs_changed, ["pools.tasks.record_ledger"]),
        (promises.requests_changed, ["pools.tasks.admit_requests", "pools.tasks.launch_requests"]),
        (promises.allocations_changed, ["pools.tasks.admit_requests"]),
        (promises.queue_changed, []),  # told by admission itself: it would call itself for ever
    ],
)
def test_a_signal_calls_its_tasks(sent: list[str], signal: Any, tasks: list[str]) -> None:
    nudges.connect()
    signal.send(sender=None, cluster=None, requests=[], cards=[], pool=None)
    assert sent == tasks


def test_every_nudged_task_runs_by_the_clock_as_well() -> None:
    scheduled = {entry["task"] for entry in BEAT_SCHEDULE.values()}
    assert {name for _, names in nudges.NUDGED for name in names} <= scheduled
    app: Celery = nudges.app
    app.loader.import_default_modules()
    assert {"pools.tasks.record_ledger", "pools.tasks.admit_requests", "pools.tasks.launch_requests"} <= set(app.tasks)


def test_a_broker_that_is_away_is_only_logged(sent: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OperationalError("connection refused")

    monkeypatch.setattr(nudges.app, "send_task", refuse)
    nudges.send(("pools.tasks.record_ledger",))
    assert sent == []
