"""Each reason tells the number that is missing and what would unblock it."""

from datetime import timedelta, timezone

import pytest

from pools.rules.reasons import Code, Reason, figure, ordered
from tests.pools.rules.build import HOUR, NOW

LATER = NOW + 6 * HOUR + 600

TOLD: dict[str, tuple[Reason, str, str]] = {
    "no free cards": (
        Reason(
            Code.NO_FREE_CARDS,
            {
                "now": NOW,
                "needed": 16,
                "what": "H100",
                "where": " on 2 nodes",
                "free": 11,
                "largest": 6,
                "out": 0,
                "released": 8,
                "release_at": LATER,
                "release_by": "job 4711",
            },
        ),
        "needs 16 H100 on 2 nodes; 11 free, largest block 6; 8 come free at 14:10 UTC when job 4711 ends",
        "Wait until 14:10 UTC, or ask for at most 11.",
    ),
    "no free cards, nothing known to end": (
        Reason(Code.NO_FREE_CARDS, {"needed": 1, "what": "H100", "free": 0, "largest": 0, "out": 2}),
        "needs 1 H100; 0 free, 2 cards out of service, largest block 0",
        "Wait for work to end, or release or preempt work that holds H100.",
    ),
    "fragmented": (
        Reason(
            Code.FRAGMENTED,
            {"each": 8, "what": "H100", "place": "node", "free": 11, "places": 3, "largest": 6},
        ),
        "needs 8 H100 on one node; 11 free, but spread over 3 nodes, largest block 6",
        "Wait for work to end, or ask for units of at most 6 H100.",
    ),
    "gang": (
        Reason(Code.GANG_INCOMPLETE, {"fit": 1, "units": 2}),
        "1 of 2 units would fit now and all must start together",
        "Wait for work to end, or ask for 1.",
    ),
    "quota of cards": (
        Reason(
            Code.QUOTA_CONCURRENT,
            {
                "holder": "team one",
                "model": "H100",
                "needed": 16,
                "left": 4,
                "limit": 32,
                "borrowable": 8,
                "short": 12,
                "unit": "cards",
            },
        ),
        "cards at once of team one on H100: needs 16 cards, 4 left of 32, 8 of it borrowed from others; short by 12",
        "Raise the quota by 12 cards, or release some of what is in use.",
    ),
    "quota of hours": (
        Reason(
            Code.QUOTA_HOURS,
            {
                "holder": "team one",
                "needed": 96,
                "left": 14.5,
                "limit": 5000,
                "short": 81.5,
                "unit": "GPU-hours",
                "period_end": NOW + 30 * 24 * HOUR,
            },
        ),
        "GPU-hours of team one: needs 96 GPU-hours, 14.5 left of 5,000; short by 81.5",
        "Raise the quota by 81.5 GPU-hours, or wait for the new period at 2027-02-14 08:00 UTC.",
    ),
    "not before": (
        Reason(Code.NOT_BEFORE, {"at": LATER, "now": NOW}),
        "asked not to start before 14:10 UTC",
        "Wait until 14:10 UTC, or change the start time.",
    ),
    "held": (
        Reason(Code.HELD, {"scope": "tenant", "text": "budget is spent", "by": "metering"}),
        "the tenant is on hold by metering: budget is spent",
        "Lift the hold.",
    ),
    "behind others": (
        Reason(Code.BEHIND_PRIORITY, {"ahead": 3, "first": "train-7b"}),
        "3 requests ahead in the queue wait for the same cards, first train-7b",
        "Wait for them, or ask an operator to move this one up.",
    ),
    "would delay the head": (
        Reason(
            Code.BACKFILL_BLOCKED,
            {"head": "train-7b", "reserved_at": LATER, "minutes": 600, "at_most": 370, "now": NOW},
        ),
        "the cards that are free are promised to train-7b at 14:10 UTC, and the time limit of 600 minutes ends later",
        "Ask for at most 370 minutes, or wait until train-7b has started.",
    ),
    "waking": (
        Reason(Code.WAKING_NODES, {"nodes": 1, "ready_at": LATER, "now": NOW}),
        "1 sleeping node is being woken, ready at about 14:10 UTC",
        "Wait until 14:10 UTC.",
    ),
    "preempting": (
        Reason(Code.PREEMPTING, {"cards": 8, "victims": "job 12", "free_at": LATER, "now": NOW}),
        "8 cards are being freed: job 12 told to leave by 14:10 UTC",
        "Wait until 14:10 UTC.",
    ),
    "too much for the pool": (
        Reason(Code.SPEC_UNAVAILABLE, {"cause": "size", "needed": 64, "most": 16, "what": "H100"}),
        "needs 64 H100; the pool has 16 at most, even when empty",
        "Ask for no more than 16 H100, or add nodes to the pool.",
    ),
}


@pytest.mark.parametrize(("reason", "detail", "unblock"), TOLD.values(), ids=TOLD.keys())
def test_a_reason_is_told(reason: Reason, detail: str, unblock: str) -> None:
    assert reason.detail == detail
    assert reason.unblock == unblock


def test_times_are_told_in_the_readers_zone() -> None:
    reason = Reason(Code.NOT_BEFORE, {"at": LATER, "now": NOW})
    zone = timezone(timedelta(hours=8), "CST")
    assert reason.told(zone=zone)[0] == "asked not to start before 22:10 CST"
    assert reason.told(now=NOW + 24 * HOUR)[0] == "asked not to start before 2027-01-15 14:10 UTC"


def test_reasons_are_shown_in_the_order_of_the_codes() -> None:
    found = [Reason(code) for code in (Code.PREEMPTING, Code.HELD, Code.FRAGMENTED, Code.QUOTA_HOURS)]
    assert [reason.code for reason in ordered(found)] == ["HELD", "QUOTA_HOURS", "FRAGMENTED", "PREEMPTING"]


@pytest.mark.parametrize(("value", "shown"), [(16, "16"), (0.142857, "0.14"), (12345.5, "12,345.5"), (0.1, "0.1")])
def test_figures_have_no_needless_decimals(value: float, shown: str) -> None:
    assert figure(value) == shown
