"""A small site with cards, tenants and a spec, for the tests of pools."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from inventory.models import Card, CardModel, Cluster, Node, Site
from pools.models import (
    Allocation,
    AllocationSource,
    Launch,
    MemberRole,
    Membership,
    Pool,
    PoolRule,
    PriorityClass,
    Project,
    Request,
    Spec,
    Tenant,
)
from sensaka.identity.models import Role, User

NOW = datetime(2026, 11, 30, 8, 0, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def card_model(name: str = "H100 80GB", memory: int = 80 * 2**30) -> CardModel:
    slug = name.lower().replace(" ", "-")
    return CardModel.objects.get_or_create(slug=slug, defaults={"vendor": "NVIDIA", "name": name, "memory": memory})[0]


def node(name: str, *, cluster: Cluster, cards: int = 0, model: CardModel | None = None, **fields: Any) -> Node:
    made = Node.objects.create(site=cluster.site, cluster=cluster, name=name, **{"state": "active"} | fields)
    for number in range(cards):
        Card.objects.create(
            node=made, model=model or card_model(), uuid=f"GPU-{name}-{number}", slot=str(number), vendor="NVIDIA",
            first_seen_at=NOW, state_since=NOW, memory_total=(model or card_model()).memory,
        )  # fmt: skip
    return made


def person(name: str, role: Role = Role.MEMBER) -> User:
    return User.objects.create_user(username=name, password="x" * 20, role=role)


@dataclass
class Team:
    """A tenant with a project, an admin and a member."""

    tenant: Tenant
    project: Project
    admin: User
    member: User


def team(name: str) -> Team:
    tenant = Tenant.objects.create(name=name.capitalize(), slug=name)
    project = Project.objects.create(tenant=tenant, name="Main", slug="main")
    admin, member = person(f"{name}-admin"), person(f"{name}-member")
    Membership.objects.create(tenant=tenant, user=admin, role=MemberRole.ADMIN)
    Membership.objects.create(tenant=tenant, project=project, user=member)
    return Team(tenant, project, admin, member)


@dataclass
class World:
    """One site, one cluster of two nodes with four cards each, one pool, one spec, two tenants."""

    site: Site
    cluster: Cluster
    model: CardModel
    nodes: list[Node]
    cards: list[Card]
    pool: Pool
    spec: Spec
    normal: PriorityClass
    red: Team
    blue: Team


def world() -> World:
    site = Site.objects.create(name="Basel", time_zone="Europe/Zurich")
    cluster = Cluster.objects.create(site=site, name="train")
    model = card_model()
    nodes = [node(f"n{number}", cluster=cluster, cards=4, model=model) for number in (1, 2)]
    pool = Pool.objects.create(name="Training")
    PoolRule.objects.create(pool=pool, model=model)
    spec = Spec.objects.create(name="1 x H100", cards=1)
    spec.card_models.add(model)
    spec.pools.add(pool)
    normal = PriorityClass.objects.create(name="normal", default=True)
    cards = list(Card.objects.order_by("node__name", "slot"))
    return World(site, cluster, model, nodes, cards, pool, spec, normal, team("red"), team("blue"))


def request(world: World, project: Project, **fields: Any) -> Request:
    base: dict[str, Any] = {
        "spec": world.spec, "pool": world.pool, "priority": world.normal, "launch": Launch.CARDS, "time_limit": 3600,
        "state": "queued", "state_since": NOW, "submitted_at": NOW, "waited_since": NOW,
    }  # fmt: skip
    return Request.objects.create(project=project, **(base | fields))


def allocation(card: Card, team: Team | None = None, **fields: Any) -> Allocation:
    base: dict[str, Any] = {"node_id": card.node_id, "span": (NOW, None), "source": AllocationSource.OBSERVED}
    if team is not None:
        base |= {"tenant": team.tenant, "project": team.project}
    return Allocation.objects.create(card=card, **(base | fields))
