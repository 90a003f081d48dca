"""What an act on a run will do and how it is undone, said before it is confirmed."""

from dataclasses import replace

from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from inventory.models import Job
from inventory.views.act_sentences import Said

_FREED = ("cancel", "requeue")
_ACTS = {
    "cancel": Said(
        title=_("Cancel job %(job)s"),
        effects=[_("Its programs are asked to end, and are ended if they don't. What they have not saved is lost.")],
        undo=_("It can't be undone. Its user can submit the job again."),
        button=_("Cancel the job"),
        done=_("Job %(job)s is cancelled."),
        dangerous=True,
    ),
    "hold": Said(
        title=_("Hold job %(job)s"),
        effects=[_("It stays in the queue and is not started until somebody releases it.")],
        undo=_("Release it, from this page."),
        button=_("Hold"),
        done=_("Job %(job)s is held. To undo it, release it."),
    ),
    "release": Said(
        title=_("Release job %(job)s"),
        effects=[_("It is started when its turn comes.")],
        undo=_("Hold it again while it waits."),
        button=_("Release"),
        done=_("Job %(job)s is released. To undo it, hold it."),
    ),
    "suspend": Said(
        title=_("Suspend job %(job)s"),
        effects=[
            _("Its programs stop where they are. It keeps its cards and its memory; its time limit stands still.")
        ],
        undo=_("Resume it, from this page."),
        button=_("Suspend"),
        done=_("Job %(job)s is suspended. To undo it, resume it."),
    ),
    "resume": Said(
        title=_("Resume job %(job)s"),
        effects=[_("Its programs go on where they stopped.")],
        undo=_("Suspend it again."),
        button=_("Resume"),
        done=_("Job %(job)s goes on. To undo it, suspend it."),
    ),
    "requeue": Said(
        title=_("Requeue job %(job)s"),
        effects=[
            _("This run ends now. What its programs have not saved is lost."),
            _("The job goes back to the queue and starts from its beginning, as a new run."),
        ],
        undo=_("It can't be undone: the run is over."),
        button=_("Requeue"),
        done=_("Job %(job)s is back in the queue."),
        dangerous=True,
    ),
    "signal": Said(
        title=_("Send a signal to job %(job)s"),
        effects=[_("Its programs get the signal. What they do then is theirs; KILL ends them at once.")],
        undo=_("A signal can't be taken back."),
        button=_("Send"),
        done=_("Job %(job)s got the signal."),
        dangerous=True,
    ),
}


def of_job(name: str, job: Job) -> Said:
    """An act on a run. KeyError for another one."""
    run = {"job": job.job_id, "cards": job.cards}
    said = _ACTS[name]
    effects = list(said.effects)
    if name == "cancel" and not job.holds:
        effects = [_("It is taken off the queue.")]
    if name in _FREED and job.holds and job.cards:
        effects.append(ngettext("%(cards)d card comes free.", "%(cards)d cards come free.", job.cards) % run)
    return replace(said, title=str(said.title) % run, done=str(said.done) % run, effects=effects)
