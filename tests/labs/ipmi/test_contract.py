"""The contract of every BMC driver, kept over IPMI with OpenIPMI's simulator."""

import pytest

from inventory.drivers.bmc.ipmi import IpmiBmc
from sensaka.fleet.ipmi import IpmiSimulator
from tests.contracts.bmc_contract import BmcContract, Live
from tests.labs.ipmi.conftest import Connect, bmc

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("fleet")]
NAME = "bmc-1"


class _Handle:
    def __init__(self, fleet: IpmiSimulator, connect: Connect, silence: tuple[str, int]) -> None:
        self._fleet, self._connect, self._silence = fleet, connect, silence

    def powered(self) -> bool:
        return self._fleet.powered(NAME)

    def wrong_password(self) -> IpmiBmc:
        return self._connect(bmc(1).address, self._fleet.port, password="guess")

    def dead_port(self) -> IpmiBmc:
        return self._connect(*self._silence)


class TestIpmiContract(BmcContract):
    @pytest.fixture
    def live(self, fleet: IpmiSimulator, connect: Connect, silence: tuple[str, int]) -> Live:
        fleet.set_power(NAME, True)
        return connect(bmc(1).address, fleet.port), _Handle(fleet, connect, silence)
