"""Guarded calls into NVML: one that fails costs its own value and nothing else.

What a board does not support is asked for once and not every ten seconds; the list is kept until the
library is opened again, because a driver update or a MIG change brings calls back.
"""

from collections.abc import Callable
from typing import Any

import pynvml

from inventory.drivers.cards.values import short
from inventory.observations import FailureKind, ReadFailure

_KINDS = {
    pynvml.NVML_ERROR_NOT_SUPPORTED: FailureKind.NOT_SUPPORTED,
    pynvml.NVML_ERROR_FUNCTION_NOT_FOUND: FailureKind.NOT_SUPPORTED,
    pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH: FailureKind.NOT_SUPPORTED,
    pynvml.NVML_ERROR_DEPRECATED: FailureKind.NOT_SUPPORTED,
    pynvml.NVML_ERROR_NO_PERMISSION: FailureKind.PERMISSION,
    pynvml.NVML_ERROR_TIMEOUT: FailureKind.TIMEOUT,
    pynvml.NVML_ERROR_LIBRARY_NOT_FOUND: FailureKind.MISSING_LIBRARY,
    pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: FailureKind.MISSING_LIBRARY,
    pynvml.NVML_ERROR_DRIVER_NOT_LOADED: FailureKind.UNREACHABLE,
    pynvml.NVML_ERROR_GPU_IS_LOST: FailureKind.LOST,
    pynvml.NVML_ERROR_RESET_REQUIRED: FailureKind.LOST,
    pynvml.NVML_ERROR_GPU_NOT_FOUND: FailureKind.LOST,
    pynvml.NVML_ERROR_IN_USE: FailureKind.BUSY,
    pynvml.NVML_ERROR_NOT_READY: FailureKind.BUSY,
    pynvml.NVML_ERROR_INSUFFICIENT_RESOURCES: FailureKind.BUSY,
}
# The handle is worth nothing any more; the library must be shut down and opened again.
STALE = frozenset(
    {
        pynvml.NVML_ERROR_UNINITIALIZED,
        pynvml.NVML_ERROR_DRIVER_NOT_LOADED,
        pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH,
    }
)
_HINTS = {
    pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: " (the driver was updated: reboot, or reload its kernel modules)",
    pynvml.NVML_ERROR_LIBRARY_NOT_FOUND: " (libnvidia-ml.so.1 is not installed)",
    pynvml.NVML_ERROR_IN_USE: " (a call still hangs in the library, so it can't be opened again)",
    pynvml.NVML_ERROR_NO_PERMISSION: " (is the device filtered by a cgroup, or is root needed?)",
}


def kind_of(error: pynvml.NVMLError) -> FailureKind:
    """What an NVML return code means for us. Codes are compared: NVMLError itself can't be hashed."""
    return _KINDS.get(error.value, FailureKind.UNKNOWN)


def describe(error: pynvml.NVMLError) -> str:
    """The library's own words with the code, and what to do where that is known."""
    return f"{error} ({error.value}){_HINTS.get(error.value, '')}"


class Calls:
    """Calls for one card. Failures of the present round gather in `failures`."""

    def __init__(self) -> None:
        self.absent: set[str] = set()
        self.failures: list[ReadFailure] = []

    def fail(self, name: str, kind: FailureKind, detail: str) -> None:
        """Note that `name` could not be read."""
        self.failures.append(ReadFailure(what=short(name), kind=kind, detail=detail[:2000]))

    def drain(self) -> tuple[ReadFailure, ...]:
        """The failures since the last call of this."""
        failures, self.failures = tuple(self.failures), []
        return failures

    def ask(self, name: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """What `function` returns, or None when it has nothing to say.

        Raises NVMLError only when the whole card is lost or the library must be opened again.
        """
        if name in self.absent:
            return None
        try:
            return function(*arguments)
        except pynvml.NVMLError as error:
            kind = kind_of(error)
            if kind is FailureKind.LOST or error.value in STALE:
                raise
            if kind is FailureKind.NOT_SUPPORTED:
                self.absent.add(name)
            self.fail(name, kind, describe(error))
        except pynvml.NVMLLibraryMismatchError as error:  # not an NVMLError: the symbol is missing
            self.absent.add(name)
            self.fail(name, FailureKind.NOT_SUPPORTED, str(error))
        except UnicodeDecodeError as error:  # pynvml decodes what the InfoROM holds, garbage included
            self.fail(name, FailureKind.PROTOCOL, str(error))
        return None

    def text(self, name: str, function: Callable[..., Any], *arguments: Any) -> str:
        """A text answer, empty when there is none. Old bindings return bytes."""
        answer = self.ask(name, function, *arguments)
        if isinstance(answer, bytes):
            answer = answer.decode(errors="replace")
        return short(answer) if isinstance(answer, str) else ""

    def whole(self, name: str, function: Callable[..., Any], *arguments: Any) -> int | None:
        """A whole number, or None."""
        answer = self.ask(name, function, *arguments)
        return int(answer) if answer is not None else None
