"""How far the spool is delivered and what was lost, on disk at all times and never half written.

Two slots are written in turn, each with a number and a checksum; the sound one with the higher number holds. The
file has its full size from the start, so that it can still be written when the disk is full.
"""

import os
import struct
import zlib
from dataclasses import astuple, dataclass
from pathlib import Path

_SLOT = struct.Struct("<7Q")
_SLOT_BYTES = 64


@dataclass(slots=True)
class Progress:
    """The delivered position, and counts since the state folder was made.

    `dropped`: records lost because spool or disk was full; `refused`: records that the server would not take;
    `skipped`: rounds not read because the clock went backwards or a round came too late; `damaged`: segments whose
    rest could not be read back.
    """

    segment: int = 0
    offset: int = 0
    dropped: int = 0
    refused: int = 0
    skipped: int = 0
    damaged: int = 0


class PositionFile:
    """The two slots. Raises OSError when the file can't be made or written."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._serial = 0

    def load(self) -> Progress:
        """What was stored last; a fresh start where there is nothing sound, which costs repeats but no sample."""
        try:
            raw = self.path.read_bytes()
        except FileNotFoundError:
            raw = b""
        found = max(filter(None, (_unpack(raw[i : i + _SLOT_BYTES]) for i in (0, _SLOT_BYTES))), default=None)
        if found is None:
            return Progress()
        self._serial, *values = found
        return Progress(*values)

    def store(self, progress: Progress) -> None:
        """Writes into the slot that is not in force. No fsync: after a power cut some records are sent again."""
        self._serial += 1
        slot = _SLOT.pack(self._serial, *astuple(progress))
        slot += zlib.crc32(slot).to_bytes(4, "little") + bytes(_SLOT_BYTES - _SLOT.size - 4)
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            if os.fstat(descriptor).st_size < 2 * _SLOT_BYTES:
                os.pwrite(descriptor, bytes(2 * _SLOT_BYTES), 0)
            os.pwrite(descriptor, slot, (self._serial % 2) * _SLOT_BYTES)
        finally:
            os.close(descriptor)


def _unpack(slot: bytes) -> tuple[int, ...] | None:
    body, checksum = slot[: _SLOT.size], slot[_SLOT.size : _SLOT.size + 4]
    if len(slot) < _SLOT_BYTES or zlib.crc32(body).to_bytes(4, "little") != checksum or not any(body):
        return None
    return _SLOT.unpack(body)
