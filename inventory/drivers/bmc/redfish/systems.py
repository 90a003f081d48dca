"""Which of several systems, managers and chassis is the server itself, and what vendor built it. Pure."""

import re
from collections.abc import Iterable, Sequence

from inventory.drivers.bmc.redfish.resources import Resource, dig, path_of, paths_in, pick, same, words
from inventory.observations import PowerState

_NOT_THE_HOST = re.compile(r"^HGX|baseboard|bluefield|\bdpu\b|(^|_)hmc(_|$)", re.IGNORECASE)
_POWER_STATES = {
    "on": PowerState.ON,
    "off": PowerState.OFF,
    "poweringon": PowerState.TURNING_ON,
    "poweringoff": PowerState.TURNING_OFF,
    "paused": PowerState.ON,
}
# What a service root, a manager or a system says, and how that maker is called here.
_VENDORS = (
    ("dell", "Dell"),
    ("hewlett", "HPE"),
    ("hpe", "HPE"),
    ("hp", "HPE"),
    ("supermicro", "Supermicro"),
    ("super micro", "Supermicro"),
    ("lenovo", "Lenovo"),
    ("huawei", "Huawei"),
    ("xfusion", "xFusion"),
    ("nvidia", "NVIDIA"),
    ("gigabyte", "Gigabyte"),
    ("giga computing", "Gigabyte"),
    ("asus", "ASUS"),
    ("quanta", "Quanta"),
    ("inspur", "Inspur"),
    ("ami", "AMI"),
    ("american megatrends", "AMI"),
    ("openbmc", "OpenBMC"),
)


def power_state(value: object) -> PowerState:
    """PowerState of a system or chassis."""
    return _POWER_STATES.get(words(value).lower(), PowerState.UNKNOWN)


def choose_host(systems: Sequence[Resource]) -> Resource | None:
    """The system an operator means by this server; HGX baseboards and DPUs are parts of it."""
    return max(systems, key=_host_score, default=None)


def _host_score(system: Resource) -> tuple[int, ...]:
    name = f"{words(pick(system, 'Id'))} {words(pick(system, 'Name'))} {words(pick(system, 'Model'))}"
    part = bool(_NOT_THE_HOST.search(words(pick(system, "Id"))) or _NOT_THE_HOST.search(name))
    kind = words(pick(system, "SystemType")).lower()
    return (
        not part and kind != "dpu",
        dig(system, "Actions", "#ComputerSystem.Reset") is not None,
        kind in ("", "physical"),
        bool(words(pick(system, "SerialNumber"))),
        bool(words(pick(system, "PowerState"))),
    )


def choose_manager(managers: Sequence[Resource], host: Resource, root: Resource) -> Resource | None:
    """The BMC that manages the host, by the links from both sides, else the first of type BMC."""
    linked = {same(path) for path in paths_in(dig(host, "Links", "ManagedBy"))}
    linked |= {same(path) for path in paths_in(dig(root, "Links", "ManagerProvidingService"))}
    own = same(path_of(host))

    def score(manager: Resource) -> tuple[int, ...]:
        served = [same(path) for path in paths_in(dig(manager, "Links", "ManagerForServers"))]
        name = words(pick(manager, "Id")) + path_of(manager)
        return (
            same(path_of(manager)) in linked,
            bool(own) and own in served,
            words(pick(manager, "ManagerType")).upper() == "BMC",
            "HGX" not in name.upper(),
        )

    return max(managers, key=score, default=None)


def host_chassis(chassis: Sequence[Resource], host: Resource) -> list[Resource]:
    """The chassis of the host and those that contain it, nearest first; HGX parts left out."""
    known = {same(path_of(entry)): entry for entry in chassis}
    found: dict[str, Resource] = {}
    wave = [same(path) for path in paths_in(dig(host, "Links", "Chassis"))]
    while wave:
        upper: list[str] = []
        for key in wave:
            entry = known.get(key)
            if entry is None or key in found or is_part(entry):
                continue
            found[key] = entry
            upper += [same(path) for path in paths_in(dig(entry, "Links", "ContainedBy"))]
        wave = upper
    if not found:
        whole = [entry for entry in chassis if words(pick(entry, "ChassisType")).lower() in ("rackmount", "standalone")]
        found = {same(path_of(entry)): entry for entry in (whole or [e for e in chassis if not is_part(e)])[:1]}
    return list(found.values())


def is_part(entry: Resource) -> bool:
    """Whether a system or chassis is a part inside the server, by its name."""
    return bool(_NOT_THE_HOST.search(words(pick(entry, "Id"))))


def vendor_of(root: Resource, host: Resource, manager: Resource) -> str:
    """The maker of the server, else of its BMC firmware; "" when nobody says."""
    told: Iterable[object] = (
        pick(host, "Manufacturer"),
        pick(root, "Vendor"),
        *(_oem_names(root)),
        *(_oem_names(manager)),
        pick(root, "Product"),
        pick(manager, "Model"),
        pick(manager, "Name"),
    )
    for text in map(words, told):
        for mark, name in _VENDORS:
            if text.lower().startswith(mark):
                return name
    return ""


def _oem_names(resource: Resource) -> list[str]:
    section = pick(resource, "Oem")
    return [str(name) for name in section] if isinstance(section, dict) else []
