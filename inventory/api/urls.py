"""Addresses of the inventory under /api/v1/."""

from django.urls import include, path
from rest_framework.routers import SimpleRouter

from inventory.api.cards import AcceleratorViewSet, BusyThresholdViewSet, CardModelViewSet
from inventory.api.clusters import ClusterViewSet
from inventory.api.collectors import AgentViewSet, BmcViewSet, CredentialViewSet, ExporterViewSet
from inventory.api.cordons import CordonViewSet
from inventory.api.counts import CountsView
from inventory.api.enrolment import DiscoveryViewSet, EnrolmentTokenViewSet
from inventory.api.jobs import JobViewSet
from inventory.api.journal import JournalViewSet
from inventory.api.nodes import NodeViewSet
from inventory.api.places import RackViewSet, SiteViewSet

router = SimpleRouter()
router.register("sites", SiteViewSet, basename="site")
router.register("clusters", ClusterViewSet, basename="cluster")
router.register("racks", RackViewSet, basename="rack")
router.register("nodes", NodeViewSet, basename="node")
router.register("accelerators", AcceleratorViewSet, basename="accelerator")
router.register("accelerator-models", CardModelViewSet, basename="accelerator-model")
router.register("busy-thresholds", BusyThresholdViewSet, basename="busy-threshold")
router.register("credentials", CredentialViewSet, basename="credential")
router.register("bmcs", BmcViewSet, basename="bmc")
router.register("exporters", ExporterViewSet, basename="exporter")
router.register("agents", AgentViewSet, basename="agent")
router.register("discoveries", DiscoveryViewSet, basename="discovery")
router.register("enrolment-tokens", EnrolmentTokenViewSet, basename="enrolment-token")
router.register("jobs", JobViewSet, basename="job")
router.register("cordons", CordonViewSet, basename="cordon")
router.register("journal", JournalViewSet, basename="journal-entry")

urlpatterns = [
    # before the router: /agents/enrol/ is not an agent's id
    path("agents/", include("inventory.api.agents_urls")),
    path("counts/", CountsView.as_view(), name="counts"),
    *router.urls,
]
