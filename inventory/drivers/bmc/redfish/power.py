"""Chassis power: the reset types a BMC offers, mapped to what is asked, and sent."""

import asyncio
from collections.abc import Mapping, Sequence

from inventory.drivers.bmc.capabilities import PowerAction
from inventory.drivers.bmc.redfish.client import RedfishClient
from inventory.drivers.bmc.redfish.failures import RedfishError
from inventory.drivers.bmc.redfish.reader import Reader
from inventory.drivers.bmc.redfish.resources import Resource, dig, entries_in, path_of, pick, words
from inventory.drivers.bmc.redfish.systems import power_state
from inventory.observations import FailureKind, PowerState

_WANTED: Mapping[PowerAction, Sequence[str]] = {
    PowerAction.ON: ("On", "ForceOn"),
    PowerAction.OFF: ("ForceOff",),
    PowerAction.SOFT_OFF: ("GracefulShutdown", "PushPowerButton"),
    PowerAction.CYCLE: ("PowerCycle", "FullPowerCycle"),
    PowerAction.RESET: ("ForceRestart", "PowerCycle", "GracefulRestart"),
}
_STATE_POLL_SECONDS = 1.0
_KEPT_FOR_ON = 2.0  # of a cycle's deadline, so that a server is not left off for want of a second


async def set_power(client: RedfishClient, reader: Reader, system: Resource, action: PowerAction) -> None:
    """Asks for the change; RedfishError says why not. That it happened is for the caller to see."""
    reset = dig(system, "Actions", "#ComputerSystem.Reset")
    target = path_of(pick(reset, "target")) or f"{path_of(system).rstrip('/')}/Actions/ComputerSystem.Reset"
    offered = await _offered(reader, reset)
    chosen = _choose(action, offered, power_state(pick(system, "PowerState")))
    if chosen:
        await _send(client, target, chosen)
    elif action is PowerAction.CYCLE and {"ForceOff", "On"} <= set(offered):
        await _off_and_on(client, reader, system, target)
    else:
        raise RedfishError(
            f"power {action}", FailureKind.NOT_SUPPORTED, f"the BMC offers only {', '.join(offered) or 'nothing'}"
        )


async def _offered(reader: Reader, reset: object) -> list[str]:
    """The reset types, inline or from ActionInfo (OpenBMC); empty when the BMC does not say."""
    inline = pick(reset, "ResetType@Redfish.AllowableValues")
    if isinstance(inline, list):
        return [words(value) for value in inline]
    info = await reader.fetch(path_of(pick(reset, "@Redfish.ActionInfo")), optional=True)
    for parameter in entries_in(pick(info, "Parameters")):
        values = pick(parameter, "AllowableValues")
        if words(pick(parameter, "Name")) == "ResetType" and isinstance(values, list):
            return [words(value) for value in values]
    return []


def _choose(action: PowerAction, offered: Sequence[str], state: PowerState) -> str:
    wanted = _WANTED[action]
    if not offered:
        return wanted[0]
    # The button toggles: on a server that is off it would switch it on.
    usable = [kind for kind in wanted if kind != "PushPowerButton" or state is PowerState.ON]
    return next((kind for kind in usable if kind in offered), "")


async def _send(client: RedfishClient, target: str, reset_type: str) -> None:
    answer = await client.send("POST", target, {"ResetType": reset_type})
    client.expect_success(f"power {reset_type}", answer)


async def _off_and_on(client: RedfishClient, reader: Reader, system: Resource, target: str) -> None:
    """A cycle for BMCs without PowerCycle: off, wait until it is off, on."""
    path = path_of(system)
    if power_state(pick(system, "PowerState")) is not PowerState.OFF:
        await _send(client, target, "ForceOff")
    state = PowerState.UNKNOWN
    while state is not PowerState.OFF:
        if client.remaining <= _KEPT_FOR_ON:
            raise RedfishError("power cycle", FailureKind.TIMEOUT, "it was told to go off and has not; On was not sent")
        current = await reader.fetch(path)
        state = power_state(pick(current, "PowerState"))
        if state is not PowerState.OFF:
            await asyncio.sleep(min(_STATE_POLL_SECONDS, max(0.05, client.remaining - _KEPT_FOR_ON)))
    await _send(client, target, "On")
