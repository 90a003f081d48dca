"""An acknowledged sample is stored, whatever dies meanwhile: PostgreSQL restarted, the web worker killed (I4, U1)."""

import asyncio
import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from sensaka.bench.ingest import CARDS, Stage, requests
from sensaka.bench.load import Line
from sensaka.bench.processes import family

NODES, LINES = 10, 10
pytestmark = pytest.mark.slow


@dataclass
class Log:
    """What the agents know: which posts were acknowledged, and how often they had to be sent again."""

    acknowledged: list[int] = field(default_factory=list)
    again: int = 0
    strange: list[bytes] = field(default_factory=list)


@pytest.fixture
def stage() -> Iterator[Stage]:
    with Stage(nodes=NODES, say=lambda text: None) as running:
        yield running


async def agents(port: int, start: datetime, stop: threading.Event, log: Log) -> None:
    """Each line posts its own numbers in order and repeats one until it is acknowledged, as an agent does."""
    make = requests(1, start, nodes=NODES)

    async def drive(own: int) -> None:
        number = own
        line: Line | None = None
        while not stop.is_set():
            try:
                if line is None:
                    loop = asyncio.get_running_loop()
                    _, line = await loop.create_connection(Line, "127.0.0.1", port)
                answer = await asyncio.wait_for(line.ask(make(number)), 20)
            except (OSError, TimeoutError):
                if line is not None:
                    line.close()
                line, answer = None, b""
            if answer.startswith(b"HTTP/1.1 200"):
                log.acknowledged.append(number)
                number += LINES
                continue
            log.again += 1
            if answer and not answer.startswith(b"HTTP/1.1 503"):
                log.strange.append(answer[:300])
            await asyncio.sleep(0.1)
        if line is not None:
            line.close()
            await asyncio.sleep(0)

    await asyncio.gather(*(drive(own) for own in range(LINES)))


@contextlib.contextmanager
def load(stage: Stage, start: datetime) -> Iterator[Log]:
    stop, log = threading.Event(), Log()
    thread = threading.Thread(target=lambda: asyncio.run(agents(stage.port, start, stop, log)))
    thread.start()
    try:
        yield log
    finally:
        stop.set()
        thread.join(60)


def wait_for(log: Log, more: int) -> None:
    """Until so many posts more are acknowledged."""
    wanted, deadline = len(log.acknowledged) + more, time.monotonic() + 60
    while len(log.acknowledged) < wanted:
        assert time.monotonic() < deadline, (
            f"{len(log.acknowledged)} acknowledged, {log.again} again, {log.strange[:3]}"
        )
        time.sleep(0.05)


def check(stage: Stage, start: datetime, log: Log) -> None:
    """Every acknowledged post is there whole; a post is never there in part."""
    with psycopg.connect(stage.database) as connection:
        found = connection.execute(
            "SELECT agent.token_digest, ts, count(*) FROM inventory_sample JOIN inventory_card card USING (series)"
            " JOIN inventory_agent agent ON agent.node_id = card.node_id GROUP BY 1, 2"
        ).fetchall()
    assert {count for _, _, count in found} == {CARDS}
    stored = len(found)
    assert len(set(log.acknowledged)) == len(log.acknowledged)
    assert len(log.acknowledged) <= stored <= len(log.acknowledged) + LINES  # one on each line may be in doubt
    rounds = {(ts - start).total_seconds() for _, ts, _ in found}
    assert {number // NODES for number in log.acknowledged} <= rounds


def test_postgresql_is_stopped_and_started_under_load(stage: Stage) -> None:
    start = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=2)
    with load(stage, start) as log:
        wait_for(log, 50)
        for _ in range(2):
            stage.postgres.stop()
            before = log.again
            deadline = time.monotonic() + 30
            while log.again < before + LINES:
                assert time.monotonic() < deadline
                time.sleep(0.05)
            stage.postgres.start()
            wait_for(log, 50)
    assert log.strange == []
    check(stage, start, log)


def test_the_web_worker_is_killed_under_load(stage: Stage) -> None:
    start = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=2)
    with load(stage, start) as log:
        wait_for(log, 50)
        assert stage.web is not None
        for pid in family(stage.web.pid):
            os.kill(pid, signal.SIGKILL)
        stage.web.wait()
        stage.start_web()
        wait_for(log, 50)
    assert log.strange == []
    check(stage, start, log)
