"""What a person should look at now: facts only, the worst first, each with the page behind it."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.urls import reverse
from django.utils import timezone

from inventory.models import Agent, Bmc, ClusterConnection, Exporter
from inventory.selectors.clusters import condition_of
from inventory.selectors.collectors import sources
from inventory.selectors.faults import ecc_growth
from inventory.selectors.nodes import systems_down
from sensaka.live.fleet import Fleet, Shared, fleet

LOOK_BACK = timedelta(hours=24)
_TITLES = {"bmc": "BMC", "exporter": "Exporter", "agent": "Agent"}
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


def _where(row: Bmc | Exporter) -> str:
    """Its node; of a source that has never answered, so that its node is not known, the place it was added to."""
    if row.node is not None:
        return f"on {row.node}"
    host = getattr(row, "hostname", "")
    place = f"{row.rack.name}, {row.site.name}" if row.rack is not None else row.site.name
    return f"on {host} in {place}" if host else f"in {place} (its node is not known: it has never been read)"


def _collectors(at: datetime) -> list[Item]:
    found = []
    for source in sources(now=at, troubled=True):
        row = source.collector
        if isinstance(row, ClusterConnection):
            continue  # `_clusters` tells more of it
        title = f"Agent on {row.node}" if isinstance(row, Agent) else f"{_TITLES[source.kind]} {row} {_where(row)}"
        said = row.error_detail if source.condition == "failing" else "nothing for more than three intervals"
        url = f"{reverse('collectors')}?kind={source.kind}&result=failing"
        text = f"{title} does not answer: {said or 'no reason given'}"
        found.append(Item("warn", text, url, row.failing_since or row.succeeded_at))
    return found


def _clusters(at: datetime) -> list[Item]:
    """Schedulers that are out of reach or late, and access that ends within a day."""
    found = []
    rows = ClusterConnection.objects.select_related("cluster").defer("token", "kubeconfig")
    for row in rows.order_by("cluster__name"):
        url = reverse("cluster", args=[row.cluster_id])
        name = f"{row.get_scheduler_display()} of {row.cluster.name}"
        condition, reason = condition_of(row, now=at)
        if condition in ("lost", "late"):
            text = f"{name} is {'out of reach' if condition == 'lost' else 'late'}: {reason}"
            level = "bad" if condition == "lost" else "warn"
            found.append(Item(level, text, url, row.failing_since or row.succeeded_at))
        elif row.token_expires_at is not None and row.token_expires_at - at < LOOK_BACK and not row.jwt_key:
            found.append(Item("warn", f"Our access to {name} ends within a day: give it a new token.", url))
    return found


def _cards(state: Fleet) -> list[Item]:
    found = []
    for card in state.cards:
        if card.state == "present" and not card.conflict:
            continue
        url = reverse("card", args=[card.id])
        if card.state == "failed":
            text = f"{card.model} {card.label} on {card.node} does not answer."
            found.append(Item("bad", text, url, card.state_since))
        elif card.state == "missing":
            found.append(Item("bad", f"{card.model} {card.label} is missing from {card.node}.", url, card.state_since))
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
    return [
        Item(
            "bad",
            f"{down.node.name} has power but its operating system does not report.",
            reverse("node", args=[down.node.id]),
            down.silent_since,
        )
        for down in systems_down(now=at)
    ]


def _items() -> list[Item]:
    state = fleet()
    found = [*_silent_systems(state.at), *_cards(state), *_growing(state), *_clusters(state.at), *_collectors(state.at)]
    return sorted(found, key=lambda item: _RANK[item.level])


_shared: Shared[list[Item]] = Shared(_items)


def items() -> list[Item]:
    """Everything that needs a look, the worst first; not older than a second."""
    return _shared.get()


def forget() -> None:
    """Look anew at the next call."""
    _shared.forget()
    _growth.forget()
