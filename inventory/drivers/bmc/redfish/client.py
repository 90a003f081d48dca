"""One BMC's HTTP: bounded concurrency, one deadline over everything, true counts, one login.

Every request fails by itself with RedfishError; nothing here decides what is worth asking.
"""

import asyncio
import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

import httpx

from inventory.drivers.bmc.redfish.failures import RedfishError, is_error_body, kind_of_status, message_of
from inventory.drivers.bmc.redfish.resources import Resource, path_of
from inventory.drivers.bmc.redfish.tls import CertificateMemory, client_context
from inventory.drivers.texts import storable
from inventory.observations import BmcTarget, FailureKind, TlsPolicy

_REQUEST_SECONDS = 30.0  # one slow resource must not eat the visit (TELEMETRY 6.10: 30-60 s)
_CONNECT_SECONDS = 10.0
_MOST_BYTES = 32 * 1024 * 1024
_MOST_REDIRECTS = 3
_LONGEST_RETRY_AFTER = 5.0
_DEAD_AFTER = 3  # connections refused in a row


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back, decoded. `body` is {} where there is none."""

    status: int
    body: Resource
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether it is a success."""
        return 200 <= self.status < 300


class RedfishClient:
    """Sends requests to one BMC. `begin` starts a visit: its deadline and its counts."""

    def __init__(self, target: BmcTarget, *, concurrency: int = 4) -> None:
        self.requests = 0
        self.peak = 0
        self.auth: dict[str, str] = {}
        self._active = 0
        self._until = 0.0
        self._refused = 0
        self._dead: RedfishError | None = None
        self._slots = asyncio.Semaphore(concurrency)
        self._certificate = CertificateMemory(target.tls_fingerprint if target.tls is TlsPolicy.FINGERPRINT else "")
        self._http: httpx.AsyncClient | None = None
        self._target, self._concurrency = target, concurrency

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the certificate that was seen, "" before any or without TLS."""
        return self._certificate.seen

    @property
    def remaining(self) -> float:
        """Seconds left of this visit."""
        return self._until - asyncio.get_running_loop().time()

    def begin(self, deadline: float) -> None:
        """Starts a visit of `deadline` seconds and counts anew."""
        self._until = asyncio.get_running_loop().time() + deadline
        self.requests, self.peak, self._active, self._refused = 0, 0, 0, 0
        self._dead = None

    def give_up(self, error: RedfishError) -> None:
        """Lets every further request of this visit fail at once with this error."""
        self._dead = error

    async def get(self, path: str, *, authenticated: bool = True, share: float = 1.0) -> Resource:
        """The resource at `path`. A busy service is asked once more when it names a short wait.

        `share` is how much of the remaining time may be spent, where there is another way to try after.
        """
        for last in (False, True):
            answer = await self._patient(path, authenticated=authenticated, share=share)
            wait = _retry_after(answer)
            if answer.status in (429, 503) and wait is not None and not last and wait < self.remaining:
                await asyncio.sleep(wait)
                continue
            break
        self.expect_success(path, answer)
        if is_error_body(answer.body):
            raise RedfishError(path, FailureKind.PROTOCOL, f"200 with an error: {message_of(answer.body)}")
        return answer.body

    async def send(
        self,
        method: str,
        path: str,
        body: Resource | None,
        *,
        headers: Mapping[str, str] | None = None,
        grace: float = 0.0,
    ) -> Answer:
        """POST, PATCH or DELETE; any status is returned. Never repeated: it may have been carried out.

        `grace` seconds may pass beyond the visit's deadline; only a login needs that.
        """
        return await self._exchange(method, path, body, {**self.auth, **(headers or {})}, grace=grace)

    @staticmethod
    def expect_success(what: str, answer: Answer) -> None:
        """Raises RedfishError unless the answer is a success."""
        if answer.ok:
            return
        detail = f"HTTP {answer.status} {message_of(answer.body)}".strip()
        raise RedfishError(what, kind_of_status(answer.status), detail, status=answer.status)

    async def close(self) -> None:
        """Closes the connections."""
        if self._http is not None:
            await self._http.aclose()
            self._http = None

    async def _patient(self, path: str, *, authenticated: bool, share: float) -> Answer:
        """A GET with its redirects; where the BMC drops the connection it is tried once more."""
        for attempt in range(2):
            try:
                where = path
                for _ in range(_MOST_REDIRECTS + 1):
                    auth = self.auth if authenticated else {}
                    answer = await self._exchange("GET", where, None, auth, share=share)
                    target = path_of(answer.headers.get("location", ""))
                    if answer.status not in (301, 302, 307, 308) or not target:
                        return answer
                    where = target
                raise RedfishError(path, FailureKind.PROTOCOL, "redirected in circles")
            except _Dropped as drop:
                if attempt:
                    raise RedfishError(path, FailureKind.PROTOCOL, str(drop)) from drop
        raise AssertionError("unreachable")

    async def _exchange(
        self,
        method: str,
        path: str,
        body: Resource | None,
        headers: Mapping[str, str],
        *,
        grace: float = 0.0,
        share: float = 1.0,
    ) -> Answer:
        end = self._until + grace
        try:
            async with asyncio.timeout_at(end), self._slots:
                left = min((end - asyncio.get_running_loop().time()) * share, _REQUEST_SECONDS)
                if left <= 0:
                    raise TimeoutError
                async with asyncio.timeout(left):
                    return await self._counted(method, path, body, headers, left)
        except TimeoutError:
            why = "no answer in time" if self.remaining > 0 else "the deadline of the whole visit has passed"
            raise RedfishError(path, FailureKind.TIMEOUT, why) from None

    async def _counted(
        self, method: str, path: str, body: Resource | None, headers: Mapping[str, str], left: float
    ) -> Answer:
        if self._dead is not None:
            raise RedfishError(path, self._dead.kind, self._dead.detail)
        self._active += 1
        self.requests += 1
        self.peak = max(self.peak, self._active)
        try:
            answer = await self._transfer(method, path, body, headers, left)
            self._refused = 0
            return answer
        except httpx.HTTPError as error:
            raise self._explained(path, error) from error
        finally:
            self._active -= 1

    async def _transfer(
        self, method: str, path: str, body: Resource | None, headers: Mapping[str, str], left: float
    ) -> Answer:
        http = self._open(path)
        # A handshake that is cancelled from outside leaks its socket (httpcore closes it on errors only),
        # so the connection's own timeout has to come first.
        timeout = httpx.Timeout(None, connect=min(_CONNECT_SECONDS, 0.9 * left))
        request = http.build_request(method, path, json=body, headers=dict(headers), timeout=timeout)
        response = await http.send(request, stream=True)
        try:
            content = bytearray()
            async for chunk in response.aiter_bytes():
                content += chunk
                if len(content) > _MOST_BYTES:
                    raise RedfishError(path, FailureKind.PROTOCOL, f"more than {_MOST_BYTES} bytes")
        finally:
            await response.aclose()
        return Answer(response.status_code, _decoded(path, response.status_code, bytes(content)), response.headers)

    def _open(self, path: str) -> httpx.AsyncClient:
        if self._http is None:
            target = self._target
            try:
                context = client_context(target, self._certificate)
            except (ssl.SSLError, ValueError) as error:
                raise RedfishError(path, FailureKind.TLS, f"the authority can't be read: {error}") from error
            host = f"[{target.address}]" if ":" in target.address else target.address
            self._http = httpx.AsyncClient(
                base_url=f"https://{host}:{target.port}",
                verify=context,
                trust_env=False,
                # No OData-Version: with it iLO 4 leaves the readings out (TELEMETRY 6.3).
                headers={"Accept": "application/json", "User-Agent": "sensaka"},
                limits=httpx.Limits(max_connections=self._concurrency, max_keepalive_connections=self._concurrency),
            )
        return self._http

    def _explained(self, path: str, error: httpx.HTTPError) -> Exception:
        tls = _cause(error, ssl.SSLError)
        if isinstance(error, httpx.ConnectError) and tls is not None:
            found = RedfishError(path, FailureKind.TLS, str(tls))
            self.give_up(found)
            return found
        if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
            timed_out = isinstance(error, httpx.ConnectTimeout)
            kind = FailureKind.TIMEOUT if timed_out else FailureKind.UNREACHABLE
            found = RedfishError(path, kind, "no connection in time" if timed_out else str(error))
            self._refused += 1
            if self._refused >= _DEAD_AFTER:
                self.give_up(found)
            return found
        return _Dropped(str(error) or type(error).__name__)


class _Dropped(RedfishError):
    """The connection ended before the answer did."""

    def __init__(self, detail: str) -> None:
        super().__init__("connection", FailureKind.PROTOCOL, detail)

    def __str__(self) -> str:
        return self.detail


def _cause(error: BaseException, kind: type[BaseException]) -> BaseException | None:
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, kind):
            return seen
        seen = seen.__cause__ or seen.__context__
    return None


def _decoded(path: str, status: int, content: bytes) -> Resource:
    if not content.strip():
        return {}
    try:
        text = content.decode("utf-8", errors="replace")
        value = storable(json.loads(text), text)
    except ValueError as error:
        if status >= 300:
            return {}
        raise RedfishError(path, FailureKind.PROTOCOL, f"not JSON: {error}") from error
    if isinstance(value, dict):
        return cast(Resource, value)
    if status >= 300:
        return {}
    raise RedfishError(path, FailureKind.PROTOCOL, "JSON, but not an object")


def _retry_after(answer: Answer) -> float | None:
    text = answer.headers.get("retry-after", "")
    return float(text) if text.isdigit() and float(text) <= _LONGEST_RETRY_AFTER else None
