"""What a reset does to an emulated system, and how a boot override is honoured once."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


class Refused(Exception):
    """A request the tree does not carry out, with its HTTP status and message id."""

    def __init__(self, status: int, message_id: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message_id = message_id


@dataclass(frozen=True, slots=True)
class BootRecord:
    """One boot: which system, from what, and whether an override decided."""

    system: str
    target: str
    overridden: bool

    @classmethod
    def honour(cls, path: str, system: dict[str, Any]) -> "BootRecord":
        """Boots by the override; one that is set to Once is used up."""
        boot = system.get("Boot", {})
        enabled = boot.get("BootSourceOverrideEnabled", "Disabled")
        if enabled == "Disabled":
            return cls(path, "Hdd", overridden=False)
        record = cls(path, str(boot.get("BootSourceOverrideTarget", "None")), overridden=True)
        if enabled == "Once":
            boot.update({"BootSourceOverrideEnabled": "Disabled", "BootSourceOverrideTarget": "None"})
        return record


def find_reset_values(system: Mapping[str, Any], resources: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The reset types a system lists, inline or in its ActionInfo; empty when it has no such action."""
    action = system.get("Actions", {}).get("#ComputerSystem.Reset", {})
    inline = action.get("ResetType@Redfish.AllowableValues")
    if isinstance(inline, list):
        return inline
    info = resources.get(str(action.get("@Redfish.ActionInfo", "")).rstrip("/"), {})
    for parameter in info.get("Parameters", []):
        if parameter.get("Name") == "ResetType":
            return list(parameter.get("AllowableValues", []))
    return []


def plan_reset(reset_type: str, state: str, allowed: list[str]) -> tuple[str, str, bool]:
    """(state meanwhile, final state, whether it boots); Refused when the type is not offered."""
    if reset_type not in allowed:
        raise Refused(400, "Base.1.18.ActionParameterValueNotInList", f"ResetType {reset_type!r} is not supported.")
    if reset_type in ("On", "ForceOn"):
        return ("PoweringOn", "On", True) if state != "On" else ("", "On", False)
    if reset_type in ("ForceOff", "GracefulShutdown"):
        return ("PoweringOff", "Off", False) if state != "Off" else ("", "Off", False)
    if reset_type == "PushPowerButton":
        return ("PoweringOff", "Off", False) if state == "On" else ("PoweringOn", "On", True)
    if reset_type == "Nmi":
        return "", state, False
    if state == "Off" and reset_type != "PowerCycle":
        raise Refused(409, "Base.1.18.ResourceInUse", f"{reset_type} needs the system to be on.")
    return "PoweringOn", "On", True
