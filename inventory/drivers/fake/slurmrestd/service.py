"""Request in, response out: versions, tokens, rights and routes of slurmrestd. No sockets here."""

import re
import time
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from inventory.drivers.fake.http import Request, Response
from inventory.drivers.fake.slurmrestd import accounting, answers
from inventory.drivers.fake.slurmrestd.controller import ROOT, Controller
from inventory.drivers.fake.slurmrestd.jobs import ENDED
from inventory.drivers.fake.slurmrestd.refusals import Code, SlurmRefusal
from inventory.drivers.fake.slurmrestd.requests import (
    JobDescription,
    NodeUpdate,
    Submission,
    changes_of,
    parsed,
    value,
    wish_of,
)
from inventory.drivers.fake.slurmrestd.tokens import BadToken, user_of

VERSIONS = ("v0.0.40", "v0.0.41", "v0.0.42")  # what 24.11 offers
_TELLS_OF_EACH = "v0.0.42"  # from it on a DELETE says what became of the job
_PATH = re.compile(r"^/(slurm|slurmdb)/(v\d+\.\d+\.\d+)/([a-z_]+)(?:/([^/]+))?$")
_STATUS = {Code.INVALID_JOB: 404}
_PATHS = {
    "slurm": ("ping", "diag", "nodes", "node/{node_name}", "partitions", "partition/{partition_name}", "reservations",
              "reservation/{reservation_name}", "jobs", "job/{job_id}", "job/submit"),
    "slurmdb": ("jobs", "job/{job_id}", "accounts", "associations", "users", "qos", "clusters"),
}  # fmt: skip

Body = dict[str, Any]


class SlurmRest:
    """One slurmrestd before one controller.

    `clock` moves the controller's time at each request; None leaves that to somebody else, who calls its
    `advance`; then `checked_by` is the clock for tokens. `away` makes slurmctld unreachable behind it.
    """

    def __init__(
        self,
        controller: Controller,
        *,
        key: bytes,
        versions: Iterable[str] = VERSIONS,
        clock: Callable[[], float] | None = time.time,
        checked_by: Callable[[], float] = time.time,
    ) -> None:
        self.controller, self.key, self.versions = controller, key, tuple(versions)
        self.away = False
        self.acts = 0  # requests that changed something, for who keeps the controller's state
        self.clock, self._checked_by = clock, checked_by
        self._reads: dict[tuple[str, str], Callable[[str, Request], Body]] = {
            ("slurm", "ping"): self._ping,
            ("slurm", "diag"): self._diag,
            ("slurm", "nodes"): self._nodes,
            ("slurm", "node"): self._nodes,
            ("slurm", "partitions"): self._partitions,
            ("slurm", "partition"): self._partitions,
            ("slurm", "reservations"): self._reservations,
            ("slurm", "reservation"): self._reservations,
            ("slurm", "jobs"): self._jobs,
            ("slurm", "job"): self._jobs,
            ("slurmdb", "jobs"): self._runs,
            ("slurmdb", "job"): self._runs,
            ("slurmdb", "accounts"): self._accounts,
            ("slurmdb", "associations"): self._associations,
            ("slurmdb", "users"): self._users,
            ("slurmdb", "qos"): self._qos,
            ("slurmdb", "clusters"): self._clusters,
        }

    def answer(self, request: Request) -> Response:
        """The response; never raises."""
        try:
            user = self._user(request)
        except BadToken:
            return Response(401, b"Authentication failure", {"Content-Type": "text/plain"})
        if request.path in ("/openapi/v3", "/openapi.json", "/openapi"):
            return _json(200, self._openapi())
        match = _PATH.match(request.path)
        if match is None or match[2] not in self.versions:
            return Response(404, b"Unable find requested URL.", {"Content-Type": "text/plain"})
        part, version, name, rest = match[1], match[2], match[3], match[4] or ""
        try:
            if self.away and part == "slurm":
                raise SlurmRefusal(Code.UNSPECIFIED)
            if self.clock is not None:
                self.controller.advance(self.clock())
            return self._routed(request, user, (part, version, name, rest))
        except SlurmRefusal as refusal:
            told = {"error": refusal.words, "error_number": int(refusal.code), "source": name}
            body = {"errors": [{"description": refusal.detail, **told}]}
            return self._said(_STATUS.get(refusal.code, 500), part, body)

    def _user(self, request: Request) -> str:
        """Who acts: the token's user; root may name somebody else."""
        now = self._checked_by()
        owner = user_of(self.key, request.headers.get("x-slurm-user-token", ""), now=now)
        named = request.headers.get("x-slurm-user-name", "") or owner
        if named != owner and owner != ROOT:
            raise BadToken("only root acts for others")
        return named

    def _routed(self, request: Request, user: str, place: tuple[str, str, str, str]) -> Response:
        part, version, name, rest = place
        if request.method == "GET":
            read = self._reads.get((part, name))
            if read is None or (name in ("node", "job", "partition", "reservation")) != bool(rest):
                return Response(404, b"Unable find requested URL.", {"Content-Type": "text/plain"})
            return self._said(200, part, read(rest, request))
        acts: dict[tuple[str, str, str], Callable[[], Body]] = {
            ("slurm", "job", "POST"): lambda: self._post_job(rest, request, user),
            ("slurm", "job", "DELETE"): lambda: self._delete_job(rest, request, user, version),
            ("slurm", "node", "POST"): lambda: self._post_node(rest, request, user),
        }
        act = acts.get((part, name, request.method))
        if act is None or not rest:
            return Response(405, b"Method not allowed", {"Content-Type": "text/plain"})
        told = act()
        self.acts += 1
        return self._said(200, part, told)

    def _said(self, status: int, part: str, body: Body) -> Response:
        layout = self.controller.layout
        year, month, patch = layout.release.split(".")
        plugin = "slurmctld" if part == "slurm" else "slurmdbd"
        meta = {
            "plugin": {"type": f"openapi/{plugin}", "name": f"Slurm OpenAPI {plugin} (simulated)"},
            "slurm": {
                "version": {"major": year, "minor": month, "micro": patch},
                "release": layout.release,
                "cluster": layout.cluster,
            },
        }
        return _json(status, {"errors": [], "warnings": [], **body, "meta": meta})

    def _openapi(self) -> Body:
        paths: Body = {
            f"/{part}/{version}/{name}{'' if '{' in name else '/'}": {}
            for version in self.versions
            for part, names in _PATHS.items()
            for name in names
        }
        info = {"title": "Slurm REST API (simulated)", "version": f"Slurm-{self.controller.layout.release}"}
        return {"openapi": "3.0.3", "info": info, "paths": paths}

    # reads

    def _ping(self, rest: str, request: Request) -> Body:
        told = {"hostname": self.controller.layout.cluster, "pinged": "UP", "mode": "primary", "latency": 100}
        return {"pings": [{**told, "responding": True, "primary": True}]}

    def _diag(self, rest: str, request: Request) -> Body:
        jobs = self.controller.jobs.values()
        waiting = sum(job.state == "PENDING" for job in jobs)
        counts = {"jobs_pending": waiting, "jobs_running": sum(job.state == "RUNNING" for job in jobs)}
        ended = {"jobs_completed": "COMPLETED", "jobs_canceled": "CANCELLED", "jobs_failed": "FAILED"}
        counts |= {key: sum(run.state == state for run in self.controller.runs) for key, state in ended.items()}
        return {"statistics": {**counts, "jobs_submitted": self.controller.next_job - 1, "dbd_agent_queue_size": 0}}

    def _nodes(self, rest: str, request: Request) -> Body:
        controller = self.controller
        if rest and rest not in controller.nodes:
            raise SlurmRefusal(Code.INVALID_QUERY, f"Failure to query node {rest}")
        wanted = [controller.nodes[rest]] if rest else list(controller.nodes.values())
        return {"nodes": [answers.node_entry(controller, node) for node in wanted]}

    def _partitions(self, rest: str, request: Request) -> Body:
        wanted = [one for one in self.controller.layout.partitions if rest in ("", one.name)]
        if rest and not wanted:
            raise SlurmRefusal(Code.INVALID_QUERY, f"Unable to find partition {rest}")
        return {"partitions": [answers.partition_entry(one) for one in wanted]}

    def _reservations(self, rest: str, request: Request) -> Body:
        wanted = [one for one in self.controller.reservations if rest in ("", one.name)]
        if rest and not wanted:
            raise SlurmRefusal(Code.INVALID_QUERY, f"Unable to find reservation {rest}")
        return {"reservations": [answers.reservation_entry(one) for one in wanted]}

    def _jobs(self, rest: str, request: Request) -> Body:
        jobs = [self.controller.job(_number(rest))] if rest else list(self.controller.jobs.values())
        return {"jobs": [answers.job_entry(self.controller, job) for job in jobs]}

    def _runs(self, rest: str, request: Request) -> Body:
        controller = self.controller
        since = request.query.get("start_time", "0")
        if not since.isdecimal():
            raise SlurmRefusal(Code.INVALID_QUERY, f"start_time {since[:40]!r} is no time")
        runs = accounting.runs_of(controller, _number(rest)) if rest else accounting.runs_since(controller, int(since))
        return {"jobs": [accounting.run_entry(controller, run) for run in runs]}

    def _accounts(self, rest: str, request: Request) -> Body:
        return {"accounts": [accounting.account_entry(one) for one in self.controller.layout.accounts]}

    def _associations(self, rest: str, request: Request) -> Body:
        return {"associations": list(accounting.association_entries(self.controller.layout))}

    def _users(self, rest: str, request: Request) -> Body:
        return {"users": list(accounting.user_entries(self.controller.layout))}

    def _qos(self, rest: str, request: Request) -> Body:
        return {"qos": [accounting.qos_entry(one) for one in self.controller.layout.qos]}

    def _clusters(self, rest: str, request: Request) -> Body:
        return {"clusters": [{"name": self.controller.layout.cluster, "nodes": "", "flags": []}]}

    # acts

    def _post_job(self, rest: str, request: Request, user: str) -> Body:
        if rest == "submit":
            job = self.controller.submit(wish_of(parsed(Submission, request.body), user))
            return {"job_id": job.id, "step_id": "batch", "job_submit_user_msg": ""}
        number = self._own(rest, user)
        sent: JobDescription = parsed(JobDescription, request.body)
        if sent.hold is not None:
            self.controller.hold(number, sent.hold)
        if changes := changes_of(sent):
            self.controller.change(number, **changes)
        if begin := value(sent.begin_time):
            self.controller.begin(number, begin)
        return {
            "results": [{"job_id": number, "step_id": str(number), "error_code": 0, "error": "No error", "why": ""}]
        }

    def _delete_job(self, rest: str, request: Request, user: str, version: str) -> Body:
        """End or signal a job. Up to v0.0.41 it is not told when there is none, as in 24.11."""
        told = {"code": 0, "message": "No error"}
        try:
            number = self._own(rest, user)
            name = request.query.get("signal", "").removeprefix("SIG")
            if self.controller.job(number).state in ENDED:
                raise SlurmRefusal(Code.ALREADY_DONE)
            if name in ("", "KILL", "TERM"):
                self.controller.cancel(number, by=user)
        except SlurmRefusal as refusal:
            if refusal.code is Code.ACCESS_DENIED:
                raise
            told = {"code": int(refusal.code), "message": refusal.words}
        return {"status": [{"error": told, "step_id": rest, "job_id": rest}]} if version >= _TELLS_OF_EACH else {}

    def _own(self, rest: str, user: str) -> int:
        """The number of a job that this user may change."""
        job = self.controller.job(_number(rest))
        if user not in (ROOT, job.wish.user):
            raise SlurmRefusal(Code.ACCESS_DENIED)
        return job.id

    def _post_node(self, rest: str, request: Request, user: str) -> Body:
        if user != ROOT:
            raise SlurmRefusal(Code.ACCESS_DENIED)
        sent: NodeUpdate = parsed(NodeUpdate, request.body)
        controller = self.controller
        reason = sent.reason or ""
        for state in sent.state or ():
            match state:
                case "DRAIN":
                    controller.drain(rest, reason, user)
                case "UNDRAIN":
                    controller.undrain(rest)
                case "RESUME":
                    controller.resume_node(rest)
                case "DOWN":
                    controller.set_down(rest, reason, user)
                case _:
                    raise SlurmRefusal(Code.INVALID_QUERY, f"state {state[:40]!r} can't be set")
        if reason and not sent.state:
            controller.explain(rest, reason, user)
        return {}


def _number(text: str) -> int:
    if not text.isdecimal():
        raise SlurmRefusal(Code.INVALID_JOB)
    return int(text)


def _json(status: int, body: Body) -> Response:
    return Response(status, msgspec.json.encode(body), {"Content-Type": "application/json"})
