"""Which runs a list shows: the filters of its address, so that every number of jobs can link to its rows."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from django.http import QueryDict
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext_lazy as _

from inventory.models import Card, Node
from inventory.rules.jobs import HOLDING, WAITING, JobState
from inventory.selectors.jobs import JobFilter
from sensaka.live.words import JOB_WORDS

GROUPS = (
    ("open", _("Waiting or running")),
    ("running", _("Running")),
    ("waiting", _("Waiting")),
    ("over", _("Over")),
)
ENDINGS = tuple((state.value, JOB_WORDS[state]) for state in JobState if state not in (*HOLDING, *WAITING))
SPANS = {
    "1h": (_("Last hour"), timedelta(hours=1)),
    "24h": (_("Last 24 hours"), timedelta(hours=24)),
    "7d": (_("Last 7 days"), timedelta(days=7)),
    "30d": (_("Last 30 days"), timedelta(days=30)),
}
CARDS = (("known", _("Cards known")), ("unknown", _("Cards unknown")))
MORE = ("account", "queue", "node", "cards", "span")
"""Filters that are folded away while none of them is set."""
_NOWHERE = UUID(int=0)


@dataclass(frozen=True, slots=True)
class Chip:
    """A filter that came by a link: what it says, and the name to leave out to be rid of it."""

    names: str
    text: str


@dataclass(frozen=True, slots=True)
class Wanted:
    """The filters of an address, read."""

    filter: JobFilter
    node: str
    chips: list[Chip]
    any: bool


def identifier(text: str) -> UUID | None:
    """A UUID, or None when it is none."""
    try:
        return UUID(text)
    except ValueError:
        return None


def moment(text: str) -> datetime | None:
    """An aware time in ISO 8601, UTC where no zone is said; None when it is none."""
    try:
        at = parse_datetime(text.replace(" ", "+"))
    except ValueError:
        return None
    return at if at is None or at.tzinfo is not None else at.replace(tzinfo=UTC)


def cursor(text: str) -> tuple[datetime, UUID] | None:
    """Where a page of a list begins: `<submission>_<id>` of the last run shown before; None when it is none."""
    at, _separator, key = text.partition("_")
    when, row = moment(at), identifier(key)
    return None if when is None or row is None else (when, row)


def _states(text: str) -> tuple[bool | None, tuple[str, ...]]:
    match text:
        case "open":
            return True, ()
        case "over":
            return False, ()
        case "running":
            return True, tuple(HOLDING)
        case "waiting":
            return True, tuple(WAITING)
    return None, (text,) if text in set(JobState) else ()


def _node(text: str) -> tuple[UUID | None, str]:
    """A node by id or name. One that is not there is nowhere: no run is on it."""
    if not text:
        return None, ""
    key = identifier(text)
    row = Node.objects.filter(pk=key).first() if key else Node.objects.filter(name__iexact=text).first()
    return (row.pk, row.name) if row else (_NOWHERE, text)


def _card(text: str) -> tuple[UUID | None, str]:
    if not text:
        return None, ""
    row = Card.objects.select_related("node").filter(pk=identifier(text) or _NOWHERE).first()
    if row is None:
        return _NOWHERE, text
    return row.pk, f"{row.slot or row.pci_address} on {row.node.name if row.node else 'no node'}"


def read(query: QueryDict, *, now: datetime) -> Wanted:
    """What an address asks for. What can't be read is as if it were not there, but a node or card that is not found."""
    texts = {name: query.get(name, "").replace("\x00", "").strip()[:255] for name in query}
    is_open, states = _states(texts.get("state", ""))
    node, node_name = _node(texts.get("node", ""))
    card, card_name = _card(texts.get("card", ""))
    since, until = moment(texts.get("since", "")), moment(texts.get("until", ""))
    if since is None and texts.get("span") in SPANS:
        since = now - SPANS[texts["span"]][1]
    chips = []
    if card is not None:
        chips.append(Chip("card", f"Card {card_name}"))
    if moment(texts.get("since", "")) or until:
        parts = [f"from {since:%Y-%m-%d %H:%M} UTC" if since else "", f"to {until:%Y-%m-%d %H:%M} UTC" if until else ""]
        chips.append(Chip("since,until", " ".join(part for part in parts if part).capitalize()))
    cards = texts.get("cards", "")
    wanted = JobFilter(
        cluster=identifier(texts["cluster"]) or _NOWHERE if texts.get("cluster") else None,
        states=states,
        open=is_open,
        user=texts.get("user", ""),
        account=texts.get("account", ""),
        queue=texts.get("queue", ""),
        node=node,
        card=card,
        since=since,
        until=until,
        cards=cards if cards in ("known", "unknown") else "",
        text=" ".join(texts.get("q", "").split()[:5]),
    )
    return Wanted(wanted, node_name, chips, any(text for name, text in texts.items() if name not in ("before", "sort")))
