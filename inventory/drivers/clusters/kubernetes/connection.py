"""Requests to one API server through the official client's asynchronous half.

Only its transport is used (TLS, connections, authentication): bodies stay bytes, because models for
5,000 pods cost seconds and what we need of them is decoded in one step.
"""

import asyncio
import os
import ssl
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Generic, TypeVar
from urllib.parse import quote, urlencode

import aiohttp
import msgspec

from inventory.drivers.clusters.kubernetes import wire
from inventory.drivers.clusters.kubernetes.errors import KubernetesError, from_status, status_of
from inventory.drivers.clusters.kubernetes.kubeconfig import Access, KubeconfigError
from inventory.observations import FailureKind, ReadFailure

CHUNK = 500  # objects a page
PARTIAL = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
MERGE = "application/merge-patch+json"
_JSON = "application/json"
_MOST_BYTES = 64 * 1024 * 1024  # of one answer
_MOST_RESTARTS = 3
_MOST_FAILURES = 20
_CONNECT = 10.0  # s
_WATCH = 120  # s, after which the server ends a watch and we go on from where it stood
_SILENCE = 15.0  # s more, after which a watch that the server should have ended is dead
_TOKEN_AGE = 60.0  # s, after which a pod's own token is read again
_CLOSING = 0.05  # s: connections, also those that were being opened, are closed in turns of the loop after the call
_LIST = msgspec.json.Decoder(wire.ObjectList)
_EVENT = msgspec.json.Decoder(wire.WatchEvent)

T = TypeVar("T")


class Listing(msgspec.Struct, Generic[T]):
    """All objects of a kind at one version."""

    items: list[T] = []
    version: str = ""
    failures: list[ReadFailure] = []


def path_of(root: str, *parts: str) -> str:
    """A path: the group and version as they are, each part after them quoted."""
    return "/".join((f"/{root}", *(quote(part, safe="") for part in parts)))


class Connection:
    """One API server. Made anywhere, used within one event loop; `close` ends its connections."""

    def __init__(self, access: Access) -> None:
        self.access = access
        self._client = _client(access)
        self._token, self._token_read = access.token, 0.0

    async def close(self) -> None:
        """Ends connections."""
        await self._client.close()
        await asyncio.sleep(_CLOSING)

    async def get(self, path: str, *, until: float, query: Mapping[str, str] | None = None) -> bytes:
        """One object's JSON."""
        return await self.send("GET", path, until=until, query=query)

    async def send(
        self,
        method: str,
        path: str,
        *,
        until: float,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content: str = _JSON,
        accept: str = _JSON,
        patient: bool = True,
    ) -> bytes:
        """The answer's body; KubernetesError for every other answer than success.

        `patient` waits and tries again while the server says that it is too busy (429), which means
        that it has done nothing.
        """
        what = f"{method} {path}"
        while True:
            try:
                return await self._once(what, method, path, query, body, content, accept, until)
            except KubernetesError as error:
                pause = error.retry_after or 1.0
                if not patient or error.note != "busy" or asyncio.get_running_loop().time() + pause >= until:
                    raise
                await asyncio.sleep(pause)

    async def _once(
        self,
        what: str,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        body: Any,
        content: str,
        accept: str,
        until: float,
    ) -> bytes:
        headers = {"Accept": accept, "Content-Type": content}
        try:
            async with asyncio.timeout_at(until):
                response = await self._open(method, path, query, headers, body)
                try:
                    data = await _bounded(what, response)
                finally:
                    _let_go(response)
        except TimeoutError as error:
            raise KubernetesError(what, FailureKind.TIMEOUT, "no answer within the deadline") from error
        except (aiohttp.ClientError, OSError) as error:
            raise _fault(what, error) from error
        if response.status >= 300:
            raise from_status(what, response.status, status_of(data), response.headers)
        return data

    async def _open(
        self, method: str, path: str, query: Mapping[str, str] | None, headers: dict[str, str], body: Any
    ) -> aiohttp.ClientResponse:
        url = self.access.server + path + (f"?{urlencode(query)}" if query else "")
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT)
        headers |= {"User-Agent": "sensaka"} | self._authorization()
        answer = await self._client.call_api(method, url, header_params=headers, body=body, _request_timeout=timeout)
        response: aiohttp.ClientResponse = answer.response
        return response

    def _authorization(self) -> dict[str, str]:
        if self.access.token_file and time.monotonic() - self._token_read > _TOKEN_AGE:
            self._token, self._token_read = Path(self.access.token_file).read_text().strip(), time.monotonic()
        return {"Authorization": f"Bearer {self._token}"} if self._token else {}

    async def listed(
        self,
        path: str,
        convert: Callable[[msgspec.Raw], T | None],
        *,
        until: float,
        query: Mapping[str, str] | None = None,
        accept: str = _JSON,
    ) -> Listing[T]:
        """Every object, read page by page and turned at once into what `convert` makes of it (None: left out).

        An entry that makes no sense costs itself only. When the server has thrown away the version
        that the pages are of, it begins again.
        """
        for _ in range(_MOST_RESTARTS):
            try:
                return await self._pages(path, convert, until, dict(query or {}), accept)
            except KubernetesError as error:
                if error.note != "expired":
                    raise
        detail = f"the list changed faster than it could be read, {_MOST_RESTARTS} times"
        raise KubernetesError(f"GET {path}", FailureKind.BUSY, detail, note="busy")

    async def _pages(
        self, path: str, convert: Callable[[msgspec.Raw], T | None], until: float, query: dict[str, str], accept: str
    ) -> Listing[T]:
        found: Listing[T] = Listing(items=[], failures=[])
        query["limit"] = str(CHUNK)
        place = 0
        while True:
            data = await self.send("GET", path, until=until, query=query, accept=accept)
            try:
                page = _LIST.decode(data)
            except msgspec.DecodeError as error:
                raise KubernetesError(f"GET {path}", FailureKind.PROTOCOL, f"no list: {error}") from error
            for raw in page.items or ():
                place += 1
                try:
                    item = convert(raw)
                except (msgspec.DecodeError, UnicodeDecodeError) as error:
                    if len(found.failures) < _MOST_FAILURES:
                        kind, what = FailureKind.PROTOCOL, f"{path.rpartition('/')[2]} {place}"
                        found.failures.append(ReadFailure(what=what, kind=kind, detail=str(error)[:500]))
                    continue
                if item is not None:
                    found.items.append(item)
            found.version = str(page.metadata.get("resourceVersion", ""))
            token = str(page.metadata.get("continue") or "")
            if not token:
                return found
            query["continue"] = token

    async def watch(self, path: str, *, version: str, until: float) -> AsyncIterator[list[wire.WatchEvent]]:
        """Events after `version`, as many at a time as came together; ends when the server ends it.

        KubernetesError "expired" when that version is no longer kept, and for a line that is cut.
        """
        what, loop = f"WATCH {path}", asyncio.get_running_loop()
        seconds = max(1, min(_WATCH, int(until - loop.time())))
        query = {"watch": "1", "resourceVersion": version, "allowWatchBookmarks": "true"}
        query["timeoutSeconds"] = str(seconds)
        end = min(until, loop.time() + seconds + _SILENCE)
        try:
            async with asyncio.timeout_at(end):
                response = await self._open("GET", path, query, {"Accept": _JSON, "Content-Type": _JSON}, None)
        except TimeoutError as error:
            raise KubernetesError(what, FailureKind.TIMEOUT, "no answer within the deadline") from error
        except (aiohttp.ClientError, OSError) as error:
            raise _fault(what, error) from error
        try:
            if response.status >= 300:
                async with asyncio.timeout_at(end):
                    data = await _bounded(what, response)
                raise from_status(what, response.status, status_of(data), response.headers)
            async for lines in _lines(what, response, end):
                yield [_event(what, line) for line in lines]
        except TimeoutError as error:
            raise KubernetesError(what, FailureKind.TIMEOUT, "the watch fell silent") from error
        except (aiohttp.ClientError, OSError) as error:
            raise _fault(what, error) from error
        finally:
            _let_go(response)


def _let_go(response: aiohttp.ClientResponse) -> None:
    """Gives the connection back, or cuts it where more would come: a polite end of TLS waits for the peer."""
    connection = response.connection
    if connection is None or response.content.at_eof():
        response.release()
        return
    if connection.transport is not None:
        connection.transport.abort()
    response.close()


def _event(what: str, line: bytes) -> wire.WatchEvent:
    try:
        event = _EVENT.decode(line)
    except msgspec.DecodeError as error:
        raise KubernetesError(what, FailureKind.PROTOCOL, f"no event: {error}") from error
    if event.type == "ERROR":
        status = status_of(bytes(event.object))
        raise from_status(what, status.code or 500, status)
    return event


async def _lines(what: str, response: aiohttp.ClientResponse, end: float) -> AsyncIterator[list[bytes]]:
    """Complete lines as they come. A rest without an end is a line that was cut: it is not used."""
    rest = b""
    while True:
        async with asyncio.timeout_at(end):
            data = await response.content.readany()
        if not data:
            return
        *lines, rest = (rest + data).split(b"\n")
        if len(rest) > _MOST_BYTES:
            raise KubernetesError(what, FailureKind.PROTOCOL, "an event is too long")
        if lines:
            yield [line for line in lines if line.strip()]


async def _bounded(what: str, response: aiohttp.ClientResponse) -> bytes:
    parts: list[bytes] = []
    size = 0
    while data := await response.content.readany():
        parts.append(data)
        size += len(data)
        if size > _MOST_BYTES:
            raise KubernetesError(what, FailureKind.PROTOCOL, f"the answer is longer than {_MOST_BYTES} bytes")
    return b"".join(parts)


def _fault(what: str, error: Exception) -> KubernetesError:
    if isinstance(error, (aiohttp.ClientConnectorCertificateError, aiohttp.ClientConnectorSSLError, ssl.SSLError)):
        return KubernetesError(what, FailureKind.TLS, str(error), sent=False)
    sent = not isinstance(error, aiohttp.ClientConnectorError)
    return KubernetesError(what, FailureKind.UNREACHABLE, str(error) or type(error).__name__, sent=sent)


def _client(access: Access) -> Any:
    """The official client, set up from `access` alone: no proxy, netrc or file of this machine has a say."""
    # Here and not above: it brings 40 MB, which a process without a Kubernetes need not carry.
    from kubernetes.aio.client.api_client import ApiClient
    from kubernetes.aio.client.configuration import Configuration

    with ExitStack() as files:
        configuration = Configuration(
            host=access.server,
            ca_cert_data=access.ca or None,
            cert_file=_file(files, access.certificate),
            key_file=_file(files, access.key),
            tls_server_name=access.tls_server_name or None,
            proxy=access.proxy or None,
            client_session_kwargs={"trust_env": False},
            retries=None,
        )
        try:
            return ApiClient(configuration)
        except (ssl.SSLError, OSError, ValueError) as error:
            raise KubeconfigError(f"a certificate or key in it can't be used: {error}") from error


def _file(files: ExitStack, text: str) -> str | None:
    """OpenSSL reads a client's certificate from files only; they are gone once it has."""
    if not text:
        return None
    handle, name = tempfile.mkstemp()
    files.callback(os.unlink, name)
    with os.fdopen(handle, "w") as opened:
        opened.write(text)
    return name
