"""What a scheduler says of a job, in the words of whoever waits for it."""

import signal
from datetime import timedelta

# Slurm's reasons (squeue(1), "JOB REASON CODES"); what is not listed is shown as it came.
_SLURM = {
    "Priority": "Jobs of higher priority are ahead of it.",
    "Resources": "It is next, and waits for nodes, cards or memory to come free.",
    "Dependency": "It waits for another job to end first.",
    "DependencyNeverSatisfied": "The job that it waits for can no longer end as it has to: cancel it.",
    "BeginTime": "It is to start at a later time.",
    "JobHeldUser": "Its owner holds it.",
    "JobHeldAdmin": "An administrator holds it.",
    "JobArrayTaskLimit": "As many tasks of its array as may run at a time are running.",
    "Licenses": "It waits for a licence.",
    "Reservation": "It waits for its reservation to begin.",
    "ReservationDeleted": "Its reservation was deleted: it can't start.",
    "PartitionDown": "Its queue takes no jobs at present.",
    "PartitionInactive": "Its queue starts no jobs at present.",
    "PartitionNodeLimit": "It asks for more nodes than its queue allows, or for ones that are out.",
    "PartitionTimeLimit": "It asks for more time than its queue allows.",
    "PartitionConfig": "It asks for more than its queue can give.",
    "NodeDown": "A node that it needs is down.",
    "BadConstraints": "No node has what it asks for.",
    "InvalidAccount": "Its account is not valid.",
    "InvalidQOS": "Its quality of service is not valid.",
    "Cleaning": "Its last run is being cleaned up before the next one.",
    "BlockedByPreempt": "It waits for a job that gives way to it.",
    "JobLaunchFailure": "It could not be started on its nodes.",
    "FailedNodeLaunch": "It could not be started on its nodes.",
    "NonZeroExitCode": "Its program ended with an error.",
    "RaisedSignal": "Its program was ended by a signal.",
    "TimeLimit": "It ran for as long as it may.",
    "OutOfMemory": "It used more memory than it asked for.",
    "SystemFailure": "The scheduler or its database failed.",
    "InactiveLimit": "It did nothing for longer than its queue allows.",
    "AccountNotAllowed": "Its account may not use this queue.",
    "QOSNotAllowed": "Its quality of service may not be used in this queue.",
    "LaunchFailedRequeuedHeld": "It could not be started, went back to the queue and is held there.",
    "SchedDefer": "The scheduler puts off looking at single jobs while it is busy.",
}
# Kubernetes: reasons of pods, of their conditions, and of containers.
_KUBERNETES = {
    "Unschedulable": "No node has room for it now.",
    "SchedulingGated": "A gate keeps it from being scheduled: something else has to open it.",
    "Evicted": "It was asked to leave its node.",
    "OOMKilled": "It used more memory than its limit.",
    "Error": "Its program ended with an error.",
    "ContainerCannotRun": "Its container could not be started.",
    "ImagePullBackOff": "Its image can't be fetched.",
    "ErrImagePull": "Its image can't be fetched.",
    "CrashLoopBackOff": "Its program ends soon after each start; it is started again later.",
    "ContainerCreating": "Its container is being made.",
    "DeadlineExceeded": "It ran for as long as it may.",
    "BackoffLimitExceeded": "It failed as often as it may.",
    "NodeLost": "Its node does not answer.",
    "NodeShutdown": "Its node was shut down.",
    "Preempting": "It gave way to a pod of higher priority.",
    "Preempted": "It gave way to a pod of higher priority.",
    "TerminationByKubelet": "Its node ended it.",
    "DeletionByTaintManager": "Its node no longer takes such pods.",
    "Suspended": "It is held: its owner starts no pods.",
}
_LIMITS = (
    ("QOS", "of its quality of service"),
    ("Assoc", "of its account"),
    ("MaxJobs", "of jobs at a time"),
)


def reason_words(scheduler: str, reason: str) -> str:
    """A reason as a sentence. One that is not known comes back as it is, an empty or "None" one as ""."""
    text = reason.strip()
    if text in ("", "None"):
        return ""
    known = _SLURM if scheduler == "slurm" else _KUBERNETES
    code = text.split(",")[0].split(":")[0].strip()
    if code in known:
        return known[code]
    if scheduler == "slurm" and code == "ReqNodeNotAvail":
        return (
            f"A node that it needs is not available: {text.partition(',')[2].strip() or 'down, taken out or reserved'}."
        )
    if scheduler == "slurm" and " " not in code:
        for start, whose in _LIMITS:
            if code.startswith(start) and any(word in code for word in ("Max", "Grp", "Limit", "Resource")):
                return f"A limit {whose} is reached ({code})."
    return text


def exit_words(code: int | None, ended_by: int | None) -> str:
    """How a program ended; "" where that is not told."""
    if ended_by:
        try:
            name = signal.Signals(ended_by).name
        except ValueError:
            name = f"signal {ended_by}"
        return f"Ended by {name}" + (f" ({ended_by})" if name.startswith("SIG") else "")
    if code is None:
        return ""
    if code > 128:
        try:
            return f"Exit code {code}: ended by {signal.Signals(code - 128).name}"
        except ValueError:
            pass
    return "Exit code 0: well" if code == 0 else f"Exit code {code}"


def clock(seconds: int | float | None) -> str:
    """A length of time as schedulers write it: 2-03:04:05, or 03:04:05 below a day; "" when not known."""
    if seconds is None:
        return ""
    whole = timedelta(seconds=int(max(seconds, 0)))
    hours, rest = divmod(whole.seconds, 3600)
    text = f"{hours:02d}:{rest // 60:02d}:{rest % 60:02d}"
    return f"{whole.days}-{text}" if whole.days else text
