"""Request in, response out: access, queries, ETags and sessions over a tree. No sockets here."""

import base64
import binascii
import secrets
import zlib
from dataclasses import dataclass
from typing import Any

import msgspec

from inventory.drivers.fake.http import Request, Response
from inventory.drivers.fake.redfish.faults import ExpandMode
from inventory.drivers.fake.redfish.queries import QueryRefused, expanded, paged, supported_levels
from inventory.drivers.fake.redfish.sessions import SessionStore
from inventory.drivers.fake.redfish.tree import RedfishTree, Resource, problem

ROOT = "/redfish/v1"
_OPEN = frozenset({"/redfish", ROOT, f"{ROOT}/odata", f"{ROOT}/$metadata"})
_SESSIONS = f"{ROOT}/SessionService/Sessions"
_VERSIONS: Resource = {"v1": f"{ROOT}/"}


@dataclass(slots=True)
class Behaviour:
    """How this service differs from the next one.

    `page_size` cuts collections into pages; `require_if_match` answers 428 to a PATCH without it;
    `etag_prefix` W/ makes weak tags; `basic` False refuses Basic, `session_limit` 0 refuses sessions
    with 503, `sessions` False has no session service at all (404). `needs_auth` False is an open mock.
    """

    page_size: int | None = None
    expand: ExpandMode = ExpandMode.HONEST
    require_if_match: bool = False
    etag_prefix: str = ""
    basic: bool = True
    sessions: bool = True
    session_limit: int = 8
    session_timeout: float = 1800.0
    needs_auth: bool = True


class RedfishService:
    """One Redfish service: its tree, its account and its sessions."""

    def __init__(self, tree: RedfishTree, *, username: str, password: str, behaviour: Behaviour) -> None:
        self.tree = tree
        self.behaviour = behaviour
        self._basic = f"{username}:{password}".encode()
        self._username, self._password = username, password
        root = tree.get(ROOT) or {}
        link = root.get("Links", {}).get("Sessions", {}).get("@odata.id", _SESSIONS)
        self.sessions = SessionStore(
            limit=behaviour.session_limit, timeout=behaviour.session_timeout, collection=str(link)
        )

    def answer(self, request: Request) -> Response:
        """Never raises for what a client sends."""
        if request.method == "POST" and request.path == self.sessions.collection:
            if not self.behaviour.sessions:
                return self._error(404, "Base.1.18.ResourceMissingAtURI", "There is no session service.")
            return self._login(request)
        if request.path not in _OPEN and not self._admitted(request):
            return self._error(401, "Base.1.18.NoValidSession", "There is no valid session.")
        try:
            if request.method == "GET":
                return self._get(request)
            if request.method in ("POST", "PATCH", "PUT", "DELETE"):
                return self._change(request)
        except QueryRefused as refusal:
            return self._error(refusal.status, "Base.1.18.QueryParameterValueFormatError", str(refusal))
        return self._error(405, "Base.1.18.OperationNotAllowed", f"{request.method} is not allowed.")

    def credentials_of(self, request: Request) -> str:
        """What kind of secret the request carried."""
        if "x-auth-token" in request.headers:
            return "token"
        if "authorization" in request.headers:
            return "basic"
        return "login" if b"Password" in request.body else "none"

    def _admitted(self, request: Request) -> bool:
        if not self.behaviour.needs_auth:
            return True
        token = request.headers.get("x-auth-token")
        if token is not None:
            return self.sessions.touch(token)
        kind, _, value = request.headers.get("authorization", "").partition(" ")
        if kind.lower() != "basic" or not self.behaviour.basic:
            return False
        try:
            given = base64.b64decode(value, validate=True)
        except binascii.Error:
            return False
        return secrets.compare_digest(given, self._basic)

    def _login(self, request: Request) -> Response:
        body = self._body(request) or {}
        right = body.get("UserName") == self._username and body.get("Password") == self._password
        if self.behaviour.needs_auth and not right:
            return self._error(401, "Base.1.18.ResourceAtUriUnauthorized", "The user name or password is wrong.")
        session = self.sessions.create(str(body.get("UserName")))
        if session is None:
            text = "The maximum number of sessions is reached."
            return self._error(503, "Base.1.18.SessionLimitExceeded", text)
        resource = self.sessions.describe(session)
        response = self._json(201, resource)
        response.headers |= {"X-Auth-Token": session.token, "Location": str(resource["@odata.id"])}
        return response

    def _find(self, path: str) -> Resource | None:
        if path == "/redfish":
            return _VERSIONS
        if path == self.sessions.collection or path.startswith(f"{self.sessions.collection}/"):
            return self.sessions.resource(path) if self.behaviour.sessions else None
        return self.tree.get(path)

    def _get(self, request: Request) -> Response:
        resource = self._find(request.path)
        if resource is None:
            return self._error(404, "Base.1.18.ResourceMissingAtURI", f"There is no resource at {request.path}.")
        tag = self._tag(msgspec.json.encode(resource))
        shown = paged(request.path, resource, request.query, page_size=self.behaviour.page_size)
        wanted = request.query.get("$expand")
        if wanted is not None:
            shown = self._expanded(shown, wanted)
        if request.headers.get("if-none-match") == tag:
            return Response(304, headers={"ETag": tag})
        response = self._json(200, shown)
        response.headers["ETag"] = tag
        return response

    def _expanded(self, resource: Resource, wanted: str) -> Resource:
        mode = self.behaviour.expand
        levels = supported_levels(self.tree.get(ROOT))
        if mode is ExpandMode.IGNORES:
            return resource
        if mode is ExpandMode.FAILS:
            raise QueryRefused(500, "The service has failed.")
        if mode is ExpandMode.REFUSES or levels == 0:
            raise QueryRefused(501, "$expand is not supported.")
        return expanded(self.tree, resource, wanted, most_levels=levels)

    def _change(self, request: Request) -> Response:
        if request.method == "DELETE" and self.behaviour.sessions and self.sessions.delete(request.path):
            return Response(204)
        body = self._body(request)
        if body is None:
            return self._error(400, "Base.1.18.MalformedJSON", "The body is not a JSON object.")
        if request.method in ("PATCH", "PUT"):
            refusal = self._check_tag(request)
            if refusal is not None:
                return refusal
        status, resource = self.tree.act(request.method, request.path, body)
        if resource is None:
            return Response(status)
        response = self._json(status, resource)
        if status in (201, 202) and "@odata.id" in resource:
            response.headers["Location"] = str(resource["@odata.id"])
        return response

    def _check_tag(self, request: Request) -> Response | None:
        given = request.headers.get("if-match")
        if given is None:
            if self.behaviour.require_if_match:
                return self._error(428, "Base.1.18.PreconditionRequired", "If-Match is missing.")
            return None
        current = self._find(request.path)
        if current is not None and given != "*" and given != self._tag(msgspec.json.encode(current)):
            return self._error(412, "Base.1.18.PreconditionFailed", "The resource has changed.")
        return None

    def _tag(self, encoded: bytes) -> str:
        return f'{self.behaviour.etag_prefix}"{zlib.crc32(encoded):08x}"'

    @staticmethod
    def _body(request: Request) -> Resource | None:
        if not request.body:
            return {}
        try:
            value: Any = msgspec.json.decode(request.body)
        except msgspec.DecodeError:
            return None
        return value if isinstance(value, dict) else None

    @staticmethod
    def _json(status: int, value: object) -> Response:
        return Response(status, msgspec.json.encode(value), {"Content-Type": "application/json"})

    def _error(self, status: int, message_id: str, message: str) -> Response:
        response = self._json(status, problem(message_id, message))
        if status == 401:
            response.headers["WWW-Authenticate"] = 'Basic realm="redfish"'
        return response
