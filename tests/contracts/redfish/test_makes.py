"""I3: six makes of BMC give nodes with identity, power, sensors, firmware and their cards, without an agent."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from inventory.drivers.fake.redfish import Fault
from inventory.observations import PowerState
from sensaka.kernel.units import MIB
from tests.contracts.redfish.conftest import Open, Serve
from tests.contracts.redfish.trees import MAKES, add, collect, dell, hgx, hpe, ref, supermicro, uuid_of


@dataclass
class Expected:
    vendor: str
    model: str
    cards: list[dict[str, Any]]
    power: float | None = None
    inlet: float | None = None
    values: dict[str, Any] = field(default_factory=dict)


EXPECTED = {
    "dell": Expected(
        vendor="Dell",
        model="PowerEdge XE9680",
        power=2140,
        inlet=23,
        cards=[
            {"serial": f"165012345{n}", "slot": f"Slot {n}", "memory_total": 95830 * MIB, "vbios": "96.00.5E.00.01"}
            for n in (1, 2)
        ],
        values={"temperature": 41, "power": 310.5, "sm_clock": 1755, "utilization": None},
    ),
    "hpe": Expected(
        vendor="HPE",
        model="ProLiant DL380a Gen11",
        power=565,
        inlet=24,
        cards=[
            {
                "serial": f"17901250{n}",
                "slot": f"PCI-E Slot {n}",
                "model_name": "NVIDIA H100 NVL",
                "pci_id": "10de:2321",
                "firmware": "96.00.AF.00.02",
            }
            for n in (14, 16)
        ],
        values={"temperature": 55, "memory_temperature": 60},
    ),
    "supermicro": Expected(
        vendor="Supermicro",
        model="SYS-421GE-TNRT",
        cards=[
            {"serial": f"132422300{n}", "slot": f"CPU1 SLOT{n}", "model_name": "NVIDIA L40S", "pcie_generation": 4}
            for n in (1, 2)
        ],
    ),
    "lenovo": Expected(
        vendor="Lenovo",
        model="ThinkSystem SR680a V3",
        cards=[
            {
                "vendor": "AMD",
                "uuid": "01ffa2c1-0000-1000-8046-54c0a1b2c3d4",
                "slot": "OAM 1",
                "memory_total": 196592 * MIB,
            }
        ],
        values={"temperature": 47, "power": 312.5, "power_limit": 750},
    ),
    "ami": Expected(
        vendor="Gigabyte",
        model="G593-SD0",
        inlet=22,
        cards=[{"uuid": f"GPU-{uuid_of(n)}", "slot": f"GPU_{n}", "serial": f"16535{n}"} for n in (1, 2)],
    ),
    "hgx": Expected(
        vendor="NVIDIA",
        model="P3809",
        power=3350.25,
        inlet=24.5,
        cards=[
            {
                "uuid": f"GPU-{uuid_of(n)}",
                "serial": f"16529{n}",
                "slot": f"SXM{n}",
                "memory_total": 81559 * MIB,
                "mig_enabled": False,
                "pcie_generation": 5,
                "pcie_width": 16,
                "part_number": "2330-885-A1",
            }
            for n in (1, 2)
        ],
        values={
            "temperature": 31,
            "memory_temperature": 41,
            "power": 350.5,
            "power_limit": 700,
            "energy": 5.5e7,
            "utilization": 88,
            "sm_activity": 71.5,
            "tensor_activity": 30.25,
            "memory_activity": 12.5,
            "memory_used": 81559 * MIB // 2,
            "sm_clock": 1980,
            "memory_clock": 2619,
            "pcie_tx": 1e9,
            "ecc_corrected": 7,
            "ecc_uncorrected": 1,
            "pcie_replays": 3,
            "remapped_rows": 3,
            "throttle_reasons": None,
        },
    ),
}


@pytest.mark.parametrize("levels", [None, 0, 1, 2, 6])
@pytest.mark.parametrize("make", MAKES)
async def test_discovery_reads_every_make(serve: Serve, connect: Open, make: str, levels: int | None) -> None:
    """I3: with `$expand` as the make has it, without, shallow and deep, the reading is the same."""
    tree = MAKES[make]() if levels is None else MAKES[make](levels=levels)  # type: ignore[operator]
    expected = EXPECTED[make]
    server = await serve(tree)
    reading = await connect(server).discover(deadline=20)
    assert (reading.reached, reading.cards_known) == (True, True)
    assert (reading.vendor, reading.system_model) == (expected.vendor, expected.model)
    assert reading.system_serial.startswith("SN-")
    assert reading.system_uuid == "4c4c4544-0042-3510-8050-b4c04f4d3333"
    assert (reading.hostname, reading.bios_version, reading.bmc_firmware) == ("gpu-01", "2.4.1", "7.10.30")
    assert reading.bmc_uuid == "11111111-2222-3333-4444-555555555555"
    assert reading.power_state is PowerState.ON
    assert (reading.power, reading.inlet_temperature) == (expected.power, expected.inlet)
    found = [
        {name: getattr(card, name) for name in wanted}
        for card, wanted in zip(reading.cards, expected.cards, strict=True)
    ]
    assert found == expected.cards
    assert reading.requests == server.log.total
    if not (make == "hpe" and levels == 0):  # without $expand iLO's sensors of cards cost a request each
        values = reading.cards[0].values
        assert {name: getattr(values, name) for name in expected.values} == expected.values


@pytest.mark.parametrize("levels", [0, 2])
@pytest.mark.parametrize("make", MAKES)
async def test_a_poll_repeats_the_values_in_few_requests(serve: Serve, connect: Open, make: str, levels: int) -> None:
    """I3: at most three requests a card and ten more, fewer than discovery, and the same cards."""
    server = await serve(MAKES[make](levels=levels))
    driver = connect(server)
    first = await driver.discover(deadline=20)
    server.log.clear()
    again = await driver.poll(deadline=20)
    assert again.requests == server.log.total <= 3 * len(first.cards) + 10
    assert again.requests < first.requests
    assert again.cards_known is first.cards_known
    assert [(card.uuid, card.serial, card.slot) for card in again.cards] == [
        (card.uuid, card.serial, card.slot) for card in first.cards
    ]
    assert (again.power, again.inlet_temperature) == (first.power, first.inlet_temperature)
    assert (again.power_state, again.system_serial) == (first.power_state, first.system_serial)
    for card, before in zip(again.cards, first.cards, strict=True):
        assert card.values is not None
        assert before.values is not None
        assert (card.values.temperature, card.values.power) == (before.values.temperature, before.values.power)


async def test_links_carry_a_poll_into_another_process(serve: Serve, connect: Open) -> None:
    """I3: with exported links a fresh driver polls without a walk; links of another version are ignored."""
    server = await serve(hgx())
    first = connect(server)
    found = await first.discover(deadline=20)
    links = first.export_links()
    await first.close()
    polled = await connect(server, links=links).poll(deadline=20)
    assert polled.requests < found.requests / 2
    assert [card.serial for card in polled.cards] == [card.serial for card in found.cards]
    walked = await connect(server, links={**links, "version": 0}).poll(deadline=20)
    assert walked.requests >= found.requests
    assert len(walked.cards) == len(found.cards)


async def test_firmware_is_matched_to_its_card(serve: Serve, connect: Open) -> None:
    """I3: HGX by link, iLO by slot, iDRAC by id; old and offered versions are left out."""
    cases = {
        "hgx": (hgx(), "HGX_FW_GPU_SXM_2", "165292"),
        "hpe": (hpe(), "NVIDIA H100 NVL", "1790125014"),
        "dell": (dell(), "NVIDIA H100 NVL", "1650123451"),
    }
    for name, (tree, component, serial) in cases.items():
        reading = await connect(await serve(tree)).discover(deadline=20)
        matched = [entry for entry in reading.firmware if entry.card_serial == serial]
        assert [entry.component for entry in matched] == [component], name
        assert {entry.version for entry in reading.firmware}.isdisjoint({"96.00.1A.00.01", "2.5.0"}), name


async def test_a_host_is_told_from_its_baseboard_and_dpu(serve: Serve, connect: Open) -> None:
    """I3: the node is the host system, whatever stands first in the collection."""
    tree = hgx()
    tree["/redfish/v1/Systems"]["Members"].reverse()
    reading = await connect(await serve(tree)).discover(deadline=20)
    assert (reading.system_serial, reading.hostname) == ("SN-System_0", "gpu-01")


async def test_absent_and_foreign_devices_are_no_cards(serve: Serve, connect: Open) -> None:
    """I3: an empty slot, a network adapter and an FPGA are not counted."""
    tree = supermicro()
    device = "/redfish/v1/Chassis/1/PCIeDevices/GPU2"
    tree[device]["Status"] = {"State": "Absent"}
    reading = await connect(await serve(tree)).discover(deadline=20)
    assert [card.serial for card in reading.cards] == ["1324223001"]


async def test_cards_only_listed_as_chassis_are_found(serve: Serve, connect: Open) -> None:
    """I3: a service that proxies no Processors still has GPU chassis; roots of trust are none."""
    tree = hgx()
    tree["/redfish/v1/Systems/HGX_Baseboard_0/Processors"]["Members"] = []
    trust = "/redfish/v1/Chassis/HGX_ERoT_GPU_SXM_1"
    tree[trust] = {**tree["/redfish/v1/Chassis/HGX_GPU_SXM_1"], "@odata.id": trust, "Id": "HGX_ERoT_GPU_SXM_1"}
    tree["/redfish/v1/Chassis"]["Members"].append({"@odata.id": trust})
    driver = connect(await serve(tree))
    reading = await driver.discover(deadline=20)
    assert [card.serial for card in reading.cards] == ["165291", "165292"]
    assert [card.values.temperature for card in reading.cards if card.values] == [31, 32]
    assert [card.serial for card in (await driver.poll(deadline=20)).cards] == ["165291", "165292"]


async def test_a_service_that_lists_no_devices_does_not_say_that_there_are_no_cards(
    serve: Serve, connect: Open
) -> None:
    """I3: an empty list from a BMC that has nowhere to list cards says nothing about them."""
    tree = supermicro()
    del tree["/redfish/v1/Chassis/1"]["PCIeDevices"]
    driver = connect(await serve(tree))
    for reading in (await driver.discover(deadline=20), await driver.poll(deadline=20)):
        assert (reading.reached, reading.cards, reading.cards_known) == (True, (), False)
    tree = supermicro()
    tree["/redfish/v1/Chassis/1/PCIeDevices/GPU1"]["Status"] = {"State": "Absent"}
    tree["/redfish/v1/Chassis/1/PCIeDevices/GPU2"]["Status"] = {"State": "Absent"}
    reading = await connect(await serve(tree)).discover(deadline=20)
    assert (reading.cards, reading.cards_known) == ((), True)


async def test_a_root_behind_a_login_and_a_redirect_are_followed(serve: Serve, connect: Open) -> None:
    """I3: iLO redirects to a trailing slash; some services want a login even for the root."""
    moved = Fault(path="/redfish/v1/Systems", status=308, times=1, headers={"Location": "/redfish/v1/Systems/"})
    closed = Fault(path="/redfish/v1", status=401, times=1)
    server = await serve(dell(), faults=[moved, closed])
    reading = await connect(server).discover(deadline=20)
    assert len(reading.cards) == 2
    assert reading.failures == ()
    assert reading.requests == server.log.total


@pytest.mark.parametrize("levels", [0, 1])
async def test_idrac_keeps_serials_and_temperatures_apart(serve: Serve, connect: Open, levels: int) -> None:
    """I3: a Processor without serial, UUID and environment gets them from Dell's own collections."""
    tree = dell(levels=levels)
    system = "/redfish/v1/Systems/System.Embedded.1"
    for slot in (1, 2):
        processor = f"{system}/Processors/Video.Slot.{slot}-1"
        del tree[processor]["SerialNumber"], tree[processor]["EnvironmentMetrics"]
        tree[f"{processor}/ProcessorMetrics"] |= {"ConsumedPowerWatt": 301.0}
    tree[system]["Links"]["Oem"] = {"Dell": {"DellGPUSensorCollection": ref(f"{system}/Oem/Dell/DellGPUSensors")}}
    video = {n: {"GPUGUID": uuid_of(n), "SerialNumber": f"13250{n}"} for n in (1, 2)}
    heat = {n: {"PrimaryGPUTemperatureCelsius": 40 + n, "MemoryTemperatureCelsius": 50 * (n - 1)} for n in (1, 2)}
    for name, rows in (("DellVideo", video), ("DellGPUSensors", heat)):
        paths = [add(tree, f"{system}/Oem/Dell/{name}/Video.Slot.{n}-1", name, **row) for n, row in rows.items()]
        collect(tree, f"{system}/Oem/Dell/{name}", name, [])
        tree[f"{system}/Oem/Dell/{name}"]["Members"] = [tree[path] for path in paths]
    driver = connect(await serve(tree))
    for reading in (await driver.discover(deadline=20), await driver.poll(deadline=20)):
        assert [(card.uuid, card.serial) for card in reading.cards] == [
            (f"GPU-{uuid_of(n)}", f"13250{n}") for n in (1, 2)
        ]
        values = [card.values for card in reading.cards if card.values]
        assert [(entry.temperature, entry.memory_temperature, entry.power) for entry in values] == [
            (41, None, 301),
            (42, 50, 301),
        ]


async def test_supermicro_numbers_its_gpu_slots(serve: Serve, connect: Open) -> None:
    """I3: the slot number that Supermicro gives a card is the one its sensors are named after."""
    tree = supermicro()
    for number, slot in ((1, 4), (2, 3)):
        tree[f"/redfish/v1/Chassis/1/PCIeDevices/GPU{number}"]["Oem"] = {"Supermicro": {"GPUSlot": slot}}
    status = {"State": "Enabled", "Health": "OK"}
    tree["/redfish/v1/Chassis/1/Thermal"]["Temperatures"] += [
        {"Name": f"GPU{slot} Temp", "ReadingCelsius": 30 + slot, "Status": status} for slot in (3, 4)
    ]
    driver = connect(await serve(tree))
    for reading in (await driver.discover(deadline=20), await driver.poll(deadline=20)):
        found = [(card.slot, card.values.temperature) for card in reading.cards if card.values]
        assert found == [("GPU 4", 34), ("GPU 3", 33)]
