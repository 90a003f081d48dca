"""Jobs over REST: what schedulers run and ran, on which cards, and the acts of operators on them."""

from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet
from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from inventory.models import Job, JobCard, JobNode
from inventory.rules.jobs import JobState
from inventory.selectors.jobs import with_places
from inventory.services.clusters import steering
from inventory.services.clusters.steering import SIGNALS, Verb
from sensaka.platform.rest.idempotency import once
from sensaka.platform.rest.pagination import NewestFirstPagination
from sensaka.platform.rest.viewsets import ReadViewSet, acting_user


class JobCardSerializer(serializers.ModelSerializer[JobCard]):
    """What a run holds of one node. `card` and `slice` are null where it is not known which; nothing is guessed.

    `source` is who told: the scheduler, an agent, or the kubelet's pod resources.
    """

    class Meta:
        model = JobCard
        fields = ["node", "card", "slice", "kind", "type", "index", "shares", "source"]


class JobSerializer(serializers.ModelSerializer[Job]):
    """One run of a job or pod; a requeue makes another one. `cards_known` false: `cards_reason` says why.

    `gpu_seconds` counts cards x (end - start - suspended), of an open run up to now, of a lost one up to
    when it was last seen.
    """

    nodes: Any = serializers.PrimaryKeyRelatedField(many=True, read_only=True)
    held_cards = JobCardSerializer(many=True, read_only=True, source="cards_held")
    gpu_seconds = serializers.SerializerMethodField()

    class Meta:
        model = Job
        fields = [
            "id", "cluster", "key", "job_id", "workload", "name", "user", "account", "qos", "queue", "state",
            "raw_state", "reason", "exit_code", "exit_signal", "array_id", "array_task", "array_tasks", "group_id",
            "group_offset", "submitted_at", "eligible_at", "started_at", "ended_at", "suspended", "time_limit",
            "node_names", "nodes", "cards", "cards_by_type", "cards_requested", "shares", "cards_known",
            "cards_reason", "held_cards", "gpu_seconds", "priority", "held", "restarts", "reservation",
            "cancelled_by", "open", "seen_at", "accounted_at", "lost_at", "simulated",
        ]  # fmt: skip
        read_only_fields = fields

    def get_gpu_seconds(self, job: Job) -> int | None:
        """Whole seconds of cards."""
        return job.gpu_seconds()


class JobFilter(filters.FilterSet):
    state = filters.MultipleChoiceFilter(choices=[(state.value, state.value) for state in JobState])
    node = filters.UUIDFilter(method="on_node")
    card = filters.UUIDFilter(method="on_card")
    since = filters.IsoDateTimeFilter(method="not_over_before", help_text="Waited or ran at this time or later")
    until = filters.IsoDateTimeFilter(field_name="submitted_at", lookup_expr="lt")

    class Meta:
        model = Job
        fields = ["cluster", "user", "account", "queue", "job_id", "workload", "open", "cards_known", "simulated"]

    def on_node(self, rows: QuerySet[Job], name: str, value: Any) -> QuerySet[Job]:
        return rows.filter(Exists(JobNode.objects.filter(job=OuterRef("pk"), node=value)))

    def on_card(self, rows: QuerySet[Job], name: str, value: Any) -> QuerySet[Job]:
        return rows.filter(Exists(JobCard.objects.filter(job=OuterRef("pk"), card=value)))

    def not_over_before(self, rows: QuerySet[Job], name: str, value: Any) -> QuerySet[Job]:
        return rows.filter(Q(open=True) | Q(ended_at__gte=value) | Q(ended_at=None, lost_at__gte=value))


class ActSerializer(serializers.Serializer[Any]):
    """Why; it stands in the journal."""

    reason = serializers.CharField(max_length=500)


class SignalSerializer(ActSerializer):
    signal = serializers.ChoiceField(choices=SIGNALS)


class ActResultSerializer(serializers.Serializer[Any]):
    """What the scheduler said: done, or unchanged because it was so already."""

    outcome = serializers.CharField()
    detail = serializers.CharField(allow_blank=True)


class JobPagination(NewestFirstPagination):
    ordering = ("-submitted_at", "-id")


class JobViewSet(ReadViewSet):
    """Runs of jobs and pods, newest first. Users submit to their scheduler; operators steer here."""

    queryset = Job.objects.order_by("-submitted_at", "-id")
    serializer_class = JobSerializer
    filterset_class = JobFilter
    pagination_class = JobPagination

    def get_queryset(self) -> QuerySet[Job]:
        return with_places(super().get_queryset())

    def _act(self, request: Request, verb: Verb, body: type[ActSerializer] = ActSerializer) -> Response:
        def act() -> Response:
            job = self.get_object()
            serializer = body(data=request.data)
            serializer.is_valid(raise_exception=True)
            data = dict(serializer.validated_data)
            result = steering.act(
                job=job, verb=verb, reason=data["reason"], actor=acting_user(request), signal=data.get("signal", "")
            )
            return Response(ActResultSerializer({"outcome": str(result.outcome), "detail": result.detail}).data)

        return once(request, act)

    @extend_schema(request=ActSerializer, responses=ActResultSerializer)
    @action(detail=True, methods=["post"])
    def cancel(self, request: Request, pk: str) -> Response:
        """End it."""
        return self._act(request, Verb.CANCEL)

    @extend_schema(request=ActSerializer, responses=ActResultSerializer)
    @action(detail=True, methods=["post"])
    def hold(self, request: Request, pk: str) -> Response:
        """Keep it from starting."""
        return self._act(request, Verb.HOLD)

    @extend_schema(request=ActSerializer, responses=ActResultSerializer)
    @action(detail=True, methods=["post"])
    def release(self, request: Request, pk: str) -> Response:
        """Let a held one start."""
        return self._act(request, Verb.RELEASE)

    @extend_schema(request=ActSerializer, responses=ActResultSerializer)
    @action(detail=True, methods=["post"])
    def requeue(self, request: Request, pk: str) -> Response:
        """End this run; the job waits again."""
        return self._act(request, Verb.REQUEUE)

    @extend_schema(request=SignalSerializer, responses=ActResultSerializer)
    @action(detail=True, methods=["post"])
    def signal(self, request: Request, pk: str) -> Response:
        """Send a signal to its processes."""
        return self._act(request, Verb.SIGNAL, SignalSerializer)

    @extend_schema(request=ActSerializer, responses=ActResultSerializer)
    @action(detail=True, methods=["post"])
    def suspend(self, request: Request, pk: str) -> Response:
        """Stop it; it keeps its cards."""
        return self._act(request, Verb.SUSPEND)

    @extend_schema(request=ActSerializer, responses=ActResultSerializer)
    @action(detail=True, methods=["post"])
    def resume(self, request: Request, pk: str) -> Response:
        """Let a suspended one go on."""
        return self._act(request, Verb.RESUME)
