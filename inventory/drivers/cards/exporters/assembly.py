"""What dcgm and AMD pages share: labels under their variants, and picking one number for a field."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from inventory.drivers.cards.exporters.exposition import Row
from inventory.drivers.cards.values import short
from inventory.observations import FailureKind, NodeReading, ProcessReading, ReadFailure

_NO_TEXT = frozenset({"N/A", "n/a", "NA", "None"})
_TARGET_LABELS = frozenset({"pod", "namespace", "container"})


@dataclass(frozen=True, slots=True)
class Metric:
    """Where a series goes: `rank` decides between several that feed one field (lowest wins); series
    that are different `part`s of a field are added, each part once under whatever name it comes.
    `scale` turns the page's unit into ours; `whole_card` says that instances only repeat it."""

    field: str
    scale: float = 1.0
    rank: int = 0
    part: str = ""
    whole_card: bool = True


@dataclass(slots=True)
class Numbers:
    """Numbers of one card or slice, with every candidate kept until all rows are read."""

    _candidates: dict[str, dict[str, tuple[int, float]]] = field(default_factory=lambda: defaultdict(dict))

    def put(self, metric: Metric, name: str, value: float) -> None:
        """Keep `value`; the first row of a series wins, the rest repeat it (once per GPU instance,
        pod or job that holds the card)."""
        self._candidates[metric.field].setdefault(metric.part or name, (metric.rank, value * metric.scale))

    def put_max(self, metric: Metric, name: str, value: float) -> None:
        """Keep the largest of a series that is printed once per engine or memory stack."""
        held = self._candidates[metric.field].get(name)
        scaled = value * metric.scale
        self._candidates[metric.field][name] = (metric.rank, max(scaled, held[1]) if held else scaled)

    def take(self, metrics: Iterable[Metric]) -> dict[str, float]:
        """One number a field: the best ranked, or the sum of its parts."""
        summed = {metric.field for metric in metrics if metric.part}
        return {
            name: sum(value for _, value in found.values()) if name in summed else min(found.values())[1]
            for name, found in self._candidates.items()
        }


def label(labels: Mapping[str, str], *names: str) -> str:
    """The first label of `names` that holds a text, blank sentinels counting as none.

    Prometheus renames a target's own label to `exported_<name>` when its scrape sets the same one;
    the plain one then describes the exporter, so the exported one goes first.
    """
    for name in names:
        for spelled in (f"exported_{name}", name):
            text = labels.get(spelled, "").strip()
            if text and text not in _NO_TEXT and not text.startswith("<<<"):
                return short(text)
    return ""


def through_prometheus(rows: Iterable[Row]) -> bool:
    """Whether labels were renamed on the way: then plain pod labels are the exporter's own on every row."""
    return any(name.startswith("exported_") for labels in distinct_labels(rows) for name in labels)


def distinct_labels(rows: Iterable[Row]) -> list[dict[str, str]]:
    """Each set of labels of a page once: rows with the same labels share one object."""
    return list({id(row.labels): row.labels for row in rows}.values())


def binding(labels: Mapping[str, str], *, renamed: bool) -> ProcessReading | None:
    """Which pod or job these labels tie to a card that the caller fills in, None when to nobody.

    Pages know no process: pid is 0, which no process has.
    """
    if renamed:
        labels = {name: text for name, text in labels.items() if name not in _TARGET_LABELS}
    pod, job = label(labels, "pod", "pod_name"), label(labels, "hpc_job", "job_id")
    if not pod and not job:
        return None
    return ProcessReading(
        pid=0,
        card_uuid="",
        name=label(labels, "container", "container_name"),
        user=label(labels, "job_user"),
        pod_uid=label(labels, "pod_uid", "pod_uuid"),
        pod=pod,
        namespace=label(labels, "namespace", "pod_namespace"),
        slurm_job_id=job,
    )


def several_hosts(hosts: Iterable[str], *, observed_at: datetime) -> NodeReading | None:
    """A refusal when a page's cards stand in several hosts, as on a page that a Prometheus federates:
    all of them would otherwise move into the one node that the page belongs to."""
    names = sorted(set(hosts) - {""})
    if len(names) < 2:
        return None
    detail = f"the cards of {len(names)} hosts are on one page ({', '.join(names)[:200]}): scrape each exporter itself"
    failure = ReadFailure(what="hostname", kind=FailureKind.PROTOCOL, detail=detail)
    return NodeReading(observed_at=observed_at, failures=(failure,), complete=False)


def most_common(texts: Iterable[str]) -> str:
    """The text seen most often, so that one stray row does not rename a node; empty when there is none."""
    counted: dict[str, int] = defaultdict(int)
    for text in texts:
        if text:
            counted[text] += 1
    return max(counted, key=lambda text: counted[text]) if counted else ""
