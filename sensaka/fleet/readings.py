"""What an agent on a simulated node would read: the agent's own structs, filled from the world."""

import zlib
from datetime import UTC, datetime

from inventory.observations import (
    CardReading,
    CardValues,
    FailureKind,
    NodeReading,
    ProcessReading,
    ReadFailure,
    SliceReading,
)
from sensaka.fleet.hardware import MEBIBYTE, MINORS
from sensaka.fleet.physics import XID_FALLEN_OFF_THE_BUS
from sensaka.fleet.plan import SLOTS, CardPlan, NodePlan
from sensaka.fleet.slices import SliceState
from sensaka.fleet.workload import Demand, Holder
from sensaka.fleet.world import World

DRIVER = {"nvidia": "570.133.20", "amd": "6.12.12"}
RUNTIME = {"nvidia": "12.8", "amd": "6.4.1"}
_RESERVED = 4 * MEBIBYTE  # what an unused card still shows
_PCIE_PEAK = 22e9  # bytes/s of one direction that a busy card reaches on sixteen lanes
_NO_PARTITION = "spx"


def card_values(world: World, card: CardPlan) -> CardValues:
    """The sensors of one card in the units of the product, with the gaps that the real source has."""
    s, c, i, kind = world.sensors, world.constants, card.number, card.kind
    nvidia = kind.vendor == "nvidia"
    activity = float(s.activity[i])
    sliced = i in world.partitions
    traffic = float(s.traffic[i])
    return CardValues(
        # The driver gives no utilization of a card that is cut into MIG instances.
        utilization=None if sliced else float(round(activity)),
        sm_activity=round(activity * 0.97, 2) if nvidia else None,
        tensor_activity=round(float(s.tensor[i]) * 0.8, 2) if nvidia else None,
        memory_activity=round(float(s.memory_activity[i]), 2),
        memory_used=_RESERVED + int(float(s.memory_share[i]) * (kind.memory - _RESERVED)),
        temperature=float(round(float(s.temperature[i]))),
        memory_temperature=float(round(float(s.memory_temperature[i]))),
        power=round(float(s.power[i]), 3),
        power_limit=float(kind.limit),
        sm_clock=float(s.sm_clock[i]),
        memory_clock=float(c.memory_clock[i]),
        throttle_reasons=int(s.reasons[i]) if nvidia else None,
        pcie_tx=round(_PCIE_PEAK * 0.18 * activity / 100) if nvidia else None,
        pcie_rx=round(_PCIE_PEAK * 0.31 * activity / 100) if nvidia else None,
        nvlink_tx=round(float(c.link_rate[i]) * traffic * 0.61) if nvidia else None,
        nvlink_rx=round(float(c.link_rate[i]) * traffic * 0.6) if nvidia else None,
        energy=round(float(s.energy[i]), 3),
        ecc_corrected=int(s.ecc_corrected[i]),
        ecc_uncorrected=int(s.ecc_uncorrected[i]),
        pcie_replays=int(s.pcie_replays[i]),
        nvlink_errors=int(s.nvlink_errors[i]) if nvidia else None,
        remapped_rows=int(s.remapped_rows[i]) if nvidia and not sliced else None,
    )


def _slice(state: SliceState) -> SliceReading:
    return SliceReading(
        uuid=state.uuid,
        profile=state.profile,
        instance_id=state.instance_id,
        memory_total=state.memory_total,
        values=CardValues(
            sm_activity=round(state.activity, 2),
            memory_activity=round(state.activity * 0.5, 2),
            memory_used=state.memory_used + _RESERVED,
        ),
    )


def slot_name(slot: int) -> str:
    """The number of the module as the driver gives it, from 1."""
    return str(slot + 1)


def card_reading(world: World, node: NodePlan, slot: int, card: CardPlan) -> CardReading:
    """One card as the node's driver sees it."""
    kind = card.kind
    nvidia = kind.vendor == "nvidia"
    pci = node.pci_addresses[slot]
    return CardReading(
        uuid=card.uuid,
        serial=card.serial,
        pci_address=f"{pci[4:].lower()}",
        vendor="NVIDIA" if nvidia else "AMD",
        model_name=kind.name,
        pci_id=kind.pci_id,
        part_number=card.part_number,
        vbios=kind.vbios,
        slot=slot_name(slot),
        minor=MINORS[node.kind.key][slot],
        index=slot,
        memory_total=kind.memory,
        mig_enabled=(card.number in world.partitions) if world.mig_possible(card) else None,
        partition_mode="" if nvidia else _NO_PARTITION,
        nvlink_active=kind.links if nvidia else None,
        pcie_generation=kind.pcie_generation,
        pcie_width=16,
        values=card_values(world, card),
        slices=tuple(_slice(state) for state in world.slices_of(card.number)),
    )


def _process(job: Holder, card: CardPlan, slot: int, memory: int, slice_uuid: str = "") -> ProcessReading:
    """The process of a job on one card; the same job on the same slot keeps its number."""
    pid = 4000 + zlib.crc32(f"{job.name} {job.started_at:.0f} {slot} {slice_uuid}".encode()) % 4_000_000
    return ProcessReading(
        pid=pid,
        card_uuid=card.uuid,
        slice_uuid=slice_uuid,
        memory_used=memory,
        name="python3" if job.kind != "serving" else "vllm-worker",
        user=job.user or "svc-inference",
        container_id=job.container_id,
        pod_uid=job.pod_uid,
        pod=job.pod,
        namespace=job.namespace,
        slurm_job_id=job.slurm_job_id,
    )


def processes_of(world: World, slot: int, card: CardPlan) -> list[ProcessReading]:
    """What holds a card, or each of its MIG instances."""
    states = world.slices_of(card.number)
    if states:
        return [
            _process(state.demand.job, card, slot, state.memory_used, state.uuid)
            for state in states
            if state.demand.job is not None
        ]
    demand: Demand = world.demand_of(card.number)
    if demand.job is None:
        return []
    return [_process(demand.job, card, slot, int(demand.memory * card.kind.memory))]


def node_reading(world: World, node: NodePlan) -> NodeReading:
    """Everything the node's agent would read now. A lost card is counted but can't be identified."""
    cards: list[CardReading] = []
    processes: list[ProcessReading] = []
    failures: list[ReadFailure] = []
    for slot in range(SLOTS):
        card = world.card_at(node, slot)
        if card is None:
            continue
        if card.number in world.lost:
            failures.append(
                ReadFailure(
                    what=node.pci_addresses[slot][4:].lower(),
                    kind=FailureKind.LOST,
                    detail=f"GPU is lost (Xid {XID_FALLEN_OFF_THE_BUS})",
                )
            )
            continue
        cards.append(card_reading(world, node, slot, card))
        processes += processes_of(world, slot, card)
    vendor = node.kind.vendor
    return NodeReading(
        observed_at=datetime.fromtimestamp(int(world.at), UTC),
        hostname=node.name,
        machine_id=node.machine_id,
        system_serial=node.system_serial,
        boot_id=world.boot_id(node),
        driver_version=DRIVER[vendor],
        runtime_version=RUNTIME[vendor],
        cards=tuple(cards),
        processes=tuple(processes),
        failures=tuple(failures),
        complete=not failures,
        simulated=True,
    )
