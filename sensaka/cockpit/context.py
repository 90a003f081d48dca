"""What the frame of every page needs."""

from dataclasses import dataclass

from django.conf import settings
from django.core.cache import cache
from django.http import HttpRequest
from django.urls import reverse
from django.utils.functional import SimpleLazyObject
from django.utils.translation import gettext as _

from inventory.models import Site

KEEP: int | None = 10
"""Seconds that the frame remembers whether the fleet is simulated."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the navigation; without `url` it is a heading."""

    title: str
    url: str = ""
    icon: str = ""
    active: bool = False


_PLACES: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    ("Overview", "overview", "home", ()),
    ("Capacity", "", "", ()),
    ("Pools", "pools", "stack-2", ("pool", "pool-add", "pool-edit", "pool-delete", "pool-rule-add", "pool-member-add")),
    ("Queue", "queue", "list-details", ("request", "request-act", "request-move")),
    ("Allocations", "allocations", "layout-grid", ()),
    ("Extensions", "extensions", "clock", ("extension-decision",)),
    ("Idle cards", "idle", "moon", ("idle-act", "idle-exemption-add", "idle-exemption-lift")),
    ("Specs", "specs", "ruler-measure", ("spec-add", "spec-edit", "spec-delete")),
    ("Tenants", "tenants", "users", ("tenant", "tenant-add", "tenant-edit", "project-add", "member-add")),
    ("Quotas", "quotas", "activity", ("quota-add", "quota-edit", "quota-delete")),
    ("Priority classes", "priority-classes", "arrow-up", ("priority-class-add", "priority-class-edit")),
    ("Maintenance", "maintenance", "clock", ("window-add", "window-edit", "window-cancel")),
    ("Fleet", "", "", ()),
    ("Map", "map", "grid-dots", ()),
    ("Tree", "tree", "sitemap", ()),
    ("Nodes", "nodes", "server", ("node",)),
    ("Cards", "cards", "cpu", ("card",)),
    ("Clusters", "clusters", "server-2", ("cluster", "cluster-connect", "connection-edit")),
    ("Jobs", "jobs", "list-details", ("job", "job-act")),
    ("Cordons", "cordons", "player-pause", ("cordon-act",)),
    ("Journal", "journal", "history", ()),
    ("Sources", "", "", ()),
    ("Collectors", "collectors", "radar-2", ("collector-delete",)),
    ("Add sources", "enrol", "plug-connected", ("enrol-bmc", "enrol-exporter", "enrol-agent", "discovery")),
    ("Settings", "", "", ()),
    ("Places", "places", "building", ("place-add", "place-edit", "place-delete")),
    ("Credentials", "credentials", "lock", ("credential-add", "credential-edit", "credential-delete")),
    ("Card models", "card-models", "cpu-2", ("card-model-add", "card-model-edit")),
    ("Busy thresholds", "thresholds", "activity", ("threshold-add", "threshold-edit", "threshold-delete")),
    ("Users", "users", "users", ("user-add", "user-edit")),
)
_OWN_PLACES: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    ("Request", "offers", "plus", ("ask",)),
    ("My work", "my-work", "list-details", ("request", "request-act", "extensions", "extension-decision")),
    ("Idle cards", "idle", "moon", ("idle-act",)),
    ("My usage", "my-usage", "activity", ()),
    ("Team", "team", "users", ("tenant", "project-add", "project-edit", "member-add", "member-delete")),
)


def navigation(request: HttpRequest) -> list[Entry]:
    """The entries that exist for this person."""
    if not request.user.is_authenticated:
        return []
    places = _PLACES if getattr(request.user, "sees_inventory", False) else _OWN_PLACES
    match = request.resolver_match
    here = match.url_name if match else ""
    return [
        Entry(_(title), reverse(name) if name else "", icon, bool(name) and (here == name or here in also))
        for title, name, icon, also in places
    ]


def _simulated() -> bool:
    """Whether any site is simulated; asked once in KEEP seconds."""
    if settings.SIMULATED_FLEET:
        return True
    key = "cockpit.simulated"
    try:
        known = cache.get(key)
        if known is None:
            known = Site.objects.filter(simulated=True).exists()
            cache.set(key, known, KEEP)
    except OSError:  # Redis is away; the database knows
        known = Site.objects.filter(simulated=True).exists()
    return bool(known)


def frame(request: HttpRequest) -> dict[str, object]:
    """The banner of a simulated fleet, the version, the navigation."""
    return {
        "simulated_fleet": SimpleLazyObject(_simulated),
        "version": settings.VERSION,
        "navigation": SimpleLazyObject(lambda: navigation(request)),
    }
