"""Pools, specs, tenants and allocations over the small fleet of the pages' tests: every state that a page shows."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.utils import timezone

from inventory.models import CardModel, Cluster
from pools.models import (
    Allocation,
    AllocationSource,
    MaintenanceWindow,
    MappingRule,
    MemberRole,
    Membership,
    Pool,
    PoolMember,
    PoolRule,
    PriorityClass,
    Project,
    Quota,
    QuotaLimit,
    Spec,
    Tenant,
    UsageRecord,
)
from tests.pools.idle import seed as idle_seed
from tests.sensaka.pages.seed import Seeded

GIB = 1024**3


@dataclass
class Promised:
    """What was made, by name."""

    pools: dict[str, Pool] = field(default_factory=dict)
    specs: dict[str, Spec] = field(default_factory=dict)
    tenants: dict[str, Tenant] = field(default_factory=dict)
    projects: dict[str, Project] = field(default_factory=dict)
    quota: Quota | None = None
    priority: PriorityClass | None = None
    window: MaintenanceWindow | None = None
    idle: dict[str, UUID] = field(default_factory=dict)

    def ids(self) -> dict[str, str]:
        """For addresses of pages."""
        found: dict[str, UUID] = {
            "pool": self.pools["Training"].pk, "spec": self.specs["8 x H100"].pk, "tenant": self.tenants["Vision"].pk,
            "project": self.projects["Segmentation"].pk,
        }  # fmt: skip
        for name in ("quota", "priority", "window"):
            found[name] = getattr(self, name).pk
        return {name: str(key) for name, key in (found | self.idle).items()}


def build(made: Seeded) -> Promised:
    """Two pools, four specs, two tenants; the user `member` is in Vision, `auditor` and `operator` in none."""
    promised = Promised()
    h100, a100 = CardModel.objects.get(slug="test-h100"), CardModel.objects.get(slug="test-a100")
    _tenants(promised, made)
    _pools(promised, made, h100, a100)
    _quotas(promised, h100)
    promised.priority = PriorityClass.objects.create(name="normal", default=True, description="What most work has")
    PriorityClass.objects.create(
        name="spot", value=-10, price_factor="0.4", preemptible=True, minimum_run=1800, may_preempt=False
    )
    _held(promised, made)
    promised.idle = idle_seed.build(promised.projects, made.users["member"])
    now = timezone.now()
    promised.window = MaintenanceWindow.objects.create(
        name="Firmware of rack A01", rack=made.nodes["a01-gpu01"].rack, starts_at=now + timedelta(days=2),
        ends_at=now + timedelta(days=2, hours=4), reason="GPU firmware bundle",
    )  # fmt: skip
    MaintenanceWindow.objects.create(
        name="Chiller", site=made.sites["Edge"], starts_at=now - timedelta(days=3), ends_at=now - timedelta(days=2)
    )
    return promised


def _tenants(promised: Promised, made: Seeded) -> None:
    for name, slug, weight in (("Vision", "vision", 2), ("Language", "language", 1)):
        promised.tenants[name] = Tenant.objects.create(
            name=name, slug=slug, weight=weight, cohort="research", description=f"The {name.lower()} group"
        )
    for tenant, name in (("Vision", "Segmentation"), ("Vision", "Tracking"), ("Language", "Pre-training")):
        promised.projects[name] = Project.objects.create(
            tenant=promised.tenants[tenant], name=name, slug=name.lower().replace(" ", "-")
        )
    Membership.objects.create(tenant=promised.tenants["Vision"], user=made.users["member"], role=MemberRole.ADMIN)
    cluster = Cluster.objects.get(name="central-cluster")
    for kind, value, tenant in (("account", "vis", "Vision"), ("namespace", "language-prod", "Language")):
        MappingRule.objects.create(cluster=cluster, kind=kind, value=value, tenant=promised.tenants[tenant])


def _pools(promised: Promised, made: Seeded, h100: CardModel, a100: CardModel) -> None:
    training = Pool.objects.create(
        name="Training", rank=10, description="Whole cards for jobs over several nodes", longest_run=7 * 86_400
    )
    sharing = ["whole", "time_slice"]
    inference = Pool.objects.create(name="Inference", rank=20, sharing=sharing, accepting=False, idle_policy="reclaim")
    inference.tenants.add(promised.tenants["Language"])
    promised.pools = {"Training": training, "Inference": inference}
    PoolRule.objects.create(pool=training, model=h100, cluster=Cluster.objects.get(name="central-cluster"))
    PoolRule.objects.create(pool=inference, model=a100)
    PoolMember.objects.create(pool=training, card=made.cards[0], included=False)
    PoolMember.objects.create(pool=training, node=made.nodes["r01-gpu01"])
    plan: tuple[tuple[str, CardModel, list[Pool], dict[str, Any]], ...] = (
        ("1 x H100", h100, [training], {"cpu_cores": 12, "memory": 192 * GIB, "price": "2.9", "currency": "EUR"}),
        (
            "8 x H100",
            h100,
            [training],
            {"cards": 8, "cpu_cores": 96, "memory": 1536 * GIB, "price": "21.6", "currency": "EUR"},
        ),
        (
            "1/4 A100",
            a100,
            [inference],
            {"mode": "time_slice", "shares_per_card": 4, "price": "0.35", "currency": "EUR"},
        ),
        ("Old size", a100, [], {"active": False}),
    )
    for name, model, pools, fields in plan:
        spec = Spec.objects.create(name=name, **fields)
        spec.card_models.add(model)
        spec.pools.set(pools)
        promised.specs[name] = spec


def _quotas(promised: Promised, h100: CardModel) -> None:
    vision, language = promised.tenants["Vision"], promised.tenants["Language"]
    promised.quota = Quota.objects.create(tenant=vision, time_zone="Europe/Zurich")
    lines: tuple[tuple[Tenant, str, CardModel | None, int, int | None], ...] = (
        (vision, "cards", None, 8, None), (vision, "cards", h100, 4, 2), (vision, "hours", None, 5000, 0),
        (vision, "memory", None, 640 * GIB, 0), (vision, "tokens", None, 1_000_000, 0),
        (vision, "storage", None, 10_240 * GIB, 0), (language, "cards", None, 16, 0),
    )  # fmt: skip
    for tenant, resource, model, nominal, borrowing in lines:
        quota, _made = Quota.objects.get_or_create(tenant=tenant, project=None)
        QuotaLimit.objects.create(quota=quota, resource=resource, model=model, nominal=nominal, borrowing=borrowing)
    Quota.objects.create(tenant=vision, project=promised.projects["Tracking"])
    for kind, amount in (("tokens", 930_000), ("storage", 4096 * GIB)):
        UsageRecord.objects.create(
            tenant=vision, kind=kind, amount=amount, at=timezone.now(), source="seed", key=kind, subject="all"
        )


def _held(promised: Promised, made: Seeded) -> None:
    """Vision holds six cards of the training pool, Language two; one more is nobody's."""
    now = timezone.now()
    holders: list[Project | None] = [promised.projects["Segmentation"]] * 4 + [promised.projects["Tracking"]] * 2
    holders += [promised.projects["Pre-training"]] * 2 + [None]
    for number, (card, project) in enumerate(zip(made.cards[1:], holders, strict=False)):
        Allocation.objects.create(
            card=card, node_id=card.node_id, span=(now - timedelta(hours=number + 1), None), project=project,
            tenant=project.tenant if project else None, source=AllocationSource.OBSERVED,
            spec=promised.specs["1 x H100"] if project else None, pool=promised.pools["Training"],
        )  # fmt: skip
