"""The line of the real agent: it passes bytes on, is cut on demand, and works again when mended."""

import asyncio
import urllib.error
import urllib.request

import pytest

from sensaka.fleet.doors.real_agent import Relay
from sensaka.fleet.web import Reply, Request, WebServer


def fetch(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5) as answer:
        return str(answer.read().decode())


async def test_a_cut_line_ends_what_is_under_way_and_passes_nothing() -> None:
    released = asyncio.Event()

    async def answer(request: Request) -> Reply:
        if request.path == "/slow":
            await released.wait()
        return Reply(200, b"here", "text/plain")

    server = WebServer(answer)
    await server.start()
    relay = Relay(f"http://127.0.0.1:{server.port}")
    await relay.start()
    try:
        assert await asyncio.to_thread(fetch, relay.port) == "here"
        reader, writer = await asyncio.open_connection("127.0.0.1", relay.port)
        writer.write(b"GET /slow HTTP/1.1\r\n\r\n")
        await writer.drain()
        relay.set_cut(True)
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await asyncio.wait_for(reader.readexactly(1), 5)
        writer.close()
        with pytest.raises((urllib.error.URLError, ConnectionError)):
            await asyncio.to_thread(fetch, relay.port)

        relay.set_cut(False)
        assert await asyncio.to_thread(fetch, relay.port) == "here"
    finally:
        released.set()
        await relay.stop()
        await server.stop()
