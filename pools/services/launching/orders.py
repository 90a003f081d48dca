"""From a placed request to the order that its cluster takes."""

import shlex
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db.models import Q

from inventory.models import Scheduler, SchedulerNode, SchedulerQueue
from inventory.services.clusters.launching import CardKind, Order
from pools.models import ClusterMode, Launch, Request, SharingMode
from pools.rules.mapping import OwnerBook
from pools.services.ledger.entries import Entry, stored
from pools.services.ledger.seen import owner_book

HOLD_SCRIPT = "#!/bin/sh\n# Holds the cards until the time limit, or until they are given back.\nexec sleep infinity\n"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request can't be launched where it was placed."""

    why: str


@dataclass(slots=True)
class Places:
    """What schedulers call our nodes, which queues have them, and who decides: of some clusters."""

    names: dict[UUID, str] = field(default_factory=dict)
    kinds: dict[UUID, list[dict[str, Any]]] = field(default_factory=dict)
    queues: dict[UUID, list[SchedulerQueue]] = field(default_factory=lambda: defaultdict(list))
    modes: dict[UUID, ClusterMode] = field(default_factory=dict)
    book: OwnerBook = field(default_factory=lambda: OwnerBook(()))


def orders_of(requests: Sequence[Request]) -> dict[UUID, Order | Refusal]:
    """The order of each request, or why there is none. Five queries for any number of requests.

    `project__tenant`, `spec` and `cluster` of the requests are loaded.
    """
    planned: dict[UUID, list[Entry]] = defaultdict(list)
    for entry in stored(Q(request__in=[row.pk for row in requests], job=None, span__upper_inf=True)):
        if entry.request is not None:
            planned[entry.request].append(entry)
    known = _places({entry.node for own in planned.values() for entry in own},
                    {row.cluster_id for row in requests if row.cluster_id is not None})  # fmt: skip
    return {row.pk: _order(row, planned.get(row.pk, []), known) for row in requests}


def _places(nodes: set[UUID], clusters: set[UUID]) -> Places:
    known = Places(book=owner_book())
    rows = SchedulerNode.objects.filter(node__in=nodes, gone_at=None, connection__cluster__in=clusters)
    for row in rows.only("node", "name", "accelerators"):
        if row.node_id is not None:
            known.names[row.node_id], known.kinds[row.node_id] = row.name, row.accelerators
    queues = SchedulerQueue.objects.filter(connection__cluster__in=clusters, up=True).select_related("connection")
    for queue in queues.order_by("-default", "-priority", "name"):
        known.queues[queue.connection.cluster_id].append(queue)
    known.modes = {row.cluster_id: row for row in ClusterMode.objects.filter(cluster__in=clusters)}
    return known


def _order(request: Request, planned: Sequence[Entry], known: Places) -> Order | Refusal:
    cluster = request.cluster
    if cluster is None or not planned:
        return Refusal("its cards are no longer promised to it")
    missing = [entry for entry in planned if entry.node not in known.names]
    if missing:
        return Refusal("a node of its plan is no longer in the scheduler")
    kubernetes = cluster.scheduler == Scheduler.KUBERNETES
    work = _work(request, kubernetes=kubernetes)
    if isinstance(work, Refusal):
        return work
    nodes = Counter(known.names[entry.node] for entry in planned)
    card = _card(request, [known.kinds[entry.node] for entry in planned])
    if isinstance(card, Refusal):
        return card
    even = len(set(nodes.values())) == 1
    tenant = request.project.tenant
    account = known.book.place_of(cluster.pk, "namespace" if kubernetes else "account", tenant.pk, request.project_id)
    mode = known.modes.get(cluster.pk)
    units = max(Counter((entry.node) for entry in planned).values()) // max(request.spec.cards, 1)
    return Order(
        name=_name(request),
        mark=request.mark,
        working_directory="" if kubernetes or mode is None else mode.working_directory,
        output="/dev/null" if mode is None else mode.output,
        account=account or (tenant.slug if kubernetes else ""),
        queue="" if kubernetes else _queue(known.queues.get(cluster.pk, []), set(nodes)),
        nodes=tuple(sorted(nodes)),
        cards=max(nodes.values()) if even else 0,
        card_total=0 if even else sum(nodes.values()),
        cpus=_each(request.spec.cpu_cores, units),
        memory=_each(request.spec.memory, units),
        time_limit=request.time_limit,
        environment={**request.environment, "SENSAKA_REQUEST": str(request.pk)},
        requeue=False,
        **card,
        **work,
    )


def _name(request: Request) -> str:
    kept = "".join(one if one.isalnum() or one in "-_." else "-" for one in str(request))
    return kept.strip("-_.")[:60] or "request"


def _each(amount: float | None, units: int) -> int | None:
    """What all units of one node need together, in whole cores or bytes."""
    return None if not amount else max(1, -(-int(amount * units * 1000) // 1000))


def _work(request: Request, *, kubernetes: bool) -> dict[str, Any] | Refusal:
    if request.launch == Launch.SCRIPT:
        if kubernetes:
            return Refusal("Kubernetes starts container images: name one, with the script as its command")
        return {"script": request.script}
    if request.launch == Launch.IMAGE:
        if not kubernetes:
            return Refusal("this Slurm starts scripts: give the batch script that starts the container")
        if not request.command:
            return Refusal("name the command that is to run in the image")
        return {"script": f"#!/bin/sh\nexec {shlex.join(request.command)}\n", "image": request.image}
    if kubernetes:
        return Refusal("Kubernetes gives out cards to pods alone: name an image that is to hold them")
    return {"script": HOLD_SCRIPT}


_KINDS = {SharingMode.WHOLE: CardKind.CARD, SharingMode.MIG: CardKind.MIG}


def _card(request: Request, kinds: Sequence[Sequence[dict[str, Any]]]) -> dict[str, Any] | Refusal:
    """The kind and type to ask for, where the nodes have several; one that all of them know."""
    spec = request.spec
    kind = _KINDS.get(SharingMode(spec.mode))
    if kind is None:
        return Refusal("shares of cards are given out by the cluster's own scheduler alone")
    common: set[str] | None = None
    for own in kinds:
        here = {str(one.get("type", "")) for one in own if one.get("kind") == kind.value and one.get("total")}
        common = here if common is None else common & here
    types = sorted(common or ())
    if kind is CardKind.MIG:
        types = [one for one in types if one.rpartition("_")[2].lower() == spec.profile.lower()]
    if len(types) > 1:
        names = " ".join(f"{model.slug} {model.name}".lower() for model in spec.card_models.all())
        types = [one for one in types if one.lower() in names][:1]
    if not types:
        return Refusal("the nodes of its plan do not offer such cards in the scheduler")
    return {"card_kind": kind, "card_type": types[0]}


def _queue(queues: Sequence[SchedulerQueue], nodes: set[str]) -> str:
    """The default queue where it has all nodes, else the first that has; "" leaves it to the scheduler."""
    return next((queue.name for queue in queues if nodes <= set(queue.nodes)), "")
