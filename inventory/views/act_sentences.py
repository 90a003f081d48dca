"""What taking a node out or returning it will do and how it is undone, said before it is confirmed."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from inventory.models import Job, Scheduler, SchedulerNode
from inventory.selectors.cordons import BeforeCordon

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise


@dataclass(frozen=True, slots=True)
class Said:
    """An act in words: title, what will happen, how to undo it, the word on its button, and what is said when done."""

    title: "StrOrPromise"
    effects: "list[StrOrPromise]"
    undo: "StrOrPromise"
    button: "StrOrPromise"
    done: "StrOrPromise"
    dangerous: bool = False


@dataclass(frozen=True, slots=True)
class Touched:
    """Whom it touches: jobs, people and cards on the node, since when, and until when at the longest.

    `until` is None when a job has no time limit, so that nobody can say.
    """

    jobs: list[Job]
    users: list[str]
    cards: int
    since: datetime | None
    until: datetime | None


def touched(jobs: list[Job]) -> Touched:
    """The jobs of a node in short."""
    starts = [job.started_at for job in jobs if job.started_at]
    ends = [
        job.started_at + timedelta(seconds=job.time_limit + (job.suspended or 0))
        for job in jobs
        if job.started_at and job.time_limit is not None
    ]
    return Touched(
        jobs=jobs,
        users=sorted({job.user or job.account for job in jobs if job.user or job.account}),
        cards=sum(job.cards for job in jobs),
        since=min(starts, default=None),
        until=max(ends) if ends and len(ends) == len(jobs) else None,
    )


def of_node(name: str, before: BeforeCordon) -> Said:
    """`cordon`, `drain` or `return` of a node. KeyError for another act."""
    acts: dict[str, Callable[[BeforeCordon], Said]] = {"cordon": _cordon, "drain": _drain, "return": _return}
    return acts[name](before)


def _where(rows: list[SchedulerNode]) -> str:
    names = [f"{row.connection.get_scheduler_display()} of {row.connection.cluster.name}" for row in rows]
    return _(" and ").join(names)


def _closing(before: BeforeCordon) -> "list[StrOrPromise]":
    """What taking it out means for new work."""
    if before.scheduled_as and before.foreign is not None:
        found = [
            _("Somebody else has taken it out already. Theirs stays as it is; ours is set once theirs is lifted."),
        ]
    elif before.scheduled_as:
        first = _("%(scheduler)s starts no new work on %(node)s.")
        found = [first % {"scheduler": _where(before.scheduled_as), "node": before.node.name}]
    else:
        found = [_("No scheduler that is connected has this node: only the pool is told.")]
    return [*found, _("Its cards are no longer available to the pool, whatever runs on them.")]


def _cordon(before: BeforeCordon) -> Said:
    number = len(before.running)
    stays = ngettext(
        "The job that runs there goes on to its end.", "The %(number)d jobs that run there go on to their end.", number
    ) % {"number": number}
    return Said(
        title=_("Cordon %(node)s") % {"node": before.node.name},
        effects=[*_closing(before), *([stays] if number else [])],
        undo=_("Return it to scheduling, from its page or from the list of cordons."),
        button=_("Cordon"),
        done=_("%(node)s is cordoned. To undo it, return it to scheduling.") % {"node": before.node.name},
    )


def _drain(before: BeforeCordon) -> Said:
    number = len(before.running)
    kubernetes = any(row.connection.scheduler == Scheduler.KUBERNETES for row in before.scheduled_as)
    effects = _closing(before)
    if not number:
        effects.append(_("Nothing runs there: it counts as drained at once."))
    elif kubernetes:
        effects.append(
            _("Its pods are asked to leave, as far as their disruption budgets allow at a time. Each is ended there.")
        )
        effects.append(_("Their owners start them again elsewhere where there is room; one without an owner is gone."))
    else:
        effects.append(
            ngettext(
                "The job that runs there goes on to its end; then the node counts as drained.",
                "The %(number)d jobs that run there go on to their end; then the node counts as drained.",
                number,
            )
            % {"number": number}
        )
    return Said(
        title=_("Drain %(node)s") % {"node": before.node.name},
        effects=effects,
        undo=_("Return it to scheduling. What was ended meanwhile does not come back by that."),
        button=_("Drain"),
        done=_("%(node)s is being drained. To undo it, return it to scheduling.") % {"node": before.node.name},
        dangerous=kubernetes and bool(number),
    )


def _return(before: BeforeCordon) -> Said:
    effects: list[StrOrPromise] = [_("Its cards are available again, and the scheduler may start work there at once.")]
    if before.foreign is not None:
        effects = [_("Our cordon is lifted. Somebody else's stays: it takes no work until they lift theirs.")]
    return Said(
        title=_("Return %(node)s to scheduling") % {"node": before.node.name},
        effects=effects,
        undo=_("Cordon it again."),
        button=_("Return"),
        done=_("%(node)s is returned to scheduling. To undo it, cordon it again.") % {"node": before.node.name},
    )
