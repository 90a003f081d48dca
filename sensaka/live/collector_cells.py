"""The topic `collectors`: who is read, when, with what result, since when it fails, and what is due."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from django.utils import timezone

from inventory.models import Agent, Bmc, Exporter
from sensaka.live.card_cells import version
from sensaka.live.cells import Cell, Cells, count, duration, moment, unknown
from sensaka.live.words import FAILURES

Source = Bmc | Exporter | Agent
LATE_INTERVALS = 3
RESULTS = ("ok", "partial", "failing", "late", "off", "new")


def result(source: Source, now: datetime) -> str:
    """One of RESULTS: what the last read gave."""
    if not source.enabled or getattr(source, "revoked_at", None) is not None:
        return "off"
    if source.failing_since is not None:
        return "failing"
    if source.succeeded_at is None:
        return "new"
    if now - source.succeeded_at > timedelta(seconds=LATE_INTERVALS * source.interval):
        return "late"
    return "partial" if source.failures else "ok"


def _result_cell(source: Source, now: datetime) -> Cell:
    match result(source, now):
        case "off":
            revoked = getattr(source, "revoked_at", None)
            return Cell("Revoked" if revoked else "Switched off", "off")
        case "failing":
            return Cell(FAILURES.get(source.error_kind, "Failed"), "bad", hint=source.error_detail)
        case "new":
            return Cell("Not read yet", "free")
        case "late":
            hint = f"Nothing for more than {LATE_INTERVALS} intervals of {source.interval} s."
            return Cell("Late", "warn", hint=hint)
        case "partial":
            told = [f"{failure.get('what', '')}: {failure.get('detail', '')}" for failure in source.failures[:6]]
            return Cell(f"Read, {count(len(source.failures))} missing", "warn", hint="\n".join(told))
        case _:
            return Cell("Read", "good")


def source_cells(source: Source, now: datetime) -> Cells:
    """The cells of one collector's row."""
    prefix = f"collector.{source.pk}"
    kept = getattr(source, "spooled", None)
    cost = duration(source.elapsed) if source.elapsed is not None else ""
    if source.requests is not None:
        cost = f"{cost}, {count(source.requests)} requests" if cost else f"{count(source.requests)} requests"
    elif kept is not None:
        cost = f"{count(kept)} spooled"
    found = {
        f"{prefix}.result": _result_cell(source, now),
        f"{prefix}.read": moment(source.succeeded_at, hint="Last read that gave something"),
        f"{prefix}.cost": Cell(cost, hint="What the last read took") if cost else unknown(),
        f"{prefix}.cards": Cell(count(source.cards_seen)) if source.cards_seen is not None else unknown(),
        f"{prefix}.error": Cell(source.error_detail or ""),
    }
    if isinstance(source, Agent):
        found[f"{prefix}.due"] = Cell(f"pushes every {source.interval} s", hint="An agent sends by itself.")
    elif source.enabled:
        hint = f"Read every {source.interval} s"
        found[f"{prefix}.due"] = moment(source.due_at, hint=hint) if source.due_at > now else Cell("now", hint=hint)
    else:
        found[f"{prefix}.due"] = unknown("Switched off")
    if source.failing_since is not None:
        found[f"{prefix}.since"] = moment(source.failing_since, hint="Failing since")
    return found


def all_sources() -> Iterable[Source]:
    """Every BMC, exporter and agent with its node."""
    for model in (Bmc, Exporter, Agent):
        yield from model.objects.select_related("node").defer(*_heavy(model))


def _heavy(model: type[Bmc] | type[Exporter] | type[Agent]) -> tuple[str, ...]:
    return ("sensors", "links", "tls_authority") if model is Bmc else ()


def cells() -> Cells:
    """Every collector, and how many there are by result."""
    now = timezone.now()
    found: Cells = {}
    numbers = dict.fromkeys(RESULTS, 0)
    identities = []
    for source in all_sources():
        found.update(source_cells(source, now))
        numbers[result(source, now)] += 1
        identities.append((str(source.pk), source.enabled, source.interval))
    for name, number in numbers.items():
        found[f"results.{name}"] = Cell(count(number), "bad" if name == "failing" and number else "")
    found["collectors.version"] = version(sorted(identities))
    return found
