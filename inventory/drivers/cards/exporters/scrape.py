"""One visit to an exporter page: bounded in time and size, with every failure as data.

Redirects are refused: a page of metrics has no reason to point elsewhere, and following one would
carry the scraper (and its headers) to an address that nobody entered. Proxy settings of the
environment are not used, because exporters stand in the site's own network. What a name resolves to
is looked at once connected: nothing that a link-local address says is read.
"""

import asyncio
import functools
import ssl
from collections.abc import Mapping
from datetime import UTC, datetime

import httpx
from msgspec.structs import replace

from inventory.drivers.cards.exporters.amd import is_amd, read_amd
from inventory.drivers.cards.exporters.dcgm import is_dcgm, read_dcgm
from inventory.drivers.cards.exporters.exposition import MAX_PAGE, Page, parse
from inventory.drivers.cards.values import short
from inventory.observations import FailureKind, NodeReading, ReadFailure
from inventory.rules.addresses import is_never_read

# The series by which a simulated exporter says that it is one; what is simulated must never look real.
SIMULATED = "sensaka_simulated"


class _Refused(Exception):
    """The page can't be used; carries what to report."""

    def __init__(self, kind: FailureKind, detail: str) -> None:
        super().__init__(detail)
        self.kind = kind


@functools.cache
def _tls() -> ssl.SSLContext:
    # Loading the system's authorities takes tens of milliseconds, more than a scrape.
    return ssl.create_default_context()


def _failed(url: str, kind: FailureKind, detail: str) -> NodeReading:
    failure = ReadFailure(what=short(url), kind=kind, detail=detail[:2000])
    return NodeReading(observed_at=datetime.now(UTC), failures=(failure,), complete=False)


def _check(response: httpx.Response) -> None:
    stream = response.extensions.get("network_stream")
    peer = stream.get_extra_info("server_addr") if stream is not None else None
    if peer and is_never_read(str(peer[0])):
        raise _Refused(FailureKind.PERMISSION, f"the name leads to {peer[0]}, where no exporter can be")
    status = response.status_code
    if status in (401, 403):
        raise _Refused(FailureKind.AUTHENTICATION, f"HTTP {status}")
    if response.is_redirect:
        raise _Refused(FailureKind.PROTOCOL, f"HTTP {status}: redirects are not followed")
    if status == 429 or status == 503:
        raise _Refused(FailureKind.BUSY, f"HTTP {status}")
    if status != 200:
        raise _Refused(FailureKind.PROTOCOL, f"HTTP {status}")


async def _fetch(client: httpx.AsyncClient, url: str, headers: Mapping[str, str]) -> str:
    async with client.stream("GET", url, headers=dict(headers), follow_redirects=False) as response:
        _check(response)
        body = bytearray()
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > MAX_PAGE:
                raise _Refused(FailureKind.PROTOCOL, f"the page is longer than {MAX_PAGE} bytes")
    # Labels may hold bytes that are not UTF-8 (a broken serial); the numbers beside them still count.
    return body.decode("utf-8", errors="replace")


def read_page(text: str, *, what: str, observed_at: datetime) -> tuple[NodeReading, str]:
    """A page's text as a reading and the flavour of its exporter (`dcgm`, `amd`, or empty).

    A cut page, one without accelerators, or no page of metrics at all gives a failure and no cards.
    """
    try:
        page = parse(text)
    except ValueError as error:
        return _failed(what, FailureKind.PROTOCOL, str(error)), ""
    if is_dcgm(page.rows):
        reading, flavour = read_dcgm(page.rows, observed_at=observed_at), "dcgm"
    elif is_amd(page.rows):
        reading, flavour = read_amd(page.rows, observed_at=observed_at), "amd"
    else:
        detail = "no series of a known exporter on the page"
        return _failed(what, FailureKind.PROTOCOL, detail), ""
    return _with_page_failures(reading, what=short(what), page=page), flavour


def _with_page_failures(reading: NodeReading, *, what: str, page: Page) -> NodeReading:
    """The reading with what is wrong with the page as a whole. It is then not complete: a line that
    could not be read may have been the only one of a card, and no card at all may mean no label."""
    failures = list(reading.failures)
    if page.misread:
        detail = f"{page.misread} lines not understood, the first: {page.first_misread}"
        failures.append(ReadFailure(what=what, kind=FailureKind.PROTOCOL, detail=detail[:2000]))
    if not reading.cards and not failures:
        detail = "the page has series of cards, but none names a card by its UUID"
        failures.append(ReadFailure(what=what, kind=FailureKind.PROTOCOL, detail=detail))
    spoilt = bool(page.misread) or not reading.cards
    simulated = any(row.name == SIMULATED and row.value == 1 for row in page.rows)
    return replace(reading, failures=tuple(failures), complete=reading.complete and not spoilt, simulated=simulated)


def _kind(error: httpx.HTTPError) -> FailureKind:
    if isinstance(error, httpx.TimeoutException):
        return FailureKind.TIMEOUT
    if isinstance(error, httpx.ConnectError):
        text = str(error).lower()
        return FailureKind.TLS if "ssl" in text or "certificate" in text else FailureKind.UNREACHABLE
    if isinstance(error, httpx.NetworkError):
        return FailureKind.UNREACHABLE
    return FailureKind.PROTOCOL


async def scrape(
    url: str, *, deadline: float, headers: Mapping[str, str] | None = None, client: httpx.AsyncClient | None = None
) -> tuple[NodeReading, str]:
    """Read the page at `url` within `deadline` seconds: a reading and the exporter's flavour.

    Never raises for what the other side does. `client` may be shared by many scrapes of one loop.
    """
    try:
        async with asyncio.timeout(deadline):
            if client is not None:
                text = await _fetch(client, url, headers or {})
            else:
                async with httpx.AsyncClient(verify=_tls(), trust_env=False, timeout=deadline) as own:
                    text = await _fetch(own, url, headers or {})
    except TimeoutError:
        return _failed(url, FailureKind.TIMEOUT, f"no complete page within {deadline:g} s"), ""
    except _Refused as refused:
        return _failed(url, refused.kind, str(refused)), ""
    except httpx.InvalidURL as error:
        return _failed(url, FailureKind.PROTOCOL, f"not a usable address: {error}"), ""
    except httpx.HTTPError as error:
        return _failed(url, _kind(error), f"{type(error).__name__}: {error}"), ""
    return read_page(text, what=url, observed_at=datetime.now(UTC))
