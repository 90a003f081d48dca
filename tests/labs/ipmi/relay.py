"""A UDP relay in front of a BMC that loses or holds back what a test wants."""

import asyncio
from collections.abc import Callable
from typing import cast


class Relay(asyncio.DatagramProtocol):
    """Passes packets between one client and one BMC. `reply` decides what happens to each answer."""

    def __init__(self, bmc: tuple[str, int]) -> None:
        self.bmc = bmc
        self.reply: Callable[[bytes], bool] = lambda _packet: True
        self.held: list[bytes] = []
        self.requests = 0
        self._client: tuple[str, int] | None = None
        self._transport: asyncio.DatagramTransport | None = None

    @classmethod
    async def start(cls, bmc: tuple[str, int]) -> "Relay":
        relay = cls(bmc)
        await asyncio.get_running_loop().create_datagram_endpoint(lambda: relay, local_addr=("127.0.0.1", 0))
        return relay

    @property
    def address(self) -> tuple[str, int]:
        assert self._transport is not None
        host, port = self._transport.get_extra_info("sockname")[:2]
        return str(host), int(port)

    def release(self) -> None:
        """Deliver what was held back."""
        for packet in self.held:
            self._pass(packet, self._client)
        self.held.clear()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        if addr[:2] != self.bmc:
            self._client = addr
            self.requests += 1
            self._pass(data, self.bmc)
        elif self.reply(data):
            self._pass(data, self._client)
        else:
            self.held.append(data)

    def _pass(self, data: bytes, to: tuple[str, int] | None) -> None:
        if self._transport is not None and to is not None and not self._transport.is_closing():
            self._transport.sendto(data, to)
