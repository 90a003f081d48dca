"""BMC drivers behind one door: `open_bmc` picks the driver by the target's protocol."""

from collections.abc import Mapping
from typing import Any

from inventory.drivers.bmc.capabilities import BmcDriver
from inventory.observations import BmcTarget

PROTOCOLS = ("redfish", "ipmi")


def open_bmc(target: BmcTarget, *, links: Mapping[str, Any] | None = None) -> BmcDriver:
    """The driver for this target, not yet connected. ValueError for a protocol that there is no driver for.

    `links` are what an earlier driver's `export_links` gave; Redfish needs no walk with them.
    Drivers are imported when they are first needed: each brings libraries that the others can do without.
    """
    if target.protocol == "redfish":
        from inventory.drivers.bmc.redfish import RedfishBmc

        return RedfishBmc(target, links=links)
    if target.protocol == "ipmi":
        from inventory.drivers.bmc.ipmi import IpmiBmc

        return IpmiBmc(target)
    raise ValueError(f"there is no BMC driver for {target.protocol!r}; known: {', '.join(PROTOCOLS)}")
