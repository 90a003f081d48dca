"""Queues and reservations, as last read: what differs is written, what is gone is removed."""

from collections.abc import Iterable, Mapping
from typing import Any

from django.db.models import Model

from inventory.drivers.clusters.readings import QueuesReading, ReservationsReading
from inventory.models import ClusterConnection, Reservation, SchedulerQueue

_QUEUE = ("nodes", "up", "default", "time_limit", "priority", "accounts")
_RESERVATION = ("nodes", "starts_at", "ends_at", "users", "accounts", "flags", "cards", "maintenance")


def record_queues(connection: ClusterConnection, reading: QueuesReading) -> None:
    """Partitions of a complete reading."""
    _record(connection, SchedulerQueue, _QUEUE, {one.name: _values(one, _QUEUE) for one in reading.queues})


def record_reservations(connection: ClusterConnection, reading: ReservationsReading) -> None:
    """Reservations of a complete reading."""
    found = {one.name: _values(one, _RESERVATION) for one in reading.reservations}
    _record(connection, Reservation, _RESERVATION, found)


def _values(reading: object, names: Iterable[str]) -> dict[str, Any]:
    values = {name: getattr(reading, name) for name in names}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


def _record(
    connection: ClusterConnection, model: type[Model], names: tuple[str, ...], found: Mapping[str, dict[str, Any]]
) -> None:
    manager = model._default_manager
    stored: dict[str, Any] = {row.name: row for row in manager.filter(connection=connection)}  # type: ignore[attr-defined]
    gone = [row.pk for name, row in stored.items() if name not in found]
    differing = [
        model(connection=connection, name=name, **values)
        for name, values in found.items()
        if name not in stored or any(getattr(stored[name], field) != value for field, value in values.items())
    ]
    if gone:
        manager.filter(pk__in=gone).delete()
    if differing:
        manager.bulk_create(
            differing,
            update_conflicts=True,
            unique_fields=["connection", "name"],
            update_fields=[*names, "updated_at"],
        )
