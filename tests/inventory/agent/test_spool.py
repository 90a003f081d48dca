"""The spool keeps what it took, in order, within its bound (I4)."""

import errno
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inventory.agent import spool as spool_module
from inventory.agent.position import PositionFile, Progress
from inventory.agent.segments import MAGIC, Kind, Record, scan, segment_numbers, segment_path
from inventory.agent.spool import OVERFLOW, Spool


def samples(second: int, size: int = 40) -> Record:
    return Record(Kind.SAMPLES, second, 1, b"%0*d" % (size, second))


def report(second: int) -> Record:
    return Record(Kind.REPORT, second, 0, b"report %d" % second)


def drain(spool: Spool, *, max_samples: int = 3, max_bytes: int = 10_000) -> list[Record]:
    found: list[Record] = []
    while batch := spool.peek(max_samples=max_samples, max_bytes=max_bytes):
        found.extend(batch.records)
        spool.acknowledge(batch)
    return found


def test_what_went_in_comes_out_once_and_in_order(tmp_path: Path) -> None:
    """I4: delivered in order, once."""
    spool = Spool(tmp_path)
    put = [report(1), samples(1), samples(2), samples(3), samples(4), report(5), samples(5)]
    for record in put:
        assert spool.append(record)
    assert spool.pending == 7
    assert drain(spool) == put
    assert spool.pending == 0
    assert spool.peek(max_samples=10, max_bytes=1000) is None


def test_a_batch_keeps_to_its_bounds_and_reports_stand_alone(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    for record in [samples(1), samples(2), samples(3), report(4), samples(5)]:
        spool.append(record)
    sizes = []
    while batch := spool.peek(max_samples=2, max_bytes=10_000):
        sizes.append([(record.kind, record.second) for record in batch.records])
        spool.acknowledge(batch)
    assert sizes == [
        [(Kind.SAMPLES, 1), (Kind.SAMPLES, 2)],
        [(Kind.SAMPLES, 3)],
        [(Kind.REPORT, 4)],
        [(Kind.SAMPLES, 5)],
    ]


def test_a_record_larger_than_the_bound_still_goes_alone(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.append(samples(1, size=5000))
    spool.append(samples(2))
    batch = spool.peek(max_samples=10, max_bytes=100)
    assert batch is not None
    assert [record.second for record in batch.records] == [1]


def test_a_released_batch_is_offered_again(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.append(samples(1))
    batch = spool.peek(max_samples=1, max_bytes=100)
    assert batch is not None
    spool.release(batch)
    assert spool.peek(max_samples=1, max_bytes=100) == batch


def test_a_restart_goes_on_where_delivery_stopped(tmp_path: Path) -> None:
    first = Spool(tmp_path)
    for second in range(1, 11):
        first.append(samples(second))
    batch = first.peek(max_samples=4, max_bytes=10_000)
    assert batch is not None
    first.acknowledge(batch)
    # not closed: a killed agent does not say goodbye
    again = Spool(tmp_path)
    assert again.pending == 6
    assert again.last_second == 10
    again.append(samples(11))
    assert [record.second for record in drain(again)] == [5, 6, 7, 8, 9, 10, 11]


def test_a_lost_position_costs_repeats_and_no_sample(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    for second in range(1, 4):
        spool.append(samples(second))
    drain(spool)
    spool.append(samples(4))
    (tmp_path / "position").write_bytes(b"\xff" * 128)
    assert [record.second for record in drain(Spool(tmp_path))] == [1, 2, 3, 4]


def test_the_oldest_goes_first_when_the_spool_is_full_and_is_counted(tmp_path: Path) -> None:
    """I4: bounded, oldest first out, counted."""
    spool = Spool(tmp_path, limit=64 * 1024)
    spool.append(report(1))
    for second in range(1, 3001):
        spool.append(samples(second))
    assert spool.size <= 64 * 1024
    assert sum(path.stat().st_size for path in tmp_path.glob("*.segment")) <= 64 * 1024
    kept = drain(spool, max_samples=50)
    seconds = [record.second for record in kept if record.kind is Kind.SAMPLES]
    assert seconds == list(range(seconds[0], 3001))
    lost_samples = seconds[0] - 1
    assert lost_samples > 0
    assert spool.progress.dropped >= lost_samples
    # the copies of the report at the head of each lost segment are the rest
    assert spool.progress.dropped - lost_samples <= 3000 * 60 // 8192 + 2
    assert Spool(tmp_path, limit=64 * 1024).progress.dropped == spool.progress.dropped


def test_each_segment_starts_with_the_report_that_holds(tmp_path: Path) -> None:
    spool = Spool(tmp_path, limit=64 * 1024)
    for second in range(1, 1001):
        if second % 300 == 1:
            spool.append(report(second))
        spool.append(samples(second))
    for number in segment_numbers(tmp_path):
        records = [record for record, _ in scan(segment_path(tmp_path, number))]
        assert records[0].kind is Kind.REPORT
        assert records[0].second <= records[1].second < records[0].second + 300


def test_delivered_segments_leave_the_disk(tmp_path: Path) -> None:
    spool = Spool(tmp_path, limit=64 * 1024)
    for second in range(1, 501):
        spool.append(samples(second))
    assert len(segment_numbers(tmp_path)) > 1
    drain(spool)
    assert len(segment_numbers(tmp_path)) == 1


CASES = {
    "half a header": lambda size: size - 55,
    "header without payload": lambda size: size - 40,
    "half a payload": lambda size: size - 17,
    "all but one byte": lambda size: size - 1,
}


@pytest.mark.parametrize("cut", CASES.values(), ids=CASES.keys())
def test_a_torn_last_record_is_left_out(tmp_path: Path, cut) -> None:  # type: ignore[no-untyped-def]
    spool = Spool(tmp_path)
    for second in (1, 2, 3):
        spool.append(samples(second))
    path = segment_path(tmp_path, segment_numbers(tmp_path)[0])
    os.truncate(path, cut(path.stat().st_size))
    again = Spool(tmp_path)
    again.append(samples(4))
    assert [record.second for record in drain(again)] == [1, 2, 4]


def test_damage_in_the_middle_costs_that_segment_only(tmp_path: Path) -> None:
    spool = Spool(tmp_path, limit=64 * 1024)
    for second in range(1, 301):
        spool.append(samples(second))
    first, second_number, *_ = segment_numbers(tmp_path)
    path = segment_path(tmp_path, first)
    raw = bytearray(path.read_bytes())
    raw[len(MAGIC) + 59 * 3 + 30] ^= 1
    path.write_bytes(raw)
    following = [record.second for record, _ in scan(segment_path(tmp_path, second_number))]
    seconds = [record.second for record in drain(spool)]
    assert seconds[:4] == [1, 2, 3, following[0]]
    assert seconds[-1] == 300
    assert spool.progress.damaged == 1
    assert spool.progress.dropped == 300 - len(seconds)


@given(cuts=st.lists(st.integers(0, 5000), max_size=4), flips=st.lists(st.integers(0, 5000), max_size=3))
@settings(max_examples=60, deadline=None)
def test_no_damage_stops_the_spool_or_makes_up_a_record(tmp_path_factory, cuts, flips) -> None:  # type: ignore[no-untyped-def]
    folder = tmp_path_factory.mktemp("spool")
    spool = Spool(folder, limit=64 * 1024, segment=1500)
    for second in range(1, 61):
        spool.append(samples(second))
    spool.close()
    paths = sorted(folder.iterdir())
    for place in flips:
        path = paths[place % len(paths)]
        raw = bytearray(path.read_bytes())
        raw[place % len(raw)] ^= 1 << (place % 8)
        path.write_bytes(raw)
    for place in cuts:
        path = paths[place % len(paths)]
        os.truncate(path, place % (path.stat().st_size + 1))
    again = Spool(folder, limit=64 * 1024, segment=1500)
    again.append(samples(61))
    found = drain(again)
    seconds = [record.second for record in found]
    assert seconds == sorted(set(seconds))
    assert set(seconds) <= set(range(1, 62))
    assert seconds[-1] == 61
    assert all(record == samples(record.second) for record in found)


class FullDisk:
    """os.pwrite for segments that fails from a moment on, having written a part."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.full = False
        real = os.pwrite

        def pwrite(descriptor: int, data: bytes, offset: int) -> int:
            if self.full and len(data) != 64:
                real(descriptor, data[:7], offset)
                raise OSError(errno.ENOSPC, "No space left on device")
            return real(descriptor, data, offset)

        monkeypatch.setattr(spool_module.os, "pwrite", pwrite)


def test_a_full_disk_costs_nothing_while_records_are_delivered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """I4: a full disk is survived; delivery goes on from memory, and later from disk again, in order."""
    disk = FullDisk(monkeypatch)
    spool = Spool(tmp_path)
    assert spool.append(samples(1))
    disk.full = True
    assert not spool.append(samples(2))
    assert not spool.append(samples(3))
    assert "No space left" in spool.trouble
    assert spool.pending == 3
    assert [record.second for record in drain(spool, max_samples=2)] == [1, 2, 3]
    assert not spool.append(samples(4))
    disk.full = False
    assert spool.append(samples(5))
    assert spool.trouble == ""
    assert [record.second for record in drain(spool)] == [4, 5]
    assert spool.progress.dropped == 0


def test_what_memory_cannot_hold_is_dropped_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = FullDisk(monkeypatch)
    spool = Spool(tmp_path)
    spool.append(samples(1))
    disk.full = True
    for second in range(2, 2 + OVERFLOW + 5):
        spool.append(samples(second))
    assert spool.progress.dropped == 5
    disk.full = False
    spool.append(samples(100))
    assert [record.second for record in drain(spool)] == [1, *range(7, 2 + OVERFLOW + 5), 100]


def test_a_batch_on_its_way_from_memory_is_neither_dropped_nor_sent_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = FullDisk(monkeypatch)
    spool = Spool(tmp_path)
    disk.full = True
    for second in range(1, 4):
        spool.append(samples(second))
    batch = spool.peek(max_samples=2, max_bytes=1000)
    assert batch is not None
    disk.full = False
    spool.append(samples(4))
    spool.acknowledge(batch)
    assert [record.second for record in batch.records] == [1, 2]
    assert [record.second for record in drain(spool)] == [3, 4]


def test_a_file_size_limit_is_met_with_shorter_segments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.pwrite

    def pwrite(descriptor: int, data: bytes, offset: int) -> int:
        if offset + len(data) > 2000:
            raise OSError(errno.EFBIG, "File too large")
        return real(descriptor, data, offset)

    monkeypatch.setattr(spool_module.os, "pwrite", pwrite)
    spool = Spool(tmp_path)
    for second in range(1, 101):
        spool.append(samples(second))
    assert [record.second for record in drain(spool)] == list(range(1, 101))


def test_the_position_survives_a_torn_write(tmp_path: Path) -> None:
    file = PositionFile(tmp_path / "position")
    file.store(Progress(segment=1, offset=10))
    file.store(Progress(segment=2, offset=20, dropped=3))
    raw = bytearray(file.path.read_bytes())
    assert PositionFile(file.path).load() == Progress(segment=2, offset=20, dropped=3)
    raw[20] ^= 0xFF  # the slot of the second store
    file.path.write_bytes(raw)
    assert PositionFile(file.path).load() == Progress(segment=1, offset=10)
