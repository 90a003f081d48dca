"""Who hears of what: the apps' signals become touches of the live pages. Connected when Django is ready."""

from typing import Any

from django.contrib.auth.signals import user_logged_out
from django.db.models.signals import post_save

from inventory import signals
from inventory.models import Discovery
from pools import signals as promises
from sensaka import nudges
from sensaka.live.hub import end_session, touch
from sensaka.live.topics import Change


def _samples_stored(**_: Any) -> None:
    touch(Change.SAMPLES)


def _tree_changed(**_: Any) -> None:
    touch(Change.TREE)


def _collector_read(**_: Any) -> None:
    touch(Change.COLLECTORS)


def _jobs_changed(**_: Any) -> None:
    touch(Change.JOBS)


def _requests_changed(**_: Any) -> None:
    touch(Change.REQUESTS)


def _discovery_saved(**_: Any) -> None:
    touch(Change.DISCOVERY)


def _signed_out(*, request: Any, **_: Any) -> None:
    if key := request.session.session_key:
        end_session(key)


def connect() -> None:
    """Connect every receiver; calling it twice changes nothing."""
    nudges.connect()
    signals.samples_stored.connect(_samples_stored, dispatch_uid="live.samples")
    signals.tree_changed.connect(_tree_changed, dispatch_uid="live.tree")
    signals.collector_read.connect(_collector_read, dispatch_uid="live.collectors")
    signals.jobs_changed.connect(_jobs_changed, dispatch_uid="live.jobs")
    promises.requests_changed.connect(_requests_changed, dispatch_uid="live.requests")
    promises.allocations_changed.connect(_requests_changed, dispatch_uid="live.allocations")
    promises.queue_changed.connect(_requests_changed, dispatch_uid="live.queue")
    promises.catalogue_changed.connect(_requests_changed, dispatch_uid="live.catalogue")
    promises.idle_changed.connect(_requests_changed, dispatch_uid="live.idle")
    post_save.connect(_discovery_saved, sender=Discovery, dispatch_uid="live.discovery")
    user_logged_out.connect(_signed_out, dispatch_uid="live.sessions")
