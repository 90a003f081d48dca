"""Which nodes, cards and slices the runs of a visit hold: from the scheduler, the gaps filled by agents.

What was known once of a number stays while the run goes on: a card that is read anew under another
minor number is not the one that the run got.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any
from uuid import UUID

from django.db.models import Q

from inventory.drivers.clusters.readings import CardBinding, JobReading
from inventory.models import CardSource, Job, JobCard, JobNode, ProcessBinding
from inventory.rules.job_cards import Binding, Held, NodeCards, Told, attribute, resolve
from inventory.rules.jobs import HOLDING, CardKind, JobState
from inventory.services.clusters.nodes import NodeBook
from inventory.services.clusters.standing import cards_on
from sensaka.platform.bulk import write_rows

_SHARED = frozenset({CardKind.SHARD, CardKind.MPS})
_NOT_TOLD = "the scheduler does not tell which cards it holds"
_TOO_LATE = "it was over before anybody could see which cards it held"


@dataclass(frozen=True, slots=True)
class HeldRow:
    """What a `JobCard` says beside its run: equal rows are the same fact."""

    node: UUID
    card: UUID | None
    slice: UUID | None
    kind: str
    type: str
    index: int | None
    shares: int | None
    source: str


@dataclass(slots=True)
class _Stored:
    """What is stored of one run; things that are unknown alike stand in one list."""

    nodes: set[UUID] = field(default_factory=set)
    cards: dict[HeldRow, list[UUID]] = field(default_factory=dict)


class Holdings:
    """Decides for changed runs first, so that their rows can be written with the verdict, then writes."""

    def __init__(self, readings: Mapping[str, JobReading], book: NodeBook) -> None:
        self.judged: set[str] = set()
        self._readings = readings
        self._book = book
        self._jobs: list[Job] = []
        self._stored: dict[str, _Stored] = defaultdict(_Stored)
        self._wanted: dict[str, list[HeldRow]] = {}

    def decide(self, jobs: Iterable[Job]) -> None:
        """Sets `cards_known` and `cards_reason` of each run; `judged` are the keys where that differs."""
        self._jobs = list(jobs)
        self._load()
        live = [job for job in self._jobs if self._is_told(job)]
        here = cards_on(self._nodes_of(job for job in live if job.key in self._readings), self._book)
        gaps: list[tuple[Job, list[HeldRow], int, str]] = []
        for job in live:
            rows, lacking, why = self._resolved(job, here)
            gaps.append((job, rows, lacking, why))
        told = self._told_by_others([job for job, _, lacking, _ in gaps if lacking])
        for job, rows, lacking, why in gaps:
            self._wanted[job.key] = self._filled(job, rows, lacking, why, told.get(job.key, []))
        for job in self._jobs:
            unseen = job.key not in self._wanted and job.cards_known is None and job.started_at is not None
            if unseen and (job.cards or job.shares):
                self._judge(job, known=False, reason=_TOO_LATE)

    def write(self) -> bool:
        """Writes nodes and cards of the runs, which have their ids by now. True when anything differed."""
        nodes = [
            JobNode(job=job, node_id=node)
            for job in self._jobs
            for node in {self._book.node(name) for name in job.node_names}
            if node is not None and node not in self._stored[job.key].nodes
        ]
        gone: list[UUID] = []
        new: list[JobCard] = []
        for job in self._jobs:
            if (wanted := self._wanted.get(job.key)) is None:
                continue
            left = {row: list(ids) for row, ids in self._stored[job.key].cards.items()}
            for row in wanted:
                if ids := left.get(row):
                    ids.pop()
                else:
                    new.append(JobCard(job=job, **_columns(row)))
            gone += [key for ids in left.values() for key in ids]
        if gone:
            JobCard.objects.filter(pk__in=gone).delete()
        write_rows(nodes)
        write_rows(new)
        return bool(nodes or gone or new)

    def _load(self) -> None:
        keys = {job.pk: job.key for job in self._jobs if not job._state.adding}
        if not keys:
            return
        for job, node in JobNode.objects.filter(job__in=keys).values_list("job_id", "node_id"):
            self._stored[keys[job]].nodes.add(node)
        for one in JobCard.objects.filter(job__in=keys).order_by("id"):
            row = HeldRow(
                one.node_id, one.card_id, one.slice_id, one.kind, one.type, one.index, one.shares, one.source
            )  # fmt: skip
            self._stored[keys[one.job_id]].cards.setdefault(row, []).append(one.pk)

    def _is_told(self, job: Job) -> bool:
        """Whether its reading can say anything of cards now. Numbers hold while it runs, UUIDs for good."""
        reading = self._readings.get(job.key)
        if reading is None:
            return job.holds and job.cards_known is False
        if not (reading.bindings or job.cards or job.shares):
            return False
        if reading.state in HOLDING:
            return True
        return bool(reading.bindings) and all(one.uuids or one.addresses for one in reading.bindings)

    def _nodes_of(self, jobs: Iterable[Job]) -> set[UUID]:
        names = {name for job in jobs for name in job.node_names}
        names |= {binding.node for job in jobs for binding in self._readings[job.key].bindings}
        return {node for name in names if (node := self._book.node(name)) is not None}

    def _resolved(self, job: Job, here: Mapping[UUID, NodeCards]) -> tuple[list[HeldRow], int, str]:
        """What the scheduler tells, how many cards it does not tell, and why."""
        reading = self._readings.get(job.key)
        if reading is None or (reading.state is JobState.COMPLETING and self._stored[job.key].cards):
            return self._as_it_was(job)  # Slurm no longer tells the cards of a run that completes
        rows: list[HeldRow] = []
        unknown, counted = "", 0
        for binding in reading.bindings:
            node = self._book.node(binding.node)
            if node is None:
                unknown = unknown or f"node {binding.node} is not known"
                continue
            found = resolve(_binding(binding), here[node])
            unknown = unknown or found.unknown
            rows += [self._kept(job, node, one) for one in found.held]
            counted += 0 if binding.kind in _SHARED else binding.count
        lacking = sum(row.card is None for row in rows) + max(job.cards - counted, 0)
        if not reading.cards_known or lacking:
            unknown = unknown or _NOT_TOLD
        return rows, lacking, unknown if lacking or not reading.cards_known else ""

    def _as_it_was(self, job: Job) -> tuple[list[HeldRow], int, str]:
        """The same of a run of which this visit says nothing: what the last one told."""
        stored = self._stored[job.key].cards.items()
        rows = [row for row, ids in stored if row.source == CardSource.SCHEDULER for _ in ids]
        lacking = sum(row.card is None for row in rows) + max(job.cards - len(rows), 0)
        return rows, lacking, job.cards_reason.partition("; ")[0]

    def _kept(self, job: Job, node: UUID, held: Held) -> HeldRow:
        """A row of the scheduler's; with the card that its number stood for when it was first known."""
        card, part = held.card, held.slice
        if held.index is not None:
            for row in self._stored[job.key].cards:
                same = (row.node, row.kind, row.type, row.index) == (node, held.kind, held.type, held.index)
                if same and row.card is not None:
                    card, part = row.card, row.slice
        return HeldRow(node, card, part, str(held.kind), held.type, held.index, held.shares, CardSource.SCHEDULER)

    def _told_by_others(self, jobs: list[Job]) -> dict[str, list[Told]]:
        """By run: where its processes are or were seen, on its own nodes."""
        if not jobs:
            return {}
        told: dict[str, dict[tuple[UUID, UUID | None], Told]] = defaultdict(dict)
        here = {node for job in jobs for name in job.node_names if (node := self._book.node(name)) is not None}
        by_name = self._by_name(here)
        named = ~Q(slurm_job_id="") | ~Q(pod_uid="") | ~Q(pod="")
        processes = ProcessBinding.objects.filter(named, node__in=here).order_by("id")
        for one in processes.only("node", "card", "slice", "pid", "slurm_job_id", "pod_uid", "pod", "namespace"):
            source = CardSource.AGENT if one.pid else CardSource.POD_RESOURCES
            keys = by_name.get((one.node_id, one.slurm_job_id or one.pod_uid or f"{one.namespace}/{one.pod}"), set())
            if len(keys) == 1:
                key = next(iter(keys))
                told[key].setdefault((one.card_id, one.slice_id), Told(one.node_id, one.card_id, one.slice_id, source))
        for job in jobs:
            for row in self._stored[job.key].cards:
                if row.source != CardSource.SCHEDULER and row.card is not None:
                    before = Told(row.node, row.card, row.slice, row.source)
                    told[job.key].setdefault((row.card, row.slice), before)
        return {key: list(found.values()) for key, found in told.items()}

    def _by_name(self, nodes: set[UUID]) -> dict[tuple[UUID, str], set[str]]:
        """Runs that hold one of these nodes now, by what an agent or exporter calls them there."""
        here = JobNode.objects.filter(node__in=nodes, job__open=True, job__state__in=list(HOLDING))
        told = {job.key for job in self._jobs}
        columns = ("node_id", "job__key", "job__job_id", "job__account", "job__name")
        found = {row for row in here.values_list(*columns) if row[1] not in told}
        for job in self._jobs:
            if job.holds:
                places = {self._book.node(name) for name in job.node_names} & nodes
                found |= {(node, job.key, job.job_id, job.account, job.name) for node in places if node is not None}
        names: dict[tuple[UUID, str], set[str]] = defaultdict(set)
        for node, key, job_id, account, name in found:
            for called in {key, job_id, f"{account}/{name}"}:
                names[node, called].add(key)
        return names

    def _filled(self, job: Job, rows: list[HeldRow], lacking: int, why: str, told: list[Told]) -> list[HeldRow]:
        """The rows with their gaps filled as far as others tell; sets the verdict."""
        if lacking:
            known = {(row.card, row.slice) for row in rows if row.card is not None}
            new, left = attribute(known, told, lacking=lacking)
            rows = _replaced(rows, new)
            why = "" if not left else f"{why}; {left}" if told and why else why or left
        self._judge(job, known=not why, reason=why)
        return rows

    def _judge(self, job: Job, *, known: bool, reason: str) -> None:
        if (job.cards_known, job.cards_reason) != (known, reason[:500]):
            job.cards_known, job.cards_reason = known, reason[:500]
            self.judged.add(job.key)


def _replaced(rows: list[HeldRow], new: list[Told]) -> list[HeldRow]:
    """Each of `new` in the place of an unknown of its node, or added where the scheduler counted none there."""
    wanted = list(rows)
    for one in new:
        kind, gres = str(CardKind.MIG if one.slice else CardKind.CARD), ""
        for place, row in enumerate(wanted):
            if row.node == one.node and row.card is None:
                kind, gres = row.kind, row.type
                del wanted[place]
                break
        wanted.append(HeldRow(one.node, one.card, one.slice, kind, gres, None, None, one.source))
    return wanted


def _columns(row: HeldRow) -> dict[str, Any]:
    values = {one.name: getattr(row, one.name) for one in fields(row)}
    return {f"{name}_id" if name in ("node", "card", "slice") else name: value for name, value in values.items()}


def _binding(binding: CardBinding) -> Binding:
    return Binding(
        binding.kind, binding.type, binding.count, binding.uuids, binding.addresses, binding.indices
    )  # fmt: skip
