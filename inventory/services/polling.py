"""BMCs and exporters that are due are read, and what they gave is stored. Rounds: see `rounds.py`."""

import asyncio
import contextlib
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from inventory.drivers.bmc import open_bmc
from inventory.drivers.cards.exporters import scrape
from inventory.models import Bmc, Exporter
from inventory.observations import (
    BmcReading,
    BmcTarget,
    FailureKind,
    NodeReading,
    PowerState,
    ReadFailure,
    TlsPolicy,
)
from inventory.services.binding import bind_exporter
from inventory.services.observe import record_bmc_reading, record_node_reading, store_values
from inventory.services.outcomes import Outcome, finish
from inventory.services.rounds import CLAIM_SECONDS, Round, Tally, run_round, unusable
from inventory.signals import collector_read

POLL_DEADLINE = 20.0  # s for one poll of a BMC
DISCOVER_DEADLINE = 90.0  # s for a walk through everything (TELEMETRY 6.10: whole trees take minutes on some)
SCRAPE_DEADLINE = 10.0  # s for one exporter page
_CLOSE_SECONDS = 7.0  # s; a log-out may take five
_LEASE_MARGIN = timedelta(seconds=30)
# What a BMC consists of is looked at again so often; a random part keeps BMCs from doing it together.
REDISCOVER = timedelta(hours=1)
_SPREAD = timedelta(minutes=10)
_BMC_LOCK, _EXPORTER_LOCK = 0x5E25A0B1, 0x5E25A0B2


@dataclass(frozen=True, slots=True)
class BmcJob:
    """One BMC to be read. `links` are what the last discovery learnt; `whole` asks for a new one."""

    id: UUID
    target: BmcTarget
    links: Mapping[str, Any] = field(default_factory=dict, repr=False)
    whole: bool = False

    @property
    def deadline(self) -> float:
        """Seconds for this visit."""
        return DISCOVER_DEADLINE if self.whole else POLL_DEADLINE


@dataclass(frozen=True, slots=True)
class BmcAnswer:
    """A visit's reading, and the links to keep for the next one."""

    reading: BmcReading
    links: Mapping[str, Any]
    whole: bool


@dataclass(frozen=True, slots=True)
class ExporterJob:
    """One page to be scraped."""

    id: UUID
    url: str


def target_of(bmc: Bmc) -> BmcTarget:
    """How to reach a BMC, with its credential in clear; it lives as long as the visit."""
    return BmcTarget(
        address=bmc.address,
        port=bmc.port,
        protocol=bmc.protocol,
        username=bmc.credential.username,
        password=bmc.credential.password,
        tls=TlsPolicy(bmc.tls),
        tls_fingerprint=bmc.tls_fingerprint,
        tls_authority=bmc.tls_authority,
    )


def poll_due_bmcs(*, seconds: float = CLAIM_SECONDS) -> Tally:
    """Reads every BMC that is due; claims new ones for at most `seconds`."""
    work = Round(_BMC_LOCK, _claim_bmcs, read_bmc, lambda job: job.deadline, _store_bmc)
    return run_round(work, seconds=seconds)


def scrape_due_exporters(*, seconds: float = CLAIM_SECONDS) -> Tally:
    """Reads every exporter page that is due; claims new ones for at most `seconds`."""
    work = Round(_EXPORTER_LOCK, _claim_exporters, _read_exporter, lambda _: SCRAPE_DEADLINE, _store_exporter)
    return run_round(work, seconds=seconds)


# -- BMCs -------------------------------------------------------------------------------------------------------------


def _due(now: datetime) -> Q:
    return Q(enabled=True, due_at__lte=now) & (Q(leased_until=None) | Q(leased_until__lt=now))


def _claim_bmcs(most: int) -> Sequence[BmcJob]:
    now = timezone.now()
    with transaction.atomic():
        rows = list(
            Bmc.objects.select_for_update(skip_locked=True, of=("self",), no_key=True)
            .select_related("credential")
            .filter(_due(now))
            .order_by("due_at")[:most]
        )
        jobs = [BmcJob(row.id, target_of(row), row.links, _wants_discovery(row, now)) for row in rows]
        for whole in (True, False):
            claimed = [job.id for job in jobs if job.whole is whole]
            deadline = DISCOVER_DEADLINE if whole else POLL_DEADLINE
            until = now + timedelta(seconds=deadline) + _LEASE_MARGIN
            if claimed:
                Bmc.objects.filter(pk__in=claimed).update(leased_until=until)
    return jobs


def _wants_discovery(bmc: Bmc, now: datetime) -> bool:
    return bmc.discovered_at is None or bmc.discovered_at <= now - REDISCOVER


async def read_bmc(job: BmcJob) -> BmcAnswer:
    """One visit: a discovery or a poll over known links. Never raises for what the BMC does."""
    driver = open_bmc(job.target, links=job.links)
    try:
        if job.whole:
            reading = await driver.discover(deadline=job.deadline)
        else:
            reading = await driver.poll(deadline=job.deadline)
    finally:
        # What was read must not be lost because the farewell takes long.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_SECONDS):
                await driver.close()
    export = getattr(driver, "export_links", None)
    return BmcAnswer(reading, export() if export is not None else {}, job.whole)


def _store_bmc(job: BmcJob, answer: BmcAnswer | None) -> None:
    changes, bmc = None, None
    with transaction.atomic():
        bmc = Bmc.objects.select_for_update(no_key=True, of=("self",)).select_related("node", "site", "cluster", "rack")
        row = bmc.filter(pk=job.id).first()
        if row is None:
            return  # it was removed while it was read
        if answer is not None and answer.reading.reached:
            changes = record_bmc_reading(bmc=row, reading=answer.reading)
        finish(row, bmc_outcome(row, answer), source="bmc")
    if changes is not None and answer is not None:
        store_values(changes=changes, source="bmc", interval=row.interval, reading=answer.reading)
    collector_read.send(sender=None, collector=job.id)


def bmc_outcome(bmc: Bmc, answer: BmcAnswer | None) -> Outcome:
    """What a visit means for the BMC's row."""
    now = timezone.now()
    if answer is None:
        return Outcome(now, 0.0, unusable())
    reading = answer.reading
    if not reading.reached:
        first = reading.failures[0] if reading.failures else ReadFailure(what="BMC", kind=FailureKind.UNKNOWN)
        return Outcome(now, reading.elapsed, first, reading.failures, reading.requests)
    changes: dict[str, Any] = {"simulated": reading.simulated or bmc.simulated}
    if answer.links and answer.links != bmc.links:
        changes["links"] = dict(answer.links)
    if answer.whole:
        changes["discovered_at"] = now - _SPREAD * random.random()  # noqa: S311 - spreads load
    elif _looks_changed(bmc, reading):
        changes["discovered_at"] = None
    if bmc.tls == TlsPolicy.FINGERPRINT and not bmc.tls_fingerprint and reading.tls_fingerprint:
        changes["tls_fingerprint"] = reading.tls_fingerprint
    cards = sum(card.present for card in reading.cards) if reading.cards_known or reading.cards else None
    return Outcome(now, reading.elapsed, None, reading.failures, reading.requests, cards, changes)


def _looks_changed(bmc: Bmc, reading: BmcReading) -> bool:
    """Whether a poll shows that parts may have changed: a boot began, or the number of cards differs."""
    if reading.power_state is PowerState.TURNING_ON:
        return True
    if reading.bmc_firmware and bmc.firmware and reading.bmc_firmware[:100] != bmc.firmware:
        return True
    return bmc.cards_seen is not None and reading.cards_known and len(reading.cards) != bmc.cards_seen


# -- exporters --------------------------------------------------------------------------------------------------------


def _claim_exporters(most: int) -> Sequence[ExporterJob]:
    now = timezone.now()
    with transaction.atomic():
        rows = list(
            Exporter.objects.select_for_update(skip_locked=True, no_key=True)
            .filter(_due(now))
            .order_by("due_at")[:most]
        )
        until = now + timedelta(seconds=SCRAPE_DEADLINE) + _LEASE_MARGIN
        if rows:
            Exporter.objects.filter(pk__in=[row.pk for row in rows]).update(leased_until=until)
    return [ExporterJob(row.id, row.url) for row in rows]


@dataclass(frozen=True, slots=True)
class Page:
    """A scraped page, its exporter's flavour and the seconds it took."""

    reading: NodeReading
    flavour: str
    elapsed: float

    @property
    def failure(self) -> ReadFailure | None:
        """Why the page gave nothing at all."""
        return self.reading.failures[0] if self.reading.failures and not self.reading.cards else None


async def _read_exporter(job: ExporterJob) -> Page:
    return await read_page_at(job.url)


async def read_page_at(url: str) -> Page:
    """One scrape. Never raises for what the other side does."""
    started = timezone.now()
    reading, flavour = await scrape(url, deadline=SCRAPE_DEADLINE)
    return Page(reading, flavour, (timezone.now() - started).total_seconds())


def _store_exporter(job: ExporterJob, page: Page | None) -> None:
    changes = None
    with transaction.atomic():
        rows = Exporter.objects.select_for_update(no_key=True, of=("self",)).select_related("node", "site")
        row = rows.filter(pk=job.id).first()
        if row is None:
            return
        if page is not None and page.failure is None:
            node = bind_exporter(exporter=row, reading=page.reading)
            changes = record_node_reading(
                node=node, source="exporter", collector_id=row.id, reading=page.reading, simulated=row.simulated
            )
        finish(row, _exporter_outcome(page), source="exporter")
    if changes is not None and page is not None:
        store_values(changes=changes, source="exporter", interval=row.interval, reading=page.reading)
    collector_read.send(sender=None, collector=job.id)


def _exporter_outcome(page: Page | None) -> Outcome:
    now = timezone.now()
    if page is None:
        return Outcome(now, 0.0, unusable())
    if page.failure is not None:
        return Outcome(now, page.elapsed, page.failure, page.reading.failures, 1)
    cards = len(page.reading.cards)
    changes = {"flavour": page.flavour[:32], "hostname": page.reading.hostname[:200]}
    return Outcome(now, page.elapsed, None, page.reading.failures, 1, cards, changes)
