"""Logging in and out. BMCs have few session slots (iDRAC eight), so one session a driver, always given back.

Credentials are tried once. A refused password ends the visit, because BMCs lock accounts; only a token
that worked before and was dropped by the BMC is renewed, also once.
"""

import asyncio
import base64
import contextlib

from inventory.drivers.bmc.redfish.client import Answer, RedfishClient
from inventory.drivers.bmc.redfish.failures import RedfishError, message_ids, message_of
from inventory.drivers.bmc.redfish.resources import Resource, path_of
from inventory.observations import BmcTarget, FailureKind

DEFAULT_SESSIONS = "/redfish/v1/SessionService/Sessions"
_OLD_SESSIONS = "/redfish/v1/Sessions"  # iDRAC8 answers 405 at one of the two (TELEMETRY 6.8)
_LOGOUT_SECONDS = 5.0


class Login:
    """The login of one driver: a session, or Basic where the service has or gives none."""

    def __init__(self, target: BmcTarget, client: RedfishClient) -> None:
        self.sessions = DEFAULT_SESSIONS
        self._target, self._client = target, client
        self._location = ""
        self._token = ""
        self._basic = False
        self._renewed = False
        self._lock = asyncio.Lock()
        self._opening: asyncio.Task[Answer] | None = None

    async def ensure(self) -> None:
        """Logs in unless that is done; raises RedfishError when the service lets us in by no way."""
        async with self._lock:
            if not self._token and not self._basic:
                await self._open()

    async def get(self, path: str, *, share: float = 1.0) -> Resource:
        """GET with a login, in this share of the remaining time; a dropped token is renewed once a driver."""
        await self.ensure()
        token = self._token
        try:
            return await self._client.get(path, share=share)
        except RedfishError as error:
            if error.status != 401:
                raise
            await self._renew(token, error)
        return await self._client.get(path, share=share)

    async def close(self) -> None:
        """Deletes the session; bounded, and quiet when the BMC is gone."""
        if self._opening is not None and not self._opening.done():
            # The BMC may have opened a session whose token has not arrived yet.
            await asyncio.wait({self._opening}, timeout=_LOGOUT_SECONDS)
            self._opening.cancel()
        opening, self._opening = self._opening, None
        if opening is not None and opening.done() and not opening.cancelled() and opening.exception() is None:
            self._keep(opening.result())
        location, self._location = self._location, ""
        if location and self._token:
            self._client.begin(_LOGOUT_SECONDS)
            with contextlib.suppress(RedfishError):
                await self._client.send("DELETE", location, None)
        self._token, self._basic = "", False
        self._client.auth = {}

    async def _renew(self, token: str, error: RedfishError) -> None:
        async with self._lock:
            if self._token != token:
                return
            if not token or self._renewed:
                self._client.give_up(error)
                raise error
            self._renewed = True
            self._token = self._location = ""
            self._client.auth = {}
            await self._open()

    async def _open(self) -> None:
        answer = await self._post(self.sessions)
        guessed = answer.status in (404, 405)
        if guessed:
            other = _OLD_SESSIONS if self.sessions != _OLD_SESSIONS else DEFAULT_SESSIONS
            answer = await self._post(other)
        if self._keep(answer):
            return
        # At a guessed path 401 may only mean that nothing is there for strangers to see.
        refused = answer.status in (400, 401, 403) and not (guessed and answer.status == 401)
        if refused and not _is_full(answer):
            error = RedfishError("login", FailureKind.AUTHENTICATION, _refusal(answer), status=answer.status)
            self._client.give_up(error)
            raise error
        await self._use_basic(answer)

    async def _post(self, path: str) -> Answer:
        body: Resource = {"UserName": self._target.username, "Password": self._target.password}
        # A task of its own: a login that is cut off half-way would leave its session on the BMC, so it
        # may outlive the deadline a little and `close` collects what comes of it.
        self._opening = asyncio.create_task(self._client.send("POST", path, body, grace=_LOGOUT_SECONDS))
        done, _ = await asyncio.wait({self._opening}, timeout=max(0.0, self._client.remaining))
        if not done:
            raise RedfishError("login", FailureKind.TIMEOUT, "no answer in time")
        answer = self._opening.result()
        self._opening = None
        return answer

    def _keep(self, answer: Answer) -> bool:
        token = answer.headers.get("x-auth-token", "")
        if not answer.ok or not token:
            return False
        self._token = token
        self._location = path_of(answer.headers.get("location", "")) or path_of(answer.body)
        self._client.auth = {"X-Auth-Token": token}
        return True

    async def _use_basic(self, answer: Answer) -> None:
        """Basic, for a service without sessions or with all of them taken. Proven by one request."""
        pair = f"{self._target.username}:{self._target.password}".encode()
        self._client.auth = {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}
        try:
            await self._client.get("/redfish/v1/Systems")
        except RedfishError as error:
            if error.status not in (401, 403, 503):
                raise
            self._client.auth = {}
            busy = answer.status in (429, 503) or _is_full(answer)
            kind = FailureKind.BUSY if busy else FailureKind.AUTHENTICATION
            refused = RedfishError("login", kind, _refusal(answer), status=answer.status)
            self._client.give_up(refused)
            raise refused from error
        self._basic = True


def _is_full(answer: Answer) -> bool:
    """Whether every session is taken: 503, or 400 with a message that says so (RAC0218 on iDRAC)."""
    ids = " ".join(message_ids(answer.body)).lower()
    return answer.status == 503 or any(mark in ids for mark in ("sessionlimit", "createlimit", "rac0218"))


def _refusal(answer: Answer) -> str:
    ids = " ".join(message_ids(answer.body))
    if "PasswordChangeRequired" in ids:
        return "the BMC wants the password changed before anything else"
    return f"HTTP {answer.status} {message_of(answer.body)}".strip()
