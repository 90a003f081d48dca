"""`bench admission`: committed admissions a second from a long queue, on this machine.

The real service from lock to commit on a PostgreSQL of its own (fsync on), which shares the machine:
each pass freezes the pool with the head of the queue, orders and places it, and writes the promises with
their marks and histories and the reasons of what waits. What was started is over before the next pass;
that time is told apart. So is the look through the whole queue that the clock makes every minute. The
peer's figure is the one that Kueue publishes for its scheduler's performance test.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from sensaka import embedded
from sensaka.bench.processes import cpu_seconds
from sensaka.bench.report import Options, Report, Row

REQUESTS, QUEUES, NODES = 50_000, 1_000, 1_250
KUEUE = 42.0
"""Admissions a second, as published for Kueue."""
GOAL = 10 * KUEUE

_ROOT = Path(__file__).resolve().parents[2]


def run(options: Options) -> Report:
    """Fill a database, admit for `seconds`, report."""
    folder = Path(tempfile.mkdtemp(prefix="sensaka-bench-"))
    folder.chmod(0o711)
    layout = embedded.Layout(folder / "var")
    postgres = embedded.PostgreSQL(layout)
    start = time.monotonic()
    try:
        postgres.start()
        options.say(f"{REQUESTS:,} requests of {QUEUES:,} projects for {NODES * 8:,} cards ...")
        found = _admit(layout, options.seconds)
        assert postgres.process is not None
        return _report(found, found["cpu"] + cpu_seconds(postgres.process.pid), time.monotonic() - start)
    finally:
        postgres.stop()
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(layout.run, ignore_errors=True)


def _admit(layout: embedded.Layout, seconds: float) -> dict[str, Any]:
    environment = os.environ | {
        "SENSAKA_VAR": str(layout.var),
        "DATABASE_URL": layout.database_url,
        "REDIS_URL": layout.redis_url,
        "DJANGO_SETTINGS_MODULE": "sensaka.settings.dev",
        "LOG_LEVEL": "ERROR",
    }
    migrate = [sys.executable, "manage.py", "migrate", "--verbosity=0", "--skip-checks"]
    subprocess.run(migrate, cwd=_ROOT, env=environment, check=True)
    work = [sys.executable, "-m", "sensaka.bench.admission_work", str(REQUESTS), str(QUEUES), str(NODES), str(seconds)]
    done = subprocess.run(work, cwd=_ROOT, env=environment, check=True, stdout=subprocess.PIPE)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _report(found: dict[str, Any], cpu: float, wall: float) -> Report:
    passes = found["passes"]
    admitted = sum(started for started, _ in passes)
    deciding = sum(seconds for _, seconds in passes)
    report = Report(
        "admission",
        {
            "requests": REQUESTS, "queues": QUEUES, "cards": NODES * 8, "passes": len(passes), "admitted": admitted,
            "left": found["left"], "seconds_between_passes": round(found["ending"], 1),
        },
    )  # fmt: skip
    rate = admitted / deciding if deciding else 0.0
    report.rows += [
        Row("committed admissions, passes alone", rate, "1/s", "Kueue, published", KUEUE),
        Row("committed admissions, with the end of what ran", admitted / found["wall"], "1/s", "Kueue, published",
            KUEUE),
        Row("longest pass", max((seconds for _, seconds in passes), default=0.0), "s", lower_is_better=True),
        Row(f"telling all {found['told']:,} that wait why", found["telling"], "s", lower_is_better=True),
    ]  # fmt: skip
    report.cpu_seconds, report.wall_seconds = cpu, wall
    if rate < GOAL:
        report.failed.append(f"{rate:.0f} admissions a second are fewer than {GOAL:.0f}")
    return report
