"""A few simulated BMCs for the whole module, and drivers for them."""

import os
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from inventory.drivers.bmc.ipmi import IpmiBmc
from inventory.drivers.bmc.ipmi.memory import MEMORY, RECORDS
from inventory.observations import BmcTarget
from sensaka.fleet.ipmi import IpmiSimulator, SimulatedBmc, available

USERNAME, PASSWORD = "admin", "lab-password"

Connect = Callable[..., IpmiBmc]


def require_simulator() -> None:
    """Skip with the reason where ipmi_sim is missing; in CI that is a failure."""
    reason = available()
    if reason is not None:
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)


def free_port() -> int:
    """A UDP port that is free on every loopback address at the moment."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("0.0.0.0", 0))
        return int(probe.getsockname()[1])


def bmc(number: int) -> SimulatedBmc:
    return SimulatedBmc(
        name=f"bmc-{number}",
        address=f"127.78.200.{number}",
        serial=f"SIM{number:05d}",
        system_uuid=f"00112233-4455-6677-8899-aabbccdd{number:04x}",
    )


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IpmiSimulator]:
    """Three BMCs, bmc-1 to bmc-3, in a folder with a blank in its name."""
    require_simulator()
    folder: Path = tmp_path_factory.mktemp("a fleet")
    simulator = IpmiSimulator(
        folder, [bmc(number) for number in (1, 2, 3)], port=free_port(), username=USERNAME, password=PASSWORD
    )
    simulator.start()
    yield simulator
    simulator.stop()


@pytest.fixture(autouse=True)
def nothing_remembered() -> None:
    """Each test starts as a new process would."""
    RECORDS.clear()
    MEMORY.clear()


@pytest_asyncio.fixture
async def connect() -> AsyncIterator[Connect]:
    """Makes drivers and closes them at the end."""
    made: list[IpmiBmc] = []

    def make(address: str, port: int, *, username: str = USERNAME, password: str = PASSWORD) -> IpmiBmc:
        target = BmcTarget(address=address, port=port, protocol="ipmi", username=username, password=password)
        made.append(IpmiBmc(target))
        return made[-1]

    yield make
    for driver in made:
        await driver.close()


@pytest.fixture
def silence() -> Iterator[tuple[str, int]]:
    """An address that takes packets and never answers."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sink:
        sink.bind(("127.78.201.1", 0))
        yield "127.78.201.1", int(sink.getsockname()[1])
