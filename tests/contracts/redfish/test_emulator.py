"""The emulated Redfish service itself: what drivers, demos and the simulator lean on."""

import asyncio
import json
import ssl
import sys
import tarfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from inventory.drivers.fake.redfish import (
    Behaviour,
    Fault,
    NotAMockup,
    RedfishServer,
    StaticTree,
    load_mockup,
    self_signed,
)
from tests.contracts.redfish.conftest import PASSWORD, Serve
from tests.contracts.redfish.trees import V1, Tree, dell, hgx, lenovo

SESSIONS = f"{V1}/SessionService/Sessions"
SYSTEM = f"{V1}/Systems/1"
LOGIN = {"UserName": "admin", "Password": PASSWORD}


def _client(server: RedfishServer | None = None, **options: Any) -> httpx.AsyncClient:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return httpx.AsyncClient(base_url=server.url if server else "", verify=context, trust_env=False, **options)


@pytest.fixture
async def bmc(serve: Serve) -> AsyncIterator[tuple[RedfishServer, httpx.AsyncClient]]:
    server = await serve(lenovo(levels=2))
    async with _client(server, auth=("admin", PASSWORD)) as http:
        yield server, http


Bmc = tuple[RedfishServer, httpx.AsyncClient]


async def test_the_root_is_open_and_the_rest_is_not(serve: Serve) -> None:
    server = await serve(dell())
    async with _client(server) as http:
        for path, status in (("/redfish", 200), (V1, 200), (f"{V1}/", 200), (f"{V1}/Systems", 401), ("/x", 401)):
            assert (await http.get(path)).status_code == status, path
        assert (await http.get(f"{V1}/Systems", auth=("admin", "wrong"))).status_code == 401


async def test_sessions_open_serve_and_close(serve: Serve) -> None:
    server = await serve(dell(), behaviour=Behaviour(session_limit=2))
    async with _client(server) as http:
        assert (await http.post(SESSIONS, json={**LOGIN, "Password": "x"})).status_code == 401
        first = await http.post(SESSIONS, json=LOGIN)
        assert first.status_code == 201
        token = {"X-Auth-Token": first.headers["X-Auth-Token"]}
        assert (await http.get(f"{V1}/Systems", headers=token)).status_code == 200
        assert (await http.get(SESSIONS, headers=token)).json()["Members@odata.count"] == 1
        assert (await http.get(first.headers["Location"], headers=token)).json()["UserName"] == "admin"
        assert (await http.post(SESSIONS, json=LOGIN)).status_code == 201
        assert (await http.post(SESSIONS, json=LOGIN)).status_code == 503
        assert (await http.delete(first.headers["Location"], headers=token)).status_code == 204
        assert (await http.get(f"{V1}/Systems", headers=token)).status_code == 401
        assert (await http.post(SESSIONS, json=LOGIN)).status_code == 201


async def test_reset_changes_the_power_state_after_its_time() -> None:
    now = 0.0
    tree = StaticTree(lenovo(), reset_seconds=10, clock=lambda: now)
    action = f"{SYSTEM}/Actions/ComputerSystem.Reset"
    assert tree.act("POST", action, {"ResetType": "ForceOff"})[0] == 204
    assert tree.resources[SYSTEM]["PowerState"] == "PoweringOff"
    now = 10.0
    state = tree.get(SYSTEM)
    assert state is not None
    assert state["PowerState"] == "Off"
    for reset_type, status in (("Nonsense", 400), ("ForceRestart", 409), ("On", 204)):
        assert tree.act("POST", action, {"ResetType": reset_type})[0] == status, reset_type


async def test_a_boot_override_is_honoured_once(bmc: Bmc) -> None:
    server, http = bmc
    boot = {"Boot": {"BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Once"}}
    assert (await http.patch(SYSTEM, json=boot)).status_code == 200
    assert (await http.get(SYSTEM)).json()["Boot"]["BootSourceOverrideTarget"] == "Pxe"
    for _ in range(2):
        await http.post(f"{SYSTEM}/Actions/ComputerSystem.Reset", json={"ResetType": "ForceRestart"})
    tree = server.service.tree
    assert isinstance(tree, StaticTree)
    assert [boot.target for boot in tree.boots] == ["Pxe", "Hdd"]
    assert (await http.get(SYSTEM)).json()["Boot"]["BootSourceOverrideEnabled"] == "Disabled"


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"Unknown": 1}, 400),
        ({"Boot": {"Unknown": 1}}, 400),
        ({"Boot": {"BootSourceOverrideTarget": "Moon"}}, 400),
        ({"SerialNumber": "forged"}, 403),
        ({"PowerState": "Off"}, 403),
    ],
)
async def test_a_change_that_is_not_possible_changes_nothing(bmc: Bmc, change: dict[str, Any], status: int) -> None:
    _, http = bmc
    before = (await http.get(SYSTEM)).json()
    refused = await http.patch(SYSTEM, json={"HostName": "new", **change})
    assert refused.status_code == status
    assert refused.json()["error"]["@Message.ExtendedInfo"][0]["Message"]
    assert (await http.get(SYSTEM)).json() == before


async def test_entity_tags_guard_changes(bmc: Bmc) -> None:
    _, http = bmc
    got = await http.get(SYSTEM)
    tag = {"If-Match": got.headers["ETag"]}
    assert (await http.get(SYSTEM, headers={"If-None-Match": got.headers["ETag"]})).status_code == 304
    assert (await http.patch(SYSTEM, json={"HostName": "a"}, headers=tag)).status_code == 200
    assert (await http.patch(SYSTEM, json={"HostName": "b"}, headers=tag)).status_code == 412
    assert (await http.patch(SYSTEM, json={"HostName": "c"}, headers={"If-Match": "*"})).status_code == 200


async def test_if_match_may_be_demanded(serve: Serve) -> None:
    server = await serve(lenovo(), behaviour=Behaviour(require_if_match=True))
    async with _client(server, auth=("admin", PASSWORD)) as http:
        assert (await http.patch(SYSTEM, json={"HostName": "a"})).status_code == 428


async def test_an_update_makes_a_task_and_then_a_new_version() -> None:
    now = [0.0]
    tree = StaticTree(dell(), update_seconds=60, clock=lambda: now[0])
    bios = f"{V1}/UpdateService/FirmwareInventory/BIOS"
    action = f"{V1}/UpdateService/Actions/UpdateService.SimpleUpdate"
    assert tree.act("POST", action, {"Targets": [bios]})[0] == 400
    assert tree.act("POST", action, {"ImageURI": "http://x/bios-2.5.0.bin", "Targets": [f"{bios}X"]})[0] == 400
    status, task = tree.act("POST", action, {"ImageURI": "http://x/bios-2.5.0.bin", "Targets": [bios]})
    assert status == 202
    assert task is not None
    states = []
    for now[0] in (0.0, 30.0, 60.0):
        current = tree.get(task["@odata.id"])
        assert current is not None
        states.append((current["TaskState"], current["PercentComplete"]))
    assert states == [("Running", 0), ("Running", 50), ("Completed", 100)]
    assert tree.resources[bios]["Version"] == "2.5.0"


async def test_a_cleared_log_is_empty(serve: Serve) -> None:
    server = await serve(dell())
    service = f"{V1}/Managers/iDRAC.Embedded.1/LogServices/Sel"
    async with _client(server, auth=("admin", PASSWORD)) as http:
        assert (await http.post(f"{service}/Actions/LogService.ClearLog", json={})).status_code == 204
        assert (await http.get(f"{service}/Entries")).json()["Members"] == []
        assert (await http.get(f"{service}/Entries/1")).status_code == 404


async def test_expand_follows_what_is_advertised(serve: Serve) -> None:
    server = await serve(hgx(levels=2))
    path = f"{V1}/Systems/HGX_Baseboard_0/Processors"
    async with _client(server, auth=("admin", PASSWORD)) as http:
        one = (await http.get(f"{path}?$expand=.")).json()["Members"][1]
        assert (one["Id"], list(one["EnvironmentMetrics"])) == ("GPU_SXM_1", ["@odata.id"])
        two = (await http.get(f"{path}?$expand=.($levels=2)")).json()["Members"][1]
        assert two["EnvironmentMetrics"]["PowerWatts"] == {"Reading": 350.0}
        assert list(two["Links"]["Chassis"]) == ["@odata.id"]
        linked = (await http.get(f"{path}/GPU_SXM_1?$expand=~")).json()
        assert linked["Links"]["Chassis"]["Id"] == "HGX_GPU_SXM_1"
        assert (await http.get(f"{path}?$expand=.($levels=3)")).status_code == 400
        assert (await http.get(f"{path}?$expand=nonsense")).status_code == 400
    plain = await serve(hgx(levels=0))
    async with _client(plain, auth=("admin", PASSWORD)) as http:
        assert (await http.get(f"{path}?$expand=.")).status_code == 501


async def test_pages_and_slices(serve: Serve) -> None:
    server = await serve(hgx(cards=5), behaviour=Behaviour(page_size=2))
    path = f"{V1}/Systems/HGX_Baseboard_0/Memory"
    async with _client(server, auth=("admin", PASSWORD)) as http:
        seen: list[str] = []
        where = path
        while where:
            page = (await http.get(where)).json()
            assert page["Members@odata.count"] == 5
            seen += [member["@odata.id"] for member in page["Members"]]
            where = page.get("Members@odata.nextLink", "")
        assert len(seen) == len(set(seen)) == 5
        cut = (await http.get(f"{path}?$skip=1&$top=1")).json()
        assert [member["@odata.id"] for member in cut["Members"]] == seen[1:2]
        assert (await http.get(f"{path}?$skip=x")).status_code == 400


async def test_the_log_counts_requests_and_those_at_once(serve: Serve) -> None:
    server = await serve(dell(), faults=[Fault(path=f"{V1}/Systems", delay=0.2)])
    async with _client(server, auth=("admin", PASSWORD)) as http:
        await asyncio.gather(*(http.get(f"{V1}/Systems") for _ in range(3)))
        await http.get(V1)
    assert (server.log.total, server.log.peak, server.log.active) == (4, 3, 0)
    assert server.log.counts[f"GET {V1}/Systems"] == 3
    assert server.log.saw_credentials


async def test_connections_beyond_the_limit_are_dropped(serve: Serve) -> None:
    server = await serve(dell(), connection_limit=1, faults=[Fault(delay=0.2)])
    async with _client(server) as http, _client(server) as other:
        results = await asyncio.gather(http.get(V1), other.get(V1), return_exceptions=True)
    assert sorted(isinstance(result, httpx.HTTPError) for result in results) == [False, True]


async def test_many_servers_share_one_loop() -> None:
    certificate = self_signed()
    servers = [RedfishServer(StaticTree(dell()), certificate=certificate) for _ in range(64)]
    for server in servers:
        await server.start()
    assert len({server.port for server in servers}) == 64
    async with _client() as http:
        answers = await asyncio.gather(*(http.get(f"{server.url}{V1}") for server in servers))
    assert {answer.status_code for answer in answers} == {200}
    for server in servers:
        await server.stop()
        await server.stop()


async def test_garbage_is_answered_with_400(serve: Serve) -> None:
    server = await serve(dell(), tls=False)
    for garbage in (b"\x16\x03\x01hello", b"NONSENSE\r\n\r\n", b"GET / HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n"):
        reader, writer = await asyncio.open_connection(server.host, server.port)
        writer.write(garbage)
        assert (await reader.readline()).startswith(b"HTTP/1.1 400"), garbage
        writer.close()
        await writer.wait_closed()


def _flat(tree: Tree, folder: Path) -> None:
    for path, resource in tree.items():
        (folder / f"{path.replace('/', '_')}.json").write_text(json.dumps(resource))


def _nested(tree: Tree, folder: Path) -> None:
    for path, resource in tree.items():
        place = folder / path.removeprefix("/")
        place.mkdir(parents=True, exist_ok=True)
        (place / "index.json").write_text(json.dumps(resource))


def test_mockups_are_read_from_folders_and_archives(tmp_path: Path) -> None:
    tree = hgx()
    flat, nested, archive = tmp_path / "flat", tmp_path / "nested", tmp_path / "mock.tar.gz"
    flat.mkdir()
    _flat(tree, flat)
    (flat / "LICENSE").write_text("x")
    _nested(tree, nested)
    with tarfile.open(archive, "w:gz") as out:
        out.add(nested, arcname="mock")
    for source in (flat, nested, archive):
        assert load_mockup(source) == tree, source
    (tmp_path / "empty").mkdir()
    with pytest.raises(NotAMockup):
        load_mockup(tmp_path / "empty")


def test_recorded_pages_are_put_together(tmp_path: Path) -> None:
    tree = hgx(cards=3)
    path = f"{V1}/Systems/HGX_Baseboard_0/Memory"
    members = tree[path]["Members"]
    tree[path] = {**tree[path], "Members": members[:2], "Members@odata.nextLink": f"{path}?$skip=2"}
    tree[f"{path}?$skip=2"] = {"@odata.id": path, "Members": members[2:]}
    _nested(tree, tmp_path)
    loaded = load_mockup(tmp_path)
    assert loaded[path]["Members"] == members
    assert "Members@odata.nextLink" not in loaded[path]


def test_a_broken_file_is_passed_over(tmp_path: Path) -> None:
    _nested({V1: {"Id": "RootService"}}, tmp_path)
    (tmp_path / "redfish/v1/Broken").mkdir()
    (tmp_path / "redfish/v1/Broken/index.json").write_text("{")
    assert list(load_mockup(tmp_path)) == [V1]


async def test_the_module_serves_a_mockup_from_the_command_line(tmp_path: Path) -> None:
    _nested(dell(), tmp_path)
    command = [
        sys.executable,
        "-m",
        "inventory.drivers.fake.redfish",
        str(tmp_path),
        "--open",
        "--plain",
        "--seconds",
        "30",
    ]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    try:
        assert process.stdout is not None
        line = (await asyncio.wait_for(process.stdout.readline(), 20)).decode().split()
        async with httpx.AsyncClient(trust_env=False) as http:
            answer = await http.get(line[0].replace("/redfish/v1", f"{V1}/Systems"))
        assert answer.json()["Members@odata.count"] == 1
    finally:
        process.terminate()
        await process.wait()
