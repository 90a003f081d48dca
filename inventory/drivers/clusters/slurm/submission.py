"""A job to start, as sbatch's words and as slurmrestd's body. Pure."""

from collections.abc import Mapping
from typing import Any

from inventory.drivers.clusters.capabilities import JobSpec
from inventory.drivers.clusters.readings import CardKind
from inventory.drivers.clusters.slurm.doors import checked_name, checked_names
from inventory.drivers.clusters.slurm.errors import unsupported

_MEBIBYTE = 1024**2
_GRES = {CardKind.CARD: "gpu", CardKind.MIG: "gpu", CardKind.SHARD: "shard", CardKind.MPS: "mps"}
_PATH = "/usr/local/bin:/usr/bin:/bin"  # a job without PATH finds nothing


def gres_of(job: JobSpec) -> str:
    """What to ask for on each node, `gpu:h100:2`; "" for no card."""
    if not job.cards:
        return ""
    return ":".join([_GRES[job.card_kind], *_counted(job, job.cards)])


def gpus_of(job: JobSpec) -> str:
    """What to ask for on all nodes together, `h100:6`; "" where each gets as many as the others."""
    if not job.card_total:
        return ""
    if job.card_kind not in (CardKind.CARD, CardKind.MIG):
        raise unsupported("submit", "Slurm spreads whole cards and MIG instances over nodes, not shares of cards")
    return ":".join(_counted(job, job.card_total))


def _counted(job: JobSpec, count: int) -> list[str]:
    return [*([checked_name("card type", job.card_type)] if job.card_type else []), str(count)]


def minutes_of(seconds: int) -> int:
    """Slurm's limits are whole minutes; a part of one counts whole, so work is not cut short."""
    return max(1, -(-seconds // 60))


def _environment(job: JobSpec) -> Mapping[str, str]:
    for name, value in job.environment.items():
        if not name or "=" in name or "\0" in name + value:
            raise unsupported("submit", f"{name[:80]!r} can't be a variable")
    return {"PATH": _PATH, **job.environment}


def environment_of(job: JobSpec) -> bytes:
    """The environment in sbatch's --export-file form: NAME=VALUE, each ended by a zero byte."""
    return b"".join(f"{name}={value}".encode() + b"\0" for name, value in _environment(job).items())


def sbatch_words(job: JobSpec, *, environment_fd: int) -> list[str]:
    """The command; the script comes on its standard input."""
    words = ["sbatch", "--parsable", f"--export-file={environment_fd}"]
    words += [f"--job-name={job.name}", f"--comment={job.mark}", f"--chdir={job.working_directory}"]
    words += [f"--output={job.output}", "--requeue" if job.requeue else "--no-requeue"]
    options = {
        "uid": job.user and checked_name("user", job.user),
        "account": job.account,
        "partition": job.queue,
        "qos": job.qos,
        "gres": gres_of(job),
        "gpus": gpus_of(job),
        "time": job.time_limit and str(minutes_of(job.time_limit)),
        "mem": job.memory and f"{-(-job.memory // _MEBIBYTE)}M",
        "cpus-per-task": job.cpus and str(job.cpus),
        "nodelist": checked_names("node", job.nodes),
        "nodes": str(len(job.nodes) or job.node_count),
    }
    words += [f"--{name}={value}" for name, value in options.items() if value]
    return [*words, "--hold"] if job.held else words


def rest_body(job: JobSpec, *, new_form: bool) -> dict[str, Any]:
    """The body of job/submit. The older form can't name nodes: SlurmError."""
    count = len(job.nodes) or job.node_count
    described: dict[str, Any] = {
        "name": job.name,
        "comment": job.mark,
        "current_working_directory": job.working_directory,
        "standard_output": job.output,
        "requeue": job.requeue,
        "hold": job.held,
        "account": job.account,
        "partition": job.queue,
        "qos": job.qos,
        "cpus_per_task": job.cpus,
    }
    gres, gpus = gres_of(job), gpus_of(job)
    minutes = minutes_of(job.time_limit) if job.time_limit else None
    memory = -(-job.memory // _MEBIBYTE) if job.memory else None
    variables = _environment(job)
    if new_form:
        described |= {
            "minimum_nodes": count,
            "required_nodes": list(job.nodes),
            "tres_per_node": f"gres/{gres}" if gres else "",
            "tres_per_job": f"gres/gpu:{gpus}" if gpus else "",
            "time_limit": minutes and {"set": True, "infinite": False, "number": minutes},
            "memory_per_node": memory and {"set": True, "infinite": False, "number": memory},
            "environment": [f"{name}={value}" for name, value in variables.items()],
        }
    else:
        if job.nodes:
            raise unsupported("submit", "slurmrestd up to v0.0.38 takes no list of nodes; Slurm's commands do")
        described |= {
            "nodes": [count, count],
            "gres": gres,
            "gpus": gpus,
            "time_limit": minutes,
            "memory_per_node": memory,
            "environment": dict(variables),
        }
    kept = {key: value for key, value in described.items() if value not in (None, "", []) and value is not False}
    return {"script": job.script, "job": {**kept, "requeue": job.requeue}}
