"""Template tags of clusters, jobs and cordons."""

from django import template
from django.urls import reverse
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from inventory.models import Cordon, Job, JobCard, SchedulerNode
from inventory.rules.job_words import clock, reason_words
from sensaka.cockpit.templatetags.cockpit import when
from sensaka.live import job_cells
from sensaka.live.cells import Cell
from sensaka.live.words import JOB_TAGS, JOB_WORDS

register = template.Library()
register.filter("clock", clock)

_LOADS = {"idle": "free", "mixed": "busy", "allocated": "busy", "down": "bad", "unknown": "unknown"}
_CORDONS = {
    "requested": ("warn", "Being set"), "applied": ("warn", "Cordoned"), "lifting": ("warn", "Being lifted"),
    "lifted": ("off", "Lifted"),
}  # fmt: skip
_SHOWN = 6


def _mark(cell: Cell) -> SafeString:
    hint = format_html(' data-hint="{}" tabindex="0"', cell.hint) if cell.hint else ""
    return format_html('<span class="state-mark" data-kind="{}"{}>{}</span>', cell.state, hint, cell.text)


@register.simple_tag
def job_mark(job: Job) -> SafeString:
    """A run's state where it does not move: as a mark and a word."""
    return _mark(job_cells.state_cell(job))


@register.simple_tag
def state_mark(state: str) -> SafeString:
    """The state of a step."""
    return _mark(Cell(JOB_WORDS.get(state, "Unknown"), JOB_TAGS.get(state, "unknown")))


@register.simple_tag
def stored_time(text: str | None) -> SafeString:
    """A time as the accounting of steps keeps it, in ISO 8601."""
    at = parse_datetime(text) if text else None
    return mark_safe("–") if at is None else when(at, exact=True)  # noqa: RUF001


@register.simple_tag
def job_gpu(job: Job) -> str:
    """A run's time of cards so far."""
    return job_cells.gpu_time(job, timezone.now()).text


@register.simple_tag
def job_waited(job: Job) -> str:
    """A run's time in the queue."""
    return clock(job_cells.waited(job, timezone.now())) or "–"  # noqa: RUF001 - how pages write "not known"


@register.simple_tag
def job_ran(job: Job) -> str:
    """A run's time from start to end, or until now."""
    return clock(job_cells.ran(job, timezone.now())) or "–"  # noqa: RUF001


@register.filter
def reason_of(job: Job) -> str:
    """Why a run waits or how it ended, in words. Its cluster has to be at hand."""
    return reason_words(job.cluster.scheduler, job.reason)


@register.filter
def held_name(held: JobCard) -> str:
    """What a run holds, as the card is called, with its slice or share."""
    if held.card is None:
        return f"{held.type or held.kind} {'' if held.index is None else held.index}".strip()
    name = held.card.slot or held.card.pci_address or "card"
    if held.slice is not None:
        return f"{name} {held.slice.profile}"
    return f"{name}, {held.shares} shares" if held.shares else name


@register.simple_tag
def cards_of(job: Job) -> SafeString:
    """The cards of a run in a list: names with links, or that they are unknown, and why."""
    if job.cards_known is False:
        hint = job.cards_reason or "The scheduler does not say which."
        text = f"Cards unknown ({job.cards:,})" if job.cards else "Cards unknown"
        return _mark(Cell(text, "unknown", hint=hint))
    held: list[JobCard] = getattr(job, "cards_held", [])
    if not held:
        if job.cards:
            return format_html("{} {}", f"{job.cards:,}", "card" if job.cards == 1 else "cards")
        return mark_safe("")
    if len(held) > _SHOWN or len({one.node_id for one in held}) > 1:
        return format_html("{} {}", f"{len(held):,}", "cards")
    return format_html_join(", ", "{}", ((_link(one),) for one in held))


def _link(held: JobCard) -> SafeString:
    name = held_name(held)
    if held.card_id is None:
        return format_html("{}", name)
    return format_html('<a href="{}">{}</a>', reverse("card", args=[held.card_id]), name)


@register.simple_tag
def load_mark(row: SchedulerNode) -> SafeString:
    """What runs on a node by its scheduler; what is gone says so."""
    if row.gone_at is not None:
        return _mark(Cell("Gone", "off", hint="The scheduler no longer lists it."))
    if not row.responding:
        return _mark(Cell("Does not answer", "bad", hint=row.raw_state))
    return _mark(Cell(row.load.capitalize(), _LOADS.get(row.load, "unknown"), hint=row.raw_state))


@register.simple_tag
def cordon_mark(cordon: Cordon) -> SafeString:
    """How far a cordon is."""
    kind, word = _CORDONS[cordon.state]
    if cordon.state == "applied" and cordon.drain:
        word = "Drained" if cordon.drained_at else "Draining"
    return _mark(Cell(word, kind))


@register.filter
def users_of(jobs: list[Job]) -> list[str]:
    """Whose jobs these are, by name, each once."""
    return sorted({job.user or job.account for job in jobs if job.user or job.account})


@register.filter
def cards_in(jobs: list[Job]) -> int:
    """Cards that these runs hold together."""
    return sum(job.cards for job in jobs)
