"""Clusters over REST: how their scheduler is reached, what it last said, what ran when."""

from datetime import datetime, timedelta
from typing import Any

import msgspec
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers, status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from inventory.api.journal import JournalEntrySerializer
from inventory.api.paging import page_of
from inventory.api.places import PlaceViewSet
from inventory.models import (
    Cluster,
    ClusterConnection,
    JournalEntry,
    Reservation,
    Scheduler,
    SchedulerNode,
    SchedulerQueue,
)
from inventory.selectors.clusters import condition_of
from inventory.selectors.timeline import timeline
from inventory.services import collectors
from inventory.services.clusters import connections
from inventory.services.clusters.opening import Access
from sensaka.kernel.errors import NotFound
from sensaka.platform.rest.idempotency import once
from sensaka.platform.rest.viewsets import acting_user

_STATE = [
    "enabled", "interval", "due_at", "attempted_at", "succeeded_at", "failing_since", "error_kind", "error_detail",
    "failures", "elapsed", "simulated",
]  # fmt: skip
_SAID = [
    "version", "interface", "tested", "reason", "capabilities", "enforces", "scheduler_name", "token_expires_at",
    "described_at", "nodes_read_at", "jobs_read_at", "runs_read_at", "condition",
]  # fmt: skip
_LONGEST_SPAN = timedelta(days=7)


class ClusterSerializer(serializers.ModelSerializer[Cluster]):
    """`scheduler` follows the cluster's connection; empty without one."""

    nodes = serializers.IntegerField(read_only=True, source="node_count", help_text="Nodes that are not retired")

    class Meta:
        model = Cluster
        fields = ["id", "site", "name", "scheduler", "nodes", "created_at", "updated_at"]
        read_only_fields = ["scheduler"]


class ConnectionSerializer(serializers.ModelSerializer[ClusterConnection]):
    """How a scheduler is reached and what it last said. Secrets are written and never shown again.

    `condition`: off, new, lost (out of reach: the facts are of `nodes_read_at` and `jobs_read_at`), late,
    partly, well.
    """

    interval = serializers.IntegerField(min_value=5, max_value=3600, default=10, help_text="seconds")
    enabled = serializers.BooleanField(default=True)
    scheduler = serializers.ChoiceField(choices=Scheduler.choices)
    token = serializers.CharField(write_only=True, required=False, allow_blank=True, max_length=8000)
    jwt_key = serializers.CharField(
        write_only=True, required=False, allow_blank=True, max_length=4000, help_text="Slurm's HS256 key, base64"
    )
    kubeconfig = serializers.CharField(
        write_only=True, required=False, allow_blank=True, max_length=200_000, trim_whitespace=False
    )
    tls_authority = serializers.CharField(
        required=False, allow_blank=True, max_length=100_000, trim_whitespace=False, help_text="PEM"
    )
    condition = serializers.SerializerMethodField()

    class Meta:
        model = ClusterConnection
        fields = [
            "id", "cluster", "scheduler", "address", "username", "token", "jwt_key", "kubeconfig", "in_cluster",
            "tls_authority", "commands", "slurm_conf", *_SAID, *_STATE,
        ]  # fmt: skip
        read_only_fields = ["cluster", *_SAID, *(name for name in _STATE if name not in ("enabled", "interval"))]

    def get_condition(self, row: ClusterConnection) -> str:
        """One word for how it stands."""
        return condition_of(row, now=timezone.now())[0]


class ConnectionTestSerializer(serializers.Serializer[Any]):
    """What a trial gave; nothing of it is kept."""

    reached = serializers.BooleanField()
    version = serializers.CharField(allow_blank=True)
    interface = serializers.CharField(allow_blank=True)
    tested = serializers.BooleanField()
    reason = serializers.CharField(allow_blank=True)
    capabilities = serializers.ListField(child=serializers.DictField())
    nodes = serializers.IntegerField(allow_null=True)
    cards = serializers.IntegerField(allow_null=True)
    failures = serializers.ListField(child=serializers.DictField())
    elapsed = serializers.FloatField(help_text="seconds")


class SchedulerNodeSerializer(serializers.ModelSerializer[SchedulerNode]):
    """A node as its scheduler sees it; `node` is the one of ours that it is."""

    class Meta:
        model = SchedulerNode
        fields = [
            "id", "node", "name", "hostname", "address", "load", "raw_state", "cordoned", "responding", "reason",
            "reason_by", "reason_at", "owner", "queues", "features", "accelerators", "cpus", "memory", "version",
            "booted_at", "seen_at", "gone_at",
        ]  # fmt: skip


class QueueSerializer(serializers.ModelSerializer[SchedulerQueue]):
    class Meta:
        model = SchedulerQueue
        fields = ["id", "name", "nodes", "up", "default", "time_limit", "priority", "accounts"]


class ReservationSerializer(serializers.ModelSerializer[Reservation]):
    class Meta:
        model = Reservation
        fields = [
            "id", "name", "nodes", "starts_at", "ends_at", "users", "accounts", "flags", "cards", "maintenance",
        ]  # fmt: skip


class RunSerializer(serializers.Serializer[Any]):
    """A run on a lane, cut to the span. `over` is false while it goes on."""

    job = serializers.UUIDField()
    job_id = serializers.CharField()
    name = serializers.CharField()
    user = serializers.CharField()
    account = serializers.CharField()
    state = serializers.CharField()
    start = serializers.DateTimeField()
    end = serializers.DateTimeField()
    over = serializers.BooleanField()
    lost = serializers.BooleanField()
    cards = serializers.IntegerField()
    cards_known = serializers.BooleanField(allow_null=True)


class LaneSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    name = serializers.CharField()
    node = serializers.UUIDField()
    runs = RunSerializer(many=True)


class TimelineSerializer(serializers.Serializer[Any]):
    """Lanes of nodes or cards with what ran there. `truncated`: the oldest runs are left out."""

    start = serializers.DateTimeField()
    end = serializers.DateTimeField()
    truncated = serializers.BooleanField()
    lanes = LaneSerializer(many=True)


class TimelineQuery(serializers.Serializer[Any]):
    start = serializers.DateTimeField(required=False)
    end = serializers.DateTimeField(required=False)
    by = serializers.ChoiceField(choices=["node", "card"], default="node")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        end: datetime = attrs.get("end") or timezone.now()
        start: datetime = attrs.get("start") or end - timedelta(hours=6)
        if not timedelta() < end - start <= _LONGEST_SPAN:
            raise serializers.ValidationError({"start": "lies before `end`, by seven days at most"})
        return {**attrs, "start": start, "end": end}


class ClusterViewSet(PlaceViewSet):
    """Nodes that are run together, and the scheduler that runs them."""

    queryset = Cluster.objects.all()
    serializer_class = ClusterSerializer
    filterset_fields = ["site", "name", "scheduler"]

    def _connection(self) -> ClusterConnection:
        cluster = self.get_object()
        row = ClusterConnection.objects.select_related("cluster").filter(cluster=cluster).first()
        if row is None:
            raise NotFound(f"cluster {cluster.name} has no connection to a scheduler")
        return row

    @extend_schema(responses=ConnectionSerializer, filters=False)
    @action(detail=True, pagination_class=None)
    def connection(self, request: Request, pk: str) -> Response:
        """How the scheduler of this cluster is reached, and what it last said."""
        return Response(ConnectionSerializer(self._connection()).data)

    @extend_schema(request=ConnectionSerializer, responses={201: ConnectionSerializer})
    @connection.mapping.post
    def connect(self, request: Request, pk: str) -> Response:
        """Connect the scheduler of this cluster: it is read from now on."""

        def act() -> Response:
            cluster = self.get_object()
            data = _valid(request)
            row = connections.connect(
                cluster=cluster, access=_access(data), interval=data["interval"], actor=acting_user(request)
            )
            if not data["enabled"]:
                collectors.set_enabled(collector=row, enabled=False, actor=acting_user(request))
            return Response(ConnectionSerializer(row).data, status=status.HTTP_201_CREATED)

        return once(request, act)

    @extend_schema(request=ConnectionSerializer(partial=True), responses=ConnectionSerializer)
    @connection.mapping.patch
    def change_connection(self, request: Request, pk: str) -> Response:
        """Change what is named. A secret that is not named stays."""
        row = self._connection()
        serializer = ConnectionSerializer(row, data=request.data, partial=True)
        serializer.is_valid(raise_exception=True)
        changed = connections.change(
            connection=row, changes=dict(serializer.validated_data), actor=acting_user(request)
        )  # fmt: skip
        return Response(ConnectionSerializer(changed).data)

    @extend_schema(responses={204: None})
    @connection.mapping.delete
    def disconnect(self, request: Request, pk: str) -> Response:
        """Stop reading this scheduler. Its nodes, jobs and journal stay."""
        connections.disconnect(connection=self._connection(), actor=acting_user(request))
        return Response(status=status.HTTP_204_NO_CONTENT)

    @extend_schema(request=ConnectionSerializer, responses=ConnectionTestSerializer)
    @action(detail=True, methods=["post"], url_path="connection/test")
    def test_connection(self, request: Request, pk: str) -> Response:
        """Ask a scheduler what it is and has, without keeping anything. Nothing in the body: the stored one."""
        self.get_object()
        access = _access(_valid(request)) if request.data else connections.stored_access(self._connection())
        return Response(_tested(connections.test(access)))

    @extend_schema(request=None, responses={202: None})
    @action(detail=True, methods=["post"], url_path="connection/read")
    def read_connection(self, request: Request, pk: str) -> Response:
        """Read this scheduler at the next opportunity instead of when it is due."""
        collectors.read_now(collector=self._connection(), actor=acting_user(request))
        return Response(status=status.HTTP_202_ACCEPTED)

    @extend_schema(responses=SchedulerNodeSerializer(many=True), filters=False)
    @action(detail=True, url_path="scheduler-nodes")
    def scheduler_nodes(self, request: Request, pk: str) -> Response:
        """The nodes as the scheduler lists them."""
        rows = SchedulerNode.objects.filter(connection__cluster=self.get_object())
        return page_of(self, rows, SchedulerNodeSerializer)

    @extend_schema(responses=QueueSerializer(many=True), filters=False)
    @action(detail=True)
    def queues(self, request: Request, pk: str) -> Response:
        """Partitions or queues, as last read."""
        return page_of(self, SchedulerQueue.objects.filter(connection__cluster=self.get_object()), QueueSerializer)

    @extend_schema(responses=ReservationSerializer(many=True), filters=False)
    @action(detail=True)
    def reservations(self, request: Request, pk: str) -> Response:
        """Nodes that the scheduler keeps for somebody, as last read."""
        return page_of(self, Reservation.objects.filter(connection__cluster=self.get_object()), ReservationSerializer)

    @extend_schema(responses=JournalEntrySerializer(many=True), filters=False)
    @action(detail=True)
    def journal(self, request: Request, pk: str) -> Response:
        """What happened to this cluster's scheduler, cordons and jobs, newest first."""
        entries = JournalEntry.objects.filter(cluster=self.get_object())
        return page_of(self, entries, JournalEntrySerializer, ordering=("-at", "-id"))

    @extend_schema(
        parameters=[
            OpenApiParameter("start", OpenApiTypes.DATETIME, description="Default: six hours before `end`"),
            OpenApiParameter("end", OpenApiTypes.DATETIME, description="Default: now"),
            OpenApiParameter("by", str, enum=["node", "card"]),
        ],
        responses=TimelineSerializer,
        filters=False,
    )
    @action(detail=True, pagination_class=None)
    def timeline(self, request: Request, pk: str) -> Response:
        """What ran on which node or card in a span of at most seven days."""
        cluster = self.get_object()
        query = TimelineQuery(data=request.query_params)
        query.is_valid(raise_exception=True)
        return Response(TimelineSerializer(timeline(cluster=cluster.pk, **query.validated_data)).data)


def _valid(request: Request) -> dict[str, Any]:
    serializer = ConnectionSerializer(data=request.data)
    serializer.is_valid(raise_exception=True)
    return dict(serializer.validated_data)


def _access(data: dict[str, Any]) -> Access:
    return Access(**{name: value for name, value in data.items() if name in Access.__dataclass_fields__})


def _tested(found: connections.ConnectionTest) -> dict[str, Any]:
    told = found.description
    names = ("version", "interface", "reason")
    return {
        "reached": found.reached,
        **{name: getattr(told, name) if told else "" for name in names},
        "tested": told.tested if told else False,
        "capabilities": msgspec.to_builtins(list(told.capabilities)) if told else [],
        "nodes": found.nodes,
        "cards": found.cards,
        "failures": msgspec.to_builtins(list(found.failures)),
        "elapsed": round(found.elapsed, 3),
    }
