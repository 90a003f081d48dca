"""slurmrestd over HTTP or its socket: version negotiation, log-in, one deadline, errors told apart."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx
import msgspec

from inventory.drivers.clusters.slurm import wire
from inventory.drivers.clusters.slurm.errors import CODE_AUTHENTICATION, CODE_EMPTY, CODE_HELD, SlurmError, from_errors
from inventory.drivers.clusters.slurm.login import Login
from inventory.drivers.clusters.slurm.versions import TESTED, Interface, choose, offered_in
from inventory.observations import FailureKind

MOST_BYTES = 512 * 1024 * 1024  # 5,000 jobs of 192 cores are some 150 MB in the newer form
# All that a refused token gives up to 22.05: SLURM_ERROR, and "zero bytes were transmitted or received".
_VAGUE = frozenset({-1, 5005})
_STATUSES = {
    401: FailureKind.AUTHENTICATION,
    403: FailureKind.PERMISSION,
    404: FailureKind.NOT_SUPPORTED,
    405: FailureKind.NOT_SUPPORTED,
    429: FailureKind.BUSY,
    503: FailureKind.BUSY,
}


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    is_json: bool
    body: bytes


class RestDoor:
    """One slurmrestd. `url` is http(s)://host:port or unix:/path; `until` is the event loop's time."""

    def __init__(
        self,
        url: str,
        login: Login,
        *,
        ca_file: str | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.login = login
        self._interface: Interface | None = None
        self._negotiating = asyncio.Lock()
        path = url.removeprefix("unix:") if url.startswith("unix:") else None
        if path and transport is None:
            transport = httpx.AsyncHTTPTransport(uds=path)
        self._http = httpx.AsyncClient(
            base_url="http://slurmrestd" if path else url,
            transport=transport,
            verify=httpx.create_ssl_context(verify=ca_file) if ca_file else True,
            follow_redirects=False,
            trust_env=False,
        )

    async def close(self) -> None:
        """Ends connections."""
        await self._http.aclose()

    async def interface(self, *, until: float) -> Interface:
        """The version to speak, asked of the server once and again after it changed."""
        async with self._negotiating:
            if self._interface is None:
                offered = offered_in(await self._logged_in("GET", "/openapi/v3", until=until))
                self._interface = choose(offered)
                if self._interface is None:
                    text = f"the server offers {', '.join(offered) or 'nothing'}; known are {TESTED[0]} and newer"
                    raise SlurmError("slurmrestd", FailureKind.NOT_SUPPORTED, text)
            return self._interface

    async def get(self, part: str, path: str, *, until: float, query: Mapping[str, str] | None = None) -> wire.Envelope:
        """`/slurm/VERSION/path`, or slurmdb for `part`; SlurmError when it tells of errors."""
        return await self._call("GET", part, path, until=until, query=query)

    async def send(
        self,
        method: str,
        path: str,
        *,
        until: float,
        body: Any = None,
        query: Mapping[str, str] | None = None,
        user: str = "",
    ) -> wire.Envelope:
        """A request that changes something."""
        return await self._call(method, "slurm", path, until=until, query=query, body=body, user=user)

    async def _call(
        self,
        method: str,
        part: str,
        path: str,
        *,
        until: float,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        user: str = "",
    ) -> wire.Envelope:
        for last in (False, True):
            interface = await self.interface(until=until)
            target = f"/{part}/{interface.name}/{path}"
            try:
                answer = await self._logged_in(method, target, until=until, query=query, body=body, user=user)
            except SlurmError as error:
                if error.code == 404 and not last:
                    self._interface = None  # another version of slurmrestd may have been started
                    continue
                raise
            return await self._opened(f"{method} {target}", answer, until)
        raise AssertionError("the second round returns or raises")

    async def _opened(self, what: str, body: bytes, until: float) -> wire.Envelope:
        try:
            opened = wire.envelope(body)
        except msgspec.DecodeError as error:
            raise SlurmError(what, FailureKind.PROTOCOL, f"no answer of slurmrestd: {error}") from error
        errors = [error for error in opened.faults() if error.code not in (CODE_HELD, CODE_EMPTY)]
        if errors:
            raise from_errors(what, errors)
        return opened

    async def _logged_in(
        self,
        method: str,
        path: str,
        *,
        until: float,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        user: str = "",
    ) -> bytes:
        """One request; with a renewed token once more if ours was refused."""
        if self.login.ended:
            await self._renew(until)
        answer = await self._request(method, path, until=until, query=query, body=body, user=user)
        if await self._refused(answer, until) and await self._renew(until):
            answer = await self._request(method, path, until=until, query=query, body=body, user=user)
        if await self._refused(answer, until):
            text = "the token has ended" if self.login.ended else "the token or user is not accepted"
            raise SlurmError(f"{method} {path}", FailureKind.AUTHENTICATION, text, answered=True, code=401)
        if not 200 <= answer.status < 300 and not answer.is_json:
            kind = _STATUSES.get(answer.status, FailureKind.PROTOCOL)
            text = f"HTTP {answer.status}: {answer.body[:500].decode(errors='replace')}"
            raise SlurmError(f"{method} {path}", kind, text, answered=True, code=answer.status)
        return answer.body

    async def _renew(self, until: float) -> bool:
        async with asyncio.timeout_at(until):
            return await self.login.renewed()

    async def _refused(self, answer: _Answer, until: float) -> bool:
        """Whether the token is why. Up to 22.05 a refusal is told by slurmdbd only, the rest is vague."""
        if answer.status == 401:
            return True
        if len(answer.body) > 4096:
            return False  # a refusal is short
        codes = _codes(answer.body)
        if CODE_AUTHENTICATION in codes:
            return True
        if not _VAGUE & codes or self._interface is None:
            return False
        if self.login.ended:
            return True
        probe = await self._request("GET", f"/slurmdb/{self._interface.name}/clusters", until=until)
        return probe.status == 401 or CODE_AUTHENTICATION in _codes(probe.body)

    async def _request(
        self,
        method: str,
        path: str,
        *,
        until: float,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        user: str = "",
    ) -> _Answer:
        what = f"{method} {path}"
        content = None if body is None else msgspec.json.encode(body)
        headers = self.login.headers(user) | ({"Content-Type": "application/json"} if content else {})
        try:
            async with (
                asyncio.timeout_at(until),
                self._http.stream(method, path, params=query, content=content, headers=headers, timeout=None) as answer,
            ):
                is_json = answer.headers.get("content-type", "").startswith("application/json")
                return _Answer(answer.status_code, is_json, await _read_bounded(answer, what))
        except TimeoutError as error:
            raise SlurmError(what, FailureKind.TIMEOUT, "no answer within the deadline") from error
        except httpx.ConnectError as error:
            raise SlurmError(what, FailureKind.UNREACHABLE, str(error) or "no connection") from error
        except httpx.TransportError as error:  # the line broke: nobody knows whether it was carried out
            kind = FailureKind.UNREACHABLE if method == "GET" else FailureKind.TIMEOUT
            raise SlurmError(what, kind, f"the connection broke: {error!r}") from error


async def _read_bounded(answer: httpx.Response, what: str) -> bytes:
    parts: list[bytes] = []
    size = 0
    async for part in answer.aiter_bytes():
        size += len(part)
        if size > MOST_BYTES:
            raise SlurmError(what, FailureKind.PROTOCOL, f"the answer is longer than {MOST_BYTES} bytes")
        parts.append(part)
    return b"".join(parts)


def _codes(body: bytes) -> set[int]:
    try:
        return {error.code for error in wire.envelope(body).errors or []}
    except msgspec.DecodeError:
        return set()
