"""Who submits when: once a minute somebody looks at each queue and adds a job while it is short."""

from collections.abc import Sequence

from inventory.drivers.fake.slurmrestd import Controller, Partition, Wish
from sensaka.fleet.seeds import between, fraction, pick
from sensaka.fleet.slurm.recipes import NOTEBOOKS, RECIPES, USERS, Recipe
from sensaka.fleet.workload import daylight

INTERACTIVE = "interactive"
_QUEUE_AT_NIGHT, _QUEUE_BY_DAY = 0.2, 0.5  # cards wanted by who waits, of all that the queue has
_SHORT_QUEUE = 4  # jobs
_DESKS_TAKEN = 0.8  # of the interactive cards


class People:
    """The users of one cluster; every draw is a function of the seed and the minute."""

    def __init__(self, seed: int, cluster: str, time_zone: str) -> None:
        self._seed, self._cluster, self._time_zone = seed, cluster, time_zone

    def look(self, controller: Controller, at: int) -> None:
        """What people do at this minute."""
        for partition in controller.layout.partitions:
            minute = at // 60
            total = sum(controller.nodes[name].cards for name in partition.nodes)
            draw = fraction(self._seed, "submits", self._cluster, partition.name, minute)
            waiting = _wanted(controller, partition.name, ("PENDING",))
            if partition.name == INTERACTIVE:
                held = waiting + _wanted(controller, partition.name, ("RUNNING", "SUSPENDED"))
                if held < _DESKS_TAKEN * total and draw < 0.3:
                    controller.submit(self._wish(partition, NOTEBOOKS, minute))
                continue
            day = daylight(at, self._time_zone)
            target = total * (_QUEUE_AT_NIGHT + (_QUEUE_BY_DAY - _QUEUE_AT_NIGHT) * day)
            chance = 0.15 + 0.75 * (1 - waiting / target) if waiting < target else 0.0
            if _waiting_jobs(controller, partition.name) < _SHORT_QUEUE:  # one large job alone is no queue
                chance = max(chance, 0.25)
            if draw < chance:
                recipe = self._recipe(len(partition.nodes), partition.name, minute)
                controller.submit(self._wish(partition, recipe, minute))

    def _recipe(self, nodes: int, partition: str, minute: int) -> Recipe:
        fitting = [recipe for recipe in RECIPES for _ in range(recipe.weight) if recipe.nodes <= max(1, nodes // 2)]
        return pick(fitting, self._seed, "recipe", self._cluster, partition, minute)

    def _wish(self, partition: Partition, recipe: Recipe, minute: int) -> Wish:
        key = (self._cluster, partition.name, minute)
        low, high = recipe.limits
        limit = int(between(low, high, self._seed, "limit", *key) // 5) * 5
        least, most = recipe.tasks
        count = int(between(least, most + 1, self._seed, "tasks", *key)) if most else 0
        urgent = fraction(self._seed, "urgent", *key) < 0.1
        return Wish(
            name=recipe.name,
            user=pick(USERS[recipe.account], self._seed, "user", *key),
            account=recipe.account,
            partition=partition.name,
            qos="high" if urgent else "normal",
            script=f"#!/bin/bash\n#SBATCH --job-name={recipe.name}\nsrun python3 -m {recipe.name.replace('-', '_')}\n",
            directory="/home",
            node_count=recipe.nodes,
            cards=recipe.cards,
            cpus=recipe.cards * 12,
            memory=recipe.cards * 120_000,
            limit=max(5, limit),
            tasks=tuple(range(count)),
            at_once=recipe.at_once,
        )


def _wanted(controller: Controller, partition: str, states: Sequence[str]) -> int:
    """Cards that jobs of a queue in these states hold or ask for."""
    jobs = [job for job in controller.jobs.values() if job.state in states and job.wish.partition == partition]
    return sum(job.wish.all_cards * max(1, len(job.tasks)) for job in jobs)


def _waiting_jobs(controller: Controller, partition: str) -> int:
    return sum(job.state == "PENDING" and job.wish.partition == partition for job in controller.jobs.values())
