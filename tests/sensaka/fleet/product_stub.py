"""A stand-in for the product's REST: rows in memory, agents that enrol and push, discoveries that really knock.

It answers as the product's interface is written down, no more: what it keeps is what the tests count.
"""

import asyncio
import contextlib
import gzip
import json
import ssl
import uuid
from collections import Counter
from typing import Any

from sensaka.fleet.web import Reply, Request, WebServer

Row = dict[str, Any]


class ProductStub:
    """Serve it on a loop; `tables` holds what was made, `samples` every sample by card and second."""

    def __init__(self, token: str = "operator-token") -> None:
        self.token = token
        self.tables: dict[str, list[Row]] = {
            name: []
            for name in (
                "sites", "clusters", "racks", "credentials", "exporters", "enrolment-tokens", "discoveries", "bmcs",
                "nodes", "agents", "connections",
            )
        }  # fmt: skip
        self.enrolment: dict[str, Row] = {}
        self.by_token: dict[str, Row] = {}
        self.samples: dict[tuple[str, str], Row] = {}
        self.reports: dict[str, list[Row]] = {}
        self.posts: Counter[str] = Counter()
        self.fail_telemetry = 0
        self.server = WebServer(self._answer)
        self._knocking: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> "ProductStub":
        await self.server.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.server.stop()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.port}"

    async def _answer(self, request: Request) -> Reply:
        parts = request.path.removeprefix("/api/v1/").strip("/").split("/")
        self.posts[f"{request.method} {'/'.join(parts[:1] if parts[0] != 'agents' else parts[:2])}"] += 1
        given = request.headers.get("authorization", "").removeprefix("Token ")
        if request.path == "/api/v1/agents/enrol/":
            return self._enrol(json.loads(request.body))
        if request.path == "/api/v1/agents/report/":
            return self._report(given, json.loads(request.body))
        if request.path == "/api/v1/telemetry/":
            body = gzip.decompress(request.body) if request.headers.get("content-encoding") == "gzip" else request.body
            return self._telemetry(given, json.loads(body))
        if given != self.token:
            return _problem(401, "a token is needed")
        return self._rest(request, parts)

    def _rest(self, request: Request, parts: list[str]) -> Reply:
        if parts[0] == "clusters" and parts[2:] == ["connection"]:
            return self._connection(request, parts[1])
        table = self.tables[parts[0]]
        if request.method == "POST":
            return Reply.of(201, self._create(parts[0], json.loads(request.body)))
        if len(parts) == 2:
            row = next((row for row in table if row["id"] == parts[1]), None)
            if row is None:
                return _problem(404, "no such row")
            if request.method == "PATCH":
                row.update(json.loads(request.body))
            return Reply.of(200, row)
        rows = [row for row in table if all(str(row.get(key)) == value for key, value in request.query.items())]
        return Reply.of(200, {"next": None, "previous": None, "results": rows})

    def _connection(self, request: Request, cluster: str) -> Reply:
        known = next((row for row in self.tables["connections"] if row["cluster"] == cluster), None)
        if request.method == "POST" and known is None:
            body = json.loads(request.body)
            next(row for row in self.tables["clusters"] if row["id"] == cluster)["scheduler"] = body["scheduler"]
            return Reply.of(201, self._create("connections", {"cluster": cluster, **body}))
        if known is None:
            return _problem(404, "the cluster has no connection to a scheduler")
        known.update(json.loads(request.body) if request.method == "PATCH" else {})
        return Reply.of(200, known)

    def _create(self, name: str, body: Row) -> Row:
        row: Row = {"id": str(uuid.uuid4()), **body}
        self.tables[name].append(row)
        if name == "enrolment-tokens":
            row["token"] = f"ske_{uuid.uuid4().hex}"
            self.enrolment[row["token"]] = row
        if name == "discoveries":
            row.update(state="running", total=0, tried=0, found=0, results=[])
            task = asyncio.get_running_loop().create_task(self._knock(row))
            self._knocking.add(task)
            task.add_done_callback(self._knocking.discard)
        return row

    async def _knock(self, row: Row) -> None:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        for address in _addresses(row["addresses"]):
            for port in row["ports"]:
                with contextlib.suppress(OSError):
                    if row["protocol"] == "redfish":
                        _, writer = await asyncio.open_connection(address, port, ssl=context)
                        writer.close()
                    row["found"] += 1
                    bmc = {"address": address, "port": port, "interval": row["interval"], "protocol": row["protocol"]}
                    self._create("bmcs", bmc)
        row["state"] = "done"

    def _node(self, name: str, serial: str) -> Row:
        known = next((row for row in self.tables["nodes"] if row["name"] == name), None)
        return known or self._create("nodes", {"name": name, "system_serial": serial, "labels": {}})

    def _enrol(self, body: Row) -> Reply:
        place = self.enrolment.get(body["token"])
        if place is None or place["uses"] < 1:
            return _problem(401, "the token is unknown or used up")
        place["uses"] -= 1
        node = self._node(body["hostname"], body["system_serial"])
        self._create("agents", {"node": node["id"], "revoked_at": None})
        token = f"ska_{uuid.uuid4().hex}"
        self.by_token[token] = {"node": node["id"], "name": body["hostname"], "cards": set(), **body}
        return Reply.of(201, {"agent": "a", "node": node["id"], "token": token, "interval": 10})

    def _report(self, token: str, reading: Row) -> Reply:
        agent = self.by_token.get(token)
        if agent is None:
            return _problem(401, "unknown token")
        agent["cards"] = {card["uuid"] for card in reading.get("cards", [])} | {
            part["uuid"] for card in reading.get("cards", []) for part in card.get("slices", [])
        }
        self.reports.setdefault(agent["name"], []).append(reading)
        return Reply.of(200, {"known": len(agent["cards"])})

    def _telemetry(self, token: str, body: Row) -> Reply:
        agent = self.by_token.get(token)
        if agent is None:
            return _problem(401, "unknown token")
        if self.fail_telemetry:
            self.fail_telemetry -= 1
            return _problem(503, "on purpose")
        unknown = {sample["card"] for sample in body["samples"]} - agent["cards"]
        if unknown:
            return _problem(409, "unknown cards", code="unknown_cards", cards=sorted(unknown))
        new = 0
        for sample in body["samples"]:
            key = (sample["card"], sample["sampled_at"])
            new += key not in self.samples
            self.samples.setdefault(key, sample)
        return Reply.of(200, {"stored": new, "repeated": len(body["samples"]) - new})


def _problem(status: int, detail: str, **more: object) -> Reply:
    body = {"title": detail, "status": status, "detail": detail, **more}
    return Reply(status, json.dumps(body).encode(), "application/problem+json")


def _addresses(text: str) -> list[str]:
    found: list[str] = []
    for part in text.split(", "):
        first, _, last = part.partition("-")
        prefix, number = first.rsplit(".", 1)
        end = int(last.rsplit(".", 1)[1]) if last else int(number)
        found += [f"{prefix}.{value}" for value in range(int(number), end + 1)]
    return found
