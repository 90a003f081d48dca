"""slurmrestd's side: versions, tokens, errors and broken answers, by a stand-in that answers as it does."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio

from inventory.drivers.clusters import SlurmTarget, open_slurm
from inventory.drivers.clusters.capabilities import Capability, JobSpec, Outcome
from inventory.drivers.clusters.slurm import CommandDoor, Login, RestDoor, SlurmCluster
from inventory.drivers.clusters.slurm.versions import choose, offered_in
from inventory.drivers.clusters.tokens import expires_at
from inventory.observations import FailureKind

DATA = Path(__file__).parents[2] / "data" / "slurm"
OK = {"meta": {"slurm": {"release": "24.11.5", "cluster": "north"}}, "errors": []}


class Server:
    """Answers like a slurmrestd of some versions; keeps what it was asked."""

    def __init__(self, *versions: str) -> None:
        self.versions = versions
        self.asked: list[tuple[str, str, Any]] = []
        self.headers: list[httpx.Headers] = []
        self.answers: dict[str, tuple[int, Any]] = {}
        self.token = "good"

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path
        self.asked.append((request.method, path, json.loads(request.content) if request.content else None))
        self.headers.append(request.headers)
        if request.headers["X-SLURM-USER-TOKEN"] != self.token:
            return httpx.Response(401, text="Authentication failure")
        if path == "/openapi/v3":
            paths = {f"/slurm/{version}/{name}": {} for version in self.versions for name in ("nodes/", "jobs/")}
            return httpx.Response(200, json={"paths": paths})
        version = path.split("/")[2]
        if version not in self.versions:
            return httpx.Response(404, text="Unable find requested URL.", headers={"content-type": "text/plain"})
        name = path.split("/", 3)[3]
        status, body = self.answers.get(f"{request.method} {name}", (200, OK))
        return httpx.Response(status, json=body) if isinstance(body, dict) else httpx.Response(status, content=body)


Connect = Callable[..., SlurmCluster]


@pytest_asyncio.fixture
async def connect() -> AsyncIterator[Connect]:
    """Makes drivers for a server and closes them at the end."""
    made: list[SlurmCluster] = []

    def make(server: Server, *, token: str = "good", renew: Callable[[], Awaitable[str]] | None = None) -> SlurmCluster:
        door = RestDoor("http://slurm", Login("root", token, renew), transport=httpx.MockTransport(server))
        made.append(SlurmCluster(rest=door))
        return made[-1]

    yield make
    for driver in made:
        await driver.close()


CHOICES = [
    (["v0.0.36", "v0.0.37", "v0.0.38"], "v0.0.38", True),
    (["v0.0.39", "v0.0.40"], "v0.0.40", True),
    (["v0.0.40", "v0.0.41", "v0.0.42", "v0.0.43"], "v0.0.42", True),
    (["v0.0.39"], "v0.0.39", False),
    (["v0.0.43", "v0.0.44", "v0.0.45"], "v0.0.43", False),
    (["v0.0.35"], None, True),
    ([], None, True),
]


@pytest.mark.parametrize(("offered", "name", "tested"), CHOICES)
def test_the_version_is_negotiated(offered: list[str], name: str | None, tested: bool) -> None:
    """P11: the newest tested one, else the nearest newer one, named as untested."""
    chosen = choose(offered)
    assert (chosen.name if chosen else None) == name
    assert chosen is None or (chosen.tested, bool(chosen.note)) == (tested, not tested)


def test_offered_versions_are_read_from_the_document() -> None:
    """P11: slashes may be escaped, other paths don't count."""
    document = rb'{"paths": {"\/slurm\/v0.0.38\/nodes": {}, "/slurm/v0.0.40/jobs/": {}, "/slurmdb/v0.0.99/jobs": {}}}'
    assert offered_in(document) == ("v0.0.38", "v0.0.40")


@pytest.mark.parametrize("version", ["v0.0.40", "v0.0.41", "v0.0.42"])
async def test_newer_versions_drain_by_rest(connect: Connect, version: str) -> None:
    """P11: no command line is needed to drain, return, hold and submit onto nodes."""
    server = Server(version)
    driver = connect(server)
    described = await driver.describe(deadline=5)
    assert all(described.has(one) for one in (Capability.CORDON, Capability.PLACE, Capability.HOLD, Capability.RUNS))
    assert not described.has(Capability.TENANTS)
    assert (described.version, described.cluster, described.tested) == ("24.11.5", "north", True)
    idle = {"name": "gpu-001", "state": ["IDLE"], "reason": ""}
    server.answers["GET node/gpu-001"] = (200, OK | {"nodes": [idle]})
    assert (await driver.cordon("gpu-001", owner="c1", reason="test", deadline=5)).outcome is Outcome.DONE
    drain = ("POST", f"/slurm/{version}/node/gpu-001", {"state": ["DRAIN"], "reason": "sensaka:c1 test"})
    assert server.asked[-1] == drain
    drained = idle | {"state": ["IDLE", "DRAIN"], "reason": "sensaka:c1 test"}
    server.answers["GET node/gpu-001"] = (200, OK | {"nodes": [drained]})
    assert (await driver.uncordon("gpu-001", owner="c1", deadline=5)).outcome is Outcome.DONE
    assert server.asked[-1] == ("POST", f"/slurm/{version}/node/gpu-001", {"state": ["UNDRAIN"]})
    assert (await driver.hold("5", deadline=5)).ok
    assert server.asked[-1] == ("POST", f"/slurm/{version}/job/5", {"hold": True})
    assert (await driver.requeue("5", deadline=5)).outcome is Outcome.NOT_SUPPORTED


async def test_submission_in_the_newer_form(connect: Connect) -> None:
    """P11: nodes, cards, limits and environment as v0.0.40 and later want them, on behalf of the user."""
    server = Server("v0.0.42")
    server.answers["POST job/submit"] = (200, OK | {"job_id": 31})
    job = JobSpec(
        name="train", script="#!/bin/sh\n", mark="sensaka:r1", working_directory="/home/ann", user="ann",
        account="vision", nodes=("gpu-001", "gpu-002"), cards=2, card_type="h100", time_limit=61, memory=3 * 1024**2,
        environment={"A": "1"}, held=True,
    )  # fmt: skip
    sent = await connect(server).submit(job, deadline=5)
    assert (sent.outcome, sent.reference) == (Outcome.DONE, "31")
    assert server.headers[-1]["X-SLURM-USER-NAME"] == "ann"
    assert server.asked[-1][2] == {
        "script": "#!/bin/sh\n",
        "job": {
            "name": "train",
            "comment": "sensaka:r1",
            "current_working_directory": "/home/ann",
            "standard_output": "/dev/null",
            "account": "vision",
            "hold": True,
            "requeue": True,
            "minimum_nodes": 2,
            "required_nodes": ["gpu-001", "gpu-002"],
            "tres_per_node": "gres/gpu:h100:2",
            "time_limit": {"set": True, "infinite": False, "number": 2},
            "memory_per_node": {"set": True, "infinite": False, "number": 3},
            "environment": ["PATH=/usr/local/bin:/usr/bin:/bin", "A=1"],
        },
    }


async def test_lists_are_read_in_both_forms(connect: Connect) -> None:
    """P11 P12: one broken entry is told and costs itself only; the reading is not complete."""
    for version, form in (("v0.0.38", "v38"), ("v0.0.42", "v42")):
        server = Server(version)
        server.answers["GET nodes"] = (200, (DATA / f"{form}-nodes.json").read_bytes())
        server.answers["GET jobs"] = (200, (DATA / f"{form}-jobs.json").read_bytes())
        driver = connect(server)
        nodes, jobs = await driver.read_nodes(deadline=5), await driver.read_jobs(deadline=5)
        assert (len(nodes.nodes), nodes.complete) == (2, False)
        assert (len(jobs.jobs), jobs.complete) == (4, False)


async def test_a_server_of_another_version_is_asked_anew(connect: Connect) -> None:
    """P11: slurmrestd was upgraded under us: one call more, no failure."""
    server = Server("v0.0.38")
    driver = connect(server)
    assert (await driver.read_nodes(deadline=5)).complete
    server.versions = ("v0.0.42",)
    assert (await driver.read_nodes(deadline=5)).complete
    assert server.asked[-1][1] == "/slurm/v0.0.42/nodes"


async def test_an_untested_version_is_used_and_said(connect: Connect) -> None:
    """P11: newer than tested is accepted; too old is a reason."""
    described = await connect(Server("v0.0.44", "v0.0.45")).describe(deadline=5)
    assert (described.interface, described.tested) == ("v0.0.44", False)
    assert "untested" in described.reason
    old = await connect(Server("v0.0.35")).read_nodes(deadline=5)
    assert [failure.kind for failure in old.failures] == [FailureKind.NOT_SUPPORTED]


async def test_a_refused_token_is_renewed_once(connect: Connect) -> None:
    """P11: one renewal serves what follows; a renewal that does not help is a failure, not a loop."""
    calls: list[str] = []

    async def renew() -> str:
        calls.append("x")
        return "good" if len(calls) == 1 else f"bad {len(calls)}"

    server = Server("v0.0.42")
    driver = connect(server, token="old", renew=renew)
    assert (await driver.read_nodes(deadline=5)).complete
    assert (await driver.read_jobs(deadline=5)).complete
    assert len(calls) == 1
    server.token = "changed"
    reading = await driver.read_nodes(deadline=5)
    assert [failure.kind for failure in reading.failures] == [FailureKind.AUTHENTICATION]
    assert len(calls) == 2


def error(code: int, words: str) -> dict[str, Any]:
    return {"meta": {}, "errors": [{"error_number": code, "error": words, "description": "", "source": "x"}]}


FAILED = [
    ("text, not JSON", 200, b"<html>", FailureKind.PROTOCOL),
    ("JSON of another shape", 200, b'{"nodes": 3}', FailureKind.PROTOCOL),
    ("cut off", 200, b'{"nodes": [{"name": "a"', FailureKind.PROTOCOL),
    ("not allowed", 403, b"no", FailureKind.PERMISSION),
    ("overloaded", 503, b"later", FailureKind.BUSY),
    ("rights", 500, error(2002, "Access/permission denied"), FailureKind.PERMISSION),
    ("controller away", 500, error(-1, "Unspecified error"), FailureKind.UNREACHABLE),
    ("controller refuses", 500, error(1, "Unable to contact slurm controller (connect failure)"),
     FailureKind.UNREACHABLE),
    ("something new", 500, error(4711, "Surprise"), FailureKind.PROTOCOL),
]  # fmt: skip


@pytest.mark.parametrize(("status", "body", "kind"), [case[1:] for case in FAILED], ids=[case[0] for case in FAILED])
async def test_failures_are_told_apart(connect: Connect, status: int, body: Any, kind: FailureKind) -> None:
    """P11: each with a kind and the server's words, never an exception."""
    server = Server("v0.0.42")
    server.answers["GET nodes"] = (status, body)
    reading = await connect(server).read_nodes(deadline=5)
    assert [failure.kind for failure in reading.failures] == [kind]
    assert (reading.complete, reading.nodes) == (False, ())


async def test_ending_a_job_in_the_newer_forms(connect: Connect) -> None:
    """P11: v0.0.42 tells of a missing or ended job in `status`, v0.0.41 says nothing and is asked first."""
    server = Server("v0.0.42")
    for code, words, outcome in (
        (0, "No error", Outcome.DONE),
        (2017, "Invalid job id specified", Outcome.NOT_FOUND),
        (2021, "Job/step already completing or completed", Outcome.UNCHANGED),
    ):
        told = {"status": [{"error": {"code": code, "message": words}, "step_id": "5"}]}
        server.answers["DELETE job/5"] = (200, OK | told)
        assert (await connect(server).cancel("5", deadline=5)).outcome is outcome
    older = Server("v0.0.41")
    older.answers["GET job/5"] = (404, error(2017, "Invalid job id specified"))
    assert (await connect(older).cancel("5", deadline=5)).outcome is Outcome.NOT_FOUND
    older.answers["GET job/5"] = (200, OK)
    assert (await connect(older).signal("5", "USR1", deadline=5)).outcome is Outcome.DONE
    assert older.asked[-1][:2] == ("DELETE", "/slurm/v0.0.41/job/5")


async def test_nothing_found_is_an_empty_list(connect: Connect) -> None:
    """P12: 22.05 calls an empty accounting an error."""
    server = Server("v0.0.38")
    server.answers["GET jobs"] = (500, error(9003, "Nothing found with query") | {"jobs": []})
    reading = await connect(server).read_jobs(deadline=5)
    assert (reading.complete, reading.jobs) == (True, ())


async def test_a_cut_line_leaves_an_act_unknown() -> None:
    """P11: a request that broke on the way may have been carried out; a read is simply unreachable."""

    async def broken(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/openapi/v3":
            return httpx.Response(200, json={"paths": {"/slurm/v0.0.42/nodes": {}}})
        raise httpx.RemoteProtocolError("peer closed connection")

    driver = SlurmCluster(rest=RestDoor("http://x", Login("root", "t"), transport=httpx.MockTransport(broken)))
    assert (await driver.cancel("5", deadline=5)).outcome is Outcome.UNKNOWN
    assert (await driver.read_nodes(deadline=5)).failures[0].kind is FailureKind.UNREACHABLE
    await driver.close()


async def test_a_socket_instead_of_a_port(tmp_path: Path) -> None:
    """P11: slurmrestd on a unix socket."""
    document = json.dumps({"paths": {"/slurm/v0.0.42/nodes": {}}, "nodes": [{"name": "a", "state": ["IDLE"]}]})

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(document)}\r\n"
        writer.write(f"{head}Connection: close\r\n\r\n{document}".encode())
        await writer.drain()
        writer.close()

    server = await asyncio.start_unix_server(serve, tmp_path / "s")
    driver = open_slurm(SlurmTarget(url=f"unix:{tmp_path / 's'}", user="root", token="t"))
    reading = await driver.read_nodes(deadline=5)
    await driver.close()
    server.close()
    await server.wait_closed()
    assert [node.name for node in reading.nodes] == ["a"]


def test_secrets_are_not_shown() -> None:
    """P11: neither target nor login print the token."""
    target = SlurmTarget(url="http://x", user="root", token="secret")
    assert "secret" not in repr(target) + str(target) + repr(Login("root", "secret"))


def test_a_target_without_a_way_in_is_refused() -> None:
    """P11: said at once, not at the first call."""
    with pytest.raises(ValueError, match="slurmrestd"):
        open_slurm(SlurmTarget())


def test_the_end_of_a_token() -> None:
    """P11: read from the token itself; nonsense has none."""
    claims = base64.urlsafe_b64encode(b'{"exp": 1790000000, "sun": "root"}').decode().rstrip("=")
    end = expires_at(f"h.{claims}.s")
    assert end is not None
    assert end.timestamp() == 1_790_000_000
    assert [expires_at(text) for text in ("", "a.b", "a.b.c", "h.e30.s", "h.bnVsbA.s")] == [None] * 5


async def test_commands_never_see_a_shell(tmp_path: Path) -> None:
    """P11: words stay words; a command that hangs ends at the deadline with all its children."""
    tool = tmp_path / "scontrol"
    tool.write_text(
        '#!/bin/sh\nfor word; do echo "<$word>"; done\n'
        'case "$1" in hang) sleep 60 & wait;; bad) echo no >&2; exit 3;; esac\n'
    )
    tool.chmod(0o755)
    door = CommandDoor(environment={"PATH": f"{tmp_path}:/usr/bin:/bin"})
    loop = asyncio.get_running_loop()
    output = await door.run("scontrol", "a b", "$(id)", "; id", "", until=loop.time() + 5)
    assert output.decode().splitlines() == ["<a b>", "<$(id)>", "<; id>", "<>"]
    driver = SlurmCluster(command=door)
    assert (await driver.describe(deadline=5)).failures[0].kind is FailureKind.PROTOCOL  # no version in its answer
    start = loop.time()
    with pytest.raises(Exception, match="deadline"):
        await door.run("scontrol", "hang", until=start + 0.3)
    assert loop.time() - start < 5
    with pytest.raises(Exception, match="no"):
        await door.run("scontrol", "bad", until=loop.time() + 5)


async def test_a_token_is_never_handed_to_jobs(tmp_path: Path) -> None:
    """P11: sbatch copies SLURM_ variables into the job, so it is not used while one of them is our token."""
    driver = SlurmCluster(command=CommandDoor(environment={"SLURM_JWT": "secret", "PATH": str(tmp_path)}))
    job = JobSpec(name="x", script="#!/bin/sh\n", mark="m", working_directory="/")
    assert (await driver.submit(job, deadline=5)).outcome is Outcome.NOT_SUPPORTED
