"""Runs the NVML driver in a process of its own, on the stand-in library, driven by lines of JSON."""

import ctypes
import json
import re
import sys
import threading
import time
from pathlib import Path

import msgspec

from inventory.drivers.cards import open_local_cards
from inventory.drivers.cards.nvml import NvmlCards


def answer(order: dict, cards: NvmlCards, library: ctypes.CDLL | None) -> object:
    match order["do"]:
        case "read":
            return msgspec.to_builtins(cards.read(deadline=order["deadline"]))
        case "open":
            cards.open(deadline=order["deadline"])
            return [cards.available, cards.reason]
        case "close":
            cards.close()
            return [cards.available, cards.reason]
        case "calls":
            return library.stand_in_calls(order["name"].encode())
        case "samples":
            return library.stand_in_samples()
        case "threads":
            return sum(thread.name.startswith("nvml") for thread in threading.enumerate())
        case "local":
            twice = open_local_cards(deadline=2), open_local_cards(deadline=2)
            return [[source.name, source.available, source.reason] for source in twice[0]], twice[0] == twice[1]
        case "cost":
            for _ in range(3):
                cards.read(deadline=5)
            before = time.process_time()
            for _ in range(order["rounds"]):
                cards.read(deadline=5)
            spent = (time.process_time() - before) / order["rounds"]
            return [spent, int(re.search(r"Pss: *(\d+)", Path("/proc/self/smaps_rollup").read_text())[1])]
    raise ValueError(order)


def main() -> None:
    cards = NvmlCards(retry_lost=float(sys.argv[1]))
    library = ctypes.CDLL("libnvidia-ml.so.1") if sys.argv[2] == "library" else None
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line), cards, library)), flush=True)


if __name__ == "__main__":
    main()
