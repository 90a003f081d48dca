"""The emulated slurmctld: takes jobs and acts on them and on nodes, as its clients ask."""

from dataclasses import replace

from inventory.drivers.fake.slurmrestd.course import SILENT, Course
from inventory.drivers.fake.slurmrestd.jobs import ENDED, HOLDING, Job, Wish
from inventory.drivers.fake.slurmrestd.places import Node, Partition
from inventory.drivers.fake.slurmrestd.refusals import Code, SlurmRefusal

ROOT = "root"


class Controller(Course):
    """What clients do. Each act is carried out at once and may start or end runs."""

    # looks

    def job(self, number: int) -> Job:
        """The job of that number. SlurmRefusal for one that slurmctld does not know."""
        job = self.jobs.get(number)
        if job is None:
            raise SlurmRefusal(Code.INVALID_JOB)
        return job

    def node(self, name: str) -> Node:
        """The node of that name. SlurmRefusal when there is none."""
        node = self.nodes.get(name)
        if node is None:
            raise SlurmRefusal(Code.INVALID_NODE)
        return node

    # jobs

    def submit(self, wish: Wish) -> Job:
        """Queue a job and start it if it fits. SlurmRefusal for what can never run here."""
        partition = self._checked(wish)
        limit = min(wish.limit or partition.limit, partition.limit)
        wish = replace(wish, partition=partition.name, limit=limit)
        job = Job(
            self.number(), wish, self.now, max(self.now, wish.begin), held=wish.held,
            priority=self.layout.priority(wish.qos), tasks=wish.tasks,
        )  # fmt: skip
        job.array_id = job.id if wish.tasks else 0
        self.jobs[job.id] = job
        self.touched()
        return job

    def _checked(self, wish: Wish) -> Partition:
        for name in wish.nodes:
            self.node(name)
        partition = self.layout.partition(wish.partition)
        if partition is None:
            raise SlurmRefusal(Code.INVALID_PARTITION)
        account = self.layout.account(wish.account)
        known = account is not None and wish.user in (ROOT, *account.users)
        if self.layout.enforced and not known:
            raise SlurmRefusal(Code.INVALID_ACCOUNT)
        names = wish.nodes or partition.nodes
        able = [
            node
            for node in (self.nodes[name] for name in names if name in partition.nodes)
            if wish.cards <= node.cards and wish.cpus <= node.cpus and wish.card_type in ("", node.card_type)
        ]
        largest = sorted((node.cards for node in able), reverse=True)[: wish.count]
        if len(able) < wish.count or not wish.spread(largest):
            raise SlurmRefusal(Code.NOT_AVAILABLE)
        return partition

    def finish(self, number: int, code: int = 0, signal: int = 0) -> None:
        """A run's script ends now by itself. SlurmRefusal for a job that does not run."""
        job = self._in(number, "RUNNING")
        self.end(job, "FAILED" if code or signal else "COMPLETED", code=code, signal=signal)
        self.touched()

    def cancel(self, number: int, by: str = ROOT) -> None:
        """End a job. SlurmRefusal when it is over or not known."""
        job = self.job(number)
        if job.state in ENDED:
            raise SlurmRefusal(Code.ALREADY_DONE)
        self.end(job, "CANCELLED", signal=15 if job.started else 0, by=by)
        for other in [other for other in self.jobs.values() if job.array_id == number and other.array_id == number]:
            if other.state not in ENDED:
                self.end(other, "CANCELLED", signal=15 if other.started else 0, by=by)
        self.touched()

    def hold(self, number: int, held: bool) -> None:
        """Keep a waiting job from starting, or let it go. SlurmRefusal for one that runs or is over."""
        job = self.job(number)
        if job.state != "PENDING":
            raise SlurmRefusal(Code.ALREADY_DONE if job.state in ENDED else Code.NOT_PENDING)
        job.held = held
        self.touched()

    def change(self, number: int, **changes: object) -> None:
        """Set fields of what a job asked for (limit, comment, name, requeue ...)."""
        job = self.job(number)
        if job.state in ENDED:
            raise SlurmRefusal(Code.ALREADY_DONE)
        job.wish = replace(job.wish, **changes)  # type: ignore[arg-type]
        self.touched()

    def begin(self, number: int, at: int) -> None:
        """Let a waiting job start from then on (StartTime)."""
        self._in(number, "PENDING").eligible = max(self.now, at)
        self.touched()

    def requeue(self, number: int) -> None:
        """End a run and let its job wait again. SlurmRefusal for one that does not run."""
        self.again(self._in(number, *HOLDING), "REQUEUED")
        self.touched()

    def suspend(self, number: int) -> None:
        """Stop a run, which keeps its cards."""
        job = self._in(number, "RUNNING")
        job.state, job.paused_at = "SUSPENDED", self.now
        self.touched()

    def resume_job(self, number: int) -> None:
        """Let a suspended run go on."""
        job = self._in(number, "SUSPENDED")
        self.unpause(job)
        self.touched()

    def _in(self, number: int, *states: str) -> Job:
        job = self.job(number)
        if job.state not in states:
            refused = {"PENDING": Code.NOT_PENDING, "RUNNING": Code.NOT_RUNNING, "SUSPENDED": Code.NOT_SUSPENDED}
            raise SlurmRefusal(Code.ALREADY_DONE if job.state in ENDED else refused[states[0]])
        return job

    # nodes

    def drain(self, name: str, reason: str, by: str = ROOT) -> None:
        """Take a node out; what runs there goes on. A drained node's reason is overwritten, as Slurm does."""
        node = self.node(name)
        node.drained = True
        node.say(reason, by, self.now)
        self.touched()

    def undrain(self, name: str) -> None:
        """Take the drain away and nothing else: a node that is down keeps its reason."""
        node = self.node(name)
        node.drained = False
        if not node.down:
            node.say("", "", self.now)
        self.touched()

    def set_down(self, name: str, reason: str, by: str = ROOT) -> None:
        """Declare a node down: its runs end as NODE_FAIL and their jobs wait again."""
        node = self.node(name)
        node.say(reason, by, self.now)
        self.lose(node)
        self.touched()

    def resume_node(self, name: str) -> None:
        """Return a node to service."""
        node = self.node(name)
        node.drained = node.down = False
        node.say("", "", self.now)
        self.touched()

    def explain(self, name: str, reason: str, by: str = ROOT) -> None:
        """Set the reason alone."""
        self.node(name).say(reason, by, self.now)
        self.touched()

    def set_answering(self, name: str, answers: bool) -> None:
        """A node's slurmd is silent, or is back after a boot: then what ran there is lost, at the latest now."""
        node = self.node(name)
        if node.responding == answers:
            return
        node.responding, node.silent_since = answers, 0 if answers else self.now
        if answers:
            self.lose_runs(node)
            node.booted = self.now
            if node.down and node.reason == SILENT:
                node.down = False
                node.say("", "", self.now)
        self.touched()
