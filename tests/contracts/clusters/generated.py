"""A large cluster's answers, made up: 500 nodes and 5,000 jobs in either form of Slurm's JSON."""

from typing import Any

import msgspec

T0 = 1_790_000_000
NODES, JOBS, CARDS, CORES = 500, 5000, 8, 96


def number(value: int | None, new: bool) -> Any:
    return {"set": value is not None, "infinite": False, "number": value or 0} if new else value


def node_name(index: int) -> str:
    return f"gpu-{index % NODES + 1:04d}"


def held_by(job: int) -> tuple[str, int] | None:
    """Node and first of two cards of a running job: 2,000 of 5,000 run, four on each node; the rest wait or ended."""
    return (node_name(job), job // NODES * 2) if job < NODES * CARDS // 2 else None


def nodes_answer(new: bool) -> bytes:
    """The body of `nodes`."""
    return msgspec.json.encode({"meta": {}, "errors": [], "nodes": [_node(index, new) for index in range(NODES)]})


def _node(index: int, new: bool) -> dict[str, Any]:
    flags = ["DRAIN"] if index % 50 == 0 else []
    state = {"state": ["ALLOCATED", *flags]} if new else {"state": "allocated", "state_flags": flags}
    return state | {
        "name": node_name(index),
        "hostname": node_name(index),
        "address": f"10.0.{index // 250}.{index % 250}",
        "reason": "bad fan" if flags else "",
        "reason_changed_at": number(T0 if flags else 0, new),
        "reason_set_by_user": "ann" if flags else None,
        "partitions": ["train", "all"],
        "features": ["h100"] if new else "h100",
        "gres": "gpu:h100:8(S:0-1)",
        "gres_used": "gpu:h100:8(IDX:0-7)",
        "cpus": CORES,
        "real_memory": 2_000_000,
        "boot_time": number(T0, new),
        "operating_system": "Linux 6.1.0 #1 SMP PREEMPT_DYNAMIC",
        "tres": "cpu=96,mem=2000000M,billing=96,gres/gpu=8,gres/gpu:h100=8",
    }


def jobs_answer(new: bool) -> bytes:
    """The body of `jobs`, with the core map that real answers carry."""
    return msgspec.json.encode({"meta": {}, "errors": [], "jobs": [_job(index, new) for index in range(JOBS)]})


def _job(index: int, new: bool) -> dict[str, Any]:
    place = held_by(index)
    state = "RUNNING" if place else ("PENDING" if index % 2 else "COMPLETED")
    times = {"submit_time": T0, "eligible_time": T0, "start_time": T0 + 5 if state != "PENDING" else 0}
    times |= {"end_time": T0 + 3600 if state != "PENDING" else 0, "time_limit": 60}
    tres = "cpu=8,mem=64000M,node=1,billing=8,gres/gpu=2,gres/gpu:h100=2"
    job: dict[str, Any] = {key: number(value, new) for key, value in times.items()}
    job |= {
        "job_id": index + 1,
        "cluster": "big",
        "name": f"train {index}",
        "user_name": f"user{index % 40}",
        "account": f"team{index % 12}",
        "qos": "normal",
        "partition": "train",
        "job_state": [state] if new else state,
        "state_reason": "Resources" if state == "PENDING" else "None",
        "array_job_id": number(0, new),
        "array_task_id": number(None, new),
        "het_job_id": number(0, new),
        "priority": number(1000, new),
        "nodes": place[0] if place else ("gpu-0001" if state == "COMPLETED" else ""),
        "gres_detail": [f"gpu:h100:2(IDX:{place[1]}-{place[1] + 1})"] if place else [],
        "tres_req_str": tres,
        "tres_alloc_str": tres if state != "PENDING" else "",
        "command": "/home/user/work/train.sh",
        "current_working_directory": "/home/user/work",
    }
    if place:
        job["job_resources"] = _resources(place[0], new)
    return job


def _resources(node: str, new: bool) -> dict[str, Any]:
    if not new:
        cores = {str(core): "allocated" for core in range(8)}
        return {"nodes": node, "allocated_nodes": [{"sockets": {"0": {"cores": cores}}, "nodename": node}]}
    cores_new = [{"index": core, "status": ["ALLOCATED" if core < 8 else "UNALLOCATED"]} for core in range(CORES // 2)]
    sockets = [{"index": index, "cores": cores_new} for index in range(2)]
    return {"nodes": {"count": 1, "list": node, "allocation": [{"index": 0, "name": node, "sockets": sockets}]}}
