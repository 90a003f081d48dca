"""What can go wrong on the way to an API server: one exception inside the driver, data outside."""

import re
from collections.abc import Mapping

import msgspec

from inventory.drivers.clusters.capabilities import ActResult, Outcome
from inventory.observations import FailureKind, ReadFailure

_RIGHTS = re.compile(r'User "[^"]*" cannot ')  # RBAC's words; every other 403 is an admission's


class Cause(msgspec.Struct):
    """One of the causes that a status names."""

    reason: str = ""
    message: str = ""


class Details(msgspec.Struct, rename="camel"):
    """What a status is about."""

    causes: list[Cause] | None = None
    retry_after_seconds: int | None = None


class Status(msgspec.Struct):
    """The API server's answer where it is not an object (meta/v1 Status)."""

    code: int = 0
    reason: str = ""
    message: str = ""
    details: Details | None = None


_STATUS = msgspec.json.Decoder(Status)


class KubernetesError(Exception):
    """One request that gave nothing.

    `note` says what kind of no it was: "missing", "exists", "conflict" (our copy is old), "expired" (the
    version asked for is no longer kept), "budget" (a disruption budget), "busy", "refused" (the request
    itself is at fault). `sent` is False when it never left. `retry_after` is seconds.
    """

    def __init__(
        self,
        what: str,
        kind: FailureKind,
        detail: str,
        *,
        note: str = "",
        sent: bool = True,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(f"{what}: {kind} {detail}")
        self.what, self.kind, self.detail = what, kind, detail
        self.note, self.sent, self.retry_after = note, sent, retry_after

    def failure(self) -> ReadFailure:
        """The same as data, within the bounds of the struct."""
        return ReadFailure(what=self.what[:200], kind=self.kind, detail=self.detail[:2000])

    def result(self) -> ActResult:
        """The same as the end of an act."""
        outcome = Outcome.FAILED
        if self.note == "missing":
            outcome = Outcome.NOT_FOUND
        elif self.note == "refused":
            outcome = Outcome.REFUSED
        elif self.kind is FailureKind.NOT_SUPPORTED:
            outcome = Outcome.NOT_SUPPORTED
        elif self.kind in (FailureKind.TIMEOUT, FailureKind.UNREACHABLE) and self.sent:
            outcome = Outcome.UNKNOWN
        return ActResult(outcome=outcome, detail=self.detail[:2000], kind=self.kind)


def refused(what: str, detail: str) -> KubernetesError:
    """For what is at fault itself and was not sent."""
    return KubernetesError(what, FailureKind.PROTOCOL, detail, note="refused", sent=False)


def unsupported(what: str, detail: str) -> KubernetesError:
    """For what Kubernetes or this object can't do."""
    return KubernetesError(what, FailureKind.NOT_SUPPORTED, detail, sent=False)


def status_of(body: bytes) -> Status:
    """The status in an answer; text that is none stands in its message."""
    try:
        return _STATUS.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return Status(message=body[:500].decode(errors="replace"))


def from_status(what: str, code: int, status: Status, headers: Mapping[str, str] | None = None) -> KubernetesError:
    """An answer other than success, sorted by its code and reason."""
    detail = f"{code} {status.reason}: {status.message}".strip(": ")
    causes = status.details.causes or [] if status.details else []
    detail += "".join(f" ({cause.message})" for cause in causes[:3] if cause.message and cause.message not in detail)
    kind, note = FailureKind.PROTOCOL, ""
    if code == 401:
        kind = FailureKind.AUTHENTICATION
    elif code == 403 and _RIGHTS.search(status.message):
        kind = FailureKind.PERMISSION
    elif code == 404:
        note = "missing"
    elif code == 409:
        note = "exists" if status.reason == "AlreadyExists" else "conflict"
        kind = FailureKind.BUSY
    elif code == 410:
        note = "expired"
    elif code == 429:
        kind = FailureKind.BUSY
        note = "budget" if any(cause.reason == "DisruptionBudget" for cause in causes) else "busy"
    elif code == 504:
        kind = FailureKind.TIMEOUT
    elif code >= 500:
        kind = FailureKind.UNREACHABLE
    elif code >= 400:
        note = "refused"
    return KubernetesError(what, kind, detail, note=note, retry_after=_retry_after(status, headers or {}))


def _retry_after(status: Status, headers: Mapping[str, str]) -> float | None:
    told = headers.get("Retry-After", "")
    if told.isdigit():
        return float(told)
    seconds = status.details.retry_after_seconds if status.details else None
    return None if seconds is None else float(seconds)
