"""System event logs: which of a BMC's many logs speak of the hardware, and their entries."""

import re
from collections.abc import Iterable, Sequence
from datetime import datetime

from inventory.drivers.bmc.redfish.reader import Reader
from inventory.drivers.bmc.redfish.resources import Resource, dig, moment, name_in, path_of, pick, words
from inventory.observations import LogEntry

# Crash dumps, boot codes, consoles, and who logged in: not events of the hardware (TELEMETRY 6.5).
_OTHER_LOGS = re.compile(
    r"dump|postcode|hostlogger|journal|fdr|audit|debug|console|^iel$|^sl$|security|telemetry|attribute|maintenance|crash",
    re.IGNORECASE,
)
_MOST_SERVICES = 8
_MOST_ENTRIES = 20_000
_SEVERITIES = {"informational": "ok", "ok": "ok", "warning": "warning", "critical": "critical"}


async def read_log(reader: Reader, root: Resource, *, since: datetime | None) -> Sequence[LogEntry]:
    """Entries newer than `since`, oldest first. An entry without a usable time is always given."""
    owners: list[Resource] = []
    for name in ("Systems", "Managers"):
        members = await reader.members(path_of(pick(root, name)) or f"/redfish/v1/{name}")
        owners += members.members if members else []
    services: dict[str, None] = {}
    for owner in owners:
        path = path_of(pick(owner, "LogServices"))
        names = await reader.references(path, optional=True) if path else None
        services |= dict.fromkeys(name for name in names or [] if not _OTHER_LOGS.search(name_in(name)))
    entries: list[LogEntry] = []
    for path in list(services)[:_MOST_SERVICES]:
        service = await reader.fetch(path, optional=True)
        collection = path_of(pick(service, "Entries"))
        if collection and pick(service, "ServiceEnabled") is not False:
            members = await reader.members(collection, optional=True)
            entries += log_entries(members.members if members else [], log=name_in(path), since=since)
    return sorted(entries, key=_order)[-_MOST_ENTRIES:]


def log_entries(entries: Iterable[Resource], *, log: str, since: datetime | None) -> list[LogEntry]:
    """Parsed entries; `log` goes before the id, because every log counts from 1 by itself."""
    found: list[LogEntry] = []
    for entry in entries:
        created = moment(pick(entry, "Created")) or moment(pick(entry, "EventTimestamp"))
        if since is not None and created is not None and created <= since:
            continue
        severity = words(pick(entry, "Severity")).lower()
        found.append(
            LogEntry(
                entry_id=f"{log}/{words(pick(entry, 'Id')) or name_in(path_of(entry))}"[:200],
                logged_at=created,
                severity=_SEVERITIES.get(severity, severity)[:200],
                message=_message(entry)[:2000],
                sensor=_sensor(entry)[:200],
            )
        )
    return found


def _message(entry: Resource) -> str:
    """The text; where it leaves its arguments out (XIDs of HGX stand there) they follow it."""
    text = words(pick(entry, "Message")) or words(pick(entry, "MessageId"))
    given = pick(entry, "MessageArgs")
    arguments = [words(value) for value in given] if isinstance(given, list) else []
    missing = [value for value in arguments if value and value not in text]
    return f"{text} ({', '.join(missing)})" if missing else text


def _sensor(entry: Resource) -> str:
    origin = path_of(dig(entry, "Links", "OriginOfCondition"))
    number = words(pick(entry, "SensorNumber"))
    kind = words(pick(entry, "SensorType"))
    return name_in(origin) or (f"{kind} {number}".strip() if kind or number else "")


def _order(entry: LogEntry) -> tuple[float, int, str]:
    tail = entry.entry_id.rsplit("/", 1)[-1]
    when = entry.logged_at.timestamp() if entry.logged_at else 0.0
    return when, int(tail) if tail.isdigit() else 0, entry.entry_id
