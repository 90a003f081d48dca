"""The same story on a Kubernetes stand-in over HTTP: a gang from the queue to its pods and back (P9, P11, P12)."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone

from inventory.drivers.fake.kubernetes import KubernetesServer
from inventory.drivers.fake.kubernetes.cluster import finish_job
from inventory.models import Card, ClusterConnection, Job, JobCard, Node
from pools.models import Allocation, ClusterMode, MappingRule, Pool, PoolRule, PriorityClass, Request, Spec
from pools.services.admission import admit
from pools.services.launching.carrying_out import carry_out_due
from pools.services.ledger.recording import record
from pools.services.requests import cancel
from tests.contracts.clusters.kubernetes import uuids
from tests.inventory.clusters.test_kubernetes import connection, server, sync
from tests.pools.building import Team, card_model, team

__all__ = ["connection", "server"]
pytestmark = pytest.mark.django_db


class Place:
    """Two nodes of eight cards, a team whose namespace a rule names, and a spec of four cards."""

    def __init__(self, found: ClusterConnection) -> None:
        self.connection = sync(found)
        now, model = timezone.now(), card_model()
        for node in Node.objects.all():
            for slot, uuid in enumerate(uuids(node.name)):
                Card.objects.create(
                    node=node, slot=str(slot), minor=slot, uuid=uuid, model=model, first_seen_at=now, state_since=now
                )
        self.pool = Pool.objects.create(name="Training")
        PoolRule.objects.create(pool=self.pool, model=model)
        self.red: Team = team("red")
        ClusterMode.objects.create(cluster=found.cluster, mode="managed")
        MappingRule.objects.create(
            cluster=found.cluster, kind="namespace", value="team-a", tenant=self.red.tenant, project=self.red.project
        )
        self.spec = Spec.objects.create(name="4 x H100", cards=4)
        self.spec.card_models.add(model)
        self.spec.pools.add(self.pool)
        self.normal = PriorityClass.objects.create(name="normal", default=True)

    def ask(self, count: int, **fields: Any) -> Request:
        now = timezone.now()
        base: dict[str, Any] = {
            "project": self.red.project, "spec": self.spec, "pool": self.pool, "priority": self.normal,
            "launch": "image", "image": "busybox", "command": ["sleep", "600"], "time_limit": 3600, "state": "queued",
            "state_since": now, "submitted_at": now, "waited_since": now, "count": count,
        }  # fmt: skip
        return Request.objects.create(**(base | fields))

    def until(self, reached: Callable[[], bool]) -> None:
        end = time.monotonic() + 30
        while True:
            sync(self.connection)
            record()
            admit(self.pool)
            Request.objects.update(leased_until=None)
            carry_out_due()
            if reached():
                return
            assert time.monotonic() < end, list(Job.objects.values("job_id", "state", "cards_reason"))


@pytest.fixture
def place(connection: ClusterConnection) -> Place:
    return Place(connection)


def state(request: Request) -> str:
    request.refresh_from_db()
    return request.state


def test_a_gang_of_pods_runs_on_the_planned_nodes_and_completes(server: KubernetesServer, place: Place) -> None:
    request = place.ask(4, name="gang")
    place.until(lambda: state(request) == "running")
    pods = Job.objects.filter(comment=request.mark, started_at__isnull=False)
    assert (pods.count(), set(pods.values_list("account", "cards"))) == (2, {("team-a", 8)})
    assert request.job_reference.startswith("team-a/job/gang-")
    rows = Allocation.objects.filter(request=request, span__upper_inf=True)
    place.until(lambda: rows.filter(job__isnull=False).count() == 16)
    assert all(row.job.nodes.get() == row.node for row in rows.select_related("job", "node") if row.job)
    assert len(set(rows.values_list("card"))) == 16
    finish_job(server, "team-a", request.job_reference.rpartition("/")[2], 0)
    place.until(lambda: state(request) == "completed")
    assert not rows.exists()


def test_a_second_gang_gets_what_the_first_one_left(server: KubernetesServer, place: Place) -> None:
    first = place.ask(1, name="first")
    place.until(lambda: state(first) == "running")
    job = Job.objects.get(comment=first.mark, started_at__isnull=False)
    told = set(JobCard.objects.filter(job=job).values_list("card", flat=True))
    held = Allocation.objects.filter(request=first, span__upper_inf=True)
    assert set(held.values_list("card", flat=True)) == told
    full, rest = (
        place.ask(4, name="full"),
        place.ask(2, name="rest", near="node", time_limit=600),
    )  # over before the other could start
    place.until(lambda: state(rest) == "running")
    assert state(full) == "queued"
    taken = set(Allocation.objects.filter(request=rest).values_list("card", flat=True))
    assert (len(taken), taken & told) == (8, set())


def test_a_cancelled_request_takes_its_pods_with_it(server: KubernetesServer, place: Place) -> None:
    request = place.ask(1)
    place.until(lambda: state(request) == "running")
    cancel(request, actor=None)
    place.until(lambda: state(request) == "cancelled")
    assert not Allocation.objects.filter(span__upper_inf=True).exists()


def test_what_kubernetes_can_not_start_is_told(place: Place) -> None:
    request = place.ask(1, launch="cards", image="", command=[])
    place.until(lambda: state(request) == "queued" and request.attempt == 1)
    assert request.holds.get().reason.endswith("name an image that is to hold them")
