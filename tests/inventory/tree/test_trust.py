"""Whom the tree believes: newer before older, the system before its BMC, two voices at once nobody (I5)."""

from datetime import timedelta

import pytest
from django.utils import timezone

from inventory.models import Agent, Card, FirmwareComponent, JournalEntry, Node, Placement, ProcessBinding, Slice
from inventory.observations import PowerState, ProcessReading, SliceReading
from tests.inventory.tree.building import Machine, at, bmc, bmc_sees, card, out_of_band, uuid

pytestmark = pytest.mark.django_db


def told(kind: str) -> list[str]:
    return list(JournalEntry.objects.filter(kind=kind).order_by("created_at").values_list("text", flat=True))


def where(number: int) -> tuple[str, str]:
    row = Card.objects.select_related("node").get(uuid=uuid(number))
    assert row.node is not None
    return row.node.name, row.state


def test_one_identity_on_two_nodes_is_a_conflict_told_once() -> None:
    """I5: the card does not fly to and fro; when one node stops reporting it, it is where the other says."""
    n01, n02 = Machine("n01"), Machine("n02")
    n01.sees(0, card(1))
    n02.sees(10, card(1), card(2))
    assert where(1) == ("n02", "present")
    for second in range(20, 80, 10):
        n01.sees(second, card(1))
        n02.sees(second + 5, card(1), card(2))
    assert where(1) == ("n02", "present")
    assert told("card_duplicate") == [f"Card {uuid(1)} is reported by n02 and n01 at the same time."]
    assert len(told("card_moved")) == 1
    assert Card.objects.get(uuid=uuid(1)).conflict
    n01.sees(90)
    for second in (100, 130, 160, 190):
        n02.sees(second, card(1), card(2))
    assert Card.objects.get(uuid=uuid(1)).conflict == ""
    assert where(1) == ("n02", "present")
    assert Placement.objects.filter(card__uuid=uuid(1), span__upper_inf=True).count() == 1


def test_a_report_holds_while_its_agent_is_heard_of() -> None:
    """Agents report changes only: minutes later two agents that are alive still contradict each other."""
    n01, n02 = Machine("n01"), Machine("n02")
    for machine in (n01, n02):
        Agent.objects.create(id=machine.collector, node=machine.node, token_digest=machine.name, succeeded_at=at(0))
    n01.sees(0, card(1))
    n02.sees(10, card(1))
    Agent.objects.update(succeeded_at=at(290))
    n01.sees(300, card(1))
    assert where(1) == ("n02", "present")
    assert len(told("card_duplicate")) == 1


def test_a_late_report_changes_nothing_but_history() -> None:
    """I5: a spooled report that arrives after newer ones makes unknown cards known, and moves nobody."""
    n01 = Machine("n01")
    n01.sees(100, card(1), card(2))
    changes = n01.sees(40, card(2), card(3))
    assert changes.stale
    assert where(1) == ("n01", "present")
    row = Card.objects.get(uuid=uuid(3))
    assert row.state == "missing"
    span = Placement.objects.get(card=row).span
    assert (span.lower, span.upper) == (at(40), at(100))
    n01.sees(110, card(1), card(2))
    assert Card.objects.get(uuid=uuid(3)).state == "missing"


def test_a_late_report_does_not_undo_an_empty_one() -> None:
    """I5: after a report without cards an older one brings nobody back."""
    n01 = Machine("n01")
    Agent.objects.create(id=n01.collector, node=n01.node, token_digest="d")
    n01.sees(0)
    n01.sees(60)
    assert n01.sees(30, card(1)).stale
    assert Card.objects.get(uuid=uuid(1)).state == "missing"


def test_a_clock_ahead_does_not_win_for_ever() -> None:
    n01, n02 = Machine("n01"), Machine("n02")
    ahead = (timezone.now() + timedelta(hours=3) - at(0)).total_seconds()
    n01.sees(ahead, card(1))
    now = (timezone.now() - at(0)).total_seconds()
    n02.sees(now + 1, card(1))
    assert where(1)[0] == "n02"


def test_silence_and_a_bmc_remove_nobody() -> None:
    """I5: only a complete list of a source that listed the card before, and no fresher system, lets it go missing."""
    n01 = Machine("n01")
    n01.sees(0, card(1), card(2))
    row = bmc(node=n01.node)
    bmc_sees(row, 10)
    bmc_sees(row, 500, out_of_band(2))
    assert where(1) == ("n01", "present"), "the BMC never listed it"
    bmc_sees(row, 530, out_of_band(1), out_of_band(2))
    bmc_sees(row, 560, power_state=PowerState.OFF)
    assert where(1) == ("n01", "present"), "power is off"
    bmc_sees(row, 590, out_of_band(2), cards_known=False)
    assert where(1) == ("n01", "present"), "an incomplete list"
    bmc_sees(row, 620, out_of_band(2))
    assert where(1) == ("n01", "missing")
    assert told("card_vanished") == [f"Card {uuid(1)} vanished from n01 slot 1: its BMC no longer lists it."]


def test_the_bmc_does_not_bring_back_what_the_system_lost() -> None:
    """I5: the agent's complete list decides while the agent is heard."""
    n01 = Machine("n01")
    row = bmc(node=n01.node)
    n01.sees(0, card(1), card(2))
    bmc_sees(row, 5, out_of_band(1), out_of_band(2))
    n01.sees(30, card(2))
    for second in (35, 65):
        bmc_sees(row, second, out_of_band(1), out_of_band(2))
        n01.sees(second + 5, card(2))
    assert where(1) == ("n01", "missing")
    assert len(told("card_vanished")) == 1
    assert told("card_returned") == []


def test_replaced_in_the_same_slot_names_both() -> None:
    """I5: one journal entry tells who left and who came."""
    n01 = Machine("n01")
    n01.sees(0, card(1), card(2))
    n01.sees(60, card(9, slot=1), card(2))
    assert told("card_swapped") == [f"Card {uuid(1)} in n01 slot 1 was replaced by card {uuid(9)}."]
    assert told("card_vanished") == []
    assert where(1) == ("n01", "missing")
    assert where(9) == ("n01", "present")


def test_slices_are_closed_and_opened() -> None:
    """I5, U7: a re-created slice is a new one even when its UUID is the same; order says nothing."""

    def part(number: int, profile: str) -> SliceReading:
        return SliceReading(uuid=f"MIG-{number}", profile=profile, instance_id=str(number))

    n01 = Machine("n01")
    n01.sees(0, card(1, mig_enabled=True, slices=(part(1, "3g.40gb"), part(2, "4g.40gb"))))
    assert Slice.objects.filter(closed_at=None).count() == 2
    n01.sees(10, card(1, mig_enabled=True, slices=(part(1, "3g.40gb"),)))
    n01.sees(20, card(1, mig_enabled=True, slices=(part(1, "3g.40gb"), part(2, "2g.20gb"))))
    assert Slice.objects.count() == 3
    assert Slice.objects.get(uuid="MIG-2", closed_at=None).profile == "2g.20gb"
    assert Slice.objects.get(uuid="MIG-2", closed_at=at(10)).opened_at == at(0)
    assert told("slices_changed") == [
        f"Card {uuid(1)} was partitioned again: 1 x 3g.40gb instead of 1 x 3g.40gb and 1 x 4g.40gb.",
        f"Card {uuid(1)} was partitioned again: 1 x 2g.20gb and 1 x 3g.40gb instead of 1 x 3g.40gb.",
    ]
    assert n01.sees(30, card(1, mig_enabled=True, slices=(part(2, "2g.20gb"), part(1, "3g.40gb")))).events == ()


def test_index_order_means_nothing() -> None:
    n01 = Machine("n01")
    n01.sees(0, card(1, index=0), card(2, index=1))
    assert n01.sees(10, card(2, index=0), card(1, index=1)).events == ()


def test_facts_of_the_node_go_to_the_journal() -> None:
    """I12: reboot, new driver, new firmware, new name, power."""
    n01 = Machine("n01")
    n01.sees(0, card(1, vbios="96.00.01"), driver_version="550.1")
    n01.sees(60, card(1, vbios="96.00.02"), driver_version="560.2", boot_id="b2", hostname="gpu-01")
    row = bmc(node=n01.node)
    bmc_sees(row, 70, power=900.0)
    bmc_sees(row, 100, power_state=PowerState.OFF)
    assert told("node_rebooted") == ["Node n01 was rebooted."]
    assert told("firmware_changed") == [
        "Driver of node n01 changed from 550.1 to 560.2.",
        f"VBIOS of card {uuid(1)} changed from 96.00.01 to 96.00.02.",
    ]
    assert told("node_renamed") == ["Node n01 is now called gpu-01."]
    assert told("node_power") == ["Node gpu-01 is off, says its BMC; it was on."]
    assert FirmwareComponent.objects.get(card__uuid=uuid(1)).version == "96.00.02"
    node = Node.objects.get(pk=n01.node.pk)
    assert (node.power_state, node.power, node.boot_id) == ("off", None, "b2")


def test_a_name_given_by_an_operator_stays() -> None:
    n01 = Machine("n01")
    n01.sees(0)
    Node.objects.update(name="row 3, left")
    n01.sees(60, hostname="gpu-01")
    assert n01.fresh().name == "row 3, left"
    assert n01.fresh().hostname == "gpu-01"


def test_processes_follow_the_reading() -> None:
    """I7: the job bound to each card, gone when it is gone."""
    n01 = Machine("n01")
    job = ProcessReading(pid=42, card_uuid=uuid(1), pod="train-0", namespace="ml", memory_used=5)
    n01.sees(0, card(1), processes=(job, ProcessReading(pid=43, card_uuid=uuid(99))))
    row = ProcessBinding.objects.get()
    assert (row.card.uuid, row.pid, row.pod, row.namespace) == (uuid(1), 42, "train-0", "ml")
    n01.sees(10, card(1))
    assert not ProcessBinding.objects.exists()


PODS = [
    {"namespace": "ml", "pod": "train-0", "pod_uid": "u0"},
    {"namespace": "ml", "pod": "train-1", "pod_uid": "u1"},
    {"namespace": "web", "pod": "train-0", "pod_uid": "u2"},
    {"namespace": "web", "pod": "train-0", "pod_uid": "u2", "name": "sidecar"},
    {"slurm_job_id": "42"},
    {"slurm_job_id": "43"},
    {"container_id": "c" * 64},
    {},
]


def test_jobs_that_share_a_card_without_naming_processes_stay_apart() -> None:
    """I6: an exporter names pods and jobs but no process; each keeps its own record, however often it is read."""
    n01 = Machine("n01", source="exporter")
    jobs = tuple(ProcessReading(pid=0, card_uuid=uuid(1), **names) for names in PODS)
    n01.sees(0, card(1), processes=jobs)
    kept = set(ProcessBinding.objects.values_list("pk", flat=True))
    assert len(kept) == len(PODS)
    n01.sees(60, card(1), processes=jobs)
    assert set(ProcessBinding.objects.values_list("pk", flat=True)) == kept
    n01.sees(120, card(1), processes=jobs[1:])
    assert ProcessBinding.objects.count() == len(PODS) - 1
    assert not ProcessBinding.objects.filter(pod_uid="u0").exists()


def test_a_process_keeps_its_record_when_its_pod_becomes_known() -> None:
    n01 = Machine("n01")
    n01.sees(0, card(1), processes=(ProcessReading(pid=42, card_uuid=uuid(1)),))
    before = ProcessBinding.objects.get()
    n01.sees(10, card(1), processes=(ProcessReading(pid=42, card_uuid=uuid(1), pod="train-0", namespace="ml"),))
    after = ProcessBinding.objects.get()
    assert (after.pk, after.pod, after.first_seen_at) == (before.pk, "train-0", before.first_seen_at)
