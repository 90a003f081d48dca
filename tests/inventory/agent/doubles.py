"""Small real things for the agent's tests: a clock that is set, a node made of data, a server that remembers."""

import gzip
import http.server
import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from inventory.observations import CardReading, CardValues, NodeReading


class SetClock:
    """Moves only when told or waited on."""

    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self.now = now
        self.elapsed = 0.0

    def wall(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.elapsed

    def wait(self, event: threading.Event, seconds: float) -> bool:
        self.pass_time(max(0.0, seconds))
        return event.is_set()

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        self.elapsed += seconds


def card(number: int, **values: Any) -> CardReading:
    return CardReading(
        uuid=f"GPU-{number:08x}-0000-4000-8000-000000000000",
        vendor="NVIDIA",
        model_name="NVIDIA H100 80GB HBM3",
        serial=f"16500{number:05d}",
        values=CardValues(
            **{
                "utilization": 71.0,
                "sm_activity": 63.2,
                "tensor_activity": 31.4,
                "memory_activity": 40.1,
                "memory_used": 61_000_000_000,
                "temperature": 61.0,
                "memory_temperature": 70.0,
                "power": 512.3,
                "power_limit": 700.0,
                "sm_clock": 1755.0,
                "memory_clock": 2619.0,
                "energy": 812_345_678.9,
                "ecc_corrected": 0,
                "ecc_uncorrected": 0,
                "pcie_replays": 0,
                "nvlink_errors": 0,
                "throttle_reasons": 0,
            }
            | values
        ),
    )


def node(*cards: CardReading, **facts: Any) -> NodeReading:
    return NodeReading(observed_at=datetime(2027, 1, 1, tzinfo=UTC), hostname="gpu-01", cards=cards, **facts)


class Cards:
    """A source that gives what it was last told."""

    name = "data"
    available = True
    reason = "in memory"

    def __init__(self, reading: NodeReading) -> None:
        self.reading = reading

    def read(self, *, deadline: float) -> NodeReading:
        return self.reading

    def close(self) -> None: ...


Reply = tuple[int, dict[str, Any]]


class Memory:
    """What the test server acknowledged, in order: (kind, decoded body)."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.taken: list[tuple[str, dict[str, Any]]] = []
        self.requests = 0
        self.tokens: set[str] = set()
        self.resets = 0  # so many next posts are cut by a reset in the middle of their body
        # decides before anything is taken: None takes it, a reply refuses, an exception cuts the line
        self.judge: Callable[[str, dict[str, Any]], Reply | None] = lambda kind, body: None
        # called after it was taken and before the answer: an exception cuts the line there
        self.before_answer: Callable[[str], None] = lambda kind: None

    @property
    def samples(self) -> list[tuple[str, str]]:
        with self.lock:
            return [
                (sample["card"], sample["sampled_at"])
                for kind, body in self.taken
                if kind == "telemetry"
                for sample in body["samples"]
            ]


class CutLine(Exception):
    """The connection ends here without another byte."""


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 64 * 1024
    memory: Memory

    def do_POST(self) -> None:
        with self.memory.lock:
            resets = self.memory.resets
            self.memory.resets = max(0, resets - 1)
        if resets:
            self._reset()
            return
        raw = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            raw = gzip.decompress(raw)
        body = json.loads(raw)
        kind = "telemetry" if "telemetry" in self.path else self.path.rstrip("/").rsplit("/", 1)[-1]
        memory = self.memory
        with memory.lock:
            memory.requests += 1
            memory.tokens.add(self.headers.get("Authorization", ""))
        try:
            reply = memory.judge(kind, body)
            if reply is None:
                with memory.lock:
                    memory.taken.append((kind, body))
                memory.before_answer(kind)
                reply = (200, {"known": 1})
        except CutLine:
            self.close_connection = True
            return
        self._answer(*reply)

    def _reset(self) -> None:
        """Resets the connection when a part of the body was read."""
        self.rfile.read(20)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        self.close_connection = True

    def _answer(self, status: int, body: dict[str, Any]) -> None:
        encoded = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json" if status < 300 else "application/problem+json")
        self.send_header("Content-Length", str(len(encoded)))
        if status == 503:
            self.send_header("Retry-After", "1")
        self.end_headers()
        self.wfile.write(encoded)

    def log_message(self, *_: object) -> None: ...


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """A client that was killed in the middle is what these tests are about."""


@contextmanager
def server(memory: Memory | None = None, *, port: int = 0) -> Iterator[tuple[str, Memory]]:
    """A server on a loopback port for the time of the block."""
    memory = memory or Memory()
    handler = type("Handler", (_Handler,), {"memory": memory, "timeout": 20})
    httpd = _Server(("127.0.0.1", port), handler)
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{httpd.server_address[1]}", memory
    finally:
        httpd.shutdown()
        httpd.server_close()
        thread.join(5)
