"""Acts on the simulated schedulers: what their users and their operators do, and ends that nobody wished for."""

from collections.abc import Callable

from inventory.drivers.fake.slurmrestd import Job, SlurmRefusal, Wish
from sensaka.fleet.arguments import ActError, Arguments, find_node, number
from sensaka.fleet.slurm.cluster import CPUS, SlurmCluster
from sensaka.fleet.slurm.recipes import USERS
from sensaka.fleet.world import World

_MOST_MINUTES = 24 * 60


def _cluster(world: World, arguments: Arguments) -> SlurmCluster:
    name = str(arguments.get("cluster", ""))
    cluster = world.slurm.get(name)
    if cluster is None:
        raise ActError(f"the argument 'cluster' names a Slurm cluster: {', '.join(sorted(world.slurm))}")
    return cluster


def _job(world: World, arguments: Arguments) -> tuple[SlurmCluster, Job]:
    """The job that `job` names, of the cluster that is named or of the only one that has it."""
    wanted = str(arguments.get("job", ""))
    clusters = [_cluster(world, arguments)] if "cluster" in arguments else list(world.slurm.values())
    found = [
        (cluster, cluster.controller.jobs[int(wanted)])
        for cluster in clusters
        if wanted.isdecimal() and int(wanted) in cluster.controller.jobs
    ]
    if len(found) != 1:
        raise ActError(f"{'two clusters have' if found else 'no cluster has'} a job {wanted!r}; GET /jobs lists them")
    return found[0]


def submit_job(world: World, arguments: Arguments) -> str:
    """A user submits a job: cards on each of some nodes, for some minutes at most."""
    cluster = _cluster(world, arguments)
    user = str(arguments.get("user", "amara"))
    account = next((name for name, users in USERS.items() if user in users), None)
    if account is None:
        raise ActError(f"there is no user {user!r}: {', '.join(sorted(USERS['research']))}")
    cards = number(arguments, "cards", 1, 8)
    wish = Wish(
        name=str(arguments.get("name", "by-hand"))[:100],
        user=user,
        account=account,
        partition=str(arguments.get("partition", "")),
        node_count=number(arguments, "nodes", 1, len(cluster.nodes)),
        cards=cards,
        cpus=cards * CPUS // 8,
        limit=number(arguments, "minutes", 30, _MOST_MINUTES),
        directory="/home",
    )
    try:
        job = cluster.controller.submit(wish)
    except SlurmRefusal as refusal:
        raise ActError(f"{cluster.name} refuses the job: {refusal}") from None
    where = f"runs on {', '.join(share.node for share in job.shares)}" if job.shares else f"waits ({job.reason})"
    return f"job {job.id} of {user} on {cluster.name} {where}"


def cancel_job(world: World, arguments: Arguments) -> str:
    """A user cancels a job."""
    cluster, job = _job(world, arguments)
    try:
        cluster.controller.cancel(job.id, by=job.wish.user)
    except SlurmRefusal as refusal:
        raise ActError(f"job {job.id}: {refusal}") from None
    return f"job {job.id} of {job.wish.user} on {cluster.name} was cancelled"


def fail_job(world: World, arguments: Arguments) -> str:
    """A running job ends with an exit code."""
    cluster, job = _job(world, arguments)
    code = number(arguments, "code", 1, 255)
    try:
        cluster.controller.finish(job.id, code)
    except SlurmRefusal as refusal:
        raise ActError(f"job {job.id}: {refusal}") from None
    return f"job {job.id} of {job.wish.user} on {cluster.name} failed with exit code {code}"


def drain_node(world: World, arguments: Arguments) -> str:
    """Somebody else drains a node in Slurm."""
    cluster, name = _slurm_node(world, arguments)
    reason = str(arguments.get("reason", "") or "looked at by hand")[:500]
    cluster.controller.drain(name, reason)
    return f"{name} was drained in {cluster.name}: {reason}"


def resume_node(world: World, arguments: Arguments) -> str:
    """Somebody returns a drained or down node in Slurm."""
    cluster, name = _slurm_node(world, arguments)
    node = cluster.controller.nodes[name]
    if not (node.drained or node.down):
        raise ActError(f"nothing to do: {name} takes work already")
    cluster.controller.resume_node(name)
    return f"{name} was returned in {cluster.name}"


def _slurm_node(world: World, arguments: Arguments) -> tuple[SlurmCluster, str]:
    node = find_node(world, arguments)
    if node.cluster not in world.slurm:
        raise ActError(f"{node.name} belongs to {node.cluster}, which is no Slurm cluster")
    return world.slurm[node.cluster], node.name


def _any_cluster(world: World, arguments: Arguments) -> str:
    names = [name for name, _, _ in world.plan.clusters]
    if arguments.get("cluster") not in names:
        raise ActError(f"the argument 'cluster' names a cluster: {', '.join(sorted(names))}")
    return str(arguments["cluster"])


def stop_scheduler(world: World, arguments: Arguments) -> str:
    """A cluster's slurmrestd or API server closes its port; jobs and pods go on."""
    name = _any_cluster(world, arguments)
    if name in world.schedulers_down:
        raise ActError(f"nothing to do: the scheduler of {name} does not answer already")
    world.schedulers_down.add(name)
    return f"the scheduler of {name} does not answer"


def start_scheduler(world: World, arguments: Arguments) -> str:
    """It opens its port again."""
    name = _any_cluster(world, arguments)
    if name not in world.schedulers_down:
        raise ActError(f"nothing to do: the scheduler of {name} answers already")
    world.schedulers_down.discard(name)
    return f"the scheduler of {name} answers"


JOB_ACTS: dict[str, Callable[[World, Arguments], str]] = {
    "submit_job": submit_job,
    "cancel_job": cancel_job,
    "fail_job": fail_job,
    "drain_node": drain_node,
    "resume_node": resume_node,
    "stop_scheduler": stop_scheduler,
    "start_scheduler": start_scheduler,
}
