"""Idle cards over REST: what is idle, its warnings, and what is done about it; exemptions."""

from collections.abc import Callable
from typing import Any

from django.db.models import QuerySet
from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from pools.api.base import ScopedEditViewSet, ScopedReadViewSet, VisibleField
from pools.models import OPEN_IDLE, SPARED_TARGETS, IdleCase, IdleExemption, IdleState, Project, Reclaim, Spec
from pools.models import Request as Wish
from pools.selectors.idle_cases import under_way, with_details
from pools.services import reclaiming, sparing
from pools.services.asking import LONGEST
from sensaka.identity.models import User
from sensaka.kernel.errors import InvalidInput
from sensaka.platform.rest.idempotency import once
from sensaka.platform.rest.viewsets import acting_user


class ReclaimSerializer(serializers.ModelSerializer[Reclaim]):
    """`asked`: an operator decides; `releasing`: its cluster was told to end the work."""

    asked_by = serializers.CharField(source="asked_by.username", read_only=True, default=None, allow_null=True)

    class Meta:
        model = Reclaim
        fields = ["state", "source", "reason", "answer", "asked_by", "created_at"]
        read_only_fields = fields


class IdleCaseSerializer(serializers.ModelSerializer[IdleCase]):
    """Work that holds `cards` cards and uses none of them. Percent and bytes as measured when last looked at.

    `idle_held`: memory is resident. `coverage`: percent of the idle period of which anything is known.
    """

    request = serializers.UUIDField(source="allocation.request_id", read_only=True, allow_null=True)
    job = serializers.UUIDField(source="allocation.job_id", read_only=True, allow_null=True)
    job_id = serializers.CharField(source="allocation.job.job_id", read_only=True, default=None, allow_null=True)
    tenant = serializers.UUIDField(source="allocation.tenant_id", read_only=True, allow_null=True)
    project = serializers.UUIDField(source="allocation.project_id", read_only=True, allow_null=True)
    pool = serializers.UUIDField(source="allocation.pool_id", read_only=True, allow_null=True)
    spec = serializers.UUIDField(source="allocation.spec_id", read_only=True, allow_null=True)
    source = serializers.CharField(  # type: ignore[assignment] # the metaclass takes declared fields out
        source="allocation.source", read_only=True
    )
    node_name = serializers.CharField(source="allocation.node.name", read_only=True)
    idle_held = serializers.BooleanField(source="held", read_only=True)
    extension_asked_by = serializers.CharField(
        source="extension_asked_by.username", read_only=True, default=None, allow_null=True
    )
    decided_by = serializers.CharField(source="decided_by.username", read_only=True, default=None, allow_null=True)
    reclaim = serializers.SerializerMethodField()

    class Meta:
        model = IdleCase
        fields = [
            "id", "allocation", "request", "job", "job_id", "tenant", "project", "pool", "spec", "source", "node_name",
            "cards", "state", "since", "idle_held", "memory_held", "processes", "highest_activity", "coverage",
            "first_warned_at", "second_warned_at", "extension_asked_at", "extension_asked_by", "extension_seconds",
            "justification", "decided_at", "decided_by", "decision", "extended_until", "reclaim", "closed_at",
            "created_at", "updated_at",
        ]  # fmt: skip
        read_only_fields = fields

    @extend_schema_field(ReclaimSerializer(allow_null=True))
    def get_reclaim(self, case: IdleCase) -> Any:
        """The reclaim that is asked for or at work."""
        found = under_way(case)
        return None if found is None else ReclaimSerializer(found).data


class IdleCaseFilter(filters.FilterSet):
    """`open`: idle now; `held`: with memory resident."""

    tenant = filters.UUIDFilter(field_name="allocation__tenant")
    project = filters.UUIDFilter(field_name="allocation__project")
    pool = filters.UUIDFilter(field_name="allocation__pool")
    request = filters.UUIDFilter(field_name="allocation__request")  # type: ignore[assignment] # taken out by the metaclass
    job = filters.UUIDFilter(field_name="allocation__job")
    state = filters.MultipleChoiceFilter(choices=IdleState.choices)
    open = filters.BooleanFilter(method="by_open")
    held = filters.BooleanFilter(method="by_held")

    class Meta:
        model = IdleCase
        fields: list[str] = []

    def by_open(self, rows: QuerySet[Any], name: str, value: bool) -> QuerySet[Any]:
        """Idle now, or not any more."""
        return rows.filter(state__in=OPEN_IDLE) if value else rows.exclude(state__in=OPEN_IDLE)

    def by_held(self, rows: QuerySet[Any], name: str, value: bool) -> QuerySet[Any]:
        """With memory resident, or without; what is not known is in neither."""
        return rows.filter(memory_held__gt=0) if value else rows.filter(memory_held=0)


class IdleTimeSerializer(serializers.Serializer[Any]):
    """`seconds` more, and why."""

    seconds = serializers.IntegerField(min_value=reclaiming.SHORTEST, max_value=LONGEST)
    justification = serializers.CharField(max_length=400)


class IdleLeaveSerializer(serializers.Serializer[Any]):
    """For how many `seconds` the cards stay where they are, and why."""

    seconds = serializers.IntegerField(min_value=reclaiming.SHORTEST, max_value=LONGEST)
    why = serializers.CharField(max_length=400)


class IdleReasonSerializer(serializers.Serializer[Any]):
    why = serializers.CharField(max_length=400)


class IdleRemarkSerializer(serializers.Serializer[Any]):
    why = serializers.CharField(max_length=400, required=False, allow_blank=True, default="")


class ReclaimViewSet(ScopedReadViewSet):
    """Idle work. Its owner releases it or asks for time; operators decide, take it back, or leave it."""

    queryset = with_details(IdleCase.objects.order_by("id"))
    serializer_class = IdleCaseSerializer
    filterset_class = IdleCaseFilter

    def _act(
        self, request: Request, service: Callable[..., IdleCase], form: type[serializers.Serializer[Any]], **more: Any
    ) -> Response:
        row = self.get_object()

        def act() -> Response:
            body = form(data=request.data)
            body.is_valid(raise_exception=True)
            service(row, **body.validated_data, **more, actor=acting_user(request))
            return Response(IdleCaseSerializer(self.get_queryset().get(pk=row.pk)).data)

        return once(request, act)

    @extend_schema(request=IdleRemarkSerializer, responses=IdleCaseSerializer)
    @action(detail=True, methods=["post"])
    def release(self, request: Request, pk: str) -> Response:
        """Give the cards back. Of a job that Sensaka did not start an operator is asked to end it."""
        return self._act(request, reclaiming.release, IdleRemarkSerializer)

    @extend_schema(request=IdleTimeSerializer, responses=IdleCaseSerializer)
    @action(detail=True, methods=["post"])
    def extend(self, request: Request, pk: str) -> Response:
        """Ask to keep the cards for a time; nothing is taken until it is decided."""
        return self._act(request, reclaiming.ask_time, IdleTimeSerializer)

    @extend_schema(request=IdleRemarkSerializer, responses=IdleCaseSerializer)
    @action(detail=True, methods=["post"])
    def grant(self, request: Request, pk: str) -> Response:
        """Grant the time that was asked for."""
        return self._act(request, reclaiming.decide_time, IdleRemarkSerializer, granted=True)

    @extend_schema(request=IdleReasonSerializer, responses=IdleCaseSerializer)
    @action(detail=True, methods=["post"])
    def refuse(self, request: Request, pk: str) -> Response:
        """Refuse the time that was asked for, with a reason."""
        return self._act(request, reclaiming.decide_time, IdleReasonSerializer, granted=False)

    @extend_schema(request=IdleLeaveSerializer, responses=IdleCaseSerializer)
    @action(detail=True, methods=["post"])
    def leave(self, request: Request, pk: str) -> Response:
        """Leave the cards where they are for a time; a suggestion to take them back is refused by it."""
        return self._act(request, reclaiming.leave, IdleLeaveSerializer)

    @extend_schema(request=IdleReasonSerializer, responses=IdleCaseSerializer)
    @action(detail=True, methods=["post"])
    def reclaim(self, request: Request, pk: str) -> Response:
        """Take the cards back: end the request, or cancel the job in its cluster."""
        return self._act(request, reclaiming.reclaim, IdleReasonSerializer)


class IdleExemptionSerializer(serializers.ModelSerializer[IdleExemption]):
    """Exactly one of project, request and spec."""

    project = VisibleField(queryset=Project.objects, required=False, allow_null=True)
    request = VisibleField(queryset=Wish.objects, required=False, allow_null=True)
    spec = VisibleField(queryset=Spec.objects, required=False, allow_null=True)
    placed_by = serializers.CharField(source="placed_by.username", read_only=True, default=None, allow_null=True)

    class Meta:
        model = IdleExemption
        fields = ["id", "project", "request", "spec", "reason", "until", "placed_by", "lifted_at", "created_at"]
        read_only_fields = ["lifted_at"]


class IdleExemptionFilter(filters.FilterSet):
    project = filters.UUIDFilter(field_name="project")
    spec = filters.UUIDFilter(field_name="spec")
    open = filters.BooleanFilter(field_name="lifted_at", lookup_expr="isnull")


class IdleExemptionViewSet(ScopedEditViewSet):
    """What is left alone though idle. Operators place and lift exemptions; they end by themselves."""

    http_method_names = ["get", "post", "head", "options"]
    queryset = IdleExemption.objects.select_related("placed_by").order_by("id")
    serializer_class = IdleExemptionSerializer
    filterset_class = IdleExemptionFilter

    def save(self, row: Any, values: dict[str, Any], actor: User) -> IdleExemption:
        targets = [values[name] for name in SPARED_TARGETS if values.get(name) is not None]
        if len(targets) != 1:
            raise InvalidInput(f"name exactly one of {', '.join(SPARED_TARGETS)}")
        return sparing.spare(target=targets[0], reason=values["reason"], until=values["until"], actor=actor)

    @extend_schema(request=None, responses=IdleExemptionSerializer)
    @action(detail=True, methods=["post"])
    def lift(self, request: Request, pk: str) -> Response:
        """Idle cards of it count again."""
        row = self.get_object()

        def act() -> Response:
            sparing.lift_exemption(row, actor=acting_user(request))
            return Response(self.get_serializer(row).data)

        return once(request, act)
