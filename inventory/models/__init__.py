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
from inventory.models.nodes import FirmwareComponent, JournalEntry, JournalKind, Node
from inventory.models.places import Cluster, Rack, Site, SiteKind

__all__ = [
    "Agent",
    "Bmc",
    "BmcProtocol",
    "BusyThreshold",
    "Card",
    "CardModel",
    "Cluster",
    "Credential",
    "Discovery",
    "DiscoveryState",
    "EnrolmentToken",
    "Exporter",
    "FirmwareComponent",
    "JournalEntry",
    "JournalKind",
    "Node",
    "Placement",
    "ProcessBinding",
    "Rack",
    "Sighting",
    "Site",
    "SiteKind",
    "Slice",
]
