"""What slurmrestd tells of nodes, partitions, reservations and jobs (v0.0.40 to v0.0.42 as 24.11 gives them).

Fields that no client of ours reads and that say nothing here (power, licences, core maps) are left out.
"""

from collections.abc import Sequence
from typing import Any

from inventory.drivers.clusters.slurm.hostlist import compress
from inventory.drivers.fake.slurmrestd.controller import Controller
from inventory.drivers.fake.slurmrestd.forms import exit_code, gres, limit, number, tres_text
from inventory.drivers.fake.slurmrestd.jobs import ENDED, HOLDING, Job
from inventory.drivers.fake.slurmrestd.places import Node, Partition, Reservation

SIMULATED = "simulated"  # stands in a node's features and comment


def node_entry(controller: Controller, node: Node) -> dict[str, Any]:
    """One entry of `nodes`."""
    used = controller.used(node.name)
    cpus = sum(share.cpus for job in controller.running() for share in job.shares if share.node == node.name)
    features = [*node.features, SIMULATED]
    kinds = f",gres/gpu={node.cards},gres/gpu:{node.card_type}={node.cards}" if node.cards else ""
    return {
        "name": node.name,
        "hostname": node.hostname or node.name,
        "address": node.address,
        "architecture": "x86_64",
        "state": node.words(len(used)),
        "reason": node.reason,
        "reason_set_by_user": node.reason_by,
        "reason_changed_at": number(node.reason_at),
        "partitions": [one.name for one in controller.layout.partitions if node.name in one.nodes],
        "features": features,
        "active_features": features,
        "gres": f"gpu:{node.card_type}:{node.cards}(S:0-1)" if node.cards else "",
        "gres_drained": "N/A",
        "gres_used": gres(node.card_type, used) if node.cards else "",
        "boot_time": number(node.booted),
        "slurmd_start_time": number(node.booted),
        "cpus": node.cpus,
        "effective_cpus": node.cpus,
        "sockets": 2,
        "cores": node.cpus // 2,
        "threads": 1,
        "alloc_cpus": cpus,
        "alloc_idle_cpus": node.cpus - cpus,
        "real_memory": node.memory,
        "operating_system": "Linux",
        "reservation": next((one.name for one in controller.reservations if node.name in one.nodes), ""),
        "comment": SIMULATED,
        "extra": "",
        "tres": f"cpu={node.cpus},mem={node.memory}M,billing={node.cpus}{kinds}",
        "version": controller.layout.release,
    }


def partition_entry(partition: Partition) -> dict[str, Any]:
    """One entry of `partitions`."""
    return {
        "name": partition.name,
        "nodes": {"allowed_allocation": "", "configured": compress(partition.nodes), "total": len(partition.nodes)},
        "accounts": {"allowed": ",".join(partition.accounts), "deny": ""},
        "groups": {"allowed": ""},
        "qos": {"allowed": "", "deny": "", "assigned": ""},
        "maximums": {"nodes": limit(None), "time": limit(partition.limit)},
        "defaults": {"time": number(None), "memory_per_cpu": 0},
        "minimums": {"nodes": 0},
        "priority": {"job_factor": 1, "tier": partition.tier},
        "partition": {"state": ["UP"]},
    }


def reservation_entry(reservation: Reservation) -> dict[str, Any]:
    """One entry of `reservations`."""
    return {
        "name": reservation.name,
        "node_list": compress(reservation.nodes),
        "node_count": len(reservation.nodes),
        "start_time": number(reservation.start),
        "end_time": number(reservation.end),
        "accounts": ",".join(reservation.accounts),
        "users": ",".join(reservation.users),
        "flags": list(reservation.flags),
        "partition": "",
        "tres": "",
    }


def job_entry(controller: Controller, job: Job) -> dict[str, Any]:
    """One entry of `jobs`."""
    wish = job.wish
    holding = job.state in HOLDING
    names = [share.node for share in job.shares]
    card_type = controller.nodes[names[0]].card_type if names else wish.card_type
    asked = ":".join(word for word in ("gres/gpu", wish.card_type, str(wish.total or wish.cards)) if word)
    end = job.ended if job.state in ENDED else (job.limit_at or 0) if holding else 0
    return {
        "job_id": job.id,
        "cluster": controller.layout.cluster,
        "name": wish.name,
        "user_name": wish.user,
        "account": wish.account,
        "qos": wish.qos,
        "partition": wish.partition,
        "job_state": [job.state],
        "state_reason": job.reason,
        "priority": number(0 if job.held else job.priority),
        "hold": job.held,
        "comment": wish.comment,
        "command": "",
        "current_working_directory": wish.directory,
        "standard_output": wish.output,
        "batch_flag": True,
        "batch_host": names[0] if names else "",
        "requeue": wish.requeue,
        "restart_cnt": job.restarts,
        "resv_name": wish.reservation,
        "required_nodes": ",".join(wish.nodes),
        "failed_node": job.failed_node,
        "array_job_id": number(job.array_id),
        "array_task_id": number(job.task),
        "array_max_tasks": number(wish.at_once),
        "array_task_string": array_text(job.tasks, wish.at_once),
        "het_job_id": number(0),
        "het_job_offset": number(0),
        "submit_time": number(job.submitted),
        "eligible_time": number(job.eligible),
        "start_time": number(job.started or job.expected),
        "end_time": number(end),
        "suspend_time": number(job.paused_at),
        "time_limit": limit(wish.limit),
        "exit_code": exit_code(job.code, job.signal),
        "derived_exit_code": exit_code(job.code, 0),
        "nodes": compress(names),
        "node_count": number(wish.count),
        "cpus": number(wish.cpus * wish.count),
        "tasks": number(wish.count),
        "job_resources": _resources(job) if holding else {},
        "gres_detail": [gres(card_type, share.cards) for share in job.shares if share.cards] if holding else [],
        "tres_per_node": asked if wish.cards else "",
        "tres_per_job": asked if wish.total else "",
        "tres_req_str": tres_text(wish, wish.card_type),
        "tres_alloc_str": tres_text(wish, card_type) if job.started else "",
    }


def array_text(tasks: Sequence[int], at_once: int) -> str:
    """The tasks of an array that wait: `3-11%4`."""
    if not tasks:
        return ""
    text = compress(str(task) for task in tasks).strip("[]")
    return f"{text}%{at_once}" if at_once else text


def _resources(job: Job) -> dict[str, Any]:
    memory = {"used": 0, "allocated": job.wish.memory}
    allocation = [
        {"index": place, "name": share.node, "cpus": {"count": share.cpus, "used": 0}, "memory": memory, "sockets": []}
        for place, share in enumerate(job.shares)
    ]
    names = [share.node for share in job.shares]
    nodes = {"count": len(names), "list": compress(names), "whole": False, "allocation": allocation}
    return {"select_type": ["CORE"], "nodes": nodes, "cpus": sum(share.cpus for share in job.shares)}
