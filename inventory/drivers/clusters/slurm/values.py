"""Single values of Slurm's JSON in both forms: numbers that may be unset, times, exit codes. Pure."""

from datetime import UTC, datetime

from msgspec import Struct

# NO_VAL, INFINITE and NO_VAL's neighbours in 16, 32 and 64 bits (slurm.h): "not set", "no limit".
_NOT_NUMBERS = frozenset({0xFFFE, 0xFFFF, 0xFFFFFFFD, 0xFFFFFFFE, 0xFFFFFFFF, 2**64 - 1, 2**64 - 2, 2**64 - 3, -1, -2})
_LATEST = 32_503_680_000  # the year 3000


class SetNumber(Struct):
    """A number that may be unset or without limit."""

    set: bool = False
    infinite: bool = False
    number: int | float = 0


Number = int | float | SetNumber | None
Words = str | list[str] | None


def integer(value: Number) -> int | None:
    """The number; None when it is unset, without limit, or one of Slurm's markers for that."""
    if isinstance(value, SetNumber):
        if value.infinite or not value.set:
            return None
        value = value.number
    if value is None or value in _NOT_NUMBERS:
        return None
    return int(value)


def moment(value: Number) -> datetime | None:
    """The time of an epoch; None for 0, unset and nonsense."""
    number = integer(value)
    return datetime.fromtimestamp(number, UTC) if number and 0 < number < _LATEST else None


class Signal(Struct):
    """The signal in an exit code; its number's name differs by version."""

    id: Number = None
    signal_id: Number = None


class ExitCode(Struct):
    """How something ended, in the newer form and in the accounting's of every version."""

    status: Words = None
    return_code: Number = None
    signal: Signal | None = None


def exit_of(value: int | ExitCode | None) -> tuple[int | None, int | None]:
    """Exit code and signal; a plain number is a wait status (wait(2))."""
    if value is None:
        return None, None
    if isinstance(value, int):
        return (value >> 8) & 0xFF, (value & 0x7F) or None
    number = integer(value.signal.id) or integer(value.signal.signal_id) if value.signal else None
    return integer(value.return_code), number or None
