"""What people run on the simulated Slurm clusters, and how such work behaves on cards and ends."""

from dataclasses import dataclass

from inventory.drivers.fake.slurmrestd import Ending, Job
from sensaka.fleet.seeds import between, fraction

CHECKPOINT_EVERY = 1200  # s
CHECKPOINT_TAKES = 50  # s
STARTING = 40  # s in which data and weights are loaded
NOTEBOOK = "jupyter"


@dataclass(frozen=True, slots=True)
class Recipe:
    """One kind of job. `limits` (minutes) and `tasks` (of an array) go from least to most; the last two are 0-1."""

    name: str
    account: str
    cards: int
    limits: tuple[int, int]
    weight: int
    nodes: int = 1
    tasks: tuple[int, int] = (0, 0)
    at_once: int = 0
    tensor: float = 0.62
    traffic: float = 0.3


RECIPES: tuple[Recipe, ...] = (
    Recipe("pretrain-13b", "language", 8, (240, 600), 1, nodes=4, traffic=0.75),
    Recipe("pretrain-vit", "vision", 8, (180, 420), 1, nodes=3, traffic=0.75),
    Recipe("finetune-70b", "language", 8, (90, 300), 3, nodes=2, traffic=0.7),
    Recipe("vision-l", "vision", 8, (60, 240), 4, traffic=0.45),
    Recipe("diffusion-xl", "vision", 4, (45, 180), 4, traffic=0.4),
    Recipe("speech-large", "speech", 4, (40, 150), 3, traffic=0.4),
    Recipe("rerank-base", "search", 2, (20, 90), 4),
    Recipe("eval-suite", "language", 1, (10, 30), 4, tensor=0.4),
    Recipe("sweep-lr", "search", 1, (12, 40), 2, tasks=(6, 16), at_once=6),
    Recipe("embed-corpus", "search", 1, (20, 60), 1, tasks=(4, 10), tensor=0.35),
)
NOTEBOOKS = Recipe(NOTEBOOK, "research", 1, (240, 720), 1, tensor=0.4, traffic=0.1)
_BY_NAME = {recipe.name: recipe for recipe in (*RECIPES, NOTEBOOKS)}
_FOREIGN = Recipe("", "", 1, (1, 1), 0)  # a job that nobody of the fleet submitted

USERS: dict[str, tuple[str, ...]] = {
    "language": ("amara", "bjorn", "chen"),
    "vision": ("divya", "elif"),
    "speech": ("farid",),
    "search": ("greta", "hiro"),
    "research": ("amara", "bjorn", "chen", "divya", "elif", "farid", "greta", "hiro"),
}


def recipe_of(job: Job) -> Recipe:
    """The kind of a job, by its name without what follows a dot."""
    return _BY_NAME.get(job.wish.name.partition(".")[0], _FOREIGN)


class Behaviour:
    """How jobs of one cluster end and load their cards: a function of seed and job, the same after a restart."""

    def __init__(self, seed: int, cluster: str) -> None:
        self._seed, self._cluster = seed, cluster

    def ending(self, job: Job) -> Ending | None:
        """How this run will end: mostly well before its limit, some at it (None), some badly."""
        span = (job.wish.limit or 60) * 60
        draw = self._draw("ending", job)
        if job.wish.name == NOTEBOOK:
            return None if draw < 0.2 else Ending(int(span * self._between(0.3, 0.95, "span", job)))
        if draw < 0.06:
            return Ending(int(self._between(20, min(400, span), "span", job)), "FAILED", code=1)
        if draw < 0.08:
            return Ending(int(span * self._between(0.05, 0.6, "span", job)), "OUT_OF_MEMORY", signal=125)
        if draw < 0.11:
            return Ending(int(span * self._between(0.1, 0.8, "span", job)), "FAILED", signal=6)
        if draw < 0.17:
            return None
        return Ending(int(span * self._between(0.35, 0.97, "span", job)))

    def level(self, job: Job, at: float, busy_hours: float) -> float:
        """How busy the job's cards are at a moment, 0-1. `busy_hours` is 0-1, how much people work at this hour."""
        if job.state == "SUSPENDED":
            return 0.0
        if job.wish.name == NOTEBOOK:
            if self._draw("hoarder", job) < 0.6:
                return 0.001
            burst = fraction(self._seed, "burst", self._cluster, job.id, int(at // 180)) < 0.25 + 0.5 * busy_hours
            return 0.72 if burst else 0.01
        since = at - job.started
        if since < STARTING:
            return 0.04
        gang = job.wish.count > 1 or job.wish.cards > 1
        if gang and since % CHECKPOINT_EVERY < CHECKPOINT_TAKES:
            return 0.04
        return self._between(0.86, 0.985, "level", job)

    def memory(self, job: Job) -> float:
        """The share of its cards' memory that the job holds."""
        low, high = (0.25, 0.75) if job.wish.name == NOTEBOOK else (0.62, 0.94)
        return self._between(low, high, "memory", job)

    def _draw(self, what: str, job: Job) -> float:
        return fraction(self._seed, what, self._cluster, job.id, job.restarts)

    def _between(self, low: float, high: float, what: str, job: Job) -> float:
        return between(low, high, self._seed, what, self._cluster, job.id, job.restarts)
