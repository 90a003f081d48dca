"""What a person may do to a run: which acts fit its state and its scheduler, and what each will do."""

from dataclasses import dataclass

from django.utils.translation import gettext as _

from inventory.models import ClusterConnection, Job


@dataclass(frozen=True, slots=True)
class Act:
    """An act on a run. `why_not` says why it can't be done; empty when it can."""

    name: str
    title: str
    icon: str
    why_not: str = ""


def _capability(connection: ClusterConnection | None, name: str) -> str:
    """Why the scheduler can't do it; empty when it can."""
    if connection is None:
        return _("Its cluster is not connected.")
    if not connection.enabled:
        return _("The connection to its cluster is switched off.")
    for state in connection.capabilities:
        if state.get("capability") == name:
            return "" if state.get("available") else str(state.get("reason") or _("This server can't do it."))
    return _("This server does not say that it can do it.")


def possible(job: Job) -> list[Act]:
    """The acts that fit what the run does now, those that the scheduler can't do with the reason."""
    if not job.open:
        return []
    connection = getattr(job.cluster, "connection", None)
    found = []
    for name, title, icon, capability, fits in (
        ("hold", _("Hold"), "player-pause", "hold", job.state == "pending" and not job.held),
        ("release", _("Release"), "player-play", "hold", job.state == "pending" and job.held),
        ("suspend", _("Suspend"), "player-pause", "suspend", job.state == "running"),
        ("resume", _("Resume"), "player-play", "suspend", job.state == "suspended"),
        ("signal", _("Send a signal"), "bolt", "signal", job.state in ("running", "suspended")),
        ("requeue", _("Requeue"), "refresh", "requeue", job.holds),
        ("cancel", _("Cancel"), "x", "cancel", True),
    ):
        if fits:
            found.append(Act(name, title, icon, _capability(connection, capability)))
    return found
