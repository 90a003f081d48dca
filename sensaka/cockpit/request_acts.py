"""What a person may do to a request now, and what each act will do and how it is undone, said before it is done."""

from dataclasses import dataclass, replace

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from inventory.views.act_sentences import Said
from pools.models import Request
from pools.rules.lifecycle import HOLDING

_BEFORE = frozenset({"submitted", "queued", "preempted"})


@dataclass(frozen=True, slots=True)
class Act:
    """A button: its name in addresses, its title, its icon, and whether it ends something."""

    name: str
    title: str
    icon: str
    ends: bool = False


def possible(request: Request) -> list[Act]:
    """The acts that fit what the request does now."""
    if request.ended:
        return []
    found = []
    if request.state in HOLDING and not request.end_asked:
        found += [
            Act("extend", _("Extend"), "clock"),
            Act("release", _("Release"), "check"),
        ]
    if request.state in _BEFORE:
        found.append(
            Act("resume", _("Resume"), "player-play") if request.held else Act("hold", _("Hold"), "player-pause")
        )
    if not request.end_asked:
        found.append(Act("cancel", _("Cancel"), "x", ends=True))
    return found


_SAID = {
    "hold": Said(
        title=gettext_lazy("Hold %(request)s"),
        effects=[gettext_lazy("It stays in the queue and does not start, also when cards are free.")],
        undo=gettext_lazy("Resume it, from the same place."),
        button=gettext_lazy("Hold"),
        done=gettext_lazy("%(request)s is on hold. To undo it, resume it."),
    ),
    "resume": Said(
        title=gettext_lazy("Resume %(request)s"),
        effects=[gettext_lazy("It starts when its turn comes.")],
        undo=gettext_lazy("Put it on hold again while it waits."),
        button=gettext_lazy("Resume"),
        done=gettext_lazy("%(request)s is resumed. To undo it, put it on hold."),
    ),
    "release": Said(
        title=gettext_lazy("Release %(request)s"),
        effects=[gettext_lazy("What runs on its cards is ended, and the cards are free for others.")],
        undo=gettext_lazy("It can't be undone: ask for the cards again."),
        button=gettext_lazy("Release the cards"),
        done=gettext_lazy("%(request)s gives its cards back: its cluster is told to end it."),
        dangerous=True,
    ),
    "cancel": Said(
        title=gettext_lazy("Cancel %(request)s"),
        effects=[],
        undo=gettext_lazy("It can't be undone: ask again, and it queues anew."),
        button=gettext_lazy("Cancel the request"),
        done=gettext_lazy("%(request)s is cancelled."),
        dangerous=True,
    ),
    "extend": Said(
        title=gettext_lazy("More time for %(request)s"),
        effects=[gettext_lazy("Whoever decides is asked. Granted, it ends that much later; it runs on meanwhile.")],
        undo=gettext_lazy("Release the cards earlier."),
        button=gettext_lazy("Ask for more time"),
        done=gettext_lazy("More time is asked for %(request)s."),
    ),
}  # fmt: skip
ACTS = frozenset(_SAID)


def said(name: str, request: Request, cards: int) -> Said:
    """An act on this request in words; `cards` is what it holds. KeyError for an act that there is not."""
    words = _SAID[name]
    effects = list(words.effects)
    if name == "cancel" and request.state in HOLDING:
        effects.append(_("What runs is ended by its cluster. What it has not saved is lost."))
    elif name == "cancel":
        effects.append(_("It leaves the queue. Nothing of it runs."))
    if name in ("cancel", "release") and cards:
        text = ngettext("%(number)d card becomes free.", "%(number)d cards become free.", cards)
        effects.append(text % {"number": cards})
    named = {"request": str(request)}
    return replace(words, title=words.title % named, done=words.done % named, effects=effects)
