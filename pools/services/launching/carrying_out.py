"""What is due in the clusters: claimed, done, and what came of it stored."""

import logging
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from inventory.models import ClusterConnection, Job
from inventory.services.clusters.launching import Answer, Errand, Order, Outcome, Verb, carry_out
from pools.models import Allocation, Request
from pools.services.launching.answers import store
from pools.services.launching.orders import Refusal, orders_of
from pools.services.ledger.seen import MARKED

log = logging.getLogger(__name__)

AT_ONCE = 200
LEASE = timedelta(seconds=60)
PATIENCE = timedelta(minutes=5)
"""How long a submitted job may wait in its scheduler, whose plan then no longer holds."""

_HOLDING = ("starting", "running")


@dataclass(slots=True)
class Done:
    """What a round did: errands carried out, and how many of them the clusters did not do."""

    errands: int = 0
    failed: int = 0


def carry_out_due(*, now: datetime | None = None) -> Done:
    """Talks to every cluster about what is due there; several processes share the work."""
    done = Done()
    moment = now or timezone.now()
    claimed = _claim(moment)
    if not claimed:
        return done
    errands, refused = _errands(claimed, moment)
    for cluster, own in errands.items():
        answers = carry_out(cluster, own)
        _store(claimed, own, answers)
        done.errands += len(own)
        done.failed += sum(not answer.ok for answer in answers.values())
        ClusterConnection.objects.filter(cluster=cluster, enabled=True).update(due_at=timezone.now())
    _store(claimed, [errand for errand, _ in refused], {errand.key: answer for errand, answer in refused})
    return done


def _due(now: datetime) -> QuerySet[Request]:
    """Requests about which something is to be said to their clusters now."""
    launch = Q(state="starting", job_reference="", end_asked="", leaves_at=None, signalled_at=None)
    end = Q(state__in=_HOLDING) & (~Q(end_asked="") | Q(leaves_at__lte=now))
    signal = Q(state__in=_HOLDING, signalled_at__isnull=False, told_at=None)
    stuck = Q(state="starting", state_since__lt=now - PATIENCE, leaves_at=None) & ~Q(job_reference="")
    longer = Q(
        state="running",
        pk__in=Allocation.objects.filter(
            span__upper_inf=True, request__state="running", job__open=True, job__time_limit__lt=F("request__time_limit")
        ).values("request"),
    )
    free = Q(leased_until=None) | Q(leased_until__lt=now)
    return Request.objects.filter(launch | end | signal | stuck | longer).filter(free)


def _claim(now: datetime) -> list[Request]:
    """Leases what is due. What will be submitted is marked as tried first, so that a crash is known of."""
    with transaction.atomic():
        keys = list(
            _due(now).select_for_update(skip_locked=True, of=("self",)).order_by("state_since", "id")
            .values_list("pk", flat=True)[:AT_ONCE]
        )  # fmt: skip
        rows = {
            row.pk: row
            for row in Request.objects.filter(pk__in=keys).select_related("project__tenant", "spec", "cluster")
            .prefetch_related("spec__card_models")
        }  # fmt: skip
        fresh = [key for key, row in rows.items() if _launches(row) and row.launch_tried_at is None]
        Request.objects.filter(pk__in=keys).update(leased_until=now + LEASE)
        Request.objects.filter(pk__in=fresh).update(launch_tried_at=now)
    return [rows[key] for key in keys]


def _launches(row: Request) -> bool:
    return row.state == "starting" and not (row.job_reference or row.end_asked or row.leaves_at or row.signalled_at)


def _errands(
    rows: Sequence[Request], now: datetime
) -> tuple[dict[UUID, list[Errand]], list[tuple[Errand, Answer]]]:  # fmt: skip
    """What to do in which cluster, and what can be answered without asking one."""
    launching = [row for row in rows if _launches(row)]
    orders = orders_of(launching) if launching else {}
    tried = [row.mark for row in launching if row.launch_tried_at is not None]
    known = dict(Job.objects.filter(MARKED, comment__in=tried).values_list("comment", "job_id")) if tried else {}
    errands: dict[UUID, list[Errand]] = defaultdict(list)
    answered: list[tuple[Errand, Answer]] = []
    for row in rows:
        errand = _errand(row, orders.get(row.pk), now)
        order = orders.get(row.pk)
        if isinstance(order, Refusal):
            answered.append((errand, Answer(Outcome.REFUSED, order.why)))
        elif errand.verb is Verb.SUBMIT and row.mark in known:
            answered.append((errand, Answer(Outcome.UNCHANGED, "it is known already", known[row.mark])))
        elif row.launch_tried_at is None and errand.verb is not Verb.SUBMIT:
            answered.append((errand, Answer(Outcome.NOT_FOUND, "it was never submitted")))
        elif row.cluster_id is None:
            answered.append((errand, Answer(Outcome.NOT_FOUND, "its cluster is no longer there")))
        else:
            errands[row.cluster_id].append(errand)
    return errands, answered


def _errand(row: Request, order: Order | Refusal | None, now: datetime) -> Errand:
    if _launches(row):
        found = order if isinstance(order, Order) else None
        return Errand(row.pk, Verb.SUBMIT, row.mark, order=found, look_first=row.launch_tried_at is not None)
    ends = bool(row.end_asked) or (row.leaves_at is not None and row.leaves_at <= now)
    if ends or (row.state == "starting" and row.signalled_at is None):
        return Errand(row.pk, Verb.END, row.mark, row.job_reference)
    if row.signalled_at is not None and row.told_at is None:
        return Errand(row.pk, Verb.SIGNAL, row.mark, row.job_reference)
    return Errand(row.pk, Verb.EXTEND, row.mark, row.job_reference, seconds=row.time_limit)


def _store(rows: Sequence[Request], errands: Sequence[Errand], answers: dict[UUID, Answer]) -> None:
    by_id = {row.pk: row for row in rows}
    told = [(by_id[errand.key], errand, answers[errand.key]) for errand in errands]
    if told:
        store(told, now=timezone.now())
