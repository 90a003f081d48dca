"""The small forms of slurmrestd's JSON from v0.0.39 on: numbers that may be unset, exit codes, TRES, gres."""

import signal
from collections.abc import Iterable
from typing import Any

from inventory.drivers.fake.slurmrestd.jobs import Wish

_SIGNALS = {one.value: one.name.removeprefix("SIG") for one in signal.Signals}  # 125, out of memory, is Slurm's own


def number(value: int | None) -> dict[str, Any]:
    """A number that may be unset."""
    return {"set": value is not None, "infinite": False, "number": value or 0}


def limit(value: int | None) -> dict[str, Any]:
    """A number without which there is no limit."""
    return {"set": value is not None, "infinite": value is None, "number": value or 0}


def exit_code(code: int, number_of_signal: int) -> dict[str, Any]:
    """How something ended."""
    status = "SIGNALED" if number_of_signal else "ERROR" if code else "SUCCESS"
    name = _SIGNALS.get(number_of_signal, str(number_of_signal or ""))
    told = {"id": number(number_of_signal or None), "name": name}
    return {"status": [status], "return_code": number(code), "signal": told}


def indices(numbers: Iterable[int]) -> str:
    """Numbers of cards as Slurm writes them: `0-3,6`; N/A for none."""
    runs: list[list[int]] = []
    for index in sorted(numbers):
        if runs and runs[-1][1] + 1 == index:
            runs[-1][1] = index
        else:
            runs.append([index, index])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in runs) or "N/A"


def gres(card_type: str, numbers: Iterable[int]) -> str:
    """What is given out: `gpu:h100:4(IDX:0-3)`."""
    given = list(numbers)
    return f"gpu:{card_type}:{len(given)}(IDX:{indices(given)})"


def tres_text(wish: Wish, card_type: str) -> str:
    """What a job asks for or holds over all of its nodes."""
    nodes = wish.count
    cards = wish.all_cards
    text = f"cpu={wish.cpus * nodes},mem={wish.memory * nodes}M,node={nodes},billing={wish.cpus * nodes}"
    if not cards:
        return text
    return f"{text},gres/gpu={cards}" + (f",gres/gpu:{card_type}={cards}" if card_type else "")


def tres_list(wish: Wish, card_type: str) -> list[dict[str, Any]]:
    """The same as the accounting lists it."""
    nodes = wish.count
    cards = wish.all_cards
    found = [
        {"type": "cpu", "name": "", "id": 1, "count": wish.cpus * nodes},
        {"type": "mem", "name": "", "id": 2, "count": wish.memory * nodes},
        {"type": "node", "name": "", "id": 4, "count": nodes},
        {"type": "billing", "name": "", "id": 5, "count": wish.cpus * nodes},
    ]
    if cards:
        found.append({"type": "gres", "name": "gpu", "id": 1001, "count": cards})
        found += [{"type": "gres", "name": f"gpu:{card_type}", "id": 1002, "count": cards}] if card_type else []
    return found
