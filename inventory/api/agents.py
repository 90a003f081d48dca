"""What agents call: enrolment with a one-time token, reports with a node token.

Bodies are read by msgspec straight into the structs of the readings, whose bounds are the contract; so there are no
serializers here. Samples do not come this way, they go to /api/v1/telemetry/.
"""

import re
from typing import Annotated, Any

from django.contrib.auth.models import AnonymousUser
from django.db import DataError
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.utils import OpenApiResponse, extend_schema, inline_serializer
from msgspec import Meta, Struct
from rest_framework import exceptions, serializers, status
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.permissions import AllowAny, BasePermission
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from inventory.api.bodies import decoded
from inventory.models import Agent
from inventory.observations import NodeReading
from inventory.services import agents as services
from sensaka.kernel.errors import InvalidInput, SensakaError

_AGENT = re.compile(r"^sensaka-agent/([0-9A-Za-z.+-]{1,32})")

Line = Annotated[str, Meta(max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]


class EnrolBody(Struct, frozen=True, kw_only=True):
    """What an agent sends to enrol."""

    token: Line
    hostname: Line
    machine_id: Line = ""
    system_serial: Line = ""
    system_uuid: Line = ""
    version: Line = ""
    simulated: bool = False


class TokenRefused(exceptions.APIException):
    """The enrolment token enrols nobody: never, or no longer."""

    def __init__(self, error: SensakaError, status_code: int) -> None:
        super().__init__(error.message, error.code)
        self.status_code = status_code


class NodeAuthentication(BaseAuthentication):
    """`Authorization: Token ska_...`: the node token that enrolment gave. `request.auth` is the agent."""

    def authenticate(self, request: Request) -> tuple[AnonymousUser, Agent]:
        prefix, _, token = get_authorization_header(request).decode("latin-1").partition(" ")
        if prefix.lower() != "token" or not token:
            raise exceptions.NotAuthenticated("send the node token: Authorization: Token ska_...")
        agent = services.authenticate_node(token.strip())
        if agent is None:
            raise exceptions.AuthenticationFailed("this node token is unknown or was revoked; enrol the node again")
        return AnonymousUser(), agent

    def authenticate_header(self, request: Request) -> str:
        return "Token"


class NodeTokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """How the OpenAPI document describes the node token."""

    target_class = "inventory.api.agents.NodeAuthentication"
    name = "nodeToken"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {
            "type": "apiKey",
            "in": "header",
            "name": "Authorization",
            "description": "`Token ska_...`, given to an agent when it enrols",
        }


class FromAgent(BasePermission):
    """Whoever holds a node token."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        return isinstance(request.auth, Agent)


_READING = {
    "type": "object",
    "description": "A NodeReading of inventory/observations.py; values in it are not stored",
    "required": ["observed_at"],
    "properties": {
        "observed_at": {"type": "string", "format": "date-time"},
        **{
            name: {"type": "string", "maxLength": 200}
            for name in ("hostname", "machine_id", "system_serial", "boot_id")
        },
        **{name: {"type": "array", "items": {"type": "object"}} for name in ("cards", "processes", "failures")},
        "complete": {"type": "boolean", "default": True},
        "simulated": {"type": "boolean", "default": False},
    },
}
_PROBLEMS = {
    code: OpenApiResponse(description=text)
    for code, text in (
        (400, "Not JSON"),
        (401, "Token unknown or revoked"),
        (413, "Larger than 1 MB"),
        (415, "Not application/json"),
        (422, "A field can't be used; the detail names its path"),
    )
}


class EnrolView(APIView):
    """Enrolment. Whoever holds a one-time token may; the token is the only authentication."""

    authentication_classes: list[type[BaseAuthentication]] = []
    permission_classes = [AllowAny]

    @extend_schema(
        operation_id="agents_enrol",
        auth=[],
        request=inline_serializer(
            "AgentEnrolment",
            {
                "token": serializers.CharField(help_text="The enrolment token, ske_..."),
                "hostname": serializers.CharField(),
                "machine_id": serializers.CharField(required=False),
                "system_serial": serializers.CharField(required=False),
                "system_uuid": serializers.CharField(required=False),
                "version": serializers.CharField(required=False),
                "simulated": serializers.BooleanField(required=False),
            },
        ),
        responses={
            201: inline_serializer(
                "AgentEnrolled",
                {
                    "agent": serializers.UUIDField(),
                    "node": serializers.UUIDField(),
                    "name": serializers.CharField(help_text="What the node is called here"),
                    "token": serializers.CharField(help_text="The node token, ska_...; shown this once"),
                    "interval": serializers.IntegerField(help_text="seconds between two readings"),
                },
            ),
            410: OpenApiResponse(description="Token expired or used up"),
            **_PROBLEMS,
        },
    )
    def post(self, request: Request) -> Response:
        """Make a node known with a one-time token; a known machine keeps its node and gets a new node token."""
        body = decoded(request, EnrolBody)
        claim = services.Claim(
            hostname=body.hostname,
            machine_id=body.machine_id,
            system_serial=body.system_serial,
            system_uuid=body.system_uuid,
            simulated=body.simulated,
        )
        try:
            agent, token = services.enrol_agent(token=body.token, claim=claim, version=body.version)
        except services.UnknownToken as error:
            raise TokenRefused(error, status.HTTP_401_UNAUTHORIZED) from error
        except (services.TokenExpired, services.TokenUsedUp) as error:
            raise TokenRefused(error, status.HTTP_410_GONE) from error
        told = {"agent": agent.pk, "node": agent.node_id, "name": agent.node.name, "interval": agent.interval}
        return Response({**told, "token": token}, status=status.HTTP_201_CREATED)


class ReportView(APIView):
    """Reports: what a node is made of. The values come apart, as samples."""

    authentication_classes = [NodeAuthentication]
    permission_classes = [FromAgent]

    @extend_schema(
        operation_id="agents_report",
        request={"application/json": _READING},
        responses={
            200: inline_serializer("AgentReported", {"known": serializers.IntegerField(help_text="cards in the tree")}),
            **_PROBLEMS,
        },
    )
    def post(self, request: Request) -> Response:
        """Bring the tree in line with what the agent saw; old reports are taken and change nothing newer."""
        reading = decoded(request, NodeReading)
        assert isinstance(request.auth, Agent)
        try:
            changes = services.record_report(agent=request.auth, reading=reading, delivery=_delivery(request))
        except DataError as error:
            raise InvalidInput(f"a value does not fit where it belongs: {str(error).splitlines()[0]}") from error
        return Response({"known": changes.cards})


class AgentSelfView(APIView):
    """Who a node token belongs to, for `sensaka-agent check`."""

    authentication_classes = [NodeAuthentication]
    permission_classes = [FromAgent]

    @extend_schema(
        operation_id="agents_self",
        responses={
            200: inline_serializer(
                "AgentSelf",
                {
                    "agent": serializers.UUIDField(),
                    "node": serializers.UUIDField(),
                    "name": serializers.CharField(),
                    "interval": serializers.IntegerField(help_text="seconds"),
                },
            ),
            401: _PROBLEMS[401],
        },
    )
    def get(self, request: Request) -> Response:
        """The agent and node of the token."""
        agent = request.auth
        assert isinstance(agent, Agent)
        told = {"agent": agent.pk, "node": agent.node_id, "name": agent.node.name, "interval": agent.interval}
        return Response(told)


def _delivery(request: Request) -> services.Delivery:
    """What the headers say; a header that makes no sense says nothing."""
    version = _AGENT.match(request.headers.get("User-Agent", ""))
    return services.Delivery(
        version=version[1] if version else "",
        spooled=_number(request.headers.get("X-Sensaka-Spooled"), 2**31 - 1),
        dropped=_number(request.headers.get("X-Sensaka-Dropped"), 2**63 - 1),
    )


def _number(text: Any, most: int) -> int | None:
    return (
        min(int(text), most) if isinstance(text, str) and text.isascii() and text.isdigit() and len(text) < 20 else None
    )
