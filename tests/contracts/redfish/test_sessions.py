"""I3: sessions are few on a BMC: one a driver, always given back, and no second try of a refused password."""

import asyncio
import contextlib

import pytest

from inventory.drivers.bmc.capabilities import PowerAction
from inventory.drivers.bmc.redfish import RedfishBmc
from inventory.drivers.fake.redfish import Behaviour, Fault
from inventory.observations import FailureKind
from tests.contracts.redfish.conftest import Open, Serve, target_of
from tests.contracts.redfish.trees import V1, dell, hgx

SESSIONS = f"{V1}/SessionService/Sessions"


async def test_one_session_serves_all_calls_and_is_closed(serve: Serve, connect: Open) -> None:
    server = await serve(dell())
    driver = connect(server)
    await driver.discover(deadline=20)
    await driver.poll(deadline=20)
    await driver.read_log(since=None, deadline=20)
    assert (server.service.sessions.opened, server.service.sessions.active) == (1, 1)
    await driver.close()
    assert server.service.sessions.active == 0
    assert not any(entry.credentials == "basic" for entry in server.log.recent)


async def test_a_session_is_closed_after_a_failed_visit(serve: Serve) -> None:
    server = await serve(dell(), faults=[Fault(path=f"{V1}/*/*", method="GET", status=500)])
    async with RedfishBmc(target_of(server)) as driver:
        await driver.discover(deadline=20)
    assert (server.service.sessions.opened, server.service.sessions.active) == (1, 0)


async def test_a_session_is_closed_when_the_caller_is_cancelled(serve: Serve) -> None:
    server = await serve(dell(), faults=[Fault(path=f"{V1}/Systems", hang=True)])
    driver = RedfishBmc(target_of(server))
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(0.7):
            await driver.discover(deadline=20)
    await driver.close()
    assert (server.service.sessions.opened, server.service.sessions.active) == (1, 0)


async def test_a_login_that_outlasts_the_deadline_leaves_no_session(serve: Serve) -> None:
    server = await serve(dell(), faults=[Fault(path=SESSIONS, delay=0.8, method="POST")])
    driver = RedfishBmc(target_of(server))
    reading = await driver.discover(deadline=0.5)
    assert reading.elapsed < 1.5
    assert [failure.kind for failure in reading.failures] == [FailureKind.TIMEOUT]
    await driver.close()
    assert (server.service.sessions.opened, server.service.sessions.active) == (1, 0)


async def test_a_refused_password_is_tried_once(serve: Serve, connect: Open) -> None:
    """Accounts get locked: neither Basic nor a second login follows a 401."""
    server = await serve(dell())
    driver = connect(server, password="wrong")
    for _ in range(2):
        reading = await driver.poll(deadline=20)
        assert [failure.kind for failure in reading.failures] == [FailureKind.AUTHENTICATION]
    assert [entry.credentials for entry in server.log.recent if entry.credentials != "none"] == ["login", "login"]


async def test_basic_serves_where_sessions_are_taken_or_unknown(serve: Serve, connect: Open) -> None:
    for behaviour in (Behaviour(session_limit=0), Behaviour(sessions=False)):
        server = await serve(dell(), behaviour=behaviour)
        reading = await connect(server).discover(deadline=20)
        assert len(reading.cards) == 2
        assert reading.failures == ()


async def test_a_full_service_without_basic_is_busy(serve: Serve, connect: Open) -> None:
    server = await serve(dell(), behaviour=Behaviour(session_limit=0, basic=False))
    reading = await connect(server).discover(deadline=20)
    assert not reading.reached
    assert [failure.kind for failure in reading.failures] == [FailureKind.BUSY]
    assert server.log.total <= 4


async def test_a_wrong_password_without_sessions_is_tried_once(serve: Serve, connect: Open) -> None:
    server = await serve(dell(), behaviour=Behaviour(sessions=False))
    reading = await connect(server, password="wrong").discover(deadline=20)
    assert [failure.kind for failure in reading.failures] == [FailureKind.AUTHENTICATION]
    assert len([entry for entry in server.log.recent if entry.credentials == "basic"]) == 1


async def test_a_token_that_the_bmc_dropped_is_renewed_once(serve: Serve, connect: Open) -> None:
    server = await serve(hgx())
    driver = connect(server)
    await driver.discover(deadline=20)
    server.service.sessions.drop_all()
    reading = await driver.poll(deadline=20)
    assert len(reading.cards) == 2
    assert reading.failures == ()
    assert server.service.sessions.opened == 2


async def test_a_token_that_is_never_good_ends_the_visit(serve: Serve, connect: Open) -> None:
    server = await serve(hgx(), faults=[Fault(path=f"{V1}/*/*", method="GET", status=401)])
    reading = await connect(server).discover(deadline=20)
    assert not reading.reached
    assert {failure.kind for failure in reading.failures} == {FailureKind.AUTHENTICATION}
    assert server.service.sessions.opened <= 2
    assert server.log.total < 40


@pytest.mark.parametrize("path", [f"{V1}/Sessions", f"{V1}/Managers/BMC/Sessions"])
async def test_the_session_collection_is_where_the_root_says(serve: Serve, connect: Open, path: str) -> None:
    tree = dell()
    tree[V1]["Links"]["Sessions"]["@odata.id"] = path
    server = await serve(tree)
    assert (await connect(server).discover(deadline=20)).reached
    assert server.log.counts[f"POST {path}"] == 1


async def test_the_other_session_path_is_tried_on_405(serve: Serve, connect: Open) -> None:
    """iDRAC8 has sessions at one of two paths and does not always say which."""
    tree = dell()
    del tree[V1]["Links"]
    server = await serve(tree, faults=[Fault(path=SESSIONS, method="POST", status=405)])
    server.service.sessions.collection = f"{V1}/Sessions"
    reading = await connect(server).discover(deadline=20)
    assert reading.reached
    assert server.service.sessions.opened == 1


async def test_a_demanded_password_change_is_said(serve: Serve, connect: Open) -> None:
    body = b'{"error": {"@Message.ExtendedInfo": [{"MessageId": "Base.1.8.PasswordChangeRequired", "Message": "x"}]}}'
    server = await serve(dell(), faults=[Fault(path=SESSIONS, status=403, body=body)])
    driver = connect(server)
    reading = await driver.discover(deadline=20)
    assert reading.failures[0].kind is FailureKind.AUTHENTICATION
    assert "password changed" in reading.failures[0].detail
    refused = await driver.set_power(PowerAction.ON, deadline=5)
    assert refused is not None
    assert refused.kind is FailureKind.AUTHENTICATION
