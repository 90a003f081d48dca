"""Addresses of the pools under /api/v1/."""

from django.urls import path
from rest_framework.routers import SimpleRouter

from pools.api.allocations import AllocationViewSet
from pools.api.maintenance import HoldViewSet, MaintenanceWindowViewSet
from pools.api.pools import PoolMemberViewSet, PoolRuleViewSet, PoolViewSet
from pools.api.quotas import QuotaViewSet
from pools.api.reclaims import IdleExemptionViewSet, ReclaimViewSet
from pools.api.requests import ExtensionViewSet, RequestViewSet
from pools.api.specs import PriorityClassViewSet, SpecViewSet
from pools.api.tenants import (
    ClusterModeViewSet,
    MappingRuleViewSet,
    MemberViewSet,
    ProjectViewSet,
    TenantViewSet,
)
from pools.api.usage import UsageView

router = SimpleRouter(use_regex_path=False)
router.register("pools", PoolViewSet, basename="pool")
router.register("pool-rules", PoolRuleViewSet, basename="pool-rule")
router.register("pool-members", PoolMemberViewSet, basename="pool-member")
router.register("specs", SpecViewSet, basename="spec")
router.register("priority-classes", PriorityClassViewSet, basename="priority-class")
router.register("tenants", TenantViewSet, basename="tenant")
router.register("projects", ProjectViewSet, basename="project")
router.register("members", MemberViewSet, basename="member")
router.register("mapping-rules", MappingRuleViewSet, basename="mapping-rule")
router.register("cluster-modes", ClusterModeViewSet, basename="cluster-mode")
router.register("quotas", QuotaViewSet, basename="quota")
router.register("requests", RequestViewSet, basename="request")
router.register("extensions", ExtensionViewSet, basename="extension")
router.register("allocations", AllocationViewSet, basename="allocation")
router.register("reclaims", ReclaimViewSet, basename="reclaim")
router.register("idle-exemptions", IdleExemptionViewSet, basename="idle-exemption")
router.register("maintenance-windows", MaintenanceWindowViewSet, basename="maintenance-window")
router.register("holds", HoldViewSet, basename="hold")

urlpatterns = [path("usage/", UsageView.as_view(), name="usage"), *router.urls]
