"""The peer of `bench ingest`: a Prometheus server that scrapes one exporter page a node of the same cards."""

import asyncio
import json
import random
import shutil
import signal
import subprocess
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from sensaka.bench.ingest_fleet import card_uuid
from sensaka.bench.processes import cpu_seconds, end, free_port, wait_for_port
from sensaka.embedded import die_with_parent

SERIES_A_CARD = 12
SCRAPE_EVERY = 1
"""Seconds. Prometheus pays for each sample, not for time, so a short interval only shortens the run."""

_METRICS = (
    "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "DCGM_FI_DEV_FB_USED",
    "DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_MEMORY_TEMP", "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_SM_CLOCK",
    "DCGM_FI_DEV_MEM_CLOCK", "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL",
    "DCGM_FI_DEV_PCIE_REPLAY_COUNTER",
)  # fmt: skip
assert len(_METRICS) == SERIES_A_CARD


@dataclass(frozen=True, slots=True)
class Peer:
    """What Prometheus did: card-samples taken (its samples / 12), CPU seconds, version."""

    card_samples: float
    cpu: float
    wall: float
    version: str

    @property
    def cpu_per_million(self) -> float:
        return self.cpu / self.card_samples * 1e6


def binary() -> str | None:
    """The server of the Debian package, where it is installed."""
    return shutil.which("prometheus")


def page(node: int, cards: int) -> bytes:
    """One exporter page with fresh values, in the form that dcgm-exporter gives."""
    lines: list[str] = []
    for metric in _METRICS:
        lines += [f"# HELP {metric} of the card.", f"# TYPE {metric} gauge"]
        for card in range(cards):
            labels = (
                f'gpu="{card}",UUID="{card_uuid(node, card)}",pci_bus_id="00000000:{card + 1:02X}:00.0",'
                f'device="nvidia{card}",modelName="NVIDIA H100 80GB HBM3",Hostname="bench-{node:06d}"'
            )
            lines.append(f"{metric}{{{labels}}} {random.uniform(0, 1000):.3f}")  # noqa: S311
    return ("\n".join(lines) + "\n").encode()


async def _serve(nodes: int, cards: int, stop: asyncio.Event, started: "asyncio.Future[int]") -> None:
    """Exporter pages of all nodes at /NODE on one port. Each page exists in some variants, so that values change."""
    variants = [[page(node, cards) for _ in range(3)] for node in range(nodes)]
    turn = [0] * nodes

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                request = await reader.readuntil(b"\r\n\r\n")
                node = int(request.split(b" ", 2)[1].strip(b"/"))
                turn[node] = (turn[node] + 1) % 3
                body = variants[node][turn[node]]
                head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: %d\r\n\r\n"
                writer.write(head % len(body) + body)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=2048)
    started.set_result(server.sockets[0].getsockname()[1])
    async with server:
        await stop.wait()


def _configuration(folder: Path, nodes: int, port: int) -> Path:
    jobs = [
        {"job_name": f"node-{node}", "metrics_path": f"/{node}", "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]}
        for node in range(nodes)
    ]
    path = folder / "prometheus.yml"
    every = f"{SCRAPE_EVERY}s"
    path.write_text(  # JSON is YAML
        json.dumps({"global": {"scrape_interval": every, "scrape_timeout": every}, "scrape_configs": jobs})
    )
    return path


async def measure(folder: Path, *, nodes: int, cards: int, seconds: float) -> Peer:
    """Run Prometheus for `seconds` after it has made its series; RuntimeError if it does not start."""
    stop, started = asyncio.Event(), asyncio.get_running_loop().create_future()
    pages = asyncio.create_task(_serve(nodes, cards, stop, started))
    port = free_port()
    path = _configuration(folder, nodes, await started)
    command = [
        binary() or "prometheus", f"--config.file={path}", f"--storage.tsdb.path={folder / 'tsdb'}",
        f"--web.listen-address=127.0.0.1:{port}", "--log.level=error",
    ]  # fmt: skip
    server = subprocess.Popen(  # noqa: ASYNC220 - starting takes no time
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=die_with_parent(signal.SIGTERM),
    )
    try:
        await asyncio.to_thread(wait_for_port, port, server)
        await asyncio.sleep(5 * SCRAPE_EVERY)
        before, cpu, begun = await asyncio.to_thread(_appended, port), cpu_seconds(server.pid), time.monotonic()
        await asyncio.sleep(seconds)
        after, cpu = await asyncio.to_thread(_appended, port), cpu_seconds(server.pid) - cpu
        wall = time.monotonic() - begun
    finally:
        await asyncio.to_thread(end, server)
        stop.set()
        await pages
    # five of the samples of each scrape are Prometheus's own (up, scrape_duration_seconds ...)
    of_cards = cards * SERIES_A_CARD / (cards * SERIES_A_CARD + 5)
    return Peer((after - before) * of_cards / SERIES_A_CARD, cpu, wall, _version())


def _appended(port: int) -> float:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    return sum(
        float(line.rsplit(" ", 1)[1])
        for line in text.splitlines()
        if line.startswith("prometheus_tsdb_head_samples_appended_total")
    )


def _version() -> str:
    shown = subprocess.run([binary() or "prometheus", "--version"], capture_output=True, text=True, check=False)
    words = (shown.stdout or shown.stderr).split()
    return words[2] if len(words) > 2 else "unknown"
