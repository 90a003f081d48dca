"""Small readings and places for tests of the tree."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from inventory.models import Bmc, Credential, Node, Site
from inventory.observations import BmcReading, CardReading, FailureKind, NodeReading, PowerState, ReadFailure
from inventory.services.nodes import find_or_create_node
from inventory.services.observe import TreeChanges, record_bmc_reading, record_node_reading

START = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def uuid(number: int) -> str:
    return f"GPU-00000000-0000-4000-8000-{number:012x}"


def card(number: int, *, slot: int | str | None = None, **fields: Any) -> CardReading:
    """Card `number`; by default in slot `number` at bus 0x10 + number, with serial and UUID."""
    slot = number if slot is None else slot
    base: dict[str, Any] = {
        "uuid": uuid(number),
        "serial": f"165{number:04d}",
        "pci_address": f"00000000:{0x10 + int(slot):02X}:00.0" if str(slot).isdecimal() else "",
        "slot": str(slot),
        "vendor": "nvidia",
        "model_name": "NVIDIA H100 80GB HBM3",
        "memory_total": 80 * 2**30,
    }
    return CardReading(**(base | fields))


def lost(reading: CardReading) -> CardReading:
    return CardReading(
        uuid=reading.uuid,
        pci_address=reading.pci_address,
        slot=reading.slot,
        vendor=reading.vendor,
        failures=(ReadFailure(what=reading.uuid, kind=FailureKind.LOST),),
    )


class Machine:
    """A node with an agent: `sees` records what it lists at a second."""

    def __init__(self, name: str, site: Site | None = None, *, serial: str | None = None, source: str = "agent"):
        self.site = site or Site.objects.get_or_create(name="S1")[0]
        self.name = name
        self.source = source
        self.collector = uuid4()
        self.node = find_or_create_node(
            machine_id=f"m-{name}",
            system_serial=f"SN-{name}" if serial is None else serial,
            hostname=name,
            site=self.site,
            at=START,
            source="agent",
        )

    def sees(self, second: float, *cards: CardReading, **fields: Any) -> TreeChanges:
        base: dict[str, Any] = {"observed_at": at(second), "hostname": self.name, "cards": cards, "boot_id": "b1"}
        return record_node_reading(
            node=self.node, source=self.source, collector_id=self.collector, reading=NodeReading(**(base | fields))
        )

    def fresh(self) -> Node:
        return Node.objects.get(pk=self.node.pk)


def bmc(address: str = "192.0.2.1", *, site: Site | None = None, node: Node | None = None) -> Bmc:
    credential, _ = Credential.objects.get_or_create(name="c", username="root", password="secret")
    return Bmc.objects.create(
        node=node,
        site=site or Site.objects.get_or_create(name="S1")[0],
        address=address,
        protocol="redfish",
        credential=credential,
    )


def bmc_sees(row: Bmc, second: float, *cards: CardReading, **fields: Any) -> TreeChanges:
    base: dict[str, Any] = {
        "observed_at": at(second),
        "reached": True,
        "cards": cards,
        "cards_known": True,
        "power_state": PowerState.ON,
    }
    row.refresh_from_db()
    return record_bmc_reading(bmc=row, reading=BmcReading(**(base | fields)))


def out_of_band(number: int, *, slot: int | None = None, **fields: Any) -> CardReading:
    """The same card as a BMC tells it: no prefix, no PCI address, its own name of the slot."""
    slot = number if slot is None else slot
    base: dict[str, Any] = {
        "uuid": uuid(number).removeprefix("GPU-").upper(),
        "serial": f"0165{number:04d}",
        "slot": f"GPU_SXM_{slot}",
        "vendor": "NVIDIA",
        "model_name": "NVIDIA H100",
    }
    return CardReading(**(base | fields))


Ids = dict[int, UUID]
