"""The topic `collectors`: who is read, when, with what result, since when it fails, and what is due."""

from django.utils import timezone

from inventory.models import Agent
from inventory.selectors.collectors import ORDER, Source, sources
from sensaka.live.cells import Cell, Cells, count, duration, moment, unknown, version
from sensaka.live.words import FAILURES


def _result_cell(source: Source) -> Cell:
    row = source.collector
    match source.condition:
        case "off":
            return Cell("Revoked" if getattr(row, "revoked_at", None) else "Switched off", "off")
        case "failing":
            return Cell(FAILURES.get(row.error_kind, "Failed"), "bad", hint=row.error_detail)
        case "new":
            return Cell("Not read yet", "free")
        case "late":
            return Cell("Late", "warn", hint=f"Nothing for more than three intervals of {row.interval} s.")
        case "partly":
            told = [f"{failure.get('what', '')}: {failure.get('detail', '')}" for failure in row.failures[:6]]
            return Cell(f"Read, {count(len(row.failures))} missing", "warn", hint="\n".join(told))
        case _:
            return Cell("Read", "good")


def _cards_cell(source: Source) -> Cell:
    if source.kind == "scheduler":
        return Cell("", hint="A scheduler is asked for nodes and jobs.")
    seen = source.collector.cards_seen
    return Cell(count(seen)) if seen is not None else unknown()


def source_cells(one: Source) -> Cells:
    """The cells of one collector's row."""
    source = one.collector
    prefix = f"collector.{source.pk}"
    kept = getattr(source, "spooled", None)
    cost = duration(source.elapsed) if source.elapsed is not None else ""
    if source.requests is not None:
        cost = f"{cost}, {count(source.requests)} requests" if cost else f"{count(source.requests)} requests"
    elif kept is not None:
        cost = f"{count(kept)} spooled"
    found = {
        f"{prefix}.result": _result_cell(one),
        f"{prefix}.read": moment(source.succeeded_at, hint="Last read that gave something"),
        f"{prefix}.cost": Cell(cost, hint="What the last read took") if cost else unknown(),
        f"{prefix}.cards": _cards_cell(one),
        f"{prefix}.error": Cell(source.error_detail or ""),
    }
    if isinstance(source, Agent):
        found[f"{prefix}.due"] = Cell(f"pushes every {source.interval} s", hint="An agent sends by itself.")
    elif source.enabled:
        # A time always, also when it has passed: the page writes one kind of cell into its place.
        found[f"{prefix}.due"] = moment(source.due_at, hint=f"Read every {source.interval} s")
    else:
        found[f"{prefix}.due"] = unknown("Switched off")
    if source.failing_since is not None:
        found[f"{prefix}.since"] = moment(source.failing_since, hint="Failing since")
    return found


def cells() -> Cells:
    """Every collector, and how many there are by condition."""
    now = timezone.now()
    found: Cells = {}
    numbers = dict.fromkeys(ORDER, 0)
    identities = []
    for source in sources(now=now):
        found.update(source_cells(source))
        numbers[source.condition] += 1
        identities.append((str(source.id), source.collector.enabled, source.collector.interval))
    for name, number in numbers.items():
        found[f"results.{name}"] = Cell(count(number), "bad" if name == "failing" and number else "")
    found["collectors.version"] = version(sorted(identities))
    return found
