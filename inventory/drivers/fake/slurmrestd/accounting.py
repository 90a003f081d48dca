"""What slurmrestd tells from the accounting (slurmdbd): runs, accounts, associations, qualities of service."""

from collections.abc import Iterator
from typing import Any

from inventory.drivers.clusters.slurm.hostlist import compress
from inventory.drivers.fake.slurmrestd.answers import array_text
from inventory.drivers.fake.slurmrestd.controller import Controller
from inventory.drivers.fake.slurmrestd.forms import exit_code, limit, number, tres_list
from inventory.drivers.fake.slurmrestd.jobs import ENDED, Job
from inventory.drivers.fake.slurmrestd.places import Account, Layout, Qos


def runs_since(controller: Controller, since: int) -> Iterator[Job]:
    """Runs that ended at or after `since`, and those that are not over (sacct --starttime)."""
    yield from (run for run in controller.runs if run.ended >= since)
    yield from (job for job in controller.jobs.values() if job.state not in ENDED)


def runs_of(controller: Controller, job_id: int) -> Iterator[Job]:
    """Every run of one job, or of an array's tasks."""
    yield from (run for run in controller.runs if job_id in (run.id, run.array_id))
    open_jobs = (job for job in controller.jobs.values() if job.state not in ENDED)
    yield from (job for job in open_jobs if job_id in (job.id, job.array_id))


def run_entry(controller: Controller, run: Job) -> dict[str, Any]:
    """One entry of slurmdb's `jobs`."""
    wish = run.wish
    names = [share.node for share in run.shares]
    card_type = controller.nodes[names[0]].card_type if names else wish.card_type
    return {
        "job_id": run.id,
        "cluster": controller.layout.cluster,
        "name": wish.name,
        "user": wish.user,
        "account": wish.account,
        "qos": wish.qos,
        "partition": wish.partition,
        "association": {"account": wish.account, "cluster": controller.layout.cluster, "partition": "",
                        "user": wish.user},
        "comment": {"administrator": "", "job": wish.comment, "system": ""},
        "array": {"job_id": run.array_id, "task_id": number(run.task), "task": array_text(run.tasks, wish.at_once),
                  "limits": {"max": {"running": {"tasks": wish.at_once}}}},
        "het": {"job_id": 0, "job_offset": number(None)},
        "time": _times(controller.now, run),
        "state": {"current": [run.state], "reason": run.reason},
        "exit_code": exit_code(run.code, run.signal),
        "derived_exit_code": exit_code(run.code, 0),
        "nodes": compress(names) or "None assigned",
        "allocation_nodes": len(names),
        "failed_node": run.failed_node,
        "kill_request_user": run.ended_by,
        "priority": number(run.priority),
        "restart_cnt": run.restarts,
        "reservation": {"id": 0, "name": wish.reservation},
        "tres": {"allocated": tres_list(wish, card_type) if run.started else [],
                 "requested": tres_list(wish, wish.card_type)},
        "steps": [_batch_step(controller.now, run, card_type)] if run.started else [],
        "working_directory": wish.directory,
        "flags": [],
    }  # fmt: skip


def _times(now: int, run: Job) -> dict[str, Any]:
    paused = run.suspended + (now - run.paused_at if run.paused_at else 0)
    until = run.ended or now
    return {
        "submission": run.submitted,
        "eligible": run.eligible,
        "start": run.started,
        "end": run.ended,
        "elapsed": max(0, until - run.started - paused) if run.started else 0,
        "suspended": paused,
        "limit": limit(run.wish.limit),
    }


def _batch_step(now: int, run: Job, card_type: str) -> dict[str, Any]:
    first = run.shares[0].node if run.shares else ""
    return {
        "step": {"id": f"{run.id}.batch", "name": "batch"},
        "state": [run.state],
        "exit_code": exit_code(run.code, run.signal),
        "nodes": {"count": 1, "range": first, "list": [first]},
        "time": {
            "elapsed": _times(now, run)["elapsed"],
            "start": number(run.started),
            "end": number(run.ended),
            "suspended": run.suspended,
        },
        "tres": {"allocated": tres_list(run.wish, card_type)},
    }


def account_entry(account: Account) -> dict[str, Any]:
    """One entry of `accounts`."""
    told = {"name": account.name, "description": account.description, "organization": account.organization}
    return {**told, "associations": [], "coordinators": [], "flags": []}


def association_entries(layout: Layout) -> Iterator[dict[str, Any]]:
    """The entries of `associations`: each account, then its users."""
    for account in layout.accounts:
        cards = [] if account.cards is None else [{"type": "gres", "name": "gpu", "id": 1001, "count": account.cards}]
        limits = {"tres": {"total": cards, "group": {"minutes": [], "active": []}}}
        shared = {"account": account.name, "cluster": layout.cluster, "partition": "", "qos": []}
        yield {**shared, "user": "", "parent_account": account.parent, "max": limits, "is_default": False}
        for user in account.users:
            yield {**shared, "user": user, "parent_account": "", "max": {}, "is_default": True}


def user_entries(layout: Layout) -> Iterator[dict[str, Any]]:
    """The entries of `users`."""
    for user in sorted({user for account in layout.accounts for user in account.users}):
        first = next(account.name for account in layout.accounts if user in account.users)
        yield {"name": user, "administrator_level": ["None"], "default": {"account": first, "wckey": ""}}


def qos_entry(qos: Qos) -> dict[str, Any]:
    """One entry of `qos`."""
    return {"name": qos.name, "description": qos.name, "priority": number(qos.priority), "flags": [],
            "preempt": {"list": [], "mode": ["DISABLED"]}}  # fmt: skip
