"""What exists and what it last said. Samples live in partitioned tables written by SQL."""

from inventory.models.cards import (
    BusyThreshold,
    Card,
    CardModel,
    Placement,
    ProcessBinding,
    Sighting,
    Slice,
)
from inventory.models.clusters import (
    ClusterConnection,
    Cordon,
    CordonPurpose,
    LiftedBy,
    Reservation,
    Scheduler,
    SchedulerNode,
    SchedulerQueue,
)
from inventory.models.collectors import (
    Agent,
    Bmc,
    BmcProtocol,
    Credential,
    Discovery,
    DiscoveryState,
    EnrolmentToken,
    Exporter,
)
from inventory.models.jobs import CardSource, Job, JobCard, JobNode
from inventory.models.nodes import FirmwareComponent, JournalEntry, JournalKind, Node
from inventory.models.places import Cluster, Rack, Site, SiteKind

__all__ = [
    "Agent",
    "Bmc",
    "BmcProtocol",
    "BusyThreshold",
    "Card",
    "CardModel",
    "CardSource",
    "Cluster",
    "ClusterConnection",
    "Cordon",
    "CordonPurpose",
    "Credential",
    "Discovery",
    "DiscoveryState",
    "EnrolmentToken",
    "Exporter",
    "FirmwareComponent",
    "Job",
    "JobCard",
    "JobNode",
    "JournalEntry",
    "JournalKind",
    "LiftedBy",
    "Node",
    "Placement",
    "ProcessBinding",
    "Rack",
    "Reservation",
    "Scheduler",
    "SchedulerNode",
    "SchedulerQueue",
    "Sighting",
    "Site",
    "SiteKind",
    "Slice",
]
