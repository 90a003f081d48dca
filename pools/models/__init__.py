"""Who may use what: pools, specs, tenants, quotas, requests and the ledger of allocations."""

from pools.models.allocations import Allocation, AllocationSource
from pools.models.ledger import LedgerMark
from pools.models.pools import IdlePolicy, Pool, PoolMember, PoolRule, SharingMode
from pools.models.quotas import UNITS, OverQuota, Period, Quota, QuotaLimit, Resource, UsageKind, UsageRecord
from pools.models.reclaims import (
    OPEN_IDLE,
    OPEN_RECLAIM,
    SPARED_TARGETS,
    IdleCase,
    IdleExemption,
    IdleState,
    Reclaim,
    ReclaimState,
)
from pools.models.requests import REQUEST_STATES, EndAsked, Extension, ExtensionState, Launch, Request, RequestEvent
from pools.models.specs import Near, PriorityClass, Spec
from pools.models.stops import HOLD_TARGETS, PLACE_TARGETS, Hold, MaintenanceWindow
from pools.models.tenants import (
    ClusterMode,
    MappingKind,
    MappingRule,
    MemberRole,
    Membership,
    Mode,
    Project,
    Tenant,
    belongs_to,
    memberships_of,
)

__all__ = [
    "HOLD_TARGETS",
    "OPEN_IDLE",
    "OPEN_RECLAIM",
    "PLACE_TARGETS",
    "REQUEST_STATES",
    "SPARED_TARGETS",
    "UNITS",
    "Allocation",
    "AllocationSource",
    "ClusterMode",
    "EndAsked",
    "Extension",
    "ExtensionState",
    "Hold",
    "IdleCase",
    "IdleExemption",
    "IdlePolicy",
    "IdleState",
    "Launch",
    "LedgerMark",
    "MaintenanceWindow",
    "MappingKind",
    "MappingRule",
    "MemberRole",
    "Membership",
    "Mode",
    "Near",
    "OverQuota",
    "Period",
    "Pool",
    "PoolMember",
    "PoolRule",
    "PriorityClass",
    "Project",
    "Quota",
    "QuotaLimit",
    "Reclaim",
    "ReclaimState",
    "Request",
    "RequestEvent",
    "Resource",
    "SharingMode",
    "Spec",
    "Tenant",
    "UsageKind",
    "UsageRecord",
    "belongs_to",
    "memberships_of",
]
