"""The spool: everything that waits for delivery, on disk, in order, within a bound.

Writing. Each record is handed to the kernel at once, so a killed agent loses nothing that `append` took. The disk is
made to sync once a minute (`sync`), so a power cut costs at most that minute of undelivered records.
Bound. When the segments would outgrow `limit` bytes the oldest goes, and what was undelivered in it is counted.
Full disk. Records wait in memory (`OVERFLOW` of them) until the disk takes them or they are delivered from there;
beyond that the oldest of them is dropped and counted. Old segments are not sacrificed to a disk that something else
fills: it would take that room too.
Segments. Each starts with the report that holds at that time, so that it can be understood when those before it are
gone. A start never goes on writing into an old segment: its end may be torn.
"""

import contextlib
import errno
import logging
import os
import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from inventory.agent.position import PositionFile
from inventory.agent.segments import MAGIC, Kind, Record, read_record, scan, segment_numbers, segment_path

log = logging.getLogger("sensaka.agent")

LIMIT = 256 * 1024 * 1024  # bytes: two days of 8 cards with 7 MIG slices each, a week of 8 whole cards
SEGMENT = 4 * 1024 * 1024  # bytes
OVERFLOW = 60  # records kept in memory while the disk is full: ten minutes


@dataclass(slots=True)
class _Segment:
    number: int
    size: int
    records: int = 0
    delivered: int = 0
    last_second: int = 0

    @property
    def pending(self) -> int:
        return self.records - self.delivered


@dataclass(frozen=True, slots=True)
class Batch:
    """Records of one kind that follow one another, and where they end. `segment` 0: they are in memory only."""

    records: tuple[Record, ...]
    segment: int
    end: int

    @property
    def samples(self) -> int:
        """How many samples it holds."""
        return sum(record.count for record in self.records)


@dataclass(slots=True)
class _Overflow:
    waiting: deque[Record] = field(default_factory=deque)
    lent: int = 0  # the first so many are being delivered and stay where they are


class Spool:
    """One writer and one reader, which may be two threads. Raises OSError at the start when `folder` can't be used."""

    def __init__(self, folder: Path, *, limit: int = LIMIT, segment: int = SEGMENT) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.folder = folder
        self._limit = limit
        self._segment_size = min(segment, max(limit // 8, 4096))
        self._lock = threading.Lock()
        self._position = PositionFile(folder / "position")
        self.progress = self._position.load()
        self._overflow = _Overflow()
        self._report: Record | None = None
        self.trouble = ""
        self._writer: int | None = None
        self._reader: tuple[int, int] | None = None
        self._segments = self._survey()
        self.last_second = max((segment.last_second for segment in self._segments), default=0)
        self._next = max([self.progress.segment, *segment_numbers(folder)]) + 1
        self._discard_delivered()

    def _survey(self) -> deque[_Segment]:
        """What an earlier run left, up to the first torn record of each segment."""
        found: deque[_Segment] = deque()
        for number in segment_numbers(self.folder):
            segment = _Segment(number, len(MAGIC))
            for record, end in scan(segment_path(self.folder, number)):
                segment.size, segment.records = end, segment.records + 1
                segment.last_second = max(segment.last_second, record.second)
                if number == self.progress.segment and end <= self.progress.offset:
                    segment.delivered += 1
            found.append(segment)
        return found

    # -- writing

    def append(self, record: Record) -> bool:
        """Takes a record; False when the disk would not and it waits in memory."""
        with self._lock:
            if record.kind is Kind.REPORT:
                self._report = record
            self._overflow.waiting.append(record)
            self._drain()
            while len(self._overflow.waiting) > OVERFLOW:
                del self._overflow.waiting[self._overflow.lent]
                self._lose(1)
            return not self._overflow.waiting

    def _drain(self) -> None:
        """Moves what waits in memory to disk, in order; stops at the first refusal."""
        while self._overflow.waiting and not self._overflow.lent:
            try:
                self._write(self._overflow.waiting[0])
            except OSError as error:
                self.trouble = str(error)
                return
            self._overflow.waiting.popleft()
            self.trouble = ""

    def _write(self, record: Record) -> None:
        data = record.pack()
        self._make_room(len(data))
        if self._writer is None or self._segments[-1].size + len(data) > self._segment_size:
            self._rotate()
            if record.kind is not Kind.REPORT and self._report is not None:
                self._put(self._report, self._report.pack())
        self._put(record, data)

    def _put(self, record: Record, data: bytes) -> None:
        segment = self._segments[-1]
        assert self._writer is not None
        try:
            written = 0
            while written < len(data):
                written += os.pwrite(self._writer, data[written:], segment.size + written)
        except OSError as error:
            if error.errno == errno.EFBIG:
                self._segment_size = segment.size  # files may not grow further here: go on with shorter segments
            # What was written of it is beyond the size that counts and is overwritten by the next.
            with contextlib.suppress(OSError):
                os.ftruncate(self._writer, segment.size)
            raise
        segment.size += len(data)
        segment.records += 1
        segment.last_second = max(segment.last_second, record.second)

    def _rotate(self) -> None:
        path = segment_path(self.folder, self._next)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            if os.pwrite(descriptor, MAGIC, 0) != len(MAGIC):
                raise OSError(f"{path} could not be started")
        except OSError:
            os.close(descriptor)
            path.unlink(missing_ok=True)
            raise
        if self._writer is not None:
            os.close(self._writer)
        self._writer = descriptor
        self._segments.append(_Segment(self._next, len(MAGIC)))
        self._next += 1
        self._discard_delivered()

    def _make_room(self, size: int) -> None:
        while len(self._segments) > 1 and sum(segment.size for segment in self._segments) + size > self._limit:
            self._lose(self._segments[0].pending)
            self._leave_first()

    def _lose(self, records: int) -> None:
        if records > 0:
            self.progress.dropped += records
            self._store()

    def sync(self) -> None:
        """Makes the disk hold what was appended. Raises OSError."""
        with self._lock:
            if self._writer is not None:
                os.fdatasync(self._writer)

    # -- reading

    def peek(self, *, max_samples: int, max_bytes: int) -> Batch | None:
        """The oldest undelivered records of one kind, at least one and within the bounds; None when all is delivered.

        A report stands alone. A batch must be handed to `acknowledge` or `release` before the next is asked for.
        """
        with self._lock:
            while self._segments:
                batch = self._read(max_samples, max_bytes)
                if batch is not None:
                    return batch
                if len(self._segments) == 1:
                    break
                self._leave_first()
            waiting = self._overflow.waiting
            if not waiting:
                return None
            records = _fitting(iter(waiting), max_samples, max_bytes)
            self._overflow.lent = len(records)
            return Batch(tuple(records), 0, 0)

    def _read(self, max_samples: int, max_bytes: int) -> Batch | None:
        segment = self._segments[0]
        offset = self._offset(segment)
        if offset >= segment.size:
            return None
        ends: list[int] = []
        try:
            records = _fitting(self._records(segment, offset, ends), max_samples, max_bytes)
        except OSError as error:
            log.error("segment %d of the spool can't be read back: %s", segment.number, error)
            records = []
        if not records:
            self._damage(segment)
            return None
        return Batch(tuple(records), segment.number, ends[len(records) - 1])

    def _records(self, segment: _Segment, offset: int, ends: list[int]) -> Iterator[Record]:
        descriptor = self._open(segment.number)
        while found := read_record(descriptor, offset, segment.size):
            offset = found[1]
            ends.append(offset)
            yield found[0]

    def _offset(self, segment: _Segment) -> int:
        return self.progress.offset if segment.number == self.progress.segment else len(MAGIC)

    def _open(self, number: int) -> int:
        if self._reader is None or self._reader[0] != number:
            self._close_reader()
            self._reader = (number, os.open(segment_path(self.folder, number), os.O_RDONLY))
        return self._reader[1]

    def _damage(self, segment: _Segment) -> None:
        """Gives up the rest of a segment that can't be read back, so that what follows is still delivered."""
        self.progress.damaged += 1
        self.progress.dropped += segment.pending
        self.progress.segment, self.progress.offset = segment.number, segment.size
        segment.delivered = segment.records
        self._store()

    def acknowledge(self, batch: Batch) -> None:
        """The batch is delivered (or given up) and is not offered again."""
        with self._lock:
            if batch.segment == 0:
                for _ in range(self._overflow.lent):
                    self._overflow.waiting.popleft()
                self._overflow.lent = 0
                return
            if not self._segments or self._segments[0].number != batch.segment:
                return  # the segment was dropped meanwhile to make room
            self.progress.segment, self.progress.offset = batch.segment, batch.end
            self._segments[0].delivered += len(batch.records)
            self._store()
            self._discard_delivered()

    def release(self, batch: Batch) -> None:
        """The batch was not delivered and will be offered again."""
        with self._lock:
            if batch.segment == 0:
                self._overflow.lent = 0

    def _discard_delivered(self) -> None:
        """Removes segments that are delivered to their end; the one being written stays."""
        while self._segments and (len(self._segments) > 1 or self._writer is None):
            first = self._segments[0]
            if first.number >= self.progress.segment and self._offset(first) < first.size:
                break
            self._leave_first()

    def _leave_first(self) -> None:
        first = self._segments.popleft()
        self._close_reader()
        with contextlib.suppress(OSError):
            segment_path(self.folder, first.number).unlink(missing_ok=True)

    def _close_reader(self) -> None:
        if self._reader is not None:
            os.close(self._reader[1])
            self._reader = None

    # -- what it holds

    @property
    def pending(self) -> int:
        """Records that wait."""
        with self._lock:
            return sum(segment.pending for segment in self._segments) + len(self._overflow.waiting)

    @property
    def size(self) -> int:
        """Bytes on disk."""
        with self._lock:
            return sum(segment.size for segment in self._segments)

    def count(self, *, refused: int = 0, skipped: int = 0) -> None:
        """Adds to the counts that outlive a restart."""
        with self._lock:
            self.progress.refused += refused
            self.progress.skipped += skipped
            self._store()

    def _store(self) -> None:
        try:
            self._position.store(self.progress)
        except OSError as error:
            log.debug("the delivered position can't be stored, it is kept in memory: %s", error)

    def close(self) -> None:
        """Syncs what is there and lets go of the files."""
        with contextlib.suppress(OSError):
            self.sync()
        with self._lock:
            self._close_reader()
            if self._writer is not None:
                os.close(self._writer)
                self._writer = None


def _fitting(records: Iterator[Record], max_samples: int, max_bytes: int) -> list[Record]:
    """As many of the same kind as fit; the first always does, and a report stands alone."""
    chosen: list[Record] = []
    samples = size = 0
    for record in records:
        samples, size = samples + record.count, size + len(record.payload) + 1
        if chosen and (record.kind is not chosen[0].kind or samples > max_samples or size > max_bytes):
            break
        chosen.append(record)
        if record.kind is Kind.REPORT:
            break
    return chosen
