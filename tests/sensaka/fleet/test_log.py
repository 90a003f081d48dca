"""What fifty agents in one process say at once is one line of the demo's log (X1)."""

import logging

import pytest

from sensaka.fleet import __main__ as fleet


def record(message: str, *args: object, name: str = "sensaka.agent") -> logging.LogRecord:
    return logging.LogRecord(name, logging.WARNING, __file__, 1, message, args, None)


def test_one_agent_speaks_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(fleet.time, "monotonic", lambda: now)
    quiet = fleet.OneForAll()
    assert quiet.filter(record("not delivered: %s", "a"))
    assert not quiet.filter(record("not delivered: %s", "b"))
    assert not quiet.filter(record("not delivered: %s [3 times more since the last line]", "c"))
    assert quiet.filter(record("delivering again; %d records wait", 2))
    for _ in range(2):
        assert quiet.filter(record("the BMC does not answer", name="sensaka.fleet"))
    now += fleet.QUIET
    assert quiet.filter(record("not delivered: %s", "d"))
