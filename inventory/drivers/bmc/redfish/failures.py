"""What can go wrong on the way, as one exception inside the driver and as data outside."""

from collections.abc import Mapping

from inventory.drivers.bmc.redfish.resources import Resource, dig, entries_in, pick, words
from inventory.observations import FailureKind, ReadFailure

_MOST_KEPT = 60
_STATUS_KINDS: Mapping[int, FailureKind] = {
    401: FailureKind.AUTHENTICATION,
    403: FailureKind.PERMISSION,
    404: FailureKind.NOT_SUPPORTED,
    405: FailureKind.NOT_SUPPORTED,
    410: FailureKind.NOT_SUPPORTED,
    429: FailureKind.BUSY,
    501: FailureKind.NOT_SUPPORTED,
    503: FailureKind.BUSY,
    504: FailureKind.TIMEOUT,
}


class RedfishError(Exception):
    """One request that gave nothing. `status` is 0 when no answer came."""

    def __init__(self, what: str, kind: FailureKind, detail: str = "", *, status: int = 0) -> None:
        super().__init__(f"{what}: {kind} {detail}")
        self.what, self.kind, self.detail, self.status = what, kind, detail, status

    def failure(self) -> ReadFailure:
        """The same as data, within the bounds of the struct."""
        return ReadFailure(what=self.what[:200], kind=self.kind, detail=self.detail[:2000])


def kind_of_status(status: int) -> FailureKind:
    """What an HTTP status that is not a success means."""
    return _STATUS_KINDS.get(status, FailureKind.PROTOCOL)


def message_of(body: object) -> str:
    """The text of an error body (DSP0266 8.6), the extended messages first."""
    error = pick(body, "error")
    extended = [words(pick(entry, "Message")) for entry in entries_in(pick(error, "@Message.ExtendedInfo"))]
    return " ".join(text for text in extended if text) or words(pick(error, "message"))


def message_ids(body: object) -> list[str]:
    """The message ids of an error body."""
    listed = [words(pick(entry, "MessageId")) for entry in entries_in(dig(body, "error", "@Message.ExtendedInfo"))]
    return [*listed, words(dig(body, "error", "code"))]


def is_error_body(body: Resource) -> bool:
    """Whether a body that came with 200 is an error all the same."""
    return "error" in body and "@odata.id" not in body and "Members" not in body


class FailureList:
    """Failures of one visit: each thing once, and a bound, because a dead tree fails a thousand times."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, FailureKind], ReadFailure] = {}
        self._more = 0

    def add(self, failure: ReadFailure) -> None:
        """Keeps it, unless the same is known or the list is full."""
        key = (failure.what, failure.kind)
        if key in self._kept:
            return
        if len(self._kept) >= _MOST_KEPT:
            self._more += 1
            return
        self._kept[key] = failure

    def result(self) -> tuple[ReadFailure, ...]:
        """All that was kept, with a last entry that counts the rest."""
        kept = tuple(self._kept.values())
        if not self._more:
            return kept
        return (*kept, ReadFailure(what=f"{self._more} more", kind=FailureKind.UNKNOWN, detail="not listed one by one"))
