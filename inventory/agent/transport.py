"""HTTP to the server over one connection that is kept open. Standard library only; proxies of the environment are
not used, because the server is on the same premises.
"""

import contextlib
import http.client
import socket
import ssl
import threading
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

import msgspec

from inventory.agent import VERSION
from inventory.observations import FailureKind

USER_AGENT = f"sensaka-agent/{VERSION}"
_ANSWER_LIMIT = 256 * 1024  # bytes read of an answer
_GZIP_FROM = 8 * 1024  # bytes; below it packing costs more than it saves
_GZIP = 31  # zlib's window bits for a gzip wrapper


class Unreachable(Exception):
    """No answer came. `kind` says why in the words of the readings, the message is for people."""

    def __init__(self, kind: FailureKind, detail: str) -> None:
        super().__init__(detail)
        self.kind = kind


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server said."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> dict[str, Any]:
        """The body as an object; empty where it is none."""
        try:
            decoded = msgspec.json.decode(self.body)
        except (msgspec.DecodeError, RecursionError):
            return {}
        return decoded if isinstance(decoded, dict) else {}

    @property
    def is_problem(self) -> bool:
        """Whether Sensaka itself refused, and not something between it and us."""
        return self.headers.get("content-type", "").startswith("application/problem+json")

    @property
    def says(self) -> str:
        """The refusal in one line."""
        told = self.json()
        detail = told.get("detail") or told.get("title") or self.body[:200].decode(errors="replace").partition("\n")[0]
        return f"{self.status} {detail}".strip()

    @property
    def date(self) -> float | None:
        """The server's clock, seconds since the epoch, to the second."""
        try:
            return parsedate_to_datetime(self.headers.get("date", "")).timestamp()
        except ValueError:
            return None

    @property
    def retry_after(self) -> float | None:
        """How long the server asks to wait, in seconds."""
        value = self.headers.get("retry-after", "")
        return float(value) if value.isdigit() else None


class Client:
    """One server. `request` raises Unreachable; `timeout` (s) is for the connection and for each read.

    Raises ValueError when the address is none, and ssl.SSLError or OSError when `ca_file` can't be used.
    """

    def __init__(self, server: str, *, ca_file: str = "", timeout: float = 15.0) -> None:
        parts = urlsplit(server)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{server!r} is not the address of a server: https://HOST[:PORT] is expected")
        self._host, self._port, self._prefix = parts.hostname, parts.port, parts.path.rstrip("/")
        self._timeout = timeout
        self._tls = ssl.create_default_context(cafile=ca_file or None) if parts.scheme == "https" else None
        self._connection: http.client.HTTPConnection | None = None
        self._closing = threading.Lock()

    def request(
        self, method: str, path: str, body: bytes | None = None, *, token: str = "", headers: Mapping[str, str] = {}
    ) -> Answer:
        """Sends once more, on a new connection, when a kept one turns out to be closed: every call is repeatable."""
        sent = {"User-Agent": USER_AGENT, "Accept": "application/json", **headers}
        if token:
            sent["Authorization"] = f"Token {token}"
        if body is not None:
            sent["Content-Type"] = "application/json"
        kept = self._connection is not None
        try:
            return self._once(method, path, body, sent)
        except (ConnectionError, http.client.BadStatusLine) as error:
            self.close()
            if not kept:
                raise Unreachable(FailureKind.UNREACHABLE, _wording(error)) from error
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise _unreachable(error) from error
        try:
            return self._once(method, path, body, sent)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise _unreachable(error) from error

    def _once(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> Answer:
        connection = self._connection = self._connection or self._connect()
        connection.request(method, self._prefix + path, body, headers)
        response = connection.getresponse()
        content = response.read(_ANSWER_LIMIT)
        if response.will_close or not response.isclosed():
            self.close()
        return Answer(response.status, {name.lower(): value for name, value in response.getheaders()}, content)

    def _connect(self) -> http.client.HTTPConnection:
        if self._tls is not None:
            return http.client.HTTPSConnection(self._host, self._port, timeout=self._timeout, context=self._tls)
        return http.client.HTTPConnection(self._host, self._port, timeout=self._timeout)

    def close(self) -> None:
        """Ends the connection; from another thread this also ends a request that waits for its answer."""
        with self._closing:
            connection, self._connection = self._connection, None
        if connection is not None:
            if connection.sock is not None:
                with contextlib.suppress(OSError):  # already gone, which is what was wanted
                    connection.sock.shutdown(socket.SHUT_RDWR)
            connection.close()


def packed(body: bytes) -> tuple[bytes, dict[str, str]]:
    """The body as it is sent, and the header that says so: gzip when it is long enough to gain by it."""
    if len(body) < _GZIP_FROM:
        return body, {}
    packer = zlib.compressobj(1, zlib.DEFLATED, _GZIP)
    return packer.compress(body) + packer.flush(), {"Content-Encoding": "gzip"}


def _unreachable(error: Exception) -> Unreachable:
    if isinstance(error, ssl.SSLError):
        return Unreachable(FailureKind.TLS, _wording(error))
    if isinstance(error, TimeoutError):
        return Unreachable(FailureKind.TIMEOUT, "no answer in time")
    if isinstance(error, http.client.HTTPException):
        return Unreachable(FailureKind.PROTOCOL, _wording(error))
    return Unreachable(FailureKind.UNREACHABLE, _wording(error))


def _wording(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
