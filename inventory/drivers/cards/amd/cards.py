"""From logical GPUs to cards: partitions of one board become its slices."""

from collections.abc import Iterable

from inventory.drivers.cards.amd.devices import BOARD, Device
from inventory.drivers.cards.values import card_values, short
from inventory.observations import CardReading, ProcessReading, ReadFailure, SliceReading

_WHOLE = frozenset({"", "spx", "n/a"})


def _boards(devices: Iterable[Device]) -> list[list[Device]]:
    """Partitions share bus and device of their PCI address and differ in its function."""
    boards: dict[str, list[Device]] = {}
    for device in devices:
        alone = device.compute_mode in _WHOLE or not device.address
        key = f"#{device.index}" if alone else device.address.rpartition(".")[0]
        boards.setdefault(key, []).append(device)
    return [sorted(board, key=lambda device: (device.partition, device.index)) for board in boards.values()]


def _name(device: Device) -> str:
    return device.uuid or device.serial or device.address or f"gpu {device.index}"


def _slice(device: Device, number: int, card: str) -> tuple[SliceReading, tuple[ReadFailure, ...]]:
    """Partition `number`. Partition 0 answers to the card's own uuid, so it gets a suffix."""
    uuid = device.uuid if device.uuid and device.uuid != card else short(f"{card}/{number}")
    of_partition = {key: value for key, value in device.values.items() if key not in BOARD}
    values, refused = card_values(of_partition, what=uuid)
    reading = SliceReading(
        uuid=uuid,
        profile="_".join(part for part in (device.compute_mode, device.memory_mode) if part),
        kind="partition",
        instance_id=str(number),
        memory_total=device.memory_total,
        values=values,
    )
    return reading, refused


def _board(board: list[Device]) -> tuple[CardReading, list[ProcessReading]]:
    first, card = board[0], _name(board[0])
    partitioned = first.compute_mode not in _WHOLE
    raw = {key: value for key, value in first.values.items() if not partitioned or key in BOARD}
    values, refused = card_values(raw, what=card)
    slices = [_slice(device, number, card) for number, device in enumerate(board)] if partitioned else []
    reading = CardReading(
        uuid=first.uuid,
        serial=first.serial,
        pci_address=first.address,
        vendor="AMD",
        model_name=first.name,
        pci_id=first.pci_id,
        part_number=first.part_number,
        vbios=first.vbios,
        slot=first.slot,
        index=first.index,
        memory_total=None if partitioned else first.memory_total,
        partition_mode=first.compute_mode,
        pcie_generation=first.pcie_generation,
        pcie_width=first.pcie_width,
        values=values,
        slices=tuple(one for one, _ in slices),
        failures=refused + tuple(failure for _, found in slices for failure in found),
    )
    processes = [
        # The same pid on several GPUs is an ordinary thing.
        ProcessReading(
            pid=process.pid,
            card_uuid=card,
            slice_uuid=slices[number][0].uuid if slices else "",
            memory_used=process.memory,
            name=short(process.name),
        )
        for number, device in enumerate(board)
        for process in device.processes
    ]
    return reading, processes


def read_cards(devices: Iterable[Device]) -> tuple[tuple[CardReading, ...], tuple[ProcessReading, ...]]:
    """Cards with their slices, and the processes on them."""
    found = [_board(board) for board in _boards(devices)]
    return tuple(card for card, _ in found), tuple(process for _, processes in found for process in processes)
