"""The IPMI 2.0 state machine of pyghmi without its sockets, threads and timers.

pyghmi's own session shares one I/O thread, one waiter queue and one socket pool between all BMCs. That
is where its faults sit: a reply that arrives between two checks is noticed only by the retry timer,
calls from several threads corrupt each other, and no deadline reaches inside. Here the class builds and
reads packets only; who owns it (session.py) moves them and keeps time.
"""

import collections
import hashlib
import random
import struct
from collections.abc import Callable

from pyghmi.ipmi.private import session as pyghmi_session

from inventory.drivers.bmc.ipmi.errors import IpmiError, LoginRefused, login_status
from inventory.observations import FailureKind

SHA1, SHA256 = 1, 256
ADMINISTRATOR, USER = 4, 2
_NOBODY = (None, None, None)


class Engine(pyghmi_session.Session):  # type: ignore[misc]
    """One login and one request at a time with one BMC. `send` gets each packet to transmit."""

    def __new__(cls, *_arguments: object, **_named: object) -> "Engine":
        """Skip pyghmi's registry, which would hand out a session of somebody else's thread."""
        engine: Engine = object.__new__(cls)
        return engine

    def __init__(
        self, username: str, password: str, *, send: Callable[[bytes], None],
        opened: Callable[[IpmiError | None], None], digest: int = SHA256,
    ) -> None:  # fmt: skip
        self.send, self.opened = send, opened
        self.userid, self.password = username.encode(), password.encode()
        self.kg = self.kgo = self.password
        self.first_digest = digest
        self.statuses: list[int] = []
        self.answered_once = False
        self.lastpayload: bytearray | None = None
        self.seqlun = 0
        self.privlevel, self.autopriv = ADMINISTRATOR, True
        self.nameonly = 16  # look the account up by name alone, whatever its privilege
        self.servermode = self.broken = False
        self.logged, self.logontries, self.maxtimeout = 0, 0, 2
        self.onlogpayload = self._customkeepalives = None
        self.pendingpayloads: collections.deque[object] = collections.deque()
        self.request_entry: list[tuple[int, int, int]] = []

    def _initsession(self) -> None:
        super()._initsession()
        self.remseqnumber = None
        self.attemptedhash = self.first_digest
        self.request_entry.clear()
        self.rmcptag = random.randrange(1, 200)  # noqa: S311 - a tag, not a secret

    def begin(self) -> None:
        """Send the first packet of a login."""
        self.logontries = 0
        self._initsession()
        self._get_channel_auth_cap()

    def repeat_login(self) -> None:
        """Nothing came back: repeat the step, or start over where BMCs don't take a step twice.

        Some BMCs drop an Open Session request whose algorithms they lack, instead of refusing it,
        so the two digests take turns.
        """
        if self.sessioncontext == "OPENSESSION":
            self.attemptedhash = SHA1 if self.attemptedhash == SHA256 else SHA256
            self._open_rmcpplus_request()
        elif self.sessioncontext in ("EXPECTINGRAKP2", "EXPECTINGRAKP4"):
            self.begin()
        else:
            self.send_payload()

    def request(
        self, netfn: int, command: int, data: bytes, lun: int, answered: Callable[[dict[str, object]], None]
    ) -> None:
        """Send one request; `answered` gets {'code', 'data', ...}.

        The sequence number always moves on. pyghmi leaves it after an unanswered request, so that a
        late answer would pass for the answer to the next request of the same command.
        """
        self.lastpayload = None
        self.pendingpayloads.clear()
        if self.request_entry:
            self.request_entry.clear()
            self.seqlun = (self.seqlun + 1) & 0x3F
        self.ipmicallback = answered
        self._send_ipmi_net_payload(netfn, command, data, retry=True, rslun=lun)

    def repeat_request(self) -> None:
        """Send the request in flight again, under the same sequence number."""
        if self.lastpayload:
            self.send_payload()

    def received(self, packet: bytes) -> None:
        """Take one datagram. What can't be read is dropped, as noise from the network would be."""
        if len(packet) < 16 or packet[0] != 6 or packet[2:4] != b"\xff\x07":
            return
        self.answered_once = True
        try:
            self._handle_ipmi_packet(bytearray(packet), sockaddr=None, qent=_NOBODY)
        except (IndexError, KeyError, struct.error, ValueError):
            return

    # What pyghmi calls back -----------------------------------------------------------------------

    def _xmit_packet(self, retry: bool = True, delay_xmit: float | None = None, timeout: float | None = None) -> None:
        if self.sequencenumber:
            self.sequencenumber += 1
        self.send(bytes(self.netpacket))

    def _req_priv_level(self) -> None:
        """The session stands; session.py asks for the privilege, without blocking."""
        self.logged, self.logging = 1, False
        self.opened(None)

    def onlogon(self, parameter: dict[str, str]) -> None:
        self.logging = False
        if "error" not in parameter:
            self.opened(None)
        elif self.statuses and self.statuses[-1]:
            self.opened(login_status(self.statuses[-1], parameter["error"]))
        elif "password" in parameter["error"] or "integrity" in parameter["error"]:
            self.opened(LoginRefused(FailureKind.AUTHENTICATION, "the BMC's proof does not match our password"))
        else:
            self.opened(LoginRefused(FailureKind.PROTOCOL, parameter["error"]))

    def _mark_broken(self, error: str | None = None) -> None:
        self.broken = True
        self.opened(LoginRefused(FailureKind.PROTOCOL, error or "the session broke"))

    def _get_session_challenge(self) -> None:
        # pyghmi's IPMI 1.5 login mixes bytes with text and can't work on Python 3.
        self.opened(LoginRefused(FailureKind.NOT_SUPPORTED, "the BMC offers IPMI 1.5 only; 2.0 (RMCP+) is needed"))

    def _got_rmcp_response(self, data: bytearray) -> object:
        if data[0] == self.rmcptag:
            self.statuses.append(data[1])
            if data[1] == 0:
                self._follow_digest(data[16] & 0x3F)
        return super()._got_rmcp_response(data)

    def _follow_digest(self, algorithm: int) -> None:
        """Use the digest that the BMC chose; pyghmi assumes that it took the proposal and crashes."""
        if algorithm == 1 and self.attemptedhash != SHA1:
            self.attemptedhash, self.currhashlib, self.currhashlen = SHA1, hashlib.sha1, 12
        elif algorithm == 3 and self.attemptedhash != SHA256:
            self.attemptedhash, self.currhashlib, self.currhashlen = SHA256, hashlib.sha256, 16

    def _got_rakp2(self, data: bytearray) -> object:
        if data[0] == self.rmcptag and self.sessioncontext in ("EXPECTINGRAKP2", "EXPECTINGRAKP4"):
            self.statuses.append(data[1])
            if data[1] in (0x09, 0x0A, 0x0D) and self.privlevel > USER:
                self.privlevel -= 1  # the account may be an operator's or a reader's
                self.begin()
                return None
        return super()._got_rakp2(data)

    def _got_rakp4(self, data: bytearray) -> object:
        if data[0] == self.rmcptag and self.sessioncontext == "EXPECTINGRAKP4":
            self.statuses.append(data[1])
        return super()._got_rakp4(data)
