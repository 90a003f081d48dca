"""The topic `fleet`: the counts with their parts and coverage, by site and by model, and the power drawn."""

import hashlib
from collections.abc import Hashable, Iterable
from datetime import datetime

from inventory.rules.counts import Counts
from inventory.rules.counts import count as count_facts
from inventory.rules.jobs import HOLDING, WAITING
from inventory.selectors.jobs import open_counts
from sensaka.live import attention, power
from sensaka.live.cells import Cell, Cells, count, percent, unknown, watts
from sensaka.live.fleet import CardRow, Fleet, fleet


def tally(cards: Iterable[CardRow]) -> Counts:
    """Count cards by what they do, as the inventory defines it."""
    return count_facts(card.base.facts for card in cards)


_BY_ACTIVITY = frozenset({"busy", "idle", "unknown"})


def by(cards: Iterable[CardRow], key: str) -> dict[Hashable, list[CardRow]]:
    """Cards grouped by one of their attributes, in the order of first appearance."""
    groups: dict[Hashable, list[CardRow]] = {}
    for card in cards:
        groups.setdefault(getattr(card, key), []).append(card)
    return groups


def ladder(prefix: str, numbers: Counts, at: datetime) -> Cells:
    """The cells of one ladder: a count and the length of its bar for each rung."""
    covered = percent(numbers.coverage, 1) if numbers.coverage is not None else "nothing available"
    hints = {
        "installed": "Cards known and not retired.",
        "available": "Installed, healthy, without conflict, their node active or asleep and not cordoned.",
        "busy": "Available, activity in the last fresh sample at or above the busy threshold.",
        "idle": "Available, activity in the last fresh sample below the busy threshold.",
        "unknown": "Available without a fresh sample of its activity. Never counted as idle.",
        "failed": "Their node sees them but they do not answer.",
        "missing": "A complete reading of their node no longer lists them.",
        "out": "Present, but their node is cordoned, or neither active nor asleep, or two sources differ about them.",
    }
    whole = max(numbers.installed, 1)
    cells: Cells = {}
    for name, hint in hints.items():
        value = getattr(numbers, name)
        said = f"{hint}\nNow, from each card's last sample. Coverage: {covered}." if name in _BY_ACTIVITY else hint
        alarming = name in {"failed", "missing"} and value > 0
        cells[f"{prefix}.{name}"] = Cell(count(value), "bad" if alarming else "", hint=said, fill=100 * value / whole)
    hint = "Share of available cards whose activity is known from a sample not older than three intervals."
    cells[f"{prefix}.coverage"] = (
        unknown(hint) if numbers.coverage is None else Cell(percent(numbers.coverage, 1), hint=hint)
    )
    return cells


def job_cells() -> Cells:
    """How many runs hold nodes and how many wait, of all clusters that are connected."""
    numbers = open_counts()
    running = sum(number for state, number in numbers.items() if state in HOLDING)
    waiting = sum(number for state, number in numbers.items() if state in WAITING)
    return {
        "jobs.running": Cell(count(running), hint="Runs that hold their nodes, of every connected cluster."),
        "jobs.waiting": Cell(count(waiting), hint="Runs in a queue, of every connected cluster."),
    }


def cells() -> Cells:
    """Everything that the overview and the tree show of the whole fleet."""
    state: Fleet = fleet()
    found = ladder("all", tally(state.cards), state.at)
    for attribute in ("site_id", "model_id"):
        for key, cards in by(state.cards, attribute).items():
            found.update(ladder(f"{attribute[:-3]}.{key}", tally(cards), state.at))
    drawn = power.now(state)
    found["power.now"] = Cell(watts(drawn.total), "" if drawn.complete else "warn", hint=drawn.explanation)
    found["power.note"] = Cell(drawn.note)
    found["power.cards"] = Cell(watts(drawn.cards), hint=drawn.cards_explanation)
    found.update(job_cells())
    items = attention.items()
    found["attention.count"] = Cell(count(len(items)), "warn" if items else "good")
    text = "\n".join(item.text for item in items)
    found["attention.version"] = Cell(hashlib.sha256(text.encode()).hexdigest()[:12])
    groups = f"{sorted(map(str, by(state.cards, 'site_id')))}{sorted(map(str, by(state.cards, 'model_id')))}"
    found["groups.version"] = Cell(hashlib.sha256(groups.encode()).hexdigest()[:12])
    return found
