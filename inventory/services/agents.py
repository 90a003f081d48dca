"""Agents: their tokens, their enrolment, and what they report.

Tokens are random and long, so their plain SHA-256 is kept: it can be looked up by index and guessed by nobody.
"""

import hashlib
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import msgspec
from django.db import connection, transaction
from django.utils import timezone

from inventory.models import Agent, Cluster, EnrolmentToken, JournalKind, Node, Rack, Site
from inventory.observations import NodeReading
from inventory.rules.lifecycle import NODE
from inventory.services.journal import Note, write_entries
from inventory.services.nodes import find_or_create_node
from inventory.services.observe import TreeChanges, record_node_reading
from inventory.signals import tree_changed
from sensaka.identity.models import User
from sensaka.kernel.errors import InvalidInput, SensakaError

ENROLMENT_PREFIX = "ske_"
NODE_PREFIX = "ska_"
INTERVAL = 10  # s between two readings of an agent
# Reports may be a day old, but a node's clock that is this far ahead would make every later report look old.
AHEAD = timedelta(minutes=5)
EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)
_ENROLLING = 0x5E25A0A1  # advisory lock: one enrolment at a time, so that one machine never becomes two nodes


class UnknownToken(SensakaError):
    """The token was never issued, or was revoked."""

    code = "unknown_token"


class TokenExpired(SensakaError):
    """The enrolment token's time is over."""

    code = "token_expired"


class TokenUsedUp(SensakaError):
    """The enrolment token has served as often as it may."""

    code = "token_used_up"


@dataclass(frozen=True, slots=True)
class Claim:
    """Who an agent says its node is."""

    hostname: str
    machine_id: str = ""
    system_serial: str = ""
    system_uuid: str = ""
    simulated: bool = False


@dataclass(frozen=True, slots=True)
class Delivery:
    """What an agent says of itself beside a report: None where it did not say."""

    version: str = ""
    spooled: int | None = None
    dropped: int | None = None


def digest(token: str) -> str:
    """What is stored of a token."""
    return hashlib.sha256(token.encode()).hexdigest()


def create_enrolment_token(
    *,
    name: str,
    site: Site,
    cluster: Cluster | None = None,
    rack: Rack | None = None,
    uses: int = 1,
    expires_at: datetime,
    actor: User | None,
) -> tuple[EnrolmentToken, str]:
    """A token that enrols `uses` agents into a place, and its text, which is not kept anywhere.

    Raises InvalidInput when cluster or rack stand at another site.
    """
    for place in (cluster, rack):
        if place is not None and place.site_id != site.pk:
            raise InvalidInput(f"{place} is not at site {site}; choose one that is, or none")
    token = ENROLMENT_PREFIX + secrets.token_urlsafe(32)
    row = EnrolmentToken.objects.create(
        name=name,
        digest=digest(token),
        site=site,
        cluster=cluster,
        rack=rack,
        uses_left=uses,
        expires_at=expires_at,
        created_by=actor,
    )
    return row, token


def authenticate_node(token: str) -> Agent | None:
    """The agent whose node token this is, with its node; None for anything else."""
    if not token.startswith(NODE_PREFIX):
        return None
    return Agent.objects.select_related("node").filter(token_digest=digest(token), revoked_at=None).first()


def revoke_agent(*, agent: Agent, actor: User | None) -> Agent:
    """Refuses the agent's token from now on. Doing it again changes nothing."""
    with transaction.atomic():
        now = timezone.now()
        if Agent.objects.filter(pk=agent.pk, revoked_at=None).update(revoked_at=now, updated_at=now):
            text = f"The token of the agent on node {agent.node.name} was revoked."
            note = Note(JournalKind.SETTINGS_CHANGED, text, now, agent.node_id, None, "user")
            write_entries(notes=[note], actor=actor)
    agent.refresh_from_db()
    return agent


def enrol_agent(*, token: str, claim: Claim, version: str, now: datetime | None = None) -> tuple[Agent, str]:
    """Makes the machine's agent known in the token's place, and gives the node token, which is not kept.

    A machine that is known already, by its serial, UUID or machine id, keeps its node and place; its earlier node
    token no longer holds, and the journal says so, with a warning where that token was in use just before. Raises
    UnknownToken, TokenExpired, TokenUsedUp, and InvalidInput when nothing tells this machine from others or when it is
    known at another site than the token's; then the token has lost no use.
    """
    at = now or timezone.now()
    if not (claim.machine_id or claim.system_serial or claim.system_uuid):
        raise InvalidInput("machine_id, system_serial and system_uuid are all empty: this machine can't be told apart")
    notes: list[Note] = []
    with transaction.atomic():
        place = _use(token, at)
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_ENROLLING])
        node = find_or_create_node(
            machine_id=claim.machine_id,
            system_serial=claim.system_serial,
            system_uuid=claim.system_uuid,
            hostname=claim.hostname,
            site=place.site,
            cluster=place.cluster,
            rack=place.rack,
            at=at,
            source="agent",
            simulated=claim.simulated,
            notes=notes,
        )
        if node.site_id != place.site_id:
            raise InvalidInput(
                f"this machine is known as node {node.name} of site {node.site.name}: use a token of that site"
            )
        _adopt(node, at, notes)
        transaction.on_commit(lambda: tree_changed.send(sender=None, nodes=[node.id]))
        return _install(node, claim, version=version, at=at, notes=notes)


def _use(token: str, at: datetime) -> EnrolmentToken:
    """Takes one use of the token; its row stays locked until the enrolment is done."""
    row = (
        EnrolmentToken.objects.select_for_update(of=("self",))
        .select_related("site", "cluster", "rack")
        .filter(digest=digest(token))
        .first()
    )
    if row is None:
        raise UnknownToken("this enrolment token was never issued or was withdrawn; ask for a new one")
    if row.expires_at <= at:
        raise TokenExpired(f"this enrolment token expired at {row.expires_at:%Y-%m-%d %H:%M} UTC; ask for a new one")
    if row.uses_left < 1:
        raise TokenUsedUp("this enrolment token has been used as often as it may; ask for a new one")
    row.uses_left -= 1
    row.save(update_fields=["uses_left", "updated_at"])
    return row


def _adopt(node: Node, at: datetime, notes: list[Note]) -> None:
    """A node that was only known and now has an agent serves already."""
    if NODE.allows(node.state, "adopt"):
        node.state = NODE.target(node.state, "adopt")
        node.save(update_fields=["state", "updated_at"])
        text = f"Node {node.name} has an agent and is in service."
        notes.append(Note(JournalKind.NODE_STATE, text, at, node.id, None, "agent"))


def _heard_lately(agent: Agent, at: datetime) -> bool:
    """Whether the agent's last post is so fresh that it may be running now (three of its intervals)."""
    return agent.succeeded_at is not None and at - agent.succeeded_at <= timedelta(seconds=3 * agent.interval)


def _install(
    node: Node, claim: Claim, *, version: str, at: datetime, notes: list[Note]
) -> tuple[Agent, str]:  # fmt: skip
    """The node's agent and its token. One entry tells all: what became of the node (`notes`), and of its agent."""
    token = NODE_PREFIX + secrets.token_urlsafe(32)
    facts = {
        "token_digest": digest(token),
        "version": version[:32],
        "interval": INTERVAL,
        "revoked_at": None,
        "simulated": claim.simulated,
    }
    before = Agent.objects.filter(node=node).first()
    agent, new = Agent.objects.update_or_create(node=node, defaults=facts)
    known = [note.text for note in notes]
    if not new:
        known.append(f"The agent on node {node.name} was enrolled again; its earlier token is void.")
    elif not known:
        known.append(f"The agent on node {node.name} was enrolled.")
    if before is not None and before.revoked_at is None and _heard_lately(before, at):
        known.append(
            "The earlier token was in use until then: if nobody set this machine up anew, another poses as it."
        )
    if claim.hostname and node.name.startswith(f"{claim.hostname}~"):
        known.append(f"Its machine calls itself {claim.hostname}, as another machine of this site does.")
    detail = {"agent": str(agent.pk), "hostname": claim.hostname, "version": version[:32]}
    kind = notes[0].kind if notes else JournalKind.NODE_ENROLLED
    write_entries(notes=[Note(kind, " ".join(known), at, node.id, None, "agent", detail)])
    return agent, token


def record_report(
    *, agent: Agent, reading: NodeReading, delivery: Delivery, now: datetime | None = None
) -> TreeChanges:
    """Brings the tree in line with a report, and keeps what the agent says of itself. All or nothing.

    A report may be hours old, because an agent that was cut off delivers what it kept: the tree decides by
    `observed_at`. Raises InvalidInput for a time without zone, from the future or senseless.
    """
    at = now or timezone.now()
    observed_at = reading.observed_at
    if observed_at.tzinfo is None:
        raise InvalidInput("observed_at has no offset from UTC - at `$.observed_at`")
    if not EARLIEST <= observed_at <= at + AHEAD:
        raise InvalidInput(
            f"observed_at {observed_at.isoformat()} is not a time of a past reading - at `$.observed_at`"
        )
    with transaction.atomic():
        changes = record_node_reading(node=agent.node, source="agent", collector_id=agent.pk, reading=reading)
        _keep_books(agent, reading, delivery, at=at, stale=changes.stale)
    return changes


def _keep_books(agent: Agent, reading: NodeReading, delivery: Delivery, *, at: datetime, stale: bool) -> None:
    facts: dict[str, object] = {
        "attempted_at": at,
        "succeeded_at": at,
        "failing_since": None,
        "misses": 0,
        "error_kind": "",
        "error_detail": "",
        "updated_at": at,
    }
    if delivery.version:
        facts["version"] = delivery.version[:32]
    if delivery.spooled is not None:
        facts["spooled"] = delivery.spooled
    if delivery.dropped is not None:
        facts["dropped"] = delivery.dropped
    if not stale:
        failures = [*reading.failures, *(failure for card in reading.cards for failure in card.failures)]
        facts["failures"] = msgspec.to_builtins(failures)
        facts["cards_seen"] = min(len(reading.cards), 32767)
        facts["simulated"] = reading.simulated
    Agent.objects.filter(pk=agent.pk).update(**facts)
