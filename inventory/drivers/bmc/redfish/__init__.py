"""Redfish driver: GPUs, sensors, firmware, logs and power of a server through its BMC, without an agent.

`client` and `session` are the transport, `reader` fetches resources and collections, `discovery` and
`polling` are the two kinds of visits; the rest turns resources into readings and does no I/O.
"""

from inventory.drivers.bmc.redfish.driver import RedfishBmc

__all__ = ["RedfishBmc"]
