"""I3: a BMC that is dead, slow, wrong or lying costs no more than the deadline, and says what is missing."""

import asyncio
import time
from typing import Any

import pytest

from inventory.drivers.fake.redfish import Behaviour, ExpandMode, Fault
from inventory.observations import FailureKind
from tests.contracts.redfish.conftest import Open, Serve
from tests.contracts.redfish.trees import MAKES, V1, ami, hgx, ref

SLACK = 1.5  # s that a busy machine may add
PROCESSORS = f"{V1}/Systems/HGX_Baseboard_0/Processors"


async def test_a_refused_connection_is_unreachable(serve: Serve, connect: Open) -> None:
    server = await serve(hgx())
    await server.stop()
    reading = await connect(server).discover(deadline=5)
    assert not reading.reached
    assert [failure.kind for failure in reading.failures] == [FailureKind.UNREACHABLE]


async def test_a_bmc_that_accepts_and_never_answers_keeps_the_deadline(serve: Serve, connect: Open) -> None:
    server = await serve(hgx(), faults=[Fault(hang=True)])
    started = time.monotonic()
    reading = await connect(server).discover(deadline=1)
    assert time.monotonic() - started < 1 + SLACK
    assert not reading.reached
    assert [failure.kind for failure in reading.failures] == [FailureKind.TIMEOUT]


async def test_a_port_without_tls_handshake_keeps_the_deadline(connect: Open, serve: Serve) -> None:
    async def mute(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    listener = await asyncio.start_server(mute, "127.0.0.1", 0)
    server = await serve(hgx())
    started = time.monotonic()
    reading = await connect(server, port=listener.sockets[0].getsockname()[1]).poll(deadline=1)
    assert time.monotonic() - started < 1 + SLACK
    assert [failure.kind for failure in reading.failures] == [FailureKind.TIMEOUT]
    listener.close()
    await listener.wait_closed()


@pytest.mark.parametrize("levels", [0, 2])
async def test_one_hanging_resource_leaves_the_rest_readable(serve: Serve, connect: Open, levels: int) -> None:
    """What was read in time is given, with the missing part named."""
    server = await serve(hgx(levels=levels), faults=[Fault(path="*/UpdateService", hang=True)])
    started = time.monotonic()
    reading = await connect(server).discover(deadline=2)
    assert time.monotonic() - started < 2 + SLACK
    assert reading.reached
    assert [card.serial for card in reading.cards] == ["165291", "165292"]
    assert any(
        failure.what == f"{V1}/UpdateService" and failure.kind is FailureKind.TIMEOUT for failure in reading.failures
    )


async def test_slow_answers_give_a_partial_reading_in_time(serve: Serve, connect: Open) -> None:
    server = await serve(hgx(cards=4), faults=[Fault(path="*Sensors*", delay=0.4), Fault(path="*Firmware*", delay=5)])
    reading = await connect(server, concurrency=4).discover(deadline=3)
    assert reading.reached
    assert reading.elapsed < 3 + SLACK
    assert reading.failures
    assert {failure.kind for failure in reading.failures} == {FailureKind.TIMEOUT}


async def test_concurrency_stays_below_the_limit_and_is_counted_truly(serve: Serve, connect: Open) -> None:
    for limit in (1, 3, 8):
        server = await serve(hgx(cards=4), faults=[Fault(path="*/Sensors/*", delay=0.1)])
        reading = await connect(server, concurrency=limit).discover(deadline=30)
        assert server.log.peak == reading.peak_concurrency == limit
        assert server.log.peak_connections <= limit
        assert reading.requests == server.log.total


@pytest.mark.parametrize("status", [400, 404, 500, 503])
async def test_one_failing_processor_does_not_hide_the_others(serve: Serve, connect: Open, status: int) -> None:
    """The card that fell off is a failure, the other is read, and the list does not pass for complete."""
    server = await serve(hgx(), faults=[Fault(path=f"{PROCESSORS}/GPU_SXM_2", status=status)])
    driver = connect(server)
    reading = await driver.discover(deadline=20)
    assert [card.serial for card in reading.cards] == ["165291"]
    assert reading.cards_known is False
    assert f"{PROCESSORS}/GPU_SXM_2" in [failure.what for failure in reading.failures]
    polled = await driver.poll(deadline=20)
    assert polled.cards_known is False
    assert [card.serial for card in polled.cards] == ["165291"]


async def test_a_baseboard_that_is_off_does_not_empty_the_node(serve: Serve, connect: Open) -> None:
    """HGX answers 503 while its host is off: no cards are told, and that says nothing about them."""
    server = await serve(hgx())
    driver = connect(server)
    await driver.discover(deadline=20)
    server.faults.append(Fault(path="*HGX*", status=503))
    server.service.tree.get(f"{V1}/Systems/System_0")["PowerState"] = "Off"  # type: ignore[index]
    reading = await driver.poll(deadline=20)
    assert reading.reached
    assert reading.power_state == "off"
    assert (reading.cards, reading.cards_known) == ((), False)
    assert {failure.kind for failure in reading.failures} == {FailureKind.BUSY}


WRONG_BODIES = {
    "truncated": Fault(path=f"{V1}/Systems", truncate=True),
    "html": Fault(path=f"{V1}/Systems", body=b"<html>login</html>", content_type="text/html"),
    "list": Fault(path=f"{V1}/Systems", body=b"[1, 2]"),
    "half": Fault(path=f"{V1}/Systems", body=b'{"Members": ['),
    "error_with_200": Fault(path=f"{V1}/Systems", body=b'{"error": {"message": "busy"}}'),
    "disconnect": Fault(path=f"{V1}/Systems", disconnect=True),
}


@pytest.mark.parametrize("name", WRONG_BODIES)
async def test_a_wrong_body_is_a_protocol_failure_of_that_resource(serve: Serve, connect: Open, name: str) -> None:
    server = await serve(hgx(), faults=[WRONG_BODIES[name]])
    reading = await connect(server).discover(deadline=20)
    found = [failure for failure in reading.failures if failure.what == f"{V1}/Systems"]
    assert [failure.kind for failure in found] == [FailureKind.PROTOCOL]
    assert reading.cards_known is False
    assert reading.sensors  # the chassis were still read


async def test_a_dropped_connection_is_tried_once_more(serve: Serve, connect: Open) -> None:
    server = await serve(hgx(), faults=[Fault(path=f"{V1}/Systems", disconnect=True, times=1)])
    reading = await connect(server).discover(deadline=20)
    assert reading.failures == ()
    assert len(reading.cards) == 2


@pytest.mark.parametrize(("retry_after", "heals"), [("0", True), ("", False), ("600", False)])
async def test_a_busy_service_is_asked_again_when_it_names_a_short_wait(
    serve: Serve, connect: Open, retry_after: str, heals: bool
) -> None:
    headers = {"Retry-After": retry_after} if retry_after else {}
    server = await serve(hgx(), faults=[Fault(path=f"{V1}/Chassis", status=503, times=1, headers=headers)])
    reading = await connect(server).discover(deadline=20)
    assert [failure.kind for failure in reading.failures] == ([] if heals else [FailureKind.BUSY])


@pytest.mark.parametrize("mode", [ExpandMode.IGNORES, ExpandMode.REFUSES, ExpandMode.FAILS])
async def test_a_lying_expand_is_found_out(serve: Serve, connect: Open, mode: ExpandMode) -> None:
    """Advertised and not done: the reading is whole all the same, and polls do not ask for it again."""
    server = await serve(hgx(levels=2), behaviour=Behaviour(expand=mode))
    driver = connect(server)
    reading = await driver.discover(deadline=20)
    assert len(reading.cards) == 2
    assert reading.cards_known
    assert reading.failures == ()
    server.log.clear()
    await driver.poll(deadline=20)
    assert not [entry for entry in server.log.recent if "expand" in entry.query]


async def test_an_expand_that_hangs_leaves_time_for_the_other_way(serve: Serve, connect: Open) -> None:
    server = await serve(hgx(levels=2), faults=[Fault(path=f"{V1}/Chassis", query="*expand*", hang=True)])
    reading = await connect(server).discover(deadline=3)
    assert reading.elapsed < 3
    assert reading.failures == ()
    assert len(reading.cards) == 2


@pytest.mark.parametrize("page_size", [1, 2, 7])
@pytest.mark.parametrize("levels", [0, 1, 2])
async def test_pages_are_followed(serve: Serve, connect: Open, page_size: int, levels: int) -> None:
    server = await serve(hgx(cards=4, levels=levels), behaviour=Behaviour(page_size=page_size))
    reading = await connect(server).discover(deadline=30)
    assert len(reading.cards) == 4
    assert len([sensor for sensor in reading.sensors if sensor.name.startswith("HGX")]) == 24


@pytest.mark.parametrize("link", ["self", "circle", "endless"])
async def test_a_pagination_loop_is_bounded(serve: Serve, connect: Open, link: str) -> None:
    tree = hgx()
    follow = {"self": PROCESSORS, "circle": f"{PROCESSORS}?page=2", "endless": f"{PROCESSORS}?page=2"}
    tree[PROCESSORS]["Members@odata.nextLink"] = follow[link]
    server = await serve(tree)
    reading = await connect(server).discover(deadline=20)
    assert len(reading.cards) == 2
    assert reading.cards_known is False
    assert server.log.counts[f"GET {PROCESSORS}"] <= 3
    assert any("circle" in failure.detail for failure in reading.failures)


async def test_a_member_that_is_listed_and_missing_is_asked_for_once(serve: Serve, connect: Open) -> None:
    """AMI lists what it does not have: named once by discovery, not asked for by every poll."""
    server = await serve(ami(levels=1))
    driver = connect(server)
    reading = await driver.discover(deadline=20)
    assert [failure.what for failure in reading.failures] == [f"{V1}/Chassis/Self/Sensors/GONE"]
    assert reading.cards_known
    server.log.clear()
    assert (await driver.poll(deadline=20)).failures == ()
    assert server.log.counts[f"GET {V1}/Chassis/Self/Sensors/GONE"] == 0


async def test_failures_are_bounded_and_counted(serve: Serve, connect: Open) -> None:
    tree = hgx()
    tree[f"{V1}/Chassis/Chassis_0/Sensors"]["Members"] += [
        ref(f"{V1}/Chassis/Chassis_0/Sensors/X{n}") for n in range(200)
    ]
    reading = await connect(await serve(tree)).discover(deadline=30)
    assert len(reading.failures) == 61
    assert reading.failures[-1].what == "140 more"


async def test_a_huge_answer_is_refused(serve: Serve, connect: Open) -> None:
    body = b'{"x": "' + b"a" * (33 * 1024 * 1024) + b'"}'
    server = await serve(hgx(), faults=[Fault(path=f"{V1}/Chassis", body=body)])
    reading = await connect(server).discover(deadline=30)
    assert [failure.kind for failure in reading.failures] == [FailureKind.PROTOCOL]


CHANGES: dict[str, Any] = {
    "a card more": lambda tree: tree[PROCESSORS]["Members"].append(ref(f"{PROCESSORS}/GPU_SXM_9")),
    "a card less": lambda tree: tree[PROCESSORS]["Members"].pop(),
    "restarted": lambda tree: tree[f"{V1}/Systems/System_0"].update(LastResetTime="2026-05-01T00:00:00+00:00"),
    "another server": lambda tree: tree[f"{V1}/Systems/System_0"].update(SerialNumber="SN-other"),
}


@pytest.mark.parametrize("levels", [0, 2])
@pytest.mark.parametrize("change", CHANGES)
async def test_a_poll_notices_that_its_links_are_outdated(
    serve: Serve, connect: Open, change: str, levels: int
) -> None:
    """A card that was exchanged never gets its predecessor's samples: the poll becomes a discovery."""
    server = await serve(hgx(levels=levels))
    driver = connect(server)
    await driver.discover(deadline=20)
    tree = server.service.tree.resources  # type: ignore[attr-defined]
    tree[f"{PROCESSORS}/GPU_SXM_1"] |= {"SerialNumber": "NEW", "UUID": "99999999-1111-2222-3333-000000000001"}
    tree[f"{PROCESSORS}/GPU_SXM_9"] = {**tree[f"{PROCESSORS}/GPU_SXM_1"], "@odata.id": f"{PROCESSORS}/GPU_SXM_9"}
    tree[f"{PROCESSORS}/GPU_SXM_9"] |= {"SerialNumber": "NINE", "UUID": "99999999-1111-2222-3333-000000000009"}
    CHANGES[change](tree)
    reading = await driver.poll(deadline=20)
    assert reading.cards[0].serial == "NEW"
    assert ("NINE" in [card.serial for card in reading.cards]) is (change == "a card more")
    assert len(reading.cards) == {"a card more": 3, "a card less": 1}.get(change, 2)


@pytest.mark.parametrize("make", MAKES)
async def test_every_resource_missing_in_turn_never_raises(serve: Serve, connect: Open, make: str) -> None:
    """Whatever one resource does, the visit gives a reading."""
    tree = MAKES[make]() if make != "hgx" else hgx(cards=1)
    server = await serve(tree)
    for path in [path for path in tree if path != V1]:
        server.faults[:] = [Fault(path=path, status=404)]
        driver = connect(server)
        reading = await driver.discover(deadline=20)
        assert reading.reached, path
        await driver.close()
        assert server.service.sessions.active == 0, path
