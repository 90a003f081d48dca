"""`bench ingest`: card-samples a second from HTTP to committed rows, and what one million costs.

Load client, web worker and PostgreSQL (fsync on) share the machine. Each node posts with its own token. At the end the
rows in the table are counted against the acknowledged samples. Prometheus scrapes the same cards in the same run.
"""

import asyncio
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import psycopg

from sensaka import embedded
from sensaka.bench import prometheus
from sensaka.bench.ingest_fleet import card_uuid, token
from sensaka.bench.load import Load, post_all
from sensaka.bench.processes import cpu_seconds, end, free_port, wait_for_port
from sensaka.bench.report import Options, Report, Row

NODES, CARDS = 500, 8
LINES = NODES
"""Connections, one a node as agents keep them; with a commit every 50 ms they bound the rate, not the samples."""

SHAPES = {"8 cards x 1 sample": (1, 40_000), "8 cards x 3 samples": (3, 80_000)}
"""Samples of each card in a post, and the card-samples a second that are the target."""

_ROOT = Path(__file__).resolve().parents[2]
_STAMP = b"0000-00-00T00:00:00Z"
_HOURS_APART = timedelta(minutes=12)


class Stage:
    """A small installation of its own in a temporary folder: PostgreSQL, Redis and one web worker for telemetry."""

    def __init__(self, *, nodes: int, say: Callable[[str], None]) -> None:
        self.nodes, self._say = nodes, say
        self._folder = Path(tempfile.mkdtemp(prefix="sensaka-bench-"))
        self._folder.chmod(0o711)
        self._layout = embedded.Layout(self._folder / "var")
        self.postgres = embedded.PostgreSQL(self._layout)
        self._redis = embedded.Redis(self._layout)
        self.database = self._layout.database_url
        self.port = free_port()
        self.web: subprocess.Popen[bytes] | None = None
        self._environment = os.environ | {
            "SENSAKA_VAR": str(self._layout.var),
            "DATABASE_URL": self.database,
            "REDIS_URL": self._layout.redis_url,
            "DJANGO_SETTINGS_MODULE": "sensaka.settings.dev",
            "LOG_LEVEL": "ERROR",
        }

    def __enter__(self) -> "Stage":
        try:
            self.postgres.start()
            self._redis.start()
            self._say(f"database and {self.nodes * CARDS} cards ...")
            self._python("manage.py", "migrate", "--verbosity=0", "--skip-checks")
            self._python("-m", "sensaka.bench.ingest_fleet", str(self.nodes), str(CARDS))
            self.start_web()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        if self.web is not None:
            end(self.web)
        self._redis.stop()
        self.postgres.stop()
        shutil.rmtree(self._folder, ignore_errors=True)
        shutil.rmtree(self._layout.run, ignore_errors=True)

    def _python(self, *command: str) -> None:
        subprocess.run([sys.executable, *command], cwd=_ROOT, env=self._environment, check=True)

    def start_web(self) -> None:
        """Start the web worker and wait until it listens."""
        self.web = subprocess.Popen(
            [sys.executable, "-m", "gunicorn", "sensaka.bench.asgi_ingest:application",
             "--bind", f"127.0.0.1:{self.port}", "--worker-class", "uvicorn_worker.UvicornWorker", "--workers", "1",
             "--log-level", "warning", "--backlog", "2048"],
            cwd=_ROOT, env=self._environment, start_new_session=True,
            preexec_fn=embedded.die_with_parent(signal.SIGTERM),
        )  # fmt: skip
        wait_for_port(self.port, self.web)

    def cpu(self) -> tuple[float, float]:
        """CPU seconds so far of the web worker and of PostgreSQL."""
        assert self.web is not None
        assert self.postgres.process is not None
        return cpu_seconds(self.web.pid), cpu_seconds(self.postgres.process.pid)


def _template(node: int, each: int) -> list[bytes]:
    """A request of one node, cut at its time stamps: `each` samples of 8 cards with 12 fields set."""
    chance = random.Random(node)  # noqa: S311 - values, not secrets
    samples = [
        {
            "card": card_uuid(node, card), "sampled_at": _STAMP.decode(),
            "utilization": chance.randint(0, 100), "sm_activity": round(chance.uniform(0, 100), 2),
            "tensor_activity": round(chance.uniform(0, 100), 2), "memory_used": chance.randrange(80 * 2**30),
            "temperature": chance.randint(30, 80), "memory_temperature": chance.randint(30, 90),
            "power": round(chance.uniform(60, 700), 1), "sm_clock": 1980, "memory_clock": 2619,
            "energy": round(chance.uniform(0, 1e9), 3), "ecc_corrected": 0, "pcie_replays": 0,
        }
        for _ in range(each)
        for card in range(CARDS)
    ]  # fmt: skip
    body = msgspec.json.encode({"interval": 10, "samples": samples})
    head = (
        f"POST /api/v1/telemetry/ HTTP/1.1\r\nHost: bench\r\nAuthorization: Token {token(node)}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return (head.encode() + body).split(_STAMP)


def requests(each: int, start: datetime, *, nodes: int = NODES) -> Callable[[int], bytes]:
    """Request number n is the next round of one node, later than its last one by `each` seconds."""
    templates = [_template(node, each) for node in range(nodes)]
    stamps: dict[int, list[bytes]] = {}

    def request(number: int) -> bytes:
        turn, node = divmod(number, nodes)
        if turn not in stamps:
            moments = [start + timedelta(seconds=turn * each + step) for step in range(each)]
            stamps[turn] = [moment.strftime("%Y-%m-%dT%H:%M:%SZ").encode() for moment in moments]
        first, *rest = templates[node]
        own = stamps[turn]
        parts = [first]
        for place, piece in enumerate(rest):
            parts += (own[place // CARDS], piece)
        return b"".join(parts)

    return request


def _measure(stage: Stage, each: int, start: datetime, seconds: float) -> tuple[Load, float, float]:
    """One shape: the load's outcome, CPU seconds of the web worker and of PostgreSQL."""
    request = requests(each, start)
    run = asyncio.Runner()
    with run:
        # the first round of every node reads its token and cards
        warm = run.run(post_all(stage.port, request, lines=50, seconds=3, samples=each * CARDS))
        web, postgres = stage.cpu()
        posted = warm.answered + warm.refused
        load = run.run(
            post_all(stage.port, lambda n: request(n + posted), lines=LINES, seconds=seconds, samples=each * CARDS)
        )
        web, postgres = (after - before for after, before in zip(stage.cpu(), (web, postgres), strict=True))
    if warm.refused or load.refused:
        raise RuntimeError(f"posts were refused: {(warm.first_refusal or load.first_refusal).decode(errors='replace')}")
    _check_rows(stage, warm.stored + load.stored, start)
    return load, web, postgres


def _check_rows(stage: Stage, acknowledged: int, start: datetime) -> None:
    with psycopg.connect(stage.database) as connection:
        ((rows,),) = connection.execute(
            "SELECT count(*) FROM inventory_sample WHERE ts >= %s AND ts < %s", (start, start + _HOURS_APART)
        ).fetchall()
    if rows != acknowledged:
        raise RuntimeError(f"{acknowledged} samples were acknowledged and {rows} are in the table")


def _compare(report: Report, options: Options) -> prometheus.Peer | None:
    if prometheus.binary() is None:
        report.work["peer"] = "skipped: the Debian package prometheus is not installed"
        return None
    options.say("Prometheus on the same cards ...")
    folder = Path(tempfile.mkdtemp(prefix="sensaka-bench-prometheus-"))
    try:
        peer = asyncio.run(prometheus.measure(folder, nodes=NODES, cards=CARDS, seconds=options.seconds))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    report.work["peer"] = f"Prometheus {peer.version}: {peer.card_samples:.0f} card-samples in {peer.wall:.1f} s"
    return peer


def run(options: Options) -> Report:
    """Both shapes and the peer. A missed target is in the report's `failed`."""
    begun = time.monotonic()
    work = {"nodes": NODES, "cards": NODES * CARDS, "fields": 12, "connections": LINES, "web_workers": 1, "fsync": "on"}
    report = Report("ingest", work)
    peer = _compare(report, options)
    now = datetime.now(UTC).replace(microsecond=0)
    with Stage(nodes=NODES, say=options.say) as stage:
        for place, (shape, (each, target)) in enumerate(SHAPES.items()):
            options.say(f"{shape} ...")
            load, web, postgres = _measure(stage, each, now - (2 - place) * _HOURS_APART, options.seconds)
            report.cpu_seconds += web + postgres
            _add(report, shape, load, web, postgres, peer)
            rate = load.stored / load.wall
            if rate < target:
                report.failed.append(f"{shape}: {rate:,.0f} card-samples/s, the target is {target:,}")
    report.wall_seconds = time.monotonic() - begun
    return report


def _add(report: Report, shape: str, load: Load, web: float, postgres: float, peer: prometheus.Peer | None) -> None:
    million = load.stored / 1e6
    ours = (web + postgres) / million
    report.rows += [
        Row(f"{shape}: rate", round(load.stored / load.wall), "card-samples/s"),
        Row(
            f"{shape}: CPU", round(ours, 2), "CPU-s/million", "prometheus" if peer else None,
            round(peer.cpu_per_million, 2) if peer else None, lower_is_better=True,
        ),
        Row(f"{shape}: CPU of the web worker", round(web / million, 2), "CPU-s/million"),
        Row(f"{shape}: CPU of PostgreSQL", round(postgres / million, 2), "CPU-s/million"),
        Row(f"{shape}: latency p50", round(load.percentile(0.5), 1), "ms"),
        Row(f"{shape}: latency p99", round(load.percentile(0.99), 1), "ms"),
    ]  # fmt: skip
    if peer and ours > peer.cpu_per_million / 4:
        report.failed.append(
            f"{shape}: {ours:.1f} CPU-s a million, over a quarter of Prometheus's {peer.cpu_per_million:.1f}"
        )
