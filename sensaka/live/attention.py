"""What a person should look at now: facts only, the worst first, each with the page behind it."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import F, Q
from django.urls import reverse
from django.utils import timezone

from inventory.models import Agent, Bmc, Exporter, Node
from inventory.selectors.faults import ecc_growth
from sensaka.live.fleet import Fleet, Shared

LOOK_BACK = timedelta(hours=24)
_LATE_INTERVALS = 3
_RANK = {"bad": 0, "warn": 1}
# Counters are summed over thousands of rows and change by the hour: no need to do it every second.
_growth = Shared(lambda: ecc_growth(since=timezone.now() - LOOK_BACK), keep=30.0)


@dataclass(frozen=True, slots=True)
class Item:
    """One line: `level` is bad or warn, `since` when it began where that is known."""

    level: str
    text: str
    url: str
    since: datetime | None = None


def _collectors(at: datetime) -> list[Item]:
    found = []
    for kind, model, name in (("bmc", Bmc, "BMC"), ("exporter", Exporter, "Exporter"), ("agent", Agent, "Agent")):
        late = Q(succeeded_at__lt=at - timedelta(seconds=1) * _LATE_INTERVALS * F("interval"))
        rows = model.objects.filter(Q(failing_since__isnull=False) | late, enabled=True).select_related("node")
        if model is Agent:
            rows = rows.filter(revoked_at=None)
        for row in rows:
            where = f" on {row.node}" if row.node else ""
            said = row.error_detail or "no news for more than three intervals"
            title = f"{name}{where}" if model is Agent else f"{name} {row}{where}"
            url = f"{reverse('collectors')}?kind={kind}&result=failing"
            found.append(Item("warn", f"{title} does not answer: {said}", url, row.failing_since or row.succeeded_at))
    return found


def _cards(state: Fleet) -> list[Item]:
    found = []
    for card in state.cards:
        url = reverse("card", args=[card.id])
        if card.state == "failed":
            text = f"{card.model} {card.label} on {card.node} does not answer."
            found.append(Item("bad", text, url, card.state_since))
        elif card.state == "missing":
            found.append(
                Item("bad", f"{card.model} {card.label} is missing from {card.node}.", url, card.state_since)
            )
        if card.conflict:
            found.append(Item("bad", f"{card.model} {card.label} on {card.node}: {card.conflict}", url))
    return found


def _growing(state: Fleet) -> list[Item]:
    growth = _growth.get()
    found = []
    for card in state.cards:
        rise = growth.get(card.series)
        if rise is None:
            continue
        parts = [
            f"{amount:,} {name}"
            for amount, name in (
                (rise.uncorrected, "uncorrected"),
                (rise.corrected, "corrected"),
                (rise.remapped_rows, "remapped rows"),
            )
            if amount
        ]
        level = "bad" if rise.uncorrected or rise.remapped_rows else "warn"
        text = f"{card.model} {card.label} on {card.node}: memory errors rose in 24 h ({', '.join(parts)})."
        found.append(Item(level, text, reverse("card", args=[card.id])))
    return found


def _silent_systems(at: datetime) -> list[Item]:
    """Nodes that have power by their BMC while their operating system reports nothing."""
    rows = (
        Node.objects.filter(power_state="on", agent__enabled=True, agent__revoked_at=None)
        .filter(agent__succeeded_at__lt=at - timedelta(seconds=1) * _LATE_INTERVALS * F("agent__interval"))
        .filter(bmcs__failing_since=None, bmcs__succeeded_at__isnull=False)
        .select_related("agent")
        .distinct()
    )
    return [
        Item(
            "bad",
            f"{node.name} has power but its operating system does not report.",
            reverse("node", args=[node.id]),
            node.agent.succeeded_at,
        )
        for node in rows
    ]


def items(state: Fleet) -> list[Item]:
    """Everything that needs a look, the worst first."""
    found = [*_silent_systems(state.at), *_cards(state), *_growing(state), *_collectors(state.at)]
    return sorted(found, key=lambda item: _RANK[item.level])
