"""I3: power is asked for with what the BMC offers; a refusal is data."""

import pytest

from inventory.drivers.bmc.capabilities import PowerAction
from inventory.drivers.fake.redfish import Behaviour, Fault, RedfishServer, StaticTree
from inventory.observations import FailureKind
from tests.contracts.redfish.conftest import PASSWORD, Open, Serve
from tests.contracts.redfish.trees import V1, Tree, dell, hgx, lenovo

SYSTEM = f"{V1}/Systems/System.Embedded.1"
ALL = ["On", "ForceOff", "GracefulShutdown", "ForceRestart", "PowerCycle", "PushPowerButton", "GracefulRestart"]

CASES = [
    # what, offered, state before, reset types sent (None: refused)
    (PowerAction.ON, ALL, "Off", ["On"]),
    (PowerAction.ON, ["ForceOn"], "Off", ["ForceOn"]),
    (PowerAction.OFF, ALL, "On", ["ForceOff"]),
    (PowerAction.OFF, ["On"], "On", None),
    (PowerAction.SOFT_OFF, ALL, "On", ["GracefulShutdown"]),
    (PowerAction.SOFT_OFF, ["PushPowerButton"], "On", ["PushPowerButton"]),
    (PowerAction.SOFT_OFF, ["PushPowerButton"], "Off", None),
    (PowerAction.CYCLE, ALL, "On", ["PowerCycle"]),
    (PowerAction.CYCLE, ["On", "ForceOff"], "On", ["ForceOff", "On"]),
    (PowerAction.CYCLE, ["On", "ForceOff"], "Off", ["On"]),
    (PowerAction.CYCLE, ["GracefulRestart"], "On", None),
    (PowerAction.RESET, ALL, "On", ["ForceRestart"]),
    (PowerAction.RESET, ["On", "GracefulRestart", "PowerCycle"], "On", ["PowerCycle"]),
]


class _Recording(StaticTree):
    sent: list[str]

    def act(self, method, path, body):  # type: ignore[no-untyped-def]
        if path.endswith("ComputerSystem.Reset"):
            self.sent.append(body["ResetType"])
        return super().act(method, path, body)


async def _serve(tree: Tree, **options: float) -> tuple[RedfishServer, _Recording]:
    recording = _Recording(tree, **options)
    recording.sent = []
    server = RedfishServer(recording, "admin", PASSWORD)
    await server.start()
    return server, recording


@pytest.mark.parametrize(("action", "offered", "state", "sent"), CASES)
async def test_actions_map_to_what_is_offered(
    connect: Open, action: PowerAction, offered: list[str], state: str, sent: list[str] | None
) -> None:
    tree = dell()
    tree[SYSTEM]["PowerState"] = state
    tree[SYSTEM]["Actions"]["#ComputerSystem.Reset"]["ResetType@Redfish.AllowableValues"] = offered
    server, recording = await _serve(tree)
    driver = connect(server)
    failure = await driver.set_power(action, deadline=10)
    assert (failure.kind if failure else None) == (FailureKind.NOT_SUPPORTED if sent is None else None)
    assert recording.sent == (sent or [])
    await driver.close()
    await server.stop()


async def test_a_cycle_waits_until_the_host_is_off(connect: Open) -> None:
    server, recording = await _serve(dell(), reset_seconds=0.3)
    driver = connect(server)
    assert await driver.set_power(PowerAction.CYCLE, deadline=10) is None
    assert recording.sent == ["ForceOff", "On"]
    await driver.close()
    await server.stop()


async def test_a_cycle_whose_host_stays_on_fails_in_time_and_says_so(connect: Open) -> None:
    server, recording = await _serve(dell(), reset_seconds=60)
    driver = connect(server)
    failure = await driver.set_power(PowerAction.CYCLE, deadline=3)
    assert failure is not None
    assert failure.kind is FailureKind.TIMEOUT
    assert "On was not sent" in failure.detail
    assert recording.sent == ["ForceOff"]
    await driver.close()
    await server.stop()


async def test_reset_types_come_from_action_info(serve: Serve, connect: Open) -> None:
    """OpenBMC lists them elsewhere."""
    server = await serve(hgx())
    assert await connect(server).set_power(PowerAction.CYCLE, deadline=10) is None
    assert server.log.counts[f"GET {V1}/Systems/System_0/ResetActionInfo"] == 1
    assert server.log.counts[f"POST {V1}/Systems/System_0/Actions/ComputerSystem.Reset"] == 1


@pytest.mark.parametrize(
    ("status", "kind"),
    [(400, FailureKind.PROTOCOL), (403, FailureKind.PERMISSION), (503, FailureKind.BUSY), (500, FailureKind.PROTOCOL)],
)
async def test_a_refused_reset_is_data(serve: Serve, connect: Open, status: int, kind: FailureKind) -> None:
    body = b'{"error": {"@Message.ExtendedInfo": [{"MessageId": "x", "Message": "A job is running."}]}}'
    server = await serve(dell(), faults=[Fault(path="*Reset", status=status, body=body)])
    failure = await connect(server).set_power(PowerAction.OFF, deadline=10)
    assert failure is not None
    assert (failure.kind, "A job is running." in failure.detail) == (kind, True)
    assert server.log.counts[f"POST {SYSTEM}/Actions/ComputerSystem.Reset"] == 1


async def test_a_reset_whose_answer_is_lost_is_not_repeated(serve: Serve, connect: Open) -> None:
    server = await serve(dell(), faults=[Fault(path="*Reset", disconnect=True)])
    failure = await connect(server).set_power(PowerAction.RESET, deadline=10)
    assert failure is not None
    assert server.log.counts[f"POST {SYSTEM}/Actions/ComputerSystem.Reset"] == 1


BOOT = {"Boot": {"BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Once"}}


@pytest.mark.parametrize(
    "behaviour",
    [Behaviour(), Behaviour(require_if_match=True), Behaviour(require_if_match=True, etag_prefix="W/")],
    ids=["any", "strict", "weak"],
)
async def test_a_patch_carries_its_entity_tag(serve: Serve, connect: Open, behaviour: Behaviour) -> None:
    """Lenovo and AMI want If-Match; an override is then honoured by the next boot, once."""
    server = await serve(lenovo(), behaviour=behaviour)
    driver = connect(server)
    assert await driver.patch(f"{V1}/Systems/1", BOOT, deadline=10) is None
    assert [entry.if_match != "" for entry in server.log.recent if entry.method == "PATCH"] == [True]
    for action in (PowerAction.RESET, PowerAction.RESET):
        assert await driver.set_power(action, deadline=10) is None
    tree = server.service.tree
    assert isinstance(tree, StaticTree)
    assert [(boot.target, boot.overridden) for boot in tree.boots] == [("Pxe", True), ("Hdd", False)]


async def test_a_tag_that_is_not_liked_is_sent_in_other_forms(serve: Serve, connect: Open) -> None:
    server = await serve(
        lenovo(), behaviour=Behaviour(etag_prefix="W/"), faults=[Fault(method="PATCH", status=412, times=2)]
    )
    assert await connect(server).patch(f"{V1}/Systems/1", BOOT, deadline=10) is None
    sent = [entry.if_match for entry in server.log.recent if entry.method == "PATCH"]
    assert (sent[0][:2], sent[1][:1], sent[2]) == ("W/", '"', "*")


async def test_a_patch_that_the_bmc_refuses_is_data(serve: Serve, connect: Open) -> None:
    failure = await connect(await serve(lenovo())).patch(f"{V1}/Systems/1", {"Nonsense": 1}, deadline=10)
    assert failure is not None
    assert failure.kind is FailureKind.PROTOCOL
    assert "Nonsense" in failure.detail
