"""What people do with the connection of a cluster: make, test, change, remove. Secrets are never shown again."""

import asyncio
import time
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from django.db import IntegrityError, transaction
from django.utils import timezone

from inventory.drivers.clusters.capabilities import ClusterDescription
from inventory.models import Cluster, ClusterConnection, JournalKind, Scheduler
from inventory.observations import FailureKind, ReadFailure
from inventory.rules.addresses import is_never_read
from inventory.services import collectors
from inventory.services.clusters import opening
from inventory.services.clusters.opening import Access, access_of, key_bytes
from inventory.services.journal import Note, write_entries
from inventory.services.rounds import run_once
from inventory.signals import jobs_changed
from sensaka.identity.models import User
from sensaka.kernel.errors import Conflict, InvalidInput

SHORTEST, LONGEST = 5, 3600  # s between two reads
SECRETS = ("token", "jwt_key", "kubeconfig")
_TEST_SECONDS = 20.0
_CHANGEABLE = tuple(name for name in Access.__dataclass_fields__ if name != "scheduler")


@dataclass(frozen=True, slots=True)
class ConnectionTest:
    """What a trial gave: the scheduler's description and its nodes, or why not."""

    description: ClusterDescription | None
    nodes: int | None
    cards: int | None
    failures: tuple[ReadFailure, ...]
    elapsed: float

    @property
    def reached(self) -> bool:
        """Whether the scheduler answered."""
        return self.description is not None and self.description.reached


def connect(
    *, cluster: Cluster, access: Access, interval: int = 10, actor: User | None
) -> ClusterConnection:  # fmt: skip
    """The scheduler of a cluster, read from now on.

    Raises InvalidInput for an access that can't be used, Conflict when the cluster has a connection already.
    """
    access = usable(access)
    _check_interval(interval)
    fields = {name: getattr(access, name) for name in Access.__dataclass_fields__}
    try:
        with transaction.atomic():
            row = ClusterConnection.objects.create(
                cluster=cluster, interval=interval, simulated=cluster.site.simulated, **fields
            )
            Cluster.objects.filter(pk=cluster.pk).update(scheduler=access.scheduler, updated_at=timezone.now())
            _note(row, f"{row.get_scheduler_display()} was connected to cluster {cluster.name}.", actor)
    except IntegrityError:
        raise Conflict(f"cluster {cluster.name} has a connection already; change that one") from None
    cluster.scheduler = access.scheduler
    jobs_changed.send(sender=None, cluster=cluster.pk)
    return row


def change(*, connection: ClusterConnection, changes: dict[str, Any], actor: User | None) -> ClusterConnection:
    """Changes how a scheduler is reached; a secret that is not named stays. It is described anew at once.

    Raises InvalidInput for what can't be used; the kind of scheduler can't be changed.
    """
    if changes.get("scheduler", connection.scheduler) != connection.scheduler:
        raise InvalidInput("another scheduler is another connection: remove this one first", field="scheduler")
    wanted = {name: value for name, value in changes.items() if name in _CHANGEABLE}
    access = usable(replace(access_of(connection), **wanted))
    with transaction.atomic():
        row = ClusterConnection.objects.select_for_update(of=("self",)).select_related("cluster").get(pk=connection.pk)
        differing = [name for name in wanted if getattr(row, name) != getattr(access, name)]
        for name in differing:
            setattr(row, name, getattr(access, name))
        if differing:
            row.described_at, row.due_at, row.follow_cursor = None, timezone.now(), ""
            names = ["described_at", "due_at", "follow_cursor", "updated_at"]
            row.save(update_fields=[*differing, *names])
            what = ", ".join(name.replace("_", " ") for name in differing)
            _note(row, f"The connection of cluster {row.cluster.name} was changed: {what}.", actor)
    if "interval" in changes:
        collectors.change_interval(collector=row, interval=changes["interval"], actor=actor)
    if "enabled" in changes:
        collectors.set_enabled(collector=row, enabled=changes["enabled"], actor=actor)
    jobs_changed.send(sender=None, cluster=row.cluster_id)
    return row


def test(access: Access) -> ConnectionTest:
    """Asks a scheduler once what it is and has, without keeping anything."""
    access = usable(access)
    return run_once(_test(access))


async def _test(access: Access) -> ConnectionTest:
    start = time.monotonic()
    driver = opening.open_driver(access)
    try:
        async with asyncio.timeout(2 * _TEST_SECONDS):
            description = await driver.describe(deadline=_TEST_SECONDS)
            if not description.reached:
                return ConnectionTest(description, None, None, description.failures, time.monotonic() - start)
            reading = await driver.read_nodes(deadline=_TEST_SECONDS)
    except TimeoutError:
        failure = ReadFailure(what="scheduler", kind=FailureKind.TIMEOUT, detail="it did not answer in time")
        return ConnectionTest(None, None, None, (failure,), time.monotonic() - start)
    finally:
        await driver.close()
    cards = sum(one.total for node in reading.nodes for one in node.accelerators)
    failures = (*description.failures, *reading.failures)
    return ConnectionTest(description, len(reading.nodes), cards, failures, time.monotonic() - start)


def stored_access(connection: ClusterConnection) -> Access:
    """How a stored connection reaches its scheduler, with its secrets: to try it, never to show it."""
    return access_of(connection)


def disconnect(*, connection: ClusterConnection, actor: User | None) -> None:
    """Stops reading a scheduler for good. Nodes, runs and journal stay; cordons of ours stay set there.

    Raises Conflict while a cordon of ours is open, because nobody could lift it any more.
    """
    with transaction.atomic():
        cluster = Cluster.objects.select_for_update(no_key=True, of=("self",)).get(pk=connection.cluster_id)
        ours = cluster.cordons.filter(ours=True, lifted_at=None).select_related("node")[:3]
        if names := [row.node.name for row in ours]:
            raise Conflict(f"return the nodes that are taken out first: {', '.join(names)}")
        text = f"{connection.get_scheduler_display()} was disconnected from cluster {cluster.name}."
        _note(connection, text, actor)
        cluster.cordons.filter(ours=False, lifted_at=None).update(lifted_at=timezone.now(), lifted_by="gone")
        connection.delete()
        Cluster.objects.filter(pk=cluster.pk).update(scheduler="", updated_at=timezone.now())
    jobs_changed.send(sender=None, cluster=cluster.pk)


def usable(access: Access) -> Access:
    """The access, tidied. Raises InvalidInput that says what would be accepted."""
    access = replace(access, address=access.address.strip().rstrip("/"))
    if access.scheduler == Scheduler.SLURM:
        if access.token or access.jwt_key:
            access = replace(access, username=access.username.strip() or "root")
        _check_slurm(access)
    elif access.scheduler == Scheduler.KUBERNETES:
        _check_kubernetes(access)
    else:
        raise InvalidInput(f"scheduler is one of {', '.join(Scheduler.values)}", field="scheduler")
    if access.tls_authority and "-----BEGIN CERTIFICATE-----" not in access.tls_authority:
        raise InvalidInput("give the authority's certificate as PEM", field="tls_authority")
    run_once(_open_and_close(access))
    return access


async def _open_and_close(access: Access) -> None:
    await opening.open_driver(access).close()


def _check_slurm(access: Access) -> None:
    if access.address.startswith("unix:"):
        if not access.address.removeprefix("unix:").startswith("/"):
            raise InvalidInput("a socket is named by its whole path, like unix:/run/slurmrestd.sock", field="address")
    elif access.address:
        _check_url(access.address, example="http://slurm:6820")
        if not (access.token or access.jwt_key):
            raise InvalidInput("slurmrestd asks for a token: give one, or the key to make them", field="token")
    elif not access.commands:
        raise InvalidInput("give slurmrestd's address, or allow Slurm's commands on this host", field="address")
    if access.jwt_key:
        key_bytes(access.jwt_key)
    if access.slurm_conf and not access.slurm_conf.startswith("/"):
        raise InvalidInput("give the whole path of slurm.conf", field="slurm_conf")


def _check_kubernetes(access: Access) -> None:
    ways = [bool(access.kubeconfig), access.in_cluster, bool(access.address)]
    if sum(ways) != 1:
        raise InvalidInput("give a kubeconfig, or an address with a token, or use the own pod's account: one of them")
    if access.address:
        _check_url(access.address, example="https://api.example.org:6443")
        if not access.token:
            raise InvalidInput("the API server asks for a token", field="token")


def _check_url(url: str, *, example: str) -> None:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise InvalidInput(f"{url!r} is no usable address: {error}", field="address") from None
    plain = url.isprintable() and " " not in url
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0 or not plain or len(url) > 500:
        raise InvalidInput(f"give the whole address, like {example}", field="address")
    if "@" in parts.netloc:
        raise InvalidInput("an address can't hold a log-in: everybody who sees it would see that", field="address")
    if is_never_read(parts.hostname):
        raise InvalidInput(f"{parts.hostname} is link-local, multicast or no address", field="address")


def _check_interval(interval: int) -> None:
    if not SHORTEST <= interval <= LONGEST:
        raise InvalidInput(f"interval is {SHORTEST} to {LONGEST} seconds", field="interval")


def _note(connection: ClusterConnection, text: str, actor: User | None) -> None:
    detail = {"connection": str(connection.pk)}
    at = timezone.now()
    note = Note(JournalKind.SETTINGS_CHANGED, text, at, None, None, "user", detail, connection.cluster_id)
    write_entries(notes=[note], actor=actor)
