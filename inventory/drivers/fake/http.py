"""The little of HTTP/1.1 that the emulators speak: read one request, write one answer, keep the connection."""

import asyncio
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import parse_qsl, unquote, urlsplit

_MOST_HEAD = 16 * 1024
_MOST_BODY = 4 * 1024 * 1024


class BadRequest(Exception):
    """What came is not HTTP, or too big; the connection is closed after 400."""


@dataclass(slots=True)
class Request:
    """One request; header names are lower case, `path` has no trailing slash."""

    method: str
    path: str
    query: dict[str, str]
    raw_query: str
    headers: dict[str, str]
    body: bytes
    keep_alive: bool


@dataclass(slots=True)
class Response:
    """One answer; `sent` below the body's length cuts it short and ends the connection."""

    status: int
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    sent: int | None = None

    def encode(self, *, keep_alive: bool, always: tuple[str, ...] = ()) -> bytes:
        """Bytes on the wire; `always` are header lines that this kind of service sends each time."""
        try:
            phrase = HTTPStatus(self.status).phrase
        except ValueError:
            phrase = "Unknown"
        lines = [f"HTTP/1.1 {self.status} {phrase}", f"Content-Length: {len(self.body)}", *always]
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        if not keep_alive:
            lines.append("Connection: close")
        head = "\r\n".join([*lines, "", ""]).encode("latin-1")
        return head + self.body[: self.sent]


async def read_request(reader: asyncio.StreamReader) -> Request | None:
    """The next request of a connection; None when the client has closed it."""
    first = await reader.read(1)
    if first and not first.isalpha():
        raise BadRequest("not an HTTP request")  # a TLS handshake on a plain port, most likely
    try:
        head = first + await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    except asyncio.LimitOverrunError as error:
        raise BadRequest("header too long") from error
    if len(head) > _MOST_HEAD:
        raise BadRequest("header too long")
    opening, *rest = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    parts = opening.split(" ")
    if len(parts) != 3 or not parts[2].startswith("HTTP/1."):
        raise BadRequest("not an HTTP request")
    headers: dict[str, str] = {}
    for line in rest:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    length = headers.get("content-length", "0")
    if not length.isdigit() or int(length) > _MOST_BODY or "transfer-encoding" in headers:
        raise BadRequest("body without a usable length")
    try:
        body = await reader.readexactly(int(length))
    except asyncio.IncompleteReadError:
        return None
    target = urlsplit(parts[1])
    return Request(
        method=parts[0],
        path=unquote(target.path).rstrip("/"),
        query=dict(parse_qsl(target.query, keep_blank_values=True)),
        raw_query=target.query,
        headers=headers,
        body=body,
        keep_alive=headers.get("connection", "").lower() != "close" and parts[2] == "HTTP/1.1",
    )
