"""The files of the spool: records with length and checksum, one after the other.

A segment is `MAGIC`, then records of a fixed header and a payload. A record counts only when all of it is there and
its checksum holds, so what a crash tore is seen and left out. Nothing here keeps state.
"""

import os
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

MAGIC = b"SKSPOOL1"
_HEADER = struct.Struct("<IIBHq")  # payload length, checksum of the rest, kind, samples, second
_LARGEST = 8 * 1024 * 1024  # bytes; a longer length is damage, not a record


class Kind(IntEnum):
    """What a record holds."""

    REPORT = 1
    SAMPLES = 2


@dataclass(frozen=True, slots=True)
class Record:
    """One round's samples (JSON objects joined by commas) or one report (a JSON object).

    `count` is the number of samples, `second` the time of the round in seconds since the epoch.
    """

    kind: Kind
    second: int
    count: int
    payload: bytes

    def pack(self) -> bytes:
        """The record as it stands in a segment."""
        rest = struct.pack("<BHq", self.kind, self.count, self.second)
        checksum = zlib.crc32(self.payload, zlib.crc32(rest))
        return struct.pack("<II", len(self.payload), checksum) + rest + self.payload


def read_record(descriptor: int, offset: int, end: int) -> tuple[Record, int] | None:
    """The record at `offset` and where the next begins; None where no whole, sound record ends by `end`.

    Raises OSError when the disk can't be read.
    """
    header = os.pread(descriptor, _HEADER.size, offset)
    if len(header) < _HEADER.size:
        return None
    length, checksum, kind, count, second = _HEADER.unpack(header)
    following = offset + _HEADER.size + length
    if length > _LARGEST or following > end or kind not in (Kind.REPORT, Kind.SAMPLES):
        return None
    payload = os.pread(descriptor, length, offset + _HEADER.size)
    if len(payload) < length or zlib.crc32(payload, zlib.crc32(header[8:])) != checksum:
        return None
    return Record(Kind(kind), second, count, payload), following


def scan(path: Path) -> Iterator[tuple[Record, int]]:
    """Every sound record from the start of a segment, each with where it ends; stops at the first that is not."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        size = os.fstat(descriptor).st_size
        if os.pread(descriptor, len(MAGIC), 0) != MAGIC:
            return
        offset = len(MAGIC)
        while found := read_record(descriptor, offset, size):
            offset = found[1]
            yield found
    finally:
        os.close(descriptor)


def segment_path(folder: Path, number: int) -> Path:
    """Where segment `number` lies."""
    return folder / f"{number:012d}.segment"


def segment_numbers(folder: Path) -> list[int]:
    """The segments that are there, oldest first."""
    return sorted(int(path.stem) for path in folder.glob("*.segment") if path.stem.isdigit())
