"""Output of scontrol, sacct and sacctmgr as text, for servers whose commands give no JSON of it. Pure."""

from collections.abc import Iterator, Mapping

from inventory.drivers.clusters.readings import Queue, Reservation
from inventory.drivers.clusters.slurm import wire
from inventory.drivers.clusters.slurm.places import reading_of_queue, reading_of_reservation

SEPARATOR = "\x1f"
# The name stands last: it may hold anything, line ends too.
RUN_FIELDS = (
    *("JobIDRaw", "JobID", "Cluster", "User", "Account", "QOS", "Partition", "State", "Reason", "ExitCode"),
    *("Submit", "Eligible", "Start", "End", "ElapsedRaw", "Suspended", "TimelimitRaw", "NodeList"),
    *("AllocTRES", "ReqTRES", "Reservation", "JobName"),
)
_NONE = frozenset({"", "Unknown", "None", "N/A", "NONE", "(null)", "Partition_Limit", "UNLIMITED"})
_DAY = 86_400


def records(text: str) -> Iterator[dict[str, str]]:
    """The lines of `scontrol show ... -o`: blank-separated KEY=VALUE; a word without = belongs to the last value."""
    for line in text.splitlines():
        record: dict[str, str] = {}
        last = ""
        for word in line.split(" "):
            key, equals, value = word.partition("=")
            if equals and key.replace("_", "").replace(":", "").isalnum():
                last = key
                record[key] = value
            elif last and word:
                record[last] += f" {word}"
        if record:
            yield record


def queue_of(record: Mapping[str, str]) -> Queue | None:
    """One partition of `scontrol show partition -o`; None for a line that is none."""
    if "PartitionName" not in record:
        return None
    limit = seconds(record.get("MaxTime", ""))
    return reading_of_queue(
        wire.WirePartition(
            name=record["PartitionName"],
            nodes=record.get("Nodes", ""),
            flags=["default"] if record.get("Default") == "YES" else [],
            state=record.get("State", ""),
            max_time_limit=None if limit is None else limit // 60,
            priority_tier=whole(record.get("PriorityTier", "")),
            allowed_accounts=record.get("AllowAccounts", ""),
        )
    )


def reservation_of(record: Mapping[str, str]) -> Reservation | None:
    """One reservation of `scontrol show reservation -o`; None for a line that is none."""
    if "ReservationName" not in record:
        return None
    return reading_of_reservation(
        wire.WireReservation(
            name=record["ReservationName"],
            node_list=record.get("Nodes", ""),
            start_time=whole(record.get("StartTime", "")),
            end_time=whole(record.get("EndTime", "")),
            users=record.get("Users", ""),
            accounts=record.get("Accounts", ""),
            flags=[flag for flag in record.get("Flags", "").split(",") if flag],
            tres=record.get("TRES", ""),
        )
    )


def runs_of(text: str) -> tuple[list[wire.WireRun], int]:
    """Runs of `sacct -P` with RUN_FIELDS, steps with the run above them; and how many lines made no sense."""
    runs: list[wire.WireRun] = []
    odd = 0
    for row in _rows(text):
        raw, _, step = row["JobIDRaw"].partition(".")
        if not raw.isdigit():
            odd += 1
        elif not step:
            runs.append(_run(row))
        elif runs and runs[-1].job_id == int(raw) and runs[-1].steps is not None:
            runs[-1].steps.append(_step(row, step))
        else:
            odd += 1
    return runs, odd


def _rows(text: str) -> Iterator[dict[str, str]]:
    current: list[str] = []
    for line in text.split("\n"):
        parts = line.split(SEPARATOR)
        if len(parts) >= len(RUN_FIELDS):
            if current:
                yield dict(zip(RUN_FIELDS, current, strict=True))
            fixed = len(RUN_FIELDS) - 1
            current = [*parts[:fixed], SEPARATOR.join(parts[fixed:])]
        elif current and line:
            current[-1] += f"\n{line}"
    if current:
        yield dict(zip(RUN_FIELDS, current, strict=True))


def _run(row: Mapping[str, str]) -> wire.WireRun:
    array, _, task = row["JobID"].partition("_")
    leader, _, offset = row["JobID"].partition("+")
    state, _, by = row["State"].partition(" by ")
    return wire.WireRun(
        job_id=int(row["JobIDRaw"]),
        cluster=row["Cluster"],
        name=row["JobName"],
        user=row["User"],
        account=row["Account"],
        qos=row["QOS"],
        partition=row["Partition"],
        array=wire.ArrayPlace(job_id=whole(array), task_id=whole(task)) if task else None,
        het=wire.HetPlace(job_id=whole(leader), job_offset=whole(offset)) if offset else None,
        time=_times(row),
        state=wire.RunState(current=state, reason=row["Reason"]),
        exit_code=_exit(row["ExitCode"]),
        nodes=row["NodeList"],
        kill_request_user=by,
        reservation=wire.RunReservation(name=row["Reservation"]),
        tres=wire.TresLists(allocated=_tres(row["AllocTRES"]), requested=_tres(row["ReqTRES"])),
        steps=[],
    )


def _step(row: Mapping[str, str], step: str) -> wire.WireStep:
    return wire.WireStep(
        time=_times(row),
        state=row["State"].partition(" by ")[0],
        nodes=wire.StepNodes(range=row["NodeList"]),
        step=wire.StepName(id=step, name=row["JobName"]),
        tres=wire.TresLists(allocated=_tres(row["AllocTRES"])),
    )


def _times(row: Mapping[str, str]) -> wire.RunTimes:
    return wire.RunTimes(
        elapsed=whole(row["ElapsedRaw"]),
        eligible=whole(row["Eligible"]),
        submission=whole(row["Submit"]),
        start=whole(row["Start"]),
        end=whole(row["End"]),
        suspended=seconds(row["Suspended"]),
        limit=whole(row["TimelimitRaw"]),
    )


def _exit(text: str) -> wire.ExitCode:
    code, _, number = text.partition(":")
    return wire.ExitCode(return_code=whole(code), signal=wire.Signal(id=whole(number) or None))


def _tres(text: str) -> list[wire.WireTres]:
    found = []
    for part in text.split(","):
        name, _, count = part.partition("=")
        if name.startswith("gres/"):
            found.append(wire.WireTres(type="gres", name=name.removeprefix("gres/"), count=whole(count)))
    return found


def whole(text: str) -> int | None:
    """A whole number; None for Slurm's words for none."""
    return int(text) if text.isascii() and text.isdigit() else None


def seconds(text: str) -> int | None:
    """The seconds of `[DAYS-]HH:MM:SS`, `MM:SS` or the like with a fraction; None for none and no limit."""
    if text in _NONE:
        return None
    days, _, rest = text.partition("-") if "-" in text else ("0", "", text)
    total = 0
    for part in rest.partition(".")[0].split(":"):
        number = whole(part)
        if number is None:
            return None
        total = total * 60 + number
    day = whole(days)
    return None if day is None else day * _DAY + total


def rows_of(text: str, fields: int) -> Iterator[list[str]]:
    """The lines of `sacctmgr -n -P`, those with another number of columns left out."""
    for line in text.splitlines():
        parts = line.split("|")
        if len(parts) == fields:
            yield parts
