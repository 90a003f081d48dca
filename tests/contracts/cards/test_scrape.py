"""One visit to an exporter over real HTTP: bounded in time and size, failures as data (I4)."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import httpx
import pytest

from inventory.drivers.cards.exporters import scrape
from inventory.observations import FailureKind

PAGE = (Path(__file__).parents[2] / "data" / "exporters" / "dcgm-3.3.prom").read_bytes()
Answer = Callable[[bytes, asyncio.StreamWriter], object]


@contextlib.asynccontextmanager
async def exporter(answer: Answer) -> AsyncIterator[str]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await answer(await reader.readuntil(b"\r\n\r\n"), writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            return
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/metrics"


def says(status: str, body: bytes = b"", *headers: str, length: int | None = None) -> Answer:
    async def answer(_request: bytes, writer: asyncio.StreamWriter) -> None:
        lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body) if length is None else length}", *headers]
        writer.write("\r\n".join([*lines, "", ""]).encode() + body)
        await writer.drain()

    return answer


async def test_a_page_is_read_with_the_headers_given():
    seen = []

    async def answer(request: bytes, writer: asyncio.StreamWriter) -> None:
        seen.append(request.decode())
        await says("200 OK", PAGE)(request, writer)

    async with exporter(answer) as url:
        reading, flavour = await scrape(url, deadline=10, headers={"Authorization": "Bearer t"})
    assert (flavour, len(reading.cards), reading.complete) == ("dcgm", 2, True)
    assert "authorization: bearer t" in seen[0].lower()


FAILURES = [
    ("wrong token", says("401 Unauthorized"), FailureKind.AUTHENTICATION, "401"),
    ("forbidden", says("403 Forbidden"), FailureKind.AUTHENTICATION, "403"),
    ("redirect", says("302 Found", b"", "Location: http://127.0.0.1:1/"), FailureKind.PROTOCOL, "not followed"),
    ("error", says("500 Oops"), FailureKind.PROTOCOL, "500"),
    ("overloaded", says("503 Busy"), FailureKind.BUSY, "503"),
    ("cut in the body", says("200 OK", PAGE[:-100], length=len(PAGE)), FailureKind.PROTOCOL, "RemoteProtocolError"),
    ("cut before", says("200 OK", PAGE[:-1]), FailureKind.PROTOCOL, "cut off"),
    ("a login page", says("200 OK", b"<html></html>\n"), FailureKind.PROTOCOL, "no series"),
]


@pytest.mark.parametrize(
    ("answer", "kind", "detail"), [case[1:] for case in FAILURES], ids=[case[0] for case in FAILURES]
)
async def test_what_goes_wrong_is_a_failure_with_its_kind(answer, kind, detail):
    async with exporter(answer) as url:
        reading, flavour = await scrape(url, deadline=10)
    assert (reading.cards, reading.complete, flavour) == ((), False, "")
    assert (reading.failures[0].what, reading.failures[0].kind) == (url, kind)
    assert detail in reading.failures[0].detail


async def test_an_exporter_that_drips_is_left_at_the_deadline():
    """Each chunk comes in time for a read timeout; only the deadline of the whole visit ends it."""

    async def drip(_request: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        for _ in range(200):
            writer.write(b"# slow\n")
            await writer.drain()
            await asyncio.sleep(0.05)

    async with exporter(drip) as url:
        started = time.monotonic()
        reading, _ = await scrape(url, deadline=0.5)
        assert time.monotonic() - started < 5
    assert reading.failures[0].kind is FailureKind.TIMEOUT


async def test_an_endless_page_is_left_at_its_bound():
    async def pour(_request: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        for _ in range(1000):
            writer.write(b"# much\n" * 10_000)
            await writer.drain()

    async with exporter(pour) as url:
        reading, _ = await scrape(url, deadline=20)
    assert "longer than" in reading.failures[0].detail


async def test_nobody_there_is_unreachable():
    async with exporter(says("200 OK")) as url:
        pass
    reading, _ = await scrape(url, deadline=5)
    assert reading.failures[0].kind is FailureKind.UNREACHABLE


async def test_plain_text_where_tls_is_expected_is_a_tls_failure():
    async def serve(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        reading, _ = await scrape(f"https://127.0.0.1:{port}/metrics", deadline=5)
    assert reading.failures[0].kind is FailureKind.TLS


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/metrics", "http://", "http://[::1", "no address"])
async def test_an_address_that_is_none_is_a_failure(url):
    reading, _ = await scrape(url, deadline=5)
    assert reading.failures[0].kind in (FailureKind.PROTOCOL, FailureKind.UNREACHABLE)


async def test_one_dead_exporter_delays_nobody():
    async def never(_request: bytes, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(30)

    async with exporter(never) as dead, exporter(says("200 OK", PAGE)) as alive:
        (dead_reading, _), (alive_reading, _) = await asyncio.gather(
            scrape(dead, deadline=0.5), scrape(alive, deadline=5)
        )
    assert dead_reading.failures[0].kind is FailureKind.TIMEOUT
    assert len(alive_reading.cards) == 2


class _Peer:
    """What httpx tells of a connection."""

    def __init__(self, address: str) -> None:
        self.address = address

    def get_extra_info(self, name: str) -> object:
        return (self.address, 80) if name == "server_addr" else None


@pytest.mark.parametrize("address", ["169.254.169.254", "fe80::1%eth0", "::ffff:169.254.169.254", "224.0.0.1"])
async def test_a_name_that_leads_to_a_link_local_address_is_not_read(address: str) -> None:
    """Whatever name was entered: what answers at an address of cloud metadata is not looked at (X3)."""

    def answer(_request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, content=PAGE, extensions={"network_stream": _Peer(address)})

    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as client:
        reading, _ = await scrape("http://innocent.example/metrics", deadline=10, client=client)
    assert reading.cards == ()
    assert reading.failures[0].kind is FailureKind.PERMISSION
