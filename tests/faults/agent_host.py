"""A real agent in a process of its own, whose clock runs as fast as it reads: a day takes seconds.

Started by the fault tests: `agent_host.py STATE SERVER --rounds N --start SECOND`. It reads eight cards of data, spools
and delivers as the product does, and writes `taken SECOND` for every round that the spool took, then one JSON line.
With `--pause-after N` it writes `paused ...` after N rounds and waits for a line on standard input.
"""

import argparse
import json
import os
import resource
import sys
import threading
import time
from pathlib import Path

import msgspec

from inventory.agent.config import Config, State
from inventory.agent.loop import AgentLoop, held
from inventory.observations import NodeReading, ProcessReading
from tests.inventory.agent.doubles import card, node

CARDS = 8


class Day:
    """Cards whose values move; now and then one of them cannot be read."""

    name = "data"
    available = True
    reason = "in memory"
    rounds = 0

    def read(self, *, deadline: float) -> NodeReading:
        self.rounds += 1
        step = self.rounds % 97
        cards = [
            card(
                number,
                utilization=float(step),
                power=300.0 + step,
                energy=3000.0 * self.rounds,
                temperature=40.0 + step / 2,
            )
            for number in range(1, CARDS + 1)
        ]
        processes = tuple(
            ProcessReading(pid=os.getpid(), card_uuid=each.uuid, memory_used=self.rounds) for each in cards
        )
        return node(*cards, processes=processes)

    def close(self) -> None: ...


class FastClock:
    """Waiting ends at once and moves the clock."""

    def __init__(self, start: float) -> None:
        self.start = self.now = start

    def wall(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now - self.start

    def wait(self, event: threading.Event, seconds: float) -> bool:
        self.now += max(0.0, seconds)
        return event.is_set()


def pss() -> int:
    """Bytes of memory of this process, shared pages by their share."""
    for line in Path("/proc/self/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("the kernel tells no Pss")


def say(line: str) -> None:
    os.write(1, line.encode() + b"\n")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("state", type=Path)
    parser.add_argument("server")
    parser.add_argument("--rounds", type=int, required=True)
    parser.add_argument("--start", type=float, default=1_800_000_000)
    parser.add_argument("--pause-after", type=int, default=-1)
    parser.add_argument("--drain", action="store_true")
    parser.add_argument("--spool-bytes", type=int, default=256 * 1024 * 1024)
    parser.add_argument("--timeout", type=float, default=15.0)
    options = parser.parse_args()
    state = State(options.state)
    config = Config(server=options.server, timeout=options.timeout, spool_bytes=options.spool_bytes)
    clock = FastClock(options.start)
    with held(state.lock):
        loop = AgentLoop(config, state, clock=clock, open_sources=lambda: [Day()])
        one_round, done = loop.rounds.run, 0

        def counted() -> bool:
            nonlocal done
            taken = one_round()
            done += 1
            if taken:
                say(f"taken {int(clock.now)}")
            if done == options.pause_after:
                say(f"paused {json.dumps(figures(loop))}")
                sys.stdin.readline()
            if done >= options.rounds:
                if options.drain:
                    drain(loop)
                loop.stop.set()
            return taken

        loop.rounds.run = counted  # type: ignore[method-assign]
        loop.run()
        say(json.dumps(figures(loop)))


def drain(loop: AgentLoop) -> None:
    """Waits until the spool is empty, a minute at most."""
    deadline = time.monotonic() + 60
    while loop.spool.pending and time.monotonic() < deadline:
        loop.delivery.wake.set()
        time.sleep(0.05)


def figures(loop: AgentLoop) -> dict[str, object]:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "pending": loop.spool.pending,
        "bytes": loop.spool.size,
        "pss": pss(),
        "cpu": used.ru_utime + used.ru_stime,
        **{name: getattr(loop.spool.progress, name) for name in ("dropped", "refused", "skipped", "damaged")},
    }


if __name__ == "__main__":
    msgspec.json.encode({})  # imported for its memory as in the product
    main()
