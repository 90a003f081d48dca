"""I3, H7: event logs of the hardware, wherever a make keeps them, oldest first."""

from datetime import UTC, datetime
from typing import Any

import pytest

from inventory.drivers.bmc.redfish.logs import log_entries
from inventory.drivers.fake.redfish import Behaviour, Fault
from inventory.observations import FailureKind, LogEntry
from tests.contracts.redfish.conftest import Open, Serve
from tests.contracts.redfish.trees import MAKES, V1, dell, hgx, log, supermicro

FOUND = {
    "dell": ["Sel/1"],
    "hpe": ["IML/1"],
    "supermicro": ["Log1/1", "Log1/2"],
    "lenovo": ["PlatformLog/1"],
    "ami": [],
    "hgx": ["EventLog/5"],
}


@pytest.mark.parametrize("make", MAKES)
async def test_the_hardware_log_of_every_make_is_found(serve: Serve, connect: Open, make: str) -> None:
    """Boot codes, audit and security logs are not events of the hardware."""
    entries, failures = await connect(await serve(MAKES[make]())).read_log(since=None, deadline=20)
    assert [entry.entry_id for entry in entries] == FOUND[make]
    assert failures == ()


async def test_since_leaves_out_what_is_known(serve: Serve, connect: Open) -> None:
    driver = connect(await serve(supermicro()))
    entries, _ = await driver.read_log(since=datetime(2026, 1, 1, 0, 0, 1, tzinfo=UTC), deadline=20)
    assert [entry.message for entry in entries] == ["second"]


async def test_long_logs_are_read_page_by_page(serve: Serve, connect: Open) -> None:
    tree = dell()
    rows = [
        {"Id": str(n), "Created": f"2026-01-01T{n // 60:02}:{n % 60:02}:00Z", "Severity": "OK", "Message": f"m{n}"}
        for n in range(120)
    ]
    log(tree, f"{V1}/Systems/System.Embedded.1", "SEL", list(reversed(rows)))
    server = await serve(tree, behaviour=Behaviour(page_size=50))
    entries, _ = await connect(server).read_log(since=None, deadline=30)
    assert [entry.message for entry in entries][:120] == [f"m{n}" for n in range(120)]


async def test_a_broken_log_leaves_the_others_readable(serve: Serve, connect: Open) -> None:
    server = await serve(hgx(), faults=[Fault(path="*/SEL/Entries", status=500)])
    entries, failures = await connect(server).read_log(since=None, deadline=20)
    assert [entry.entry_id for entry in entries] == ["EventLog/5"]
    assert [failure.kind for failure in failures] == [FailureKind.PROTOCOL]


ENTRIES: dict[str, tuple[dict[str, Any], LogEntry]] = {
    "offset is turned to UTC": (
        {"Id": "1", "Created": "2026-01-02T03:04:05-06:00", "Severity": "Critical", "Message": "x"},
        LogEntry(
            entry_id="SEL/1", logged_at=datetime(2026, 1, 2, 9, 4, 5, tzinfo=UTC), severity="critical", message="x"
        ),
    ),
    "a clock never set gives no time": (
        {"Id": "2", "Created": "1970-01-01T00:00:12+00:00", "Severity": "Warning", "Message": "x"},
        LogEntry(entry_id="SEL/2", severity="warning", message="x"),
    ),
    "no time at all": ({"Id": 3, "Message": "x"}, LogEntry(entry_id="SEL/3", message="x")),
    "arguments that the text leaves out": (
        {"Id": "4", "Message": "Errors.", "MessageArgs": ["GPU_SXM_1", "XID 79"]},
        LogEntry(entry_id="SEL/4", message="Errors. (GPU_SXM_1, XID 79)"),
    ),
    "arguments inside the text are not said twice": (
        {"Id": "5", "Message": "Sensor T1 is hot.", "MessageArgs": ["T1"]},
        LogEntry(entry_id="SEL/5", message="Sensor T1 is hot."),
    ),
    "the sensor by its link": (
        {"Id": "6", "Message": "x", "Links": {"OriginOfCondition": {"@odata.id": f"{V1}/Chassis/1/Sensors/Fan1"}}},
        LogEntry(entry_id="SEL/6", message="x", sensor="Fan1"),
    ),
    "the sensor by type and number": (
        {"Id": "7", "Message": "x", "SensorType": "Fan", "SensorNumber": 48},
        LogEntry(entry_id="SEL/7", message="x", sensor="Fan 48"),
    ),
    "only a message id": (
        {"Id": "8", "MessageId": "OpenBMC.0.1.X"},
        LogEntry(entry_id="SEL/8", message="OpenBMC.0.1.X"),
    ),
}


@pytest.mark.parametrize("name", ENTRIES)
def test_entries_are_parsed(name: str) -> None:
    resource, expected = ENTRIES[name]
    assert log_entries([resource], log="SEL", since=None) == [expected]


def test_an_entry_without_time_is_never_left_out() -> None:
    """It can't be told from a new one."""
    assert len(log_entries([{"Id": "1", "Message": "x"}], log="SEL", since=datetime(2030, 1, 1, tzinfo=UTC))) == 1
