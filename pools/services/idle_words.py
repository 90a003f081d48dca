"""What is said of idle work: in the journal, in a request's history, to its owner."""

from datetime import UTC, datetime

from inventory.models import JournalKind
from inventory.services.journal import Note
from pools.models import IdleCase
from pools.rules.reclaim import Action
from pools.rules.reclaim import IdlePolicy as Policy
from pools.selectors.idleness import Evidence, Work, moment

_GIB = 1024**3


def at(time: datetime) -> str:
    """As "2026-11-30 08:00 UTC"."""
    return time.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")


def cards(number: int) -> str:
    """As "1 card" or "8 cards"."""
    return f"{number} card{'' if number == 1 else 's'}"


def title(work: Work) -> str:
    """As "8 cards of job 4711 of ada (Vision)"."""
    of = f" of {work.owner}" if work.owner else ""
    whose = f" ({work.tenant})" if work.tenant else ""
    return f"{cards(len(work.units))} of {work.name}{of}{whose}"


def case_title(case: IdleCase) -> str:
    """The same of a stored case; its allocation's request, job and tenant are loaded."""
    held = case.allocation
    name = str(held.request or "") or (f"job {held.job.job_id}" if held.job else "what it holds")
    whose = f" ({held.tenant})" if held.tenant else ""
    return f"{cards(case.cards)} of {name}{whose}"


def idle_facts(found: Evidence) -> str:
    """Since when, and what is kept meanwhile."""
    held = found.verdict.memory_held
    kept = f", {held / _GIB:.1f} GiB of memory held" if held else ""
    return f"idle since {at(moment(found.since or 0))}{kept}, {found.verdict.coverage:.0f} % of the time known"


def first_warning(found: Evidence, policy: Policy) -> str:
    """Told to the owner when work is found idle."""
    return (
        f"First warning: {cards(len(found.work.units))} {idle_facts(found)}. Use them, release them, or ask for more "
        f"time with a reason; the second warning comes in {policy.gap // 60} min."
    )


def second_warning(found: Evidence, policy: Policy) -> str:
    """Told to the owner when it stays idle."""
    taken = policy.action is Action.RECLAIM and found.work.of("request") is not None
    then = "they are taken back" if taken else "an operator decides about them"
    facts = f"{cards(len(found.work.units))} {idle_facts(found)}"
    return f"Second and last warning: {facts}. In {policy.gap // 60} min {then}."


def noted(work: Work, text: str, now: datetime) -> Note:
    """A line of the journal about a work, on the page of its first card."""
    lead = work.lead
    detail = {"allocation": str(lead.allocation), work.key[0]: str(work.key[1])}
    return Note(JournalKind.CARDS_IDLE, f"{title(work)}: {text}", now, lead.node, lead.card, "", detail, work.cluster)


def case_noted(case: IdleCase, text: str, now: datetime, *, source: str = "user") -> Note:
    """A line of the journal about a stored case."""
    held = case.allocation
    detail = {"allocation": str(held.pk), "case": str(case.pk)}
    text = f"{case_title(case)}: {text}"
    return Note(JournalKind.CARDS_IDLE, text, now, held.node_id, held.card_id, source, detail, held.node.cluster_id)
