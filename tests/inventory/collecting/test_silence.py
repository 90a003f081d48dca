"""Agents that stop sending, and nodes whose system is down while their BMC answers (I4, U4)."""

from datetime import datetime, timedelta

import pytest
from django.core.cache import cache
from django.utils import timezone

from inventory.models import Agent, Bmc, Credential, JournalEntry, Node, Site
from inventory.selectors.collectors import sources
from inventory.selectors.nodes import systems_down
from inventory.services import silence
from inventory.services.silence import mark_silent_agents
from inventory.tasks import collecting

pytestmark = pytest.mark.django_db


def agent(name: str, *, heard: datetime | None, **fields: object) -> Agent:
    node = Node.objects.create(site=Site.objects.get_or_create(name="S")[0], name=name, state="active")
    return Agent.objects.create(node=node, token_digest=name, interval=10, succeeded_at=heard, **fields)


def test_only_silent_agents_are_marked_and_only_once() -> None:
    """I12: one entry when an agent falls silent, one when it is back."""
    now = timezone.now()
    quiet = agent("quiet", heard=now - timedelta(minutes=5))
    agent("talks", heard=now)
    agent("new", heard=None)
    agent("revoked", heard=now - timedelta(days=1), revoked_at=now)
    agent("off", heard=now - timedelta(days=1), enabled=False)
    assert mark_silent_agents() == (1, 0)
    assert mark_silent_agents() == (0, 0)
    quiet.refresh_from_db()
    assert (quiet.error_kind, quiet.failing_since) == ("timeout", quiet.succeeded_at)
    assert quiet.misses == 30
    # What the web workers write when it posts again:
    Agent.objects.filter(pk=quiet.pk).update(succeeded_at=timezone.now(), failing_since=None, error_kind="", misses=0)
    assert mark_silent_agents() == (0, 1)
    assert mark_silent_agents() == (0, 0)
    texts = list(JournalEntry.objects.order_by("created_at").values_list("kind", "text"))
    assert [kind for kind, _ in texts] == ["collector_failed", "collector_recovered"]
    assert texts[0][1].startswith("The agent on node quiet has been silent since ")
    assert texts[1][1] == "The agent on node quiet is heard again."


def test_nobody_is_silent_while_sensaka_itself_was_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """I12: after a restart agents have three turns of their own before the journal says anything."""
    cache.clear()
    at = timezone.now()
    agent("quick", heard=at - timedelta(hours=1))
    agent("slow", heard=at - timedelta(hours=1))
    Agent.objects.filter(node__name="slow").update(interval=60)
    began = at
    found = {}
    for seconds in [*range(0, 260, 10), 1000, 1010]:
        at = began + timedelta(seconds=seconds)
        monkeypatch.setattr(silence.timezone, "now", lambda at=at: at)
        found[seconds] = mark_silent_agents(since=silence.watching_since())[0]
    assert {seconds: count for seconds, count in found.items() if count} == {50: 1, 200: 1}
    cache.clear()


def test_the_watch_begins_anew_after_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    """I12: a clock that stood still for a minute means that Sensaka did not run."""
    cache.clear()
    began = timezone.now()
    since = {}
    for seconds in (0, 10, 65, 200, 210):
        monkeypatch.setattr(silence.timezone, "now", lambda seconds=seconds: began + timedelta(seconds=seconds))
        since[seconds] = (silence.watching_since() - began).total_seconds()
    assert since == {0: 0, 10: 0, 65: 0, 200: 200, 210: 200}
    cache.clear()


def test_the_system_is_down_when_the_bmc_answers_and_nothing_in_band_does() -> None:
    """U4: silent agent and power on; not when the BMC is silent too, or power is off."""
    now = timezone.now()
    credential = Credential.objects.create(name="c", username="u", password="p")
    cases = {"down": (True, "on"), "off": (True, "off"), "dark": (False, "on"), "fine": (True, "on")}
    for number, (name, (answers, power)) in enumerate(cases.items()):
        row = agent(name, heard=now if name == "fine" else now - timedelta(minutes=10))
        Node.objects.filter(pk=row.node_id).update(power_state=power)
        Bmc.objects.create(
            node=row.node, site=row.node.site, address=f"192.0.2.{number}", protocol="redfish", credential=credential,
            succeeded_at=now if answers else now - timedelta(hours=1),
        )  # fmt: skip
    assert [found.node.name for found in systems_down()] == ["down"]


def test_sources_are_listed_worst_first() -> None:
    now = timezone.now()
    agent("fine", heard=now)
    agent("failing", heard=now, error_kind="timeout")
    agent("late", heard=now - timedelta(hours=1))
    agent("new", heard=None)
    agent("partly", heard=now, failures=[{"what": "x", "kind": "timeout"}])
    agent("off", heard=now, enabled=False)
    assert [one.condition for one in sources()] == ["failing", "late", "new", "partly", "well", "off"]


def test_tasks_run_with_nothing_to_do() -> None:
    for task in (
        collecting.poll_bmcs, collecting.scrape_exporters, collecting.run_discoveries, collecting.mark_silent_agents,
    ):  # fmt: skip
        task()
    assert not JournalEntry.objects.exists()
