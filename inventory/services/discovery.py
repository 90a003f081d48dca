"""Searching address ranges for BMCs: started by a person, carried out by a task, resumable.

Results are kept address by address in the search's row, about once a second; a worker that is killed
leaves a lease that expires, and the next round goes on with the addresses that have no result yet.
"""

import asyncio
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.utils import timezone

from inventory.models import Bmc, BmcProtocol, Cluster, Credential, Discovery, DiscoveryState, JournalKind, Rack, Site
from inventory.observations import BmcTarget, FailureKind, ReadFailure, TlsPolicy
from inventory.rules import addresses as ranges
from inventory.services.journal import Note, write_entries
from inventory.services.observe import record_bmc_reading, store_values
from inventory.services.outcomes import finish
from inventory.services.polling import DISCOVER_DEADLINE, BmcAnswer, BmcJob, bmc_outcome, read_bmc
from inventory.services.rounds import CLAIM_SECONDS, Round, Tally, run_round, unusable
from inventory.signals import collector_read
from sensaka.identity.models import User
from sensaka.kernel.errors import Conflict, InvalidInput

PORTS = {"redfish": 443, "ipmi": 623}
CONNECT_DEADLINE = 3.0  # s for a TCP connection: a BMC on the management network answers in milliseconds
_LEASE = timedelta(seconds=30)
_WRITE_EVERY = 1.0  # s between two writes of a search's progress
_LOCK = 0x5E25A0B3
_LONGEST_TEXT = 500  # characters that the search's row keeps of the addresses


def start_discovery(
    *,
    addresses: str,
    ports: Sequence[int] = (),
    protocol: str = "",
    credential: Credential,
    tls: str = TlsPolicy.FINGERPRINT,
    tls_authority: str = "",
    interval: int = 30,
    site: Site,
    cluster: Cluster | None = None,
    rack: Rack | None = None,
    actor: User | None,
) -> Discovery:
    """Begins a search; a task carries it out. Empty `ports` are each protocol's own.

    Raises InvalidInput for what can't be searched, Conflict while the same search is running.
    """
    total = _checked_total(addresses, ports)
    _check_access(protocol=protocol, tls=tls, tls_authority=tls_authority, interval=interval)
    for place in (cluster, rack):
        if place is not None and place.site_id != site.pk:
            raise InvalidInput(f"{place} is not at site {site}; choose one that is, or none")
    with transaction.atomic():
        same = Discovery.objects.select_for_update().filter(
            state=DiscoveryState.RUNNING, site=site, addresses=addresses.strip(), ports=list(ports), protocol=protocol
        )
        if same.exists():
            raise Conflict("the same search is running already; wait for its result")
        row = Discovery.objects.create(
            addresses=addresses.strip(),
            ports=list(ports),
            protocol=protocol,
            credential=credential,
            tls=tls,
            tls_authority=tls_authority,
            interval=interval,
            site=site,
            cluster=cluster,
            rack=rack,
            total=total,
            created_by=actor,
        )
        text = f"A search for BMCs in {row.addresses} at site {site.name} was started."
        note = Note(
            JournalKind.SETTINGS_CHANGED, text, timezone.now(), source="user", detail={"discovery": str(row.pk)}
        )
        write_entries(notes=[note], actor=actor)
    return row


def _checked_total(addresses: str, ports: Sequence[int]) -> int:
    """How many targets the search has. Raises InvalidInput."""
    try:
        named = ranges.expand(addresses)
    except ValueError as error:
        raise InvalidInput(str(error), field="addresses") from None
    if len(addresses.strip()) > _LONGEST_TEXT:
        raise InvalidInput(f"at most {_LONGEST_TEXT} characters; use networks and ranges", field="addresses")
    if len(set(ports)) != len(ports) or not all(1 <= port <= 65535 for port in ports):
        raise InvalidInput("ports are numbers from 1 to 65535, each once", field="ports")
    total = len(named) * max(len(ports), 1)
    if total > ranges.MOST_TARGETS:
        raise InvalidInput(f"{total} addresses and ports; at most {ranges.MOST_TARGETS} in one search")
    return total


def _check_access(*, protocol: str, tls: str, tls_authority: str, interval: int) -> None:
    if protocol and protocol not in BmcProtocol.values:
        raise InvalidInput(f"protocol is one of {', '.join(BmcProtocol.values)}, or empty to try each")
    if tls not in list(TlsPolicy):
        raise InvalidInput(f"tls is one of {', '.join(TlsPolicy)}", field="tls")
    if tls == TlsPolicy.AUTHORITY and "BEGIN CERTIFICATE" not in tls_authority:
        raise InvalidInput("give the authority's certificate as PEM text", field="tls_authority")
    if not 5 <= interval <= 3600:
        raise InvalidInput("interval is 5 to 3600 seconds", field="interval")


def run_discoveries(*, seconds: float = CLAIM_SECONDS) -> Tally:
    """Carries on with every running search; takes new addresses for at most `seconds`."""
    searches = _Searches()
    work = Round(_LOCK, searches.claim, _probe, lambda _: 2 * CONNECT_DEADLINE + DISCOVER_DEADLINE, searches.store)
    try:
        return run_round(work, seconds=seconds)
    finally:
        searches.let_go()


@dataclass(frozen=True, slots=True)
class _Target:
    """One address and port to be tried, with how to log in. `protocols` in the order to try."""

    search: UUID
    address: str
    port: int
    protocols: tuple[tuple[str, int], ...]
    username: str
    password: str = field(repr=False)
    tls: str
    tls_authority: str = field(repr=False)

    def bmc(self, protocol: str, port: int) -> BmcTarget:
        return BmcTarget(
            address=self.address,
            port=port,
            protocol=protocol,
            username=self.username,
            password=self.password,
            tls=TlsPolicy(self.tls),
            tls_authority=self.tls_authority,
        )


@dataclass(frozen=True, slots=True)
class _Found:
    """What an address said: the BMC's reading by the protocol that worked, or why there is none."""

    protocol: str = ""
    port: int = 0
    answer: BmcAnswer | None = None
    outcome: str = "silent"
    detail: str = ""


# -- reading ----------------------------------------------------------------------------------------------------------


async def _probe(target: _Target) -> _Found:
    """Tries each protocol until one gives a reading. What answered but could not be read is told first."""
    best = _Found(detail="nothing answers there")
    for protocol, port in target.protocols:
        if protocol == "redfish" and (why := await _refusal(target.address, port)) is not None:
            best = best if best.outcome != "silent" else _Found(detail=why)
            continue
        answer = await read_bmc(BmcJob(target.search, target.bmc(protocol, port), whole=True))
        if answer.reading.reached:
            return _Found(protocol, port, answer, "found")
        failure = _first(answer.reading.failures)
        silent = failure.kind in (FailureKind.TIMEOUT, FailureKind.UNREACHABLE)
        if not silent or best.outcome == "silent":
            outcome = "silent" if silent else "refused" if failure.kind is FailureKind.AUTHENTICATION else "failed"
            best = _Found(protocol, port, None, outcome, f"{protocol}: {failure.detail or failure.kind}")
    return best


async def _refusal(address: str, port: int) -> str | None:
    """Why no TCP connection comes about; None when one does."""
    try:
        async with asyncio.timeout(CONNECT_DEADLINE):
            _, writer = await asyncio.open_connection(address, port)
    except TimeoutError:
        return f"no answer on port {port} within {CONNECT_DEADLINE:g} s"
    except OSError as error:
        return f"port {port}: {error.strerror or error}"
    writer.close()
    return None


def _first(failures: Sequence[ReadFailure]) -> ReadFailure:
    return failures[0] if failures else ReadFailure(what="BMC", kind=FailureKind.UNKNOWN, detail="no reason given")


# -- bookkeeping ------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Search:
    """A leased search: what is left to be tried, and results that are not written yet."""

    row: Discovery
    left: Iterator[_Target]
    results: list[dict[str, Any]]
    written_at: float = 0.0


class _Searches:
    """The searches that this round has leased."""

    def __init__(self) -> None:
        self._held: dict[UUID, _Search] = {}

    def claim(self, most: int) -> list[_Target]:
        """The next targets of held searches, then of further ones."""
        targets: list[_Target] = []
        while len(targets) < most:
            for search in self._held.values():
                while len(targets) < most and (target := next(search.left, None)) is not None:
                    targets.append(target)
            if len(targets) >= most or not self._lease_another():
                break
        return targets

    def _lease_another(self) -> bool:
        now = timezone.now()
        with transaction.atomic():
            rows = Discovery.objects.select_for_update(skip_locked=True, of=("self",)).select_related(
                "credential", "site", "cluster", "rack"
            )
            running = rows.filter(state=DiscoveryState.RUNNING).exclude(pk__in=self._held)
            row = running.exclude(leased_until__gte=now).order_by("created_at").first()
            if row is None:
                return False
            row.leased_until = now + _LEASE
            row.save(update_fields=["leased_until", "updated_at"])
        search = _Search(row, iter(_targets(row)), list(row.results))
        self._held[row.pk] = search
        if not search.row.total or len(search.results) >= search.row.total:
            self._write(search)
        return True

    def store(self, target: _Target, found: _Found | None) -> None:
        """Keeps the result of one address, and the BMC with its node where there is one."""
        search = self._held[target.search]
        result: dict[str, Any] = {"address": target.address, "port": target.port}
        if found is None:
            result |= {"outcome": "failed", "detail": unusable().detail, "bmc": None}
        elif found.answer is None:
            result |= {"outcome": found.outcome, "detail": found.detail.replace("\0", "")[:300], "bmc": None}
        else:
            result |= _keep(search.row, target, found)
        search.results.append(result)
        if time.monotonic() - search.written_at >= _WRITE_EVERY or len(search.results) >= search.row.total:
            self._write(search)

    def _write(self, search: _Search, *, let_go: bool = False) -> None:
        now, row = timezone.now(), search.row
        search.written_at = time.monotonic()
        row.tried = len(search.results)
        row.found = sum(result["outcome"] in ("found", "known") for result in search.results)
        row.results = search.results
        row.leased_until = None if let_go else now + _LEASE
        if row.tried >= row.total:
            row.state, row.finished_at, row.leased_until = DiscoveryState.DONE, now, None
        row.save(update_fields=[
            "tried", "found", "results", "leased_until", "state", "finished_at", "updated_at",
        ])  # fmt: skip
        collector_read.send(sender=None, discovery=row.pk)

    def let_go(self) -> None:
        """Gives unfinished searches back, so that the next round may go on at once."""
        for search in self._held.values():
            if search.row.state == DiscoveryState.RUNNING:
                self._write(search, let_go=True)


def _targets(row: Discovery) -> Iterator[_Target]:
    done = {(result["address"], result["port"]) for result in row.results}
    wanted = (row.protocol,) if row.protocol else ("redfish", "ipmi")
    for address in ranges.expand(row.addresses):
        for port in row.ports or [PORTS[wanted[0]]]:
            if (address, port) in done:
                continue
            yield _Target(
                search=row.pk,
                address=address,
                port=port,
                protocols=tuple((protocol, port if row.ports else PORTS[protocol]) for protocol in wanted),
                username=row.credential.username,
                password=row.credential.password,
                tls=row.tls,
                tls_authority=row.tls_authority,
            )


def _keep(row: Discovery, target: _Target, found: _Found) -> dict[str, Any]:
    """Makes the BMC, records what it said and ties it to its node. One that is known only gets the reading."""
    assert found.answer is not None
    reading, now = found.answer.reading, timezone.now()
    with transaction.atomic():
        bmc, new = _bmc_at(row, target, found)
        changes = record_bmc_reading(bmc=bmc, reading=reading)
        finish(bmc, bmc_outcome(bmc, found.answer), source="bmc")
        # Spread over the interval, so that a rack found at once is not polled at once ever after.
        offset = timedelta(seconds=row.interval * random.random())  # noqa: S311 - spreads load
        Bmc.objects.filter(pk=bmc.pk).update(due_at=now + offset)
    store_values(changes=changes, source="bmc", interval=bmc.interval, reading=reading)
    collector_read.send(sender=None, collector=bmc.pk)
    name = bmc.node.name if bmc.node else ""
    detail = f"node {name}, {changes.cards} cards" if reading.cards_known else f"node {name}"
    return {"outcome": "found" if new else "known", "detail": detail, "bmc": str(bmc.pk)}


def _bmc_at(row: Discovery, target: _Target, found: _Found) -> tuple[Bmc, bool]:
    assert found.answer is not None
    facts = {
        "site": row.site,
        "cluster": row.cluster,
        "rack": row.rack,
        "protocol": found.protocol,
        "credential": row.credential,
        "tls": row.tls,
        "tls_authority": row.tls_authority,
        "interval": row.interval,
        "simulated": found.answer.reading.simulated or row.site.simulated,
    }
    try:
        with transaction.atomic():
            return Bmc.objects.get_or_create(address=target.address, port=found.port, defaults=facts)
    except IntegrityError:
        return Bmc.objects.get(address=target.address, port=found.port), False
