"""RedfishBmc against the suite that every BMC driver passes, on each make."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest

from inventory.drivers.bmc import open_bmc
from inventory.drivers.bmc.capabilities import BmcDriver
from inventory.drivers.bmc.redfish import RedfishBmc
from inventory.drivers.fake.redfish import RedfishServer
from tests.contracts.bmc_contract import BmcContract, Live
from tests.contracts.redfish.conftest import Serve, target_of
from tests.contracts.redfish.trees import MAKES


@dataclass
class _Handle:
    server: RedfishServer
    system: str
    silent: RedfishServer
    drivers: list[BmcDriver] = field(default_factory=list)

    def powered(self) -> bool:
        resource = self.server.service.tree.get(self.system)
        assert resource is not None
        return resource["PowerState"] == "On"

    def wrong_password(self) -> BmcDriver:
        return open_bmc(target_of(self.server, password="wrong"))

    def dead_port(self) -> BmcDriver:
        return open_bmc(target_of(self.silent))


@pytest.fixture(params=sorted(MAKES))
async def live(request: pytest.FixtureRequest, serve: Serve) -> AsyncIterator[Live]:
    tree = MAKES[request.param]()
    if request.param == "lenovo":  # XCC's sensors are its own; one of the standard's stands for them
        tree["/redfish/v1/Chassis/1"]["Thermal"] = {"@odata.id": "/redfish/v1/Chassis/1/Thermal"}
        ambient = {"Name": "Ambient Temp", "ReadingCelsius": 24}
        tree["/redfish/v1/Chassis/1/Thermal"] = {
            "@odata.id": "/redfish/v1/Chassis/1/Thermal",
            "Temperatures": [ambient],
        }
    server = await serve(tree)
    silent = await serve(tree)
    await silent.stop()
    system = next(path for path in tree if path.startswith("/redfish/v1/Systems/") and "PowerState" in tree[path])
    driver = open_bmc(target_of(server))
    assert isinstance(driver, RedfishBmc)
    yield driver, _Handle(server, system, silent)
    await driver.close()
    assert server.service.sessions.active == 0


class TestRedfish(BmcContract):
    """The whole suite."""
