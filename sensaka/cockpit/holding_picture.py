"""The picture of who held what, in the numbers that the timeline's script draws."""

from datetime import datetime
from typing import Any

from pools.selectors.holdings import Holder, Wanted, picture


def drawn(wanted: Wanted, *, start: datetime, end: datetime, by: str, now: datetime) -> dict[str, Any]:
    """Lanes with their bars as `[index of the holder, start, end, row]`, in seconds from the start of the span."""
    found = picture(wanted, start=start, end=end, by=by, now=now)
    places = {key: index for index, key in enumerate(found.holders)}
    lanes = []
    for lane in found.lanes:
        bars = []
        rows: list[datetime] = []
        for bar in lane.bars:
            row = next((index for index, free in enumerate(rows) if free <= bar.start), len(rows))
            rows[row:] = [bar.end, *rows[row + 1 :]]
            bars.append([places[bar.key], *(round((at - start).total_seconds()) for at in (bar.start, bar.end)), row])
        lanes.append({"id": str(lane.id), "name": lane.name, "rows": max(len(rows), 1), "bars": bars})
    return {
        "start": int(start.timestamp()),
        "end": int(end.timestamp()),
        "now": int(now.timestamp()),
        "by": by,
        "truncated": found.truncated,
        "unknown": 0,
        "jobs": [_told(holder) for holder in found.holders.values()],
        "lanes": lanes,
    }


def _told(holder: Holder) -> dict[str, Any]:
    """As the script takes a run: `job` is written into its bar, `kind` gives it its mark."""
    state, kind = ("Held before", "good") if holder.over else ("Held", "busy")
    if holder.suspended:
        state, kind = "Suspended", "warn"
    if not holder.assigned:
        state, kind = "Unassigned: no rule says whose it is", "unknown"
    return {
        "id": str(holder.row),
        "job": holder.project or holder.tenant or "unassigned",
        "name": holder.what,
        "user": holder.tenant,
        "account": holder.project,
        "state": state,
        "kind": kind,
        "cards": holder.cards,
        "known": True,
        "over": holder.over,
    }
