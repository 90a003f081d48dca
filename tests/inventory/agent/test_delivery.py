"""What the delivery does with every kind of answer (I4). The server is real HTTP, the clock is set."""

import gzip
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from inventory.agent.clock import SystemClock
from inventory.agent.delivery import LONGEST_BACKOFF, TOKEN_RETRY, UNKNOWN_WAITS, Delivery
from inventory.agent.segments import Kind, Record
from inventory.agent.spool import Spool
from inventory.agent.transport import Answer, Client, Unreachable, packed
from inventory.observations import FailureKind
from tests.inventory.agent.doubles import CutLine, Memory, SetClock, server


def problem(status: int, code: str = "x", **extra: Any) -> tuple[int, dict[str, Any]]:
    return status, {"status": status, "code": code, "detail": f"because of {code}", **extra}


def samples(second: int, *cards: str) -> Record:
    sent = [{"card": card, "sampled_at": str(second)} for card in cards or ("GPU-1", "GPU-2")]
    return Record(Kind.SAMPLES, second, len(sent), b",".join(msgspec.json.encode(sample) for sample in sent))


def report(name: str) -> Record:
    return Record(Kind.REPORT, 0, 0, b'{"name":"%b"}' % name.encode())


class Line:
    """A delivery and the server at its other end."""

    def __init__(self, folder: Path, url: str, memory: Memory) -> None:
        self.folder, self.memory = folder, memory
        self.clock = SetClock()
        self.spool = Spool(folder / "spool")
        self.client = Client(url, timeout=1.0)
        (folder / "token").write_text("ska_first")
        self.delivery = Delivery(
            self.spool,
            self.client,
            interval=10,
            read_token=lambda: (folder / "token").read_text(),
            newest_report=lambda: b'{"name":"newest"}',
            clock=self.clock,
        )

    def put(self, *records: Record) -> None:
        for record in records:
            self.spool.append(record)

    def steps(self, most: int = 100) -> list[float]:
        """Steps until all is delivered; the waits in between."""
        waits: list[float] = []
        for _ in range(most):
            wait = self.delivery.step()
            if wait is None:
                return waits
            waits.append(wait)
            self.clock.pass_time(wait)
        return waits

    @property
    def seconds(self) -> list[int]:
        return [int(second) for _, second in self.memory.samples]

    @property
    def reports(self) -> list[str]:
        return [body["name"] for kind, body in self.memory.taken if kind == "report"]


@pytest.fixture
def line(tmp_path: Path) -> Iterator[Line]:
    with server() as (url, memory):
        line = Line(tmp_path, url, memory)
        yield line
        line.client.close()


def test_a_backlog_goes_in_order_in_large_posts(line: Line) -> None:
    line.put(report("one"), *(samples(second, *"abcdefgh") for second in range(600)), report("two"), samples(600))
    line.steps()
    assert line.reports == ["one", "two"]
    assert line.seconds == [second for second in range(600) for _ in range(8)] + [600, 600]
    posts = [len(body["samples"]) for kind, body in line.memory.taken if kind == "telemetry"]
    assert posts == [2000, 2000, 800, 2]
    assert {body["interval"] for kind, body in line.memory.taken if kind == "telemetry"} == {10}


def test_requests_say_who_and_how_much_waits(tmp_path: Path) -> None:
    seen: list[dict[str, str]] = []
    with server() as (url, memory):
        line = Line(tmp_path, url, memory)
        original = line.client.request

        def request(*args: Any, **kwargs: Any) -> Any:
            seen.append(dict(kwargs["headers"]))
            return original(*args, **kwargs)

        line.client.request = request  # type: ignore[method-assign]
        line.put(samples(1), report("x"), samples(2))
        line.steps()
        line.client.close()
    assert memory.tokens == {"Token ska_first"}
    assert [headers["X-Sensaka-Spooled"] for headers in seen] == ["3", "2", "1"]


def test_a_server_in_trouble_is_tried_again_with_growing_patience(line: Line) -> None:
    answers = [problem(500), problem(503), problem(404), problem(418)] * 3
    line.memory.judge = lambda kind, body: answers.pop() if answers else None
    line.put(samples(1))
    waits = line.steps()
    assert len(waits) == 13
    assert all(0 < wait <= LONGEST_BACKOFF for wait in waits[:-1])
    assert waits[0] <= 1.0
    assert waits[-2] >= LONGEST_BACKOFF / 2
    assert line.seconds == [1, 1]
    assert line.spool.progress.refused == 0


def test_retry_after_is_kept_within_reason(line: Line) -> None:
    batch_of = line.spool.peek
    line.put(samples(1))
    for value, wait in (("7", 7.0), ("100000", 300.0)):
        batch = batch_of(max_samples=1, max_bytes=1)
        assert batch is not None
        assert line.delivery._judge(batch, Answer(429, {"retry-after": value}, b"")) == wait


def test_a_refused_record_is_left_and_counted_and_blocks_nobody(line: Line) -> None:
    """I4: a record the server will never take does not block the queue."""

    def judge(kind: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
        bad = kind == "telemetry" and any(sample["sampled_at"] == "13" for sample in body["samples"])
        return problem(422, "from_the_future") if bad else None

    line.memory.judge = judge
    line.put(*(samples(second) for second in range(30)))
    line.steps()
    assert line.seconds == [second for second in range(30) if second != 13 for _ in range(2)]
    assert line.spool.progress.refused == 1
    assert line.spool.pending == 0


def test_of_a_refused_round_only_the_named_samples_are_left(line: Line) -> None:
    """A card that was in another node then does not cost the round of the others."""

    def judge(kind: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
        bad = [{"index": i} for i, sample in enumerate(body.get("samples", [])) if sample["card"] == "GPU-2"]
        return problem(422, "refused", samples=bad) if bad else None

    line.memory.judge = judge
    line.put(report("one"), samples(1), samples(2, "GPU-1"), samples(3, "GPU-2"))
    line.steps()
    assert line.memory.samples == [("GPU-1", "1"), ("GPU-1", "2")]
    assert line.spool.progress.refused == 2


REFUSALS = {"422": problem(422), "413": problem(413), "400": problem(400)}


@pytest.mark.parametrize("refusal", REFUSALS.values(), ids=REFUSALS.keys())
@pytest.mark.parametrize("kind", ["report", "telemetry"])
def test_a_refusal_costs_one_record(line: Line, kind: str, refusal: tuple[int, dict[str, Any]]) -> None:
    first = [True]

    def judge(of: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
        return refusal if of == kind and first and first.pop() else None

    line.memory.judge = judge
    line.put(report("one"), samples(1), report("two"), samples(2))
    line.steps()
    assert line.spool.progress.refused == 1
    assert len(line.reports) + len(line.seconds) // 2 == 3


def test_a_void_token_stops_delivery_until_there_is_another(line: Line, caplog: pytest.LogCaptureFixture) -> None:
    """I4: on 401 the agent keeps spooling, says so once a minute, and goes on with a new token."""
    line.memory.judge = lambda kind, body: problem(401)
    line.put(samples(1))
    assert line.steps(5) == [TOKEN_RETRY] * 5
    assert len([record for record in caplog.records if "enrol the node again" in record.message]) == 5
    assert line.spool.pending == 1
    line.memory.judge = lambda kind, body: None
    (line.folder / "token").write_text("ska_second")
    line.steps()
    assert line.seconds == [1, 1]
    assert "Token ska_second" in line.memory.tokens


def test_a_missing_token_file_is_waited_for(line: Line) -> None:
    (line.folder / "token").unlink()
    line.put(samples(1))
    assert line.steps(3)
    assert line.memory.requests == 0
    (line.folder / "token").write_text("ska_late")
    line.steps()
    assert line.seconds == [1, 1]


def test_unknown_cards_get_a_report_first(line: Line) -> None:
    known: list[str] = []

    def judge(kind: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
        if kind == "report":
            known.append(body["name"])
            return None
        return None if "newest" in known else problem(409, "unknown_cards", cards=["GPU-1"])

    line.memory.judge = judge
    line.put(samples(1), samples(2))
    waits = line.steps()
    assert line.reports == ["newest"]
    assert line.seconds == [1, 1, 2, 2]
    assert sum(waits) == 0


def test_the_report_that_held_then_is_tried_before_the_newest(line: Line) -> None:
    wants = ["one", "newest"]

    def judge(kind: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
        if kind == "report" or line.reports == ["one", *wants]:
            return None
        return problem(409, "unknown_cards", cards=["GPU-1"])

    line.memory.judge = judge
    line.put(report("one"), samples(1))
    line.steps()
    assert line.reports == ["one", "one", "newest"]
    assert line.seconds == [1, 1]


def test_a_card_that_stays_unknown_is_left_and_the_others_are_delivered(line: Line) -> None:
    def judge(kind: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
        stray = kind == "telemetry" and any(sample["card"] == "GPU-lost" for sample in body["samples"])
        return problem(409, "unknown_cards", cards=["GPU-lost"]) if stray else None

    line.memory.judge = judge
    line.put(
        samples(1, "GPU-1", "GPU-lost"), samples(2, "GPU-1", "GPU-lost"), samples(3, "GPU-1"), samples(4, "GPU-lost")
    )
    waits = line.steps()
    assert line.memory.samples == [("GPU-1", "1"), ("GPU-1", "2"), ("GPU-1", "3")]
    assert line.spool.pending == 0
    assert line.spool.progress.refused == 3
    # the second record of the same cards costs no further round of reports
    assert sum(waits) == 2 * sum(UNKNOWN_WAITS)


def test_a_conflict_of_another_kind_is_tried_again(line: Line) -> None:
    answers = [problem(409, "conflict")]
    line.memory.judge = lambda kind, body: answers.pop() if answers else None
    line.put(samples(1))
    line.steps()
    assert line.seconds == [1, 1]
    assert line.reports == []


@pytest.mark.parametrize("when", ["before it was taken", "after it was taken"])
def test_a_cut_line_loses_nothing(line: Line, when: str) -> None:
    cuts = [CutLine(), CutLine()]

    def cut(*_: object) -> None:
        if cuts:
            raise cuts.pop()

    if when == "before it was taken":
        line.memory.judge = cut  # type: ignore[assignment]
    else:
        line.memory.before_answer = cut
    line.put(*(samples(second) for second in range(3)))
    line.steps()
    assert sorted(set(line.seconds)) == [0, 1, 2]
    assert line.spool.pending == 0


def test_no_server_is_waited_for(tmp_path: Path) -> None:
    line = Line(tmp_path, "http://127.0.0.1:9", Memory())
    line.put(samples(1))
    waits = line.steps(8)
    assert all(0 < wait <= LONGEST_BACKOFF for wait in waits)
    assert line.spool.pending == 1
    assert "ConnectionRefused" in line.delivery.trouble


def test_a_server_that_never_answers_is_a_timeout() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        client = Client(f"http://127.0.0.1:{silent.getsockname()[1]}", timeout=0.05)
        with pytest.raises(Unreachable) as failure:
            client.request("POST", "/", b"{}")
        client.close()
    assert failure.value.kind == FailureKind.TIMEOUT


def test_what_is_no_http_is_a_protocol_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def talk() -> None:
            peer, _ = listener.accept()
            with peer:
                peer.recv(1000)
                peer.sendall(b"220 mail.example ESMTP\r\n\r\n")

        thread = threading.Thread(target=talk, daemon=True)
        thread.start()
        client = Client(f"http://127.0.0.1:{listener.getsockname()[1]}", timeout=2)
        with pytest.raises(Unreachable) as failure:
            client.request("GET", "/")
        client.close()
        thread.join(5)
    assert failure.value.kind in (FailureKind.PROTOCOL, FailureKind.UNREACHABLE)


def test_tls_trouble_is_told_as_such() -> None:
    with server() as (url, _):
        client = Client(url.replace("http:", "https:"), timeout=2)
        with pytest.raises(Unreachable) as failure:
            client.request("GET", "/")
        client.close()
    assert failure.value.kind == FailureKind.TLS


@pytest.mark.parametrize("server_address", ["", "gpu.example", "ftp://gpu.example", "https://"])
def test_an_address_that_is_none_is_refused(server_address: str) -> None:
    with pytest.raises(ValueError, match="address of a server"):
        Client(server_address)


def test_short_bodies_are_sent_as_they_are_and_long_ones_packed() -> None:
    assert packed(b"{}") == (b"{}", {})
    body, headers = packed(b"x" * 100_000)
    assert headers == {"Content-Encoding": "gzip"}
    assert len(body) < 1000
    assert gzip.decompress(body) == b"x" * 100_000


def test_delivery_ends_at_once_when_told(line: Line) -> None:
    stop = threading.Event()
    delivery = Delivery(
        line.spool,
        line.client,
        interval=10,
        read_token=lambda: "t",
        newest_report=lambda: None,
        clock=SystemClock(),
    )
    thread = threading.Thread(target=delivery.run, args=(stop,), daemon=True)
    thread.start()
    stop.set()
    delivery.wake.set()
    thread.join(5)
    assert not thread.is_alive()
