"""Live jobs and finished runs: from Slurm's entries to readings. Pure.

A job's key is its id and its time of submission: Slurm's own accounting is unique in that pair and
sets the time anew at each requeue.
"""

from collections.abc import Sequence

from inventory.drivers.clusters.readings import (
    ENDED,
    HOLDING,
    CardBinding,
    JobReading,
    JobState,
    RunReading,
    StepReading,
)
from inventory.drivers.clusters.slurm import gres, wire
from inventory.drivers.clusters.slurm.hostlist import HostlistError, expand
from inventory.drivers.clusters.slurm.states import is_held, job_state, words_of

_NO_NODES = frozenset({"", "None assigned", "(null)", "N/A"})
_NO_REASON = frozenset({"", "None"})


def job_key(job_id: int, submitted: int | None) -> str:
    """The stable key of one run within its cluster."""
    return f"{job_id}-{submitted or 0}"


def _word(number: wire.Number) -> str:
    value = wire.integer(number)
    return str(value) if value else ""


def nodes_of(text: str | None) -> tuple[str, ...]:
    """Names in a node list; a list that makes no sense gives none."""
    if text is None or text in _NO_NODES:
        return ()
    try:
        return expand(text)
    except HostlistError:
        return ()


def reading_of_job(job: wire.WireJob) -> JobReading:
    """One live job."""
    words = words_of(job.job_state)
    state = job_state(words)
    nodes = nodes_of(job.nodes)
    # slurmctld tells the cards of the run before while a job waits for its next turn
    counted = gres.count_cards(gres.parse_tres(job.tres_alloc_str if nodes else ""))
    bindings = _bindings(job, nodes) if state in HOLDING else ()
    code, signal = wire.exit_of(job.exit_code) if state in ENDED else (None, None)
    reason = job.state_reason or ""
    array_id, group = _word(job.array_job_id), _word(job.het_job_id)
    limit = wire.integer(job.time_limit)
    return JobReading(
        key=job_key(job.job_id, wire.integer(job.submit_time)),
        job_id=str(job.job_id),
        workload=array_id or group or str(job.job_id),
        cluster=job.cluster or "",
        name=(job.name or "")[:2000],
        user=job.user_name or (f"uid {job.user_id}" if job.user_id is not None else ""),
        account=job.account or "",
        qos=job.qos or "",
        queue=job.partition or "",
        state=state,
        raw_state="+".join(words)[:200],
        reason="" if reason in _NO_REASON else reason,
        exit_code=code,
        exit_signal=signal,
        array_id=array_id,
        array_task=wire.integer(job.array_task_id) if array_id else None,
        array_tasks=(job.array_task_string or "")[:200],
        group_id=group,
        group_offset=wire.integer(job.het_job_offset) if group else None,
        submitted_at=wire.moment(job.submit_time),
        eligible_at=wire.moment(job.eligible_time),
        started_at=wire.moment(job.start_time) if nodes else None,
        ended_at=wire.moment(job.end_time) if state in ENDED else None,
        time_limit=None if limit is None else limit * 60,
        nodes=nodes,
        cards=counted.cards,
        cards_by_type=counted.by_type,
        shares=counted.shares,
        cards_requested=gres.count_cards(gres.parse_tres(job.tres_req_str)).cards,
        comment=(job.comment or "")[:2000],
        reservation=job.resv_name or "",
        bindings=bindings,
        cards_known=state not in HOLDING or gres.accounts_for_all(bindings, counted),
        priority=wire.integer(job.priority),
        held=state is JobState.PENDING and is_held(reason),
        restarts=wire.integer(job.restart_cnt) or 0,
    )


def _bindings(job: wire.WireJob, nodes: tuple[str, ...]) -> tuple[CardBinding, ...]:
    """What the job holds on each node: `gres_detail` has one text a node, in the allocation's order."""
    texts = job.gres_detail or []
    names = (job.job_resources.names() if job.job_resources else []) or nodes
    if len(texts) != len(names):
        return ()  # which text is which node's can't be told
    return tuple(binding for name, text in zip(names, texts, strict=True) for binding in gres.bindings_of(name, text))


def reading_of_run(run: wire.WireRun) -> RunReading:
    """One run of the accounting."""
    words = words_of(run.state.current)
    state = job_state(words, live=False)
    nodes = nodes_of(run.nodes)
    # slurmdbd tells a start and cards also of a run that was cancelled while it waited for its next turn
    counted = gres.count_cards(_tres(run.tres.allocated) if nodes else {})
    requested = run.tres.requested
    code, signal = wire.exit_of(run.exit_code) if state in ENDED else (None, None)
    if state is JobState.FAILED and code == 0 and signal is None:
        code = None  # slurmrestd 22.05 tells 0 for every exit code of a finished run
    array_id = _word(run.array.job_id) if run.array else ""
    group = _word(run.het.job_id) if run.het else ""
    limit = wire.integer(run.time.limit)
    reservation = run.reservation.name if run.reservation else ""
    return RunReading(
        key=job_key(run.job_id, wire.integer(run.time.submission)),
        job_id=str(run.job_id),
        workload=array_id or group or str(run.job_id),
        cluster=run.cluster or "",
        name=(run.name or "")[:2000],
        user=run.user or "",
        account=run.account or "",
        qos=run.qos or "",
        queue=run.partition or "",
        state=state,
        raw_state="+".join(words)[:200],
        reason="" if (run.state.reason or "") in _NO_REASON else str(run.state.reason),
        exit_code=code,
        exit_signal=signal,
        array_id=array_id,
        array_task=wire.integer(run.array.task_id) if run.array and array_id else None,
        group_id=group,
        group_offset=wire.integer(run.het.job_offset) if run.het and group else None,
        submitted_at=wire.moment(run.time.submission),
        eligible_at=wire.moment(run.time.eligible),
        started_at=wire.moment(run.time.start) if nodes else None,
        ended_at=wire.moment(run.time.end) if state in ENDED else None,
        time_limit=limit * 60 if limit else None,
        nodes=nodes,
        cards=counted.cards,
        cards_by_type=counted.by_type,
        shares=counted.shares,
        cards_requested=gres.count_cards(_tres(requested)).cards if isinstance(requested, list) else 0,
        comment=((run.comment.job if run.comment else None) or "")[:2000],
        reservation=reservation if isinstance(reservation, str) else "",
        elapsed=wire.integer(run.time.elapsed),
        suspended=wire.integer(run.time.suspended),
        cancelled_by=run.kill_request_user or "",
        steps=tuple(_step(step) for step in run.steps or ()),
    )


def _tres(listed: Sequence[wire.WireTres]) -> dict[str, int]:
    return {
        entry.name: number
        for entry in listed
        if entry.type == "gres" and entry.name and (number := wire.integer(entry.count)) is not None
    }


def _step(step: wire.WireStep) -> StepReading:
    state = job_state(words_of(step.state), live=False)
    name = "" if step.step.id is None else str(step.step.id)
    return StepReading(
        step=name.rpartition(".")[2][:200],
        name=(step.step.name or "")[:2000],
        state=state,
        started_at=wire.moment(step.time.start),
        ended_at=wire.moment(step.time.end) if state in ENDED else None,
        nodes=nodes_of(step.nodes.range if step.nodes else None),
        cards=gres.count_cards(_tres(step.tres.allocated)).cards if step.tres else 0,
    )
