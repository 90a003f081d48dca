"""Cordons on record against what a scheduler's nodes say."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from inventory.rules.cordons import Change, Event, KnownCordon, SeenCordon, reconcile_cordons

N1, N2 = UUID(int=1), UUID(int=2)
T0 = datetime(2026, 3, 1, 12, tzinfo=UTC)
OURS = KnownCordon(UUID(int=10), N1, True, "m1", applied_at=T0 - timedelta(minutes=5))
THEIRS = KnownCordon(UUID(int=11), N1, False, reason="disk", by="root", applied_at=T0)
FREE = SeenCordon(N1, "n1", cordoned=False)
MARKED = SeenCordon(N1, "n1", cordoned=True, reason="sensaka:m1 test", mark="m1")
DISK = SeenCordon(N1, "n1", cordoned=True, reason="disk", by="root")


def events(seen: list[SeenCordon], known: list[KnownCordon], **more: frozenset[UUID]) -> list[Event]:
    return [change.event for change in reconcile_cordons(seen, known, at=T0, **more)]  # type: ignore[arg-type]


def test_what_is_as_it_was_changes_nothing() -> None:
    assert events([FREE], []) == []
    assert events([MARKED], [OURS]) == []
    assert events([DISK], [THEIRS]) == []


def test_ours_lifted_by_hand_is_noticed() -> None:
    assert reconcile_cordons([FREE], [OURS], at=T0) == [Change(Event.LIFTED_BY_HAND, OURS, FREE)]


def test_ours_that_we_lifted_without_hearing_of_it() -> None:
    lifting = KnownCordon(OURS.id, N1, True, "m1", applied_at=OURS.applied_at, lift_requested_at=T0)
    assert events([FREE], [lifting]) == [Event.LIFTED_BY_US]
    assert events([MARKED], [lifting]) == []


def test_ours_that_we_set_without_hearing_of_it() -> None:
    asked = KnownCordon(OURS.id, N1, True, "m1")
    assert events([MARKED], [asked]) == [Event.APPLIED]
    assert events([FREE], [asked]) == []


def test_a_reading_from_before_the_act_says_nothing() -> None:
    later = KnownCordon(OURS.id, N1, True, "m1", applied_at=T0 + timedelta(seconds=1))
    assert events([FREE], [later]) == []
    assert reconcile_cordons([MARKED], [], at=T0, lifted=frozenset({"m1"})) == []


def test_somebody_elses_is_put_on_record_and_followed() -> None:
    assert events([DISK], []) == [Event.FOREIGN_SET]
    other = SeenCordon(N1, "n1", cordoned=True, reason="fan", by="root")
    assert events([other], [THEIRS]) == [Event.FOREIGN_CHANGED]
    assert events([FREE], [THEIRS]) == [Event.FOREIGN_LIFTED]


def test_somebody_else_replaces_ours() -> None:
    assert events([DISK], [OURS]) == [Event.REPLACED, Event.FOREIGN_SET]


def test_a_mark_that_is_not_on_record_is_somebody_elses() -> None:
    """Another installation of Sensaka drains nodes of the same cluster."""
    assert events([SeenCordon(N1, "n1", cordoned=True, reason="sensaka:zz x", mark="zz")], []) == [Event.FOREIGN_SET]


def test_ours_waits_behind_theirs() -> None:
    asked = KnownCordon(OURS.id, N1, True, "m1")
    assert events([DISK], [asked, THEIRS]) == []
    assert events([MARKED], [asked, THEIRS]) == [Event.APPLIED, Event.FOREIGN_LIFTED]


def test_nodes_that_are_gone_and_nodes_that_were_not_listed() -> None:
    assert events([], [OURS, THEIRS], gone=frozenset({N1})) == [Event.GONE, Event.GONE]
    assert events([], [OURS, THEIRS]) == []
    assert events([SeenCordon(N2, "n2", cordoned=False)], [OURS]) == []
