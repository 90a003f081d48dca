"""A managed cluster behind the fake scheduler, with a spec of whole cards."""

from datetime import timedelta

import pytest
from django.utils import timezone

from pools.models import ClusterMode, Mode, PriorityClass, Request, Spec
from pools.selectors.reasons import told
from pools.services.admission import admit
from tests.inventory.clusters.building import opener
from tests.pools.admission.building import Managed
from tests.pools.building import card_model
from tests.pools.ledger.conftest import Ledger, ledger

__all__ = ["Managed", "admit", "ledger", "opener", "told"]


@pytest.fixture
def managed(ledger: Ledger) -> Managed:
    ledger.lab.clock.now = timezone.now().replace(microsecond=0) - timedelta(minutes=10)
    ClusterMode.objects.create(cluster=ledger.lab.cluster, mode=Mode.MANAGED)
    spec = Spec.objects.create(name="1 x H100", cards=1)
    spec.card_models.add(card_model())
    spec.pools.add(ledger.pool)
    normal = PriorityClass.objects.create(name="normal", value=10, default=True, preemptible=True, grace=60)
    urgent = PriorityClass.objects.create(name="urgent", value=100)
    assert not Request.objects.exists()
    return Managed(ledger, spec, normal, urgent)
