"""What is slow to make is renewed behind its readers (U5)."""

import threading
import time

import pytest

from sensaka.live import fleet
from sensaka.live.fleet import Shared


class NoTransaction:
    """A database connection outside a transaction."""

    in_atomic_block = False

    def close(self) -> None:
        """Nothing is open."""


def test_a_slow_value_is_renewed_in_the_background(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet, "SLOW", 0.005)
    monkeypatch.setattr(fleet, "connection", NoTransaction())
    made = threading.Semaphore(0)
    numbers = iter(range(100))

    def make() -> int:
        number = next(numbers)
        time.sleep(0.02)
        made.release()
        return number

    shared = Shared(make, keep=0.0)
    assert shared.get() == 0
    made.acquire()
    shared._made_at -= 5.0  # older than it took, younger than STALE
    assert shared.get() == 0, "readers don't wait"
    assert made.acquire(timeout=5)
    deadline = time.monotonic() + 5
    while shared.get() == 0 and time.monotonic() < deadline:
        time.sleep(0.005)
    assert shared.get() >= 1
    shared.forget()
    before = next(numbers)
    assert shared.get() > before, "after an act nobody gets an old value"


def test_a_quick_value_is_made_by_who_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = iter(range(10))
    shared = Shared(lambda: next(numbers), keep=-1.0)
    monkeypatch.setattr(shared, "_took", 0.0)
    first = shared.get()
    time.sleep(0.01)  # far longer than making it took
    assert [first, shared.get()] == [0, 1]
