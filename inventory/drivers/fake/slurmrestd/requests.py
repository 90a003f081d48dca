"""Bodies of requests that change something, as slurmrestd takes them from v0.0.40 on."""

import re
from typing import Any

import msgspec

from inventory.drivers.clusters.slurm.hostlist import HostlistError, expand, ranges
from inventory.drivers.clusters.slurm.wire import SetNumber
from inventory.drivers.fake.slurmrestd.jobs import Wish
from inventory.drivers.fake.slurmrestd.refusals import Code, SlurmRefusal

_GRES = re.compile(r"^gres[/:]gpu(?::(?P<type>[^:,=]+))?[:=](?P<count>\d+)$")
Number = int | SetNumber | None


class JobDescription(msgspec.Struct):
    """What is known of `job` in a submission and in an update."""

    name: str | None = None
    comment: str | None = None
    account: str | None = None
    partition: str | None = None
    qos: str | None = None
    reservation: str | None = None
    current_working_directory: str | None = None
    standard_output: str | None = None
    environment: list[str] | None = None
    required_nodes: list[str] | str | None = None
    minimum_nodes: int | None = None
    nodes: str | None = None
    tres_per_node: str | None = None
    tres_per_job: str | None = None
    cpus_per_task: int | None = None
    memory_per_node: Number = None
    time_limit: Number = None
    begin_time: Number = None
    array: str | None = None
    hold: bool | None = None
    requeue: bool | None = None


class Submission(msgspec.Struct):
    """The body of job/submit."""

    job: JobDescription
    script: str = ""


class NodeUpdate(msgspec.Struct):
    """The body of a change of a node."""

    state: list[str] | None = None
    reason: str | None = None
    comment: str | None = None


def parsed(kind: type[Any], body: bytes) -> Any:
    """The body as one of the above. SlurmRefusal when it is none."""
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise SlurmRefusal(Code.FAIL_PARSING, str(error)) from error


def wish_of(sent: Submission, user: str) -> Wish:
    """What a submission asks for. SlurmRefusal for what makes no sense."""
    job = sent.job
    if job.environment is None or not job.current_working_directory:
        raise SlurmRefusal(Code.FAIL_PARSING, "environment and current_working_directory must be set")
    card_type, cards = cards_of(job.tres_per_node)
    total_type, total = cards_of(job.tres_per_job)
    tasks, at_once = tasks_of(job.array)
    return Wish(
        name=job.name or "sbatch",
        user=user,
        account=job.account or "",
        partition=job.partition or "",
        qos=job.qos or "normal",
        script=sent.script,
        comment=job.comment or "",
        directory=job.current_working_directory,
        output=job.standard_output or "",
        node_count=job.minimum_nodes or 1,
        nodes=_names(job.required_nodes),
        cards=cards,
        total=total,
        card_type=card_type or total_type,
        cpus=job.cpus_per_task or 1,
        memory=value(job.memory_per_node) or 1000,
        limit=value(job.time_limit),
        requeue=job.requeue is not False,
        held=bool(job.hold),
        tasks=tasks,
        at_once=at_once,
        reservation=job.reservation or "",
        begin=value(job.begin_time) or 0,
    )


def changes_of(job: JobDescription) -> dict[str, Any]:
    """The fields of a Wish that an update sets."""
    told = {
        "name": job.name,
        "comment": job.comment,
        "account": job.account,
        "qos": job.qos,
        "limit": value(job.time_limit),
        "requeue": job.requeue,
        "reservation": job.reservation,
    }
    return {key: told_value for key, told_value in told.items() if told_value is not None}


def value(number: Number) -> int | None:
    """The number, None when it is unset or without limit."""
    if isinstance(number, SetNumber):
        return int(number.number) if number.set and not number.infinite else None
    return number


def cards_of(text: str | None) -> tuple[str, int]:
    """Type and number of `gres/gpu:h100:2`. SlurmRefusal for another gres."""
    if not text:
        return "", 0
    match = _GRES.match(text)
    if match is None:
        raise SlurmRefusal(Code.NOT_AVAILABLE, f"no node has {text[:100]}")
    return match["type"] or "", int(match["count"])


def tasks_of(text: str | None) -> tuple[tuple[int, ...], int]:
    """Numbers of an array and how many run at a time: `0-15%4`. SlurmRefusal for nonsense."""
    if not text:
        return (), 0
    numbers, _, at_once = text.partition("%")
    try:
        return tuple(sorted({int(number) for number in ranges(numbers)})), int(at_once or 0)
    except (HostlistError, ValueError) as error:
        raise SlurmRefusal(Code.INVALID_ARRAY, text[:100]) from error


def _names(nodes: list[str] | str | None) -> tuple[str, ...]:
    try:
        return tuple(name for text in ([nodes] if isinstance(nodes, str) else nodes or []) for name in expand(text))
    except HostlistError as error:
        raise SlurmRefusal(Code.INVALID_NODE, str(error)) from error
