"""What a person may do about idle work, and what each act will do and how it is undone, said before it is done."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from inventory.views.act_sentences import Said
from pools.forms.idle import LeaveForm, MayWhyForm, MustWhyForm, TimeForm
from pools.models import IdleCase, IdlePolicy, IdleState, ReclaimState
from pools.selectors.idle_cases import under_way

FORMS = {
    "release": MayWhyForm, "extend": TimeForm, "grant": MayWhyForm, "refuse": MustWhyForm, "leave": LeaveForm,
    "reclaim": MustWhyForm,
}  # fmt: skip
OWNERS = frozenset({"release", "extend"})
"""Acts of owners; the others are operators'."""


@dataclass(frozen=True, slots=True)
class Act:
    """A button: its name in addresses, its title, its icon, and whether it ends something."""

    name: str
    title: str
    icon: str
    ends: bool = False


def possible(case: IdleCase, *, owner: bool, operates: bool) -> list[Act]:
    """The acts that fit how a case stands, for who looks at it."""
    wanted = under_way(case)
    releasing = wanted is not None and wanted.state == ReclaimState.RELEASING
    known = case.allocation.request_id is not None or case.allocation.job_id is not None
    found = []
    if operates and case.extension_waits:
        found += [Act("grant", _("Grant"), "check"), Act("refuse", _("Refuse"), "x")]
    if operates and not releasing:
        found.append(Act("leave", _("Leave"), "clock"))
    if operates and known:
        found.append(Act("reclaim", _("Reclaim again") if releasing else _("Reclaim"), "arrow-down", ends=True))
    if owner and not operates and not releasing:
        refused = case.decided_at is not None and case.extended_until is None
        if not case.extension_waits and not refused:
            found.append(Act("extend", _("Ask for time"), "clock"))
        if wanted is None:
            found.append(Act("release", _("Release"), "check", ends=True))
    return found


@dataclass(frozen=True, slots=True)
class Next:
    """What comes next if nothing changes, as the beginning of a sentence, and the earliest time of it."""

    words: str
    at: datetime


def next_step(case: IdleCase) -> Next | None:
    """The next step by the pool's rule; None while somebody has to decide, or its end is under way."""
    pool, warned = case.allocation.pool, case.second_warned_at or case.first_warned_at
    if pool is None or warned is None or case.extension_waits or under_way(case) is not None:
        return None
    due = warned + timedelta(seconds=pool.idle_warning_gap)
    if case.state == IdleState.EXTENDED and case.extended_until is not None:
        due = max(due, case.extended_until)
    if case.second_warned_at is None:
        return Next(_("Still idle, the second warning comes at"), due)
    if pool.idle_policy == IdlePolicy.RECLAIM and case.allocation.request_id is not None:
        return Next(_("Still idle, they are taken back at"), due)
    return Next(_("Still idle, an operator is asked to take them back at"), due)


def named(case: IdleCase) -> str:
    """What the work is called: a request's name, or "job 4711"."""
    held = case.allocation
    if held.request is not None:
        return str(held.request)
    return _("job %(id)s") % {"id": held.job.job_id} if held.job is not None else _("unknown work")


def said(name: str, case: IdleCase) -> Said:
    """An act on a case in words. KeyError for an act that there is not."""
    words = {"work": named(case), "why": case.justification}
    return _SAID[name](case, words)


def _ends(case: IdleCase, words: dict[str, str]) -> list[str]:
    observed = case.allocation.request_id is None
    what = (
        _("Its cluster is told to cancel %(work)s. What it has not saved is lost.")
        if observed
        else _("Its cluster is told to end %(work)s. What it has not saved is lost.")
    )
    cards = ngettext("%(number)d card becomes free.", "%(number)d cards become free.", case.cards)
    return [what % words, cards % {"number": case.cards}]


def _release(case: IdleCase, words: dict[str, str]) -> Said:
    asked = case.allocation.request_id is None
    return Said(
        title=_("Release the cards of %(work)s") % words,
        effects=[_("An operator is asked to end it: Sensaka did not start it.")] if asked else [*_ends(case, words)],
        undo=_("It can't be undone: ask for cards again."),
        button=_("Release"),
        done=_("The cards of %(work)s are given back.") % words,
        dangerous=True,
    )


def _extend(case: IdleCase, words: dict[str, str]) -> Said:
    return Said(
        title=_("Keep the idle cards of %(work)s") % words,
        effects=[_("An operator is asked. Nothing is taken back until it is decided.")],
        undo=_("Use the cards or release them."),
        button=_("Ask for time"),
        done=_("Time is asked for %(work)s.") % words,
    )


def _grant(case: IdleCase, words: dict[str, str]) -> Said:
    return Said(
        title=_("Leave the cards to %(work)s as asked") % words,
        effects=[_("They stay idle for that long. If they are still not used then, the warnings go on.")],
        undo=_("Reclaim them by hand."),
        button=_("Grant"),
        done=_("The cards are left to %(work)s.") % words,
    )


def _refuse(case: IdleCase, words: dict[str, str]) -> Said:
    return Said(
        title=_("Refuse time to %(work)s") % words,
        effects=[_("The warnings go on. Their owner reads your reason, and can't ask again.")],
        undo=_("Leave them to their owner by hand."),
        button=_("Refuse"),
        done=_("%(work)s gets no more time.") % words,
    )


def _leave(case: IdleCase, words: dict[str, str]) -> Said:
    return Said(
        title=_("Leave the idle cards to %(work)s") % words,
        effects=[_("Nobody is warned and nothing is taken for that long. A suggestion to reclaim them is refused.")],
        undo=_("Reclaim them by hand."),
        button=_("Leave"),
        done=_("The cards are left to %(work)s. To undo it, reclaim them.") % words,
    )


def _reclaim(case: IdleCase, words: dict[str, str]) -> Said:
    return Said(
        title=_("Reclaim the cards of %(work)s") % words,
        effects=[*_ends(case, words)],
        undo=_("It can't be undone: its owner has to start it again."),
        button=_("Reclaim"),
        done=_("The cards of %(work)s are taken back: its cluster is told to end it.") % words,
        dangerous=True,
    )


_SAID = {
    "release": _release, "extend": _extend, "grant": _grant, "refuse": _refuse, "leave": _leave, "reclaim": _reclaim,
}  # fmt: skip
