"""One RMCP+ session with one BMC on the running event loop.

Thousands of sessions live side by side in one thread: none owns anything that blocks, so a deadline or
a cancellation ends a session at once and a dead BMC delays nobody. Nothing is ever left behind in a
thread.
"""

import asyncio
import struct
import time
from collections.abc import Callable, Sequence
from typing import Self, cast

from inventory.drivers.bmc.ipmi.engine import ADMINISTRATOR, SHA256, USER, Engine
from inventory.drivers.bmc.ipmi.errors import NODE_BUSY, CommandRefused, IpmiError, LoginRefused, NoAnswer
from inventory.observations import BmcTarget, FailureKind

# Seconds to wait for an answer before each repetition. A BMC on a LAN answers within 0.1 s and a busy
# one within 1-2 s; a reply to a repeated request is matched by its sequence number.
PATIENCE = (0.8, 1.2, 2.0, 3.0)
_BUSY_PAUSES = (0.1, 0.3, 0.8)
_IDLE_LIMIT = 40.0  # s; a BMC drops a silent session after 60 s (specification 6.12.15), less a margin
_APPLICATION = 0x06
_LIMITS = {"user name": 16, "password": 20}  # bytes, specification 22.28 and 22.30


class Session(asyncio.DatagramProtocol):
    """A logged-in session. Make it with `open`; use it from the loop that made it; end it with `close`."""

    def __init__(self, target: BmcTarget, digest: int, sent: Callable[[], None]) -> None:
        self._sent = sent
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.DatagramTransport | None = None
        self._opening: asyncio.Future[None] = self._loop.create_future()
        self._answer: asyncio.Future[dict[str, object]] | None = None
        self._used = time.monotonic()
        self._engine = Engine(target.username, target.password, send=self._send, opened=self._opened, digest=digest)

    @classmethod
    async def open(cls, target: BmcTarget, *, sent: Callable[[], None], digest: int = SHA256) -> Self:
        """Log in; `sent` is called for each packet that goes out. Raises NoAnswer, LoginRefused."""
        for what, text in (("user name", target.username), ("password", target.password)):
            if len(text.encode()) > _LIMITS[what]:
                raise LoginRefused(
                    FailureKind.AUTHENTICATION, f"the {what} is longer than IPMI's {_LIMITS[what]} bytes"
                )
        session = cls(target, digest, sent)
        try:
            await session._loop.create_datagram_endpoint(lambda: session, remote_addr=(target.address, target.port))
        except OSError as error:
            raise NoAnswer(FailureKind.UNREACHABLE, error.strerror or str(error)) from error
        try:
            await session._log_in()
            await session._take_privilege()
        except BaseException:
            session.abandon()
            raise
        return session

    @property
    def usable(self) -> bool:
        """Whether the session can still be used from the running loop."""
        open_here = self._transport is not None and not self._transport.is_closing()
        return open_here and self._loop is asyncio.get_running_loop() and time.monotonic() - self._used < _IDLE_LIMIT

    @property
    def digest(self) -> int:
        """The digest that this BMC speaks (1 or 256), to start with next time."""
        return self._engine.attemptedhash

    async def command(
        self,
        netfn: int,
        command: int,
        data: bytes = b"",
        *,
        lun: int = 0,
        repeat: bool = True,
        patience: Sequence[float] = PATIENCE,
    ) -> bytes:
        """Send one command and return its answer without the completion code.

        `repeat=False` sends it exactly once, for what must not happen twice. Raises CommandRefused
        with the completion code, NoAnswer when the BMC stays silent
        through all of `patience` (s). A busy BMC is asked again.
        """
        for pause in (*_BUSY_PAUSES, None):
            answer = await self._exchange(netfn, command, data, lun, repeat, patience)
            code = cast(int, answer["code"])
            if code != NODE_BUSY or pause is None:
                break
            await asyncio.sleep(pause)
        if code:
            raise CommandRefused(code, netfn, command)
        return bytes(cast(bytearray, answer["data"]))

    async def close(self) -> None:
        """Tell the BMC, so that it frees the slot, and release the socket. Repeatable."""
        if self.usable and self._engine.logged:
            try:
                async with asyncio.timeout(0.5):
                    await self.command(_APPLICATION, 0x3C, struct.pack("<I", self._engine.sessionid))
            except (IpmiError, TimeoutError):
                pass  # the BMC ends it by itself after a minute
            self._engine.logged = 0
        self.abandon()

    def abandon(self) -> None:
        """Release the socket at once; a last packet asks the BMC to free the slot, nobody waits for it.

        From another loop than the session's own the release is left to that loop, if it still runs.
        """
        if self._transport is None or self._transport.is_closing() or self._loop.is_closed():
            return
        if self._loop is not asyncio.get_running_loop():
            self._loop.call_soon_threadsafe(self._transport.close)
            return
        if self._engine.logged:
            closing = struct.pack("<I", self._engine.sessionid)
            self._engine.request(_APPLICATION, 0x3C, closing, 0, lambda _answer: None)
            self._engine.logged = 0
        self._transport.close()

    async def _log_in(self) -> None:
        self._engine.begin()
        for patience in PATIENCE:
            done, _ = await asyncio.wait((self._opening,), timeout=patience)
            if done:
                return self._opening.result()
            self._engine.repeat_login()
        raise self._silence()

    def _silence(self) -> IpmiError:
        # Some BMCs answer a wrong password with status 02h or 0Fh, which pyghmi drops as a stale
        # answer and waits for a better one that never comes.
        if set(self._engine.statuses) & {0x02, 0x0F}:
            return LoginRefused(FailureKind.AUTHENTICATION, "the BMC refuses the password (RAKP status 02h or 0Fh)")
        if self._engine.answered_once:
            return NoAnswer(FailureKind.TIMEOUT, "the BMC went silent during the login")
        return NoAnswer(FailureKind.TIMEOUT, "no answer to the first packet")

    async def _take_privilege(self) -> None:
        """Ask for the privilege of the login; an account below it answers 80h or 81h."""
        for level in range(self._engine.privlevel, USER - 1, -1):
            try:
                await self.command(_APPLICATION, 0x3B, bytes((level,)))
            except CommandRefused as refused:
                if refused.code not in (0x80, 0x81) or level == USER:
                    raise LoginRefused(FailureKind.PERMISSION, f"no privilege for this account: {refused}") from refused
            else:
                self._engine.privlevel = level
                return

    @property
    def administrator(self) -> bool:
        """Whether the account has the highest privilege."""
        return bool(self._engine.privlevel == ADMINISTRATOR)

    async def _exchange(
        self, netfn: int, command: int, data: bytes, lun: int, repeat: bool, patience: Sequence[float]
    ) -> dict[str, object]:
        if self._transport is None or self._transport.is_closing():
            raise NoAnswer(FailureKind.UNREACHABLE, "the session is closed")
        answer: asyncio.Future[dict[str, object]] = self._loop.create_future()
        self._answer = answer
        self._engine.request(netfn, command, data, lun, self._answered)
        for seconds in patience:
            done, _ = await asyncio.wait((answer,), timeout=seconds)
            if done:
                self._used = time.monotonic()
                return answer.result()
            if repeat:
                self._engine.repeat_request()
        raise NoAnswer(FailureKind.TIMEOUT, f"no answer to command {netfn:02X}h/{command:02X}h")

    def _answered(self, answer: dict[str, object]) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(answer)

    def _opened(self, error: IpmiError | None) -> None:
        if self._opening.done():
            return
        if error is None:
            self._opening.set_result(None)
        else:
            self._opening.set_exception(error)
            self._opening.exception()  # taken note of, so that an abandoned login does not warn

    def _send(self, packet: bytes) -> None:
        self._sent()
        if self._transport is not None and not self._transport.is_closing():
            self._transport.sendto(packet)

    # What asyncio calls back ----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: object) -> None:
        self._engine.received(data)

    def error_received(self, exc: Exception) -> None:
        """The network says so: port closed, host or network unreachable."""
        error = NoAnswer(FailureKind.UNREACHABLE, getattr(exc, "strerror", None) or str(exc))
        self._opened(error)
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error)
            self._answer.exception()
