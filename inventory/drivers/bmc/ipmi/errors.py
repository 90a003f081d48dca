"""What can go wrong while talking IPMI, and which FailureKind each is.

Completion codes: IPMI 2.0 specification table 5-2. RMCP+ and RAKP status codes: table 13-15.
"""

from inventory.observations import FailureKind, ReadFailure

NODE_BUSY = 0xC0
RESERVATION_LOST = 0xC5
ABSENT = 0xCB
NOT_NOW = 0xD5
# A BMC says in many ways that a read was too long: 0xC9 and 0xCA by the specification, 0xC7, 0xC8 and
# 0xFF in the field (OpenIPMI's simulator answers 0xC8 to a long FRU read).
TOO_LONG = frozenset({0xC7, 0xC8, 0xC9, 0xCA, 0xFF})

_COMPLETION_KINDS = {
    NODE_BUSY: FailureKind.BUSY,
    0xC1: FailureKind.NOT_SUPPORTED,
    0xC2: FailureKind.NOT_SUPPORTED,
    0xC3: FailureKind.TIMEOUT,
    0xC4: FailureKind.BUSY,
    RESERVATION_LOST: FailureKind.BUSY,
    ABSENT: FailureKind.NOT_SUPPORTED,
    0xCC: FailureKind.NOT_SUPPORTED,
    0xCD: FailureKind.NOT_SUPPORTED,
    0xCE: FailureKind.BUSY,
    0xD0: FailureKind.BUSY,
    0xD1: FailureKind.BUSY,
    0xD2: FailureKind.BUSY,
    0xD3: FailureKind.UNREACHABLE,
    0xD4: FailureKind.PERMISSION,
    NOT_NOW: FailureKind.NOT_SUPPORTED,
    0xD6: FailureKind.NOT_SUPPORTED,
}
_COMPLETION_WORDS = {
    NODE_BUSY: "the BMC is busy",
    0xC1: "the BMC does not know this command",
    0xC3: "the BMC ran out of time",
    RESERVATION_LOST: "the reservation was taken by somebody else",
    ABSENT: "what was asked for is not present",
    0xCC: "the BMC refuses a field of the request",
    0xD2: "the BMC is updating its firmware",
    0xD4: "the account's privilege is too low",
    NOT_NOW: "not possible in the present state",
}
_STATUS_KINDS = {
    0x01: FailureKind.BUSY,
    0x09: FailureKind.PERMISSION,
    0x0A: FailureKind.PERMISSION,
    0x0B: FailureKind.BUSY,
    0x0C: FailureKind.AUTHENTICATION,
    0x0D: FailureKind.AUTHENTICATION,
    0x0F: FailureKind.AUTHENTICATION,
    0x10: FailureKind.NOT_SUPPORTED,
    0x11: FailureKind.NOT_SUPPORTED,
}


class IpmiError(Exception):
    """Base: `kind` is what the reading will say, the message is its detail."""

    def __init__(self, kind: FailureKind, detail: str) -> None:
        super().__init__(detail)
        self.kind = kind

    def failure(self, what: str) -> ReadFailure:
        """The same as data."""
        return ReadFailure(what=what[:200], kind=self.kind, detail=str(self)[:2000])


class NoAnswer(IpmiError):
    """The BMC went silent, or the network said that nobody is there."""


class LoginRefused(IpmiError):
    """The BMC answered and did not let us in."""


class BadAnswer(IpmiError):
    """The answer has a shape that the specification does not allow."""

    def __init__(self, detail: str) -> None:
        super().__init__(FailureKind.PROTOCOL, detail)


class CommandRefused(IpmiError):
    """A completion code other than 0."""

    def __init__(self, code: int, netfn: int, command: int) -> None:
        words = _COMPLETION_WORDS.get(code, "refused")
        super().__init__(completion_kind(code), f"command {netfn:02X}h/{command:02X}h: {words} (code {code:02X}h)")
        self.code = code


def completion_kind(code: int) -> FailureKind:
    """FailureKind of a completion code (specification table 5-2)."""
    return _COMPLETION_KINDS.get(code, FailureKind.PROTOCOL)


def login_status(status: int, words: str) -> LoginRefused:
    """The error for an RMCP+ or RAKP status code (specification table 13-15)."""
    return LoginRefused(_STATUS_KINDS.get(status, FailureKind.PROTOCOL), f"{words} (status {status:02X}h)")
