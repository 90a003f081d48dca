"""Requests over REST: ask, look, change, hold, cancel, release, extend."""

from collections.abc import Callable
from typing import Any

from django.utils import timezone
from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers, status
from rest_framework.decorators import action
from rest_framework.request import Request as HttpRequest
from rest_framework.response import Response

from inventory.api.paging import page_of
from pools.api.base import ScopedEditViewSet, ScopedReadViewSet, SignedIn, VisibleField, viewer
from pools.models import (
    REQUEST_STATES,
    Extension,
    Launch,
    Near,
    Pool,
    PriorityClass,
    Project,
    Request,
    RequestEvent,
    Spec,
)
from pools.selectors.reasons import told
from pools.services import extensions
from pools.services import requests as services
from pools.services.asking import LONGEST, SHORTEST, Work
from sensaka.identity.models import User
from sensaka.platform.rest.idempotency import HEADER, once
from sensaka.platform.rest.viewsets import acting_user


class ReasonSerializer(serializers.Serializer[Any]):
    """Why a request waits, and what would unblock it."""

    code = serializers.CharField()
    detail = serializers.CharField()
    unblock = serializers.CharField()


class RequestSerializer(serializers.ModelSerializer[Request]):
    """Times in seconds. With `launch` script a `script`, with image an `image`, with cards nothing is started."""

    project = VisibleField(queryset=Project.objects)
    tenant = serializers.UUIDField(source="project.tenant_id", read_only=True)
    spec = VisibleField(queryset=Spec.objects)
    pool = VisibleField(queryset=Pool.objects, required=False, help_text="Left out: the first that offers the spec")
    priority = VisibleField(queryset=PriorityClass.objects, required=False, help_text="Left out: the default class")
    submitter = serializers.CharField(source="submitter.username", read_only=True, default=None, allow_null=True)
    count = serializers.IntegerField(min_value=1, max_value=10_000, required=False, help_text="units, all or nothing")
    near = serializers.ChoiceField(choices=Near.choices, required=False, allow_blank=True)
    time_limit = serializers.IntegerField(min_value=SHORTEST, max_value=LONGEST)
    launch = serializers.ChoiceField(choices=Launch.choices)
    script = serializers.CharField(max_length=1_000_000, required=False, allow_blank=True, trim_whitespace=False)
    command = serializers.ListField(child=serializers.CharField(max_length=4000), max_length=200, required=False)
    environment = serializers.DictField(
        child=serializers.CharField(max_length=10_000, allow_blank=True, trim_whitespace=False), required=False
    )
    reasons = serializers.SerializerMethodField()

    class Meta:
        model = Request
        fields = [
            "id", "project", "tenant", "spec", "pool", "priority", "submitter", "name", "count", "near", "launch",
            "script", "image", "command", "environment", "model", "time_limit", "not_before", "held", "boost", "state",
            "state_since", "submitted_at", "waited_since", "started_at", "ends_at", "ended_at", "end_asked", "reasons",
            "position", "expected_start", "explanation", "attempt", "preempted", "outcome", "created_at", "updated_at",
        ]  # fmt: skip
        read_only_fields = [
            "boost", "state", "state_since", "submitted_at", "waited_since", "started_at", "ends_at", "ended_at",
            "end_asked", "position", "expected_start", "explanation", "attempt", "preempted", "outcome",
        ]  # fmt: skip

    @extend_schema_field(ReasonSerializer(many=True))
    def get_reasons(self, request: Request) -> Any:
        """All that apply, as the last pass of admission found them."""
        user = viewer(self)
        # whose work is ahead is not everybody's business
        names: dict[str, str] | None = None if user is not None and user.sees_all_tenants else {}
        return ReasonSerializer(told(request.reasons, now=timezone.now(), names=names), many=True).data


class RequestChangeSerializer(RequestSerializer):
    """What can be changed while it waits."""

    class Meta(RequestSerializer.Meta):
        read_only_fields = [name for name in RequestSerializer.Meta.fields if name not in services.CHANGEABLE]


class RequestFilter(filters.FilterSet):
    """`state` may be given several times."""

    tenant = filters.UUIDFilter(field_name="project__tenant")
    project = filters.UUIDFilter(field_name="project")
    spec = filters.UUIDFilter(field_name="spec")
    pool = filters.UUIDFilter(field_name="pool")
    priority = filters.UUIDFilter(field_name="priority")
    state = filters.MultipleChoiceFilter(choices=REQUEST_STATES)
    submitter = filters.CharFilter(field_name="submitter__username")

    class Meta:
        model = Request
        fields = ["held", "launch"]


class RequestEventSerializer(serializers.ModelSerializer[RequestEvent]):
    actor = serializers.CharField(source="actor.username", read_only=True, default=None, allow_null=True)

    class Meta:
        model = RequestEvent
        fields = ["id", "at", "event", "source", "target", "attempt", "actor", "cause"]


class ExtensionSerializer(serializers.ModelSerializer[Extension]):
    """`seconds` more for a request that runs."""

    asked_by = serializers.CharField(source="asked_by.username", read_only=True, default=None, allow_null=True)
    decided_by = serializers.CharField(source="decided_by.username", read_only=True, default=None, allow_null=True)
    seconds = serializers.IntegerField(min_value=60, max_value=LONGEST)

    class Meta:
        model = Extension
        fields = [
            "id", "request", "seconds", "justification", "asked_by", "state", "decided_by", "decided_at", "decision",
            "created_at",
        ]  # fmt: skip
        read_only_fields = ["request", "state", "decided_at", "decision"]


class WhySerializer(serializers.Serializer[Any]):
    why = serializers.CharField(max_length=400, required=False, allow_blank=True, default="")


class BoostSerializer(serializers.Serializer[Any]):
    boost = serializers.IntegerField(min_value=-1000, max_value=1000, help_text="higher goes first, over everything")


Act = Callable[..., Request]


class RequestViewSet(ScopedEditViewSet):
    """Wishes for capacity. People see those of their tenants and projects, and ask for their projects."""

    http_method_names = ["get", "post", "patch", "head", "options"]
    queryset = Request.objects.select_related("project__tenant", "submitter", "spec", "pool", "priority").order_by("id")
    serializer_class = RequestSerializer
    filterset_class = RequestFilter
    permission_classes = [SignedIn]

    def get_serializer_class(self) -> type[serializers.BaseSerializer[Any]]:
        return RequestChangeSerializer if self.action == "partial_update" else RequestSerializer

    def save(self, row: Any, values: dict[str, Any], actor: User) -> Request:
        if row is not None:
            return services.change(row, values=values, actor=actor)
        work = Work(**{name: values.pop(name) for name in Work.__dataclass_fields__ if name in values})
        key = self.request.headers.get(HEADER, "")[:200]
        return services.submit(**values, work=work, actor=actor, idempotency_key=key)

    def _act(self, request: HttpRequest, service: Act, **arguments: Any) -> Response:
        row = self.get_object()

        def act() -> Response:
            service(row, actor=acting_user(request), **arguments)
            return Response(RequestSerializer(self.get_queryset().get(pk=row.pk), context={"request": request}).data)

        return once(request, act)

    @extend_schema(request=WhySerializer, responses=RequestSerializer)
    @action(detail=True, methods=["post"])
    def cancel(self, request: HttpRequest, pk: str) -> Response:
        """End it. What waits ends at once; what runs once its cluster has ended the work."""
        body = WhySerializer(data=request.data)
        body.is_valid(raise_exception=True)
        return self._act(request, services.cancel, why=body.validated_data["why"])

    @extend_schema(request=None, responses=RequestSerializer)
    @action(detail=True, methods=["post"])
    def hold(self, request: HttpRequest, pk: str) -> Response:
        """Keep it from starting."""
        return self._act(request, services.hold)

    @extend_schema(request=None, responses=RequestSerializer)
    @action(detail=True, methods=["post"])
    def resume(self, request: HttpRequest, pk: str) -> Response:
        """Let it start again after a hold."""
        return self._act(request, services.resume)

    @extend_schema(request=None, responses=RequestSerializer)
    @action(detail=True, methods=["post"])
    def release(self, request: HttpRequest, pk: str) -> Response:
        """Give its cards back before the time limit."""
        return self._act(request, services.release)

    @extend_schema(request=BoostSerializer, responses=RequestSerializer)
    @action(detail=True, methods=["post"])
    def boost(self, request: HttpRequest, pk: str) -> Response:
        """An operator's own order."""
        body = BoostSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        return self._act(request, services.set_boost, boost=body.validated_data["boost"])

    @extend_schema(request=ExtensionSerializer, responses={201: ExtensionSerializer})
    @action(detail=True, methods=["post"])
    def extend(self, request: HttpRequest, pk: str) -> Response:
        """Ask for more time, with a reason."""
        row = self.get_object()

        def act() -> Response:
            body = ExtensionSerializer(data=request.data)
            body.is_valid(raise_exception=True)
            made = extensions.ask_extension(row, **body.validated_data, actor=acting_user(request))
            return Response(ExtensionSerializer(made).data, status=status.HTTP_201_CREATED)

        return once(request, act)

    @extend_schema(responses=RequestEventSerializer(many=True), filters=False)
    @action(detail=True)
    def events(self, request: HttpRequest, pk: str) -> Response:
        """Everything that happened to it, oldest first."""
        rows = RequestEvent.objects.filter(request=self.get_object()).select_related("actor")
        return page_of(self, rows, RequestEventSerializer, ordering=("at", "id"))


class ExtensionFilter(filters.FilterSet):
    request = filters.UUIDFilter(field_name="request")  # type: ignore[assignment] # taken out by the metaclass

    class Meta:
        model = Extension
        fields = ["state"]


class ExtensionViewSet(ScopedReadViewSet):
    """Wishes for more time, and their decisions. Operators decide, tenant admins up to the pool's longest run."""

    queryset = Extension.objects.select_related(
        "asked_by", "decided_by", "request__pool", "request__project", "request__spec"
    ).order_by("id")
    serializer_class = ExtensionSerializer
    filterset_class = ExtensionFilter

    def _decide(self, request: HttpRequest, *, granted: bool) -> Response:
        row = self.get_object()

        def act() -> Response:
            body = WhySerializer(data=request.data)
            body.is_valid(raise_exception=True)
            why = body.validated_data["why"]
            done = extensions.decide(row, granted=granted, why=why, actor=acting_user(request))
            return Response(ExtensionSerializer(done).data)

        return once(request, act)

    @extend_schema(request=WhySerializer, responses=ExtensionSerializer)
    @action(detail=True, methods=["post"])
    def grant(self, request: HttpRequest, pk: str) -> Response:
        """Grant it: the request ends that much later."""
        return self._decide(request, granted=True)

    @extend_schema(request=WhySerializer, responses=ExtensionSerializer)
    @action(detail=True, methods=["post"])
    def refuse(self, request: HttpRequest, pk: str) -> Response:
        """Refuse it, with a reason."""
        return self._decide(request, granted=False)
