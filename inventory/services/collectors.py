"""What people do with collectors: add, test, read now, switch, change the rhythm, remove."""

from dataclasses import dataclass
from urllib.parse import urlsplit

from django.db import IntegrityError, transaction
from django.utils import timezone

from inventory.models import Agent, Bmc, Cluster, ClusterConnection, Exporter, JournalKind, Rack, Sighting, Site
from inventory.observations import NodeReading, ReadFailure
from inventory.rules.addresses import is_never_read
from inventory.services.journal import Note, write_entries
from inventory.services.outcomes import collector_name
from inventory.services.polling import read_page_at
from inventory.services.rounds import run_once
from sensaka.identity.models import User
from sensaka.kernel.errors import Conflict, InvalidInput

SHORTEST, LONGEST = 5, 3600  # s between two reads
AnyCollector = Bmc | Exporter | Agent | ClusterConnection


@dataclass(frozen=True, slots=True)
class PageTest:
    """What an exporter page gave when it was tried: its flavour, host and cards, or why not."""

    flavour: str
    hostname: str
    reading: NodeReading
    failure: ReadFailure | None
    elapsed: float


def add_exporter(
    *, url: str, site: Site, cluster: Cluster | None = None, rack: Rack | None = None, interval: int = 30,
    actor: User | None,
) -> Exporter:  # fmt: skip
    """An exporter page to be scraped from now on. It is tied to its node by its first read.

    Raises InvalidInput for an unusable address, place or interval, Conflict when it is known already.
    """
    url = usable_url(url)
    _check_interval(interval)
    for place in (cluster, rack):
        if place is not None and place.site_id != site.pk:
            raise InvalidInput(f"{place} is not at site {site}; choose one that is, or none")
    try:
        with transaction.atomic():
            row = Exporter.objects.create(
                url=url, site=site, cluster=cluster, rack=rack, interval=interval, simulated=site.simulated
            )
            _note(row, f"{collector_name(row)} was added at site {site.name}.", actor)
    except IntegrityError:
        raise Conflict(f"{url} is scraped already") from None
    return row


def test_exporter(*, url: str) -> PageTest:
    """Reads a page once, without keeping anything, to show what adding it would give."""
    page = run_once(read_page_at(usable_url(url)))
    return PageTest(page.flavour, page.reading.hostname, page.reading, page.failure, page.elapsed)


def read_now(*, collector: AnyCollector, actor: User | None) -> None:
    """Makes a BMC or exporter due at once. Raises InvalidInput for an agent (it pushes) or one switched off."""
    if isinstance(collector, Agent):
        raise InvalidInput("an agent sends by itself; there is nothing to fetch")
    if not collector.enabled:
        raise InvalidInput(f"{collector_name(collector)} is switched off; switch it on first")
    type(collector).objects.filter(pk=collector.pk).update(due_at=timezone.now())


def set_enabled(*, collector: AnyCollector, enabled: bool, actor: User | None) -> None:
    """Switches reading on or off. Doing it again changes nothing."""
    with transaction.atomic():
        rows = type(collector).objects.filter(pk=collector.pk, enabled=not enabled)
        if rows.update(enabled=enabled, due_at=timezone.now(), updated_at=timezone.now()):
            _note(collector, f"{collector_name(collector)} was switched {'on' if enabled else 'off'}.", actor)
    collector.enabled = enabled


def change_interval(*, collector: AnyCollector, interval: int, actor: User | None) -> None:
    """Changes the rhythm (s). Raises InvalidInput outside 5 to 3600."""
    _check_interval(interval)
    with transaction.atomic():
        rows = type(collector).objects.filter(pk=collector.pk).exclude(interval=interval)
        before = collector.interval
        if rows.update(interval=interval, updated_at=timezone.now()):
            text = f"{collector_name(collector)} is read every {interval} s instead of every {before} s."
            _note(collector, text, actor)
    collector.interval = interval


def remove(*, collector: AnyCollector, actor: User | None) -> None:
    """Stops reading a source for good. Its node, cards, samples and journal stay; an agent's token holds no more."""
    with transaction.atomic():
        _note(collector, f"{collector_name(collector)} was removed.", actor)
        Sighting.objects.filter(collector_id=collector.pk).delete()
        collector.delete()


def usable_url(url: str) -> str:
    """The address of an exporter's page, tidied. Raises InvalidInput for what is never scraped.

    A log-in inside the address would be shown with it, on pages, in the journal and over REST.
    """
    url = url.strip()
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise InvalidInput(f"{url!r} is no usable address: {error}", field="url") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0 or len(url) > 500:
        raise InvalidInput("give the page's whole address, like http://n01:9400/metrics", field="url")
    if not url.isprintable() or " " in url:
        raise InvalidInput("the address contains blanks or characters that can't be printed", field="url")
    if "@" in parts.netloc:
        raise InvalidInput("an address can't hold a log-in: everybody who sees the exporter would see it", field="url")
    if is_never_read(parts.hostname):
        raise InvalidInput(
            f"{parts.hostname} is link-local, multicast or no address: no exporter is there", field="url"
        )
    return url


def _check_interval(interval: int) -> None:
    if not SHORTEST <= interval <= LONGEST:
        raise InvalidInput(f"interval is {SHORTEST} to {LONGEST} seconds", field="interval")


def _note(collector: AnyCollector, text: str, actor: User | None) -> None:
    detail = {"collector": str(collector.pk)}
    node = None if isinstance(collector, ClusterConnection) else collector.node_id
    cluster = collector.cluster_id if isinstance(collector, ClusterConnection) else None
    note = Note(JournalKind.SETTINGS_CHANGED, text, timezone.now(), node, None, "user", detail, cluster)
    write_entries(notes=[note], actor=actor)
