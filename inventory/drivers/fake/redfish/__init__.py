"""A Redfish service in memory: real HTTP and TLS, real actions, faults on demand. Serves tests, demos and trials."""

from inventory.drivers.fake.redfish.certificate import Certificate, self_signed
from inventory.drivers.fake.redfish.faults import ExpandMode, Fault, LoggedRequest, RequestLog
from inventory.drivers.fake.redfish.mockup import NotAMockup, load_mockup
from inventory.drivers.fake.redfish.server import RedfishServer
from inventory.drivers.fake.redfish.service import Behaviour
from inventory.drivers.fake.redfish.tree import RedfishTree, Resource, StaticTree, problem

__all__ = [
    "Behaviour",
    "Certificate",
    "ExpandMode",
    "Fault",
    "LoggedRequest",
    "NotAMockup",
    "RedfishServer",
    "RedfishTree",
    "RequestLog",
    "Resource",
    "StaticTree",
    "load_mockup",
    "problem",
    "self_signed",
]
