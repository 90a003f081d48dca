"""The whole demo under faults: what breaks comes back by itself, and nothing acknowledged is lost (X1, X4).

One story on one running demo, told in order: the fleet appears, everything is killed once while
agents post, hardware is moved, a cut line is mended, and the demo is ended, killed and started again.
"""

import json
import math
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import redis

from sensaka import embedded
from tests.faults.chain import AGENT, ROOT, Chain, LiveLine, free_port, running, until

pytestmark = [pytest.mark.soak, pytest.mark.timeout(900)]

WHOLE = (3, 64, 512)
RECOVERY = 30.0  # s for everything to stand again after a fault
BUCKET = 300  # s
CUT = "fra-h100-08"  # its line is cut while the faults happen
REAL = "fra-h100-01"  # read by a real agent process
POSTGRES = "bin/postgres -D"


@pytest.fixture(scope="module")
def chain() -> Iterator[Chain]:
    folder = Path(tempfile.mkdtemp(prefix="sensaka-chain-", dir="/tmp"))
    folder.chmod(0o755)
    var = folder / "var"
    for part in ("assets", "static"):  # built once for all; without them the first start takes a minute longer
        if (ROOT / "var" / part).exists():
            shutil.copytree(ROOT / "var" / part, var / part, symlinks=True)
    if (ROOT / "var" / "static.stamp").exists():
        shutil.copy2(ROOT / "var" / "static.stamp", var)
    made = Chain(var, free_port(), folder / "log")
    try:
        yield made
    finally:
        if made.process is not None and made.process.poll() is None:
            made.end(signal.SIGKILL)
        shutil.rmtree(embedded.Layout(var).run, ignore_errors=True)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def live(chain: Chain) -> Iterator[LiveLine]:
    chain.sign_in()
    line = LiveLine(chain)
    until(lambda: line.messages, 30, "the live line")
    yield line
    line.close()


@pytest.fixture(scope="module")
def story() -> dict[str, Any]:
    """What one chapter leaves for a later one."""
    return {}


def test_the_fleet_appears(chain: Chain, story: dict[str, Any]) -> None:
    """X1: 3 sites, 64 nodes and 512 cards soon after the first page."""
    began = chain.start()
    took = until(lambda: chain.counts() == WHOLE, 120, "the whole fleet")
    print(f"\nready {began:.1f} s, whole fleet {took:.1f} s later")
    for node in (CUT, REAL):
        chain.act("cut_agent_line", node=node)
    chain.act("stop_bmc", node=CUT)  # else the BMC's readings would fill the gap
    story["cut_at"] = time.time()


def _flush(chain: Chain) -> None:
    with redis.Redis(unix_socket_path=str(embedded.Layout(chain.var).redis_socket)) as client:
        client.flushall()


WEB, WORKER, FLEET = ("gunicorn", "sensaka.asgi"), ("celery", "sensaka worker"), ("sensaka.fleet", "--server")
FAULTS: dict[str, Callable[[Chain], object]] = {
    "web worker": lambda chain: chain.kill(*WEB, which=1),
    "web master": lambda chain: chain.kill(*WEB),
    "worker child": lambda chain: chain.kill(*WORKER, which=1),
    "worker master": lambda chain: chain.kill(*WORKER),
    "beat": lambda chain: chain.kill("celery", "sensaka beat"),
    "postgres killed": lambda chain: chain.kill(POSTGRES),
    "postgres fast": lambda chain: chain.kill(POSTGRES, number=signal.SIGINT),
    "postgres smart": lambda chain: chain.kill(POSTGRES, number=signal.SIGTERM),
    "redis killed": lambda chain: chain.kill("redis-server"),
    "redis flushed": _flush,
    "real agent": lambda chain: chain.kill("inventory.agent", "run"),
    "fleet": lambda chain: chain.kill(*FLEET),
}


def _complete(chain: Chain) -> bool:
    """Every program runs: web with two workers, Celery with three, the rest once."""
    wanted = {WEB: 3, WORKER: 4, ("celery", "sensaka beat"): 1, ("redis-server",): 1, (POSTGRES,): 1, FLEET: 1}
    return all(len(chain.find(*markers)) >= number for markers, number in wanted.items()) and bool(
        chain.find("inventory.agent", "run")
    )


def _newest(chain: Chain) -> float:
    """Seconds since the newest sample of an agent."""
    query = "SELECT extract(epoch FROM now() - max(ts))::float FROM inventory_sample WHERE source = %s AND ts > %s"
    return float(chain.one(query, AGENT, datetime.fromtimestamp(time.time() - 600, UTC)) or math.inf)


@pytest.mark.parametrize("name", FAULTS)
def test_it_comes_back_after(name: str, chain: Chain, live: LiveLine) -> None:
    """X4: pages, the live line, samples and processes within 30 s; the tree as before."""
    FAULTS[name](chain)
    at = time.monotonic()
    time.sleep(0.5)  # what was hit has to be noticed first
    hit = time.monotonic()

    def stands() -> bool:
        return (
            chain.ready()
            and chain.page()
            and live.last_at > hit
            and _complete(chain)
            and _newest(chain) < 15
            and chain.counts() == WHOLE
        )

    until(stands, RECOVERY, f"everything after {name}")
    print(f"\n{name}: {time.monotonic() - at:.1f} s")


def _cards(chain: Chain, node: str) -> dict[str, tuple[str, str]]:
    query = """SELECT card.uuid, card.slot, card.state FROM inventory_card card
               JOIN inventory_node node ON node.id = card.node_id WHERE node.name = %s"""
    return {uuid: (slot, state) for uuid, slot, state in chain.rows(query, node)}


def _series(chain: Chain, node: str) -> list[int]:
    query = """SELECT card.series FROM inventory_card card
               JOIN inventory_node node ON node.id = card.node_id WHERE node.name = %s"""
    return [series for (series,) in chain.rows(query, node)]


def test_cards_that_move_stay_the_same_cards(chain: Chain) -> None:
    """I2: pulled, put back elsewhere, exchanged over sites; 512 cards all the time, none of them new."""
    known = {uuid for (uuid,) in chain.rows("SELECT uuid FROM inventory_card")}
    node = "fra-h100-06"
    by_slot = {slot: uuid for uuid, (slot, _) in _cards(chain, node).items()}
    first, second = by_slot["3"], by_slot["5"]
    for slot, uuid in ((2, first), (4, second)):
        chain.act("pull_card", node=node, slot=slot)
        until(lambda uuid=uuid: _cards(chain, node)[uuid][1] == "missing", 30, "a pulled card")  # type: ignore[misc]
    serial = json.loads(_fleet(chain, "state"))["shelf"][0]
    chain.act("return_card", node=node, slot=4, serial=serial)
    chain.act("return_card", node=node, slot=2)
    until(lambda: _cards(chain, node)[first] == ("5", "present"), 30, "a card in another slot")
    until(lambda: _cards(chain, node)[second] == ("3", "present"), 30, "the other one")
    a, b = _cards(chain, "fra-h100-10"), _cards(chain, "sin-h100-02")
    chain.act("swap_cards", a="fra-h100-10:1", b="sin-h100-02:5")

    def exchanged() -> bool:
        return len(_cards(chain, "fra-h100-10").keys() - a.keys()) == 1 and (
            len(_cards(chain, "sin-h100-02").keys() - b.keys()) == 1
        )

    until(exchanged, 30, "an exchange between sites")
    until(lambda: chain.counts() == WHOLE, 30, "512 cards")
    assert {uuid for (uuid,) in chain.rows("SELECT uuid FROM inventory_card")} == known


def _fleet(chain: Chain, command: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "sensaka.fleet", command, "--state", str(chain.fleet)],
        cwd=ROOT, capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    return done.stdout


def test_a_node_that_nobody_reads_is_stale_in_thirty_seconds(chain: Chain) -> None:
    """I8: three intervals of 10 s after the last read, not earlier and not later."""
    node = "sin-h100-04"
    series = _series(chain, node)
    chain.act("stop_bmc", node=node)
    chain.act("stop_agent", node=node)
    fresh = """SELECT count(DISTINCT series) FROM inventory_sample WHERE series = ANY(%s)
               AND ts > now() - 3 * "interval" * interval '1 second' AND ts > now() - interval '10 minutes'"""
    until(lambda: chain.one(fresh, series) == 0, 60, "stale cards")
    now = time.time()
    last = chain.one("SELECT max(ts) FROM inventory_sample WHERE series = ANY(%s)", series).timestamp()
    assert now - last < 30 + 3
    chain.act("restore", node=node)
    until(lambda: chain.one(fresh, series) == len(series), 30, "fresh cards")


def _bucket(chain: Chain, node: str, bucket: float) -> tuple[int, int] | None:
    """Covered and unknown seconds of a node's eight cards in a 5-minute bucket; None while it is not rolled up.

    A bucket without any sample has no row: all of it is unknown.
    """
    if chain.one("SELECT extract(epoch FROM done)::float FROM inventory_rollup_state") < bucket + BUCKET:
        return None
    query = """SELECT count(*), coalesce(sum(busy_s + idle_s), 0), coalesce(sum(unknown_s), 0)
               FROM inventory_rollup_5m WHERE series = ANY(%s) AND bucket = to_timestamp(%s)"""
    cards, covered, unknown = chain.rows(query, _series(chain, node), bucket)[0]
    assert covered + unknown == cards * BUCKET
    return covered, unknown + (8 - cards) * BUCKET


def test_a_mended_line_fills_the_seconds_that_were_unknown(chain: Chain, story: dict[str, Any]) -> None:
    """I7: late samples turn unknown into what was true, in buckets that were already closed."""
    cut_at: float = story["cut_at"]
    bucket = cut_at // BUCKET * BUCKET
    if bucket + BUCKET - cut_at < 75:  # too little of it was cut
        bucket += BUCKET
    until(lambda: _bucket(chain, CUT, bucket), bucket + BUCKET + 150 - time.time(), "a closed bucket", every=2)
    before = _bucket(chain, CUT, bucket)
    assert before is not None
    cut = bucket + BUCKET - max(cut_at, bucket)
    assert before[1] >= 8 * (cut - 45)  # the last sample holds for three intervals
    for node in (CUT, REAL):
        chain.act("restore", node=node)
    query = "SELECT extract(epoch FROM min(ts))::float FROM inventory_sample WHERE series = ANY(%s) AND source = %s"
    unread = max(0.0, chain.one(query, _series(chain, CUT), AGENT) - bucket)

    def filled() -> bool:
        now = _bucket(chain, CUT, bucket)
        assert now is not None
        return now[1] <= 8 * (unread + 1)

    took = until(filled, 240, "the true seconds", every=2)
    print(f"\n{before[1]} unknown seconds were filled within {took:.0f} s")


def test_every_acknowledged_sample_is_stored_once(chain: Chain) -> None:
    """I7: the agents' own logs against the table, after all those faults."""
    real = _series(chain, REAL)
    pairs = "SELECT count(*) FROM (SELECT DISTINCT series, ts FROM inventory_sample WHERE source = %s AND ts <= %s"

    def settled() -> bool:
        return bool(json.loads(_fleet(chain, "state"))["waiting_records"] < 60)

    until(settled, 90, "empty spools", every=2)
    moment = datetime.fromtimestamp(int(time.time()) - 60, UTC)
    until(lambda: _newest(chain) < 15, 30, "samples")
    rows = chain.one(f"{pairs} AND NOT series = ANY(%s)) AS pair", AGENT, moment, real)
    total = chain.one("SELECT count(*) FROM inventory_sample WHERE source = %s AND ts <= %s AND NOT series = ANY(%s)",
                      AGENT, moment, real)  # fmt: skip
    acknowledged, across = 0, 0
    seen: set[tuple[str, str, str]] = set()
    for node, line in chain.acknowledgements():
        first, last = (datetime.fromisoformat(line[end]) for end in ("first", "last"))
        # A fleet that is killed may send again what was acknowledged a moment before.
        if (node, line["first"], line["last"]) in seen or first > moment:
            continue
        seen.add((node, line["first"], line["last"]))
        acknowledged += line["samples"]
        across += line["samples"] if last > moment else 0
    assert total == rows
    assert abs(rows - acknowledged) <= across, (rows, acknowledged, across)
    query = """SELECT DISTINCT extract(epoch FROM ts)::float FROM inventory_sample
               WHERE source = %s AND series = ANY(%s) ORDER BY 1"""
    times = [at for (at,) in chain.rows(query, AGENT, real)]
    # It was killed twice, alone and with its fleet; nothing is missing but the time it took to start.
    gaps = [after - before for before, after in pairwise(times) if after - before > 11]
    assert len(gaps) <= 4
    assert max(gaps, default=0) < RECOVERY
    print(f"\n{acknowledged} samples acknowledged, {rows} stored; the real agent's gaps: {gaps}")


def test_it_ends_in_ten_seconds_and_comes_back_with_its_data(chain: Chain, live: LiveLine) -> None:
    """X1: Ctrl-C, then kill -9; no process is left, the next start keeps everything."""
    samples = chain.one("SELECT count(*) FROM inventory_sample")
    noise = "SELECT count(*) FROM inventory_journalentry WHERE kind = 'collector_failed'"
    failed = chain.one(noise)
    ended, gone, status = chain.end(signal.SIGINT)
    assert (status, ended < 10, gone < 10.5) == (0, True, True), (status, ended, gone)
    again = chain.start()
    until(lambda: chain.page() and _complete(chain) and _newest(chain) < 15, 30, "a second start")
    assert chain.counts() == WHOLE
    assert chain.one("SELECT count(*) FROM inventory_sample") > samples
    assert chain.process is not None
    _, orphans, _ = chain.end(signal.SIGKILL)
    assert orphans < 15
    third = chain.start()
    until(lambda: chain.page() and _complete(chain) and _newest(chain) < 15, 30, "a third start")
    assert chain.counts() == WHOLE
    time.sleep(60)  # longer than an agent's patience: nobody may be called silent for our own absence
    assert chain.one(noise) == failed
    print(f"\nend {ended:.1f} s, start {again:.1f} s, orphans gone {orphans:.1f} s, start {third:.1f} s")
    everyone = chain.root.children(recursive=True)
    chain.end()
    assert not [one for one in everyone if running(one)]


def test_the_log_has_no_traces(chain: Chain) -> None:
    """X4: a fault that was foreseen is a line, and the line says what will happen."""
    lines = chain.log.read_text().splitlines()
    at = [number for number, line in enumerate(lines) if "Traceback (most recent call last)" in line]
    assert not at, "\n".join(lines[max(0, at[0] - 3) : at[0] + 60])
