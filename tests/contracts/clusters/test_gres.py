"""Slurm's texts about cards, states and marks, as tables of what was seen."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inventory.drivers.clusters.marks import earlier_of, is_owner, marked, owner_of
from inventory.drivers.clusters.readings import CardBinding, CardKind, JobState, NodeLoad
from inventory.drivers.clusters.slurm.gres import (
    CardCount,
    Gres,
    accelerators_of,
    accounts_for_all,
    bindings_of,
    count_cards,
    parse_gres,
    parse_tres,
)
from inventory.drivers.clusters.slurm.states import is_cordoned, job_state, node_load, responds, words_of

CARD, MIG, SHARD, MPS = CardKind.CARD, CardKind.MIG, CardKind.SHARD, CardKind.MPS

TEXTS = [
    ("", ()),
    ("(null)", ()),
    ("N/A", ()),
    ("gpu:h100:8(S:0-1)", (Gres(CARD, "h100", 8, None),)),
    ("gpu:h100:4(IDX:0-1,6-7)", (Gres(CARD, "h100", 4, (0, 1, 6, 7)),)),
    ("gpu:h100:0(IDX:N/A)", (Gres(CARD, "h100", 0, ()),)),
    ("gpu:2", (Gres(CARD, "", 2, None),)),
    ("gpu(IDX:0,3)", (Gres(CARD, "", 2, (0, 3)),)),
    ("gres:gpu:h100:2", (Gres(CARD, "h100", 2, None),)),
    ("gres/gpu:h100:2", (Gres(CARD, "h100", 2, None),)),
    ("gpu:a100_3g.20gb:1(IDX:2)", (Gres(MIG, "a100_3g.20gb", 1, (2,)),)),
    ("gpu:1g.10gb:7", (Gres(MIG, "1g.10gb", 7, None),)),
    ("shard:3(IDX:1)", (Gres(SHARD, "", 3, (1,)),)),
    ("shard:3(0/4,3/4,0/0)", (Gres(SHARD, "", 3, (1,)),)),
    ("gpu:h100:1(IDX:0),shard:h100:6(4/4,2/4)", (Gres(CARD, "h100", 1, (0,)), Gres(SHARD, "h100", 6, (0, 1)))),
    ("shard:h100:8,mps:h100:2K", (Gres(SHARD, "h100", 8, None), Gres(MPS, "h100", 2048, None))),
    ("gpu:h100:1(IDX:1),gpu:mi300x:2(IDX:4,6)", (Gres(CARD, "h100", 1, (1,)), Gres(CARD, "mi300x", 2, (4, 6)))),
    ("craynetwork:4,gpu:1,license:x", (Gres(CARD, "", 1, None),)),
    ("gpu:h100:2(IDX:broken)", (Gres(CARD, "h100", 2, ()),)),
]


@pytest.mark.parametrize(("text", "found"), TEXTS)
def test_gres_texts(text: str, found: tuple[Gres, ...]) -> None:
    """P12: every form of several Slurm versions."""
    assert parse_gres(text) == found


@given(st.text(alphabet="gpushardm:,()/IDX-0123 ", max_size=40))
def test_any_text_is_read(text: str) -> None:
    """P12: nonsense gives less, never an error."""
    assert all(item.count >= 0 for item in parse_gres(text))


def test_accelerators_of_a_mixed_node() -> None:
    """P11: as 22.05 prints a node with whole cards, MIG types and shards."""
    found = accelerators_of(
        "gpu:h100:2(S:0),gpu:a100_3g.20gb:2,shard:h100:8,shard:a100_3g.20gb:0",
        "gpu:h100:0(IDX:N/A),gpu:a100_3g.20gb:1(IDX:2),shard:h100:2(IDX:0-1),mps:h100:0(IDX:N/A)",
    )
    assert [(one.kind, one.type, one.total, one.used, one.used_indices) for one in found] == [
        (CARD, "h100", 2, 0, ()),
        (MIG, "a100_3g.20gb", 2, 1, (2,)),
        (SHARD, "h100", 8, None, (0, 1)),
    ]


COUNTS = [
    ("", CardCount()),
    ("cpu=2,mem=2000M,node=2,billing=2,gres/gpu=8,gres/gpu:h100=8", CardCount(8, (("h100", 8),), 0)),
    ("cpu=1,gres/gpu:h100=2,gres/gpu:mi300x=3", CardCount(5, (("h100", 2), ("mi300x", 3)), 0)),
    ("cpu=1,gres/gpu=3,gres/gpu:h100=1", CardCount(3, (("h100", 1),), 0)),
    ("cpu=1,gres/shard=5", CardCount(0, (), 5)),
    ("gres/gpu=,gres/gpu=x", CardCount()),
]


@pytest.mark.parametrize(("text", "counted"), COUNTS)
def test_cards_of_tres(text: str, counted: CardCount) -> None:
    """P12: the untyped number holds the typed ones: never counted twice."""
    assert count_cards(parse_tres(text)) == counted


KNOWN = [
    ("nothing held", (), CardCount(), True),
    ("all named", bindings_of("n", "gpu:h100:2(IDX:0-1)"), CardCount(2), True),
    ("shards named", bindings_of("n", "shard:3(IDX:1)"), CardCount(shares=3), True),
    ("count without numbers", bindings_of("n", "gpu:h100:2"), CardCount(2), False),
    ("fewer than allocated", bindings_of("n", "gpu:h100:1(IDX:0)"), CardCount(2), False),
    ("none of those allocated", (), CardCount(2), False),
    ("a share of no card", (CardBinding(node="n", kind=SHARD, count=1),), CardCount(shares=1), False),
]


@pytest.mark.parametrize(("bindings", "counted", "known"), [case[1:] for case in KNOWN], ids=[c[0] for c in KNOWN])
def test_cards_are_known_or_said_to_be_unknown(
    bindings: tuple[CardBinding, ...], counted: CardCount, known: bool
) -> None:
    """P12: what can't be told is never guessed."""
    assert accounts_for_all(bindings, counted) is known


STATES = [
    ("PENDING", JobState.PENDING, JobState.PENDING),
    ("RUNNING", JobState.RUNNING, JobState.RUNNING),
    ("CONFIGURING", JobState.RUNNING, JobState.RUNNING),
    (["RUNNING", "CONFIGURING"], JobState.RUNNING, JobState.RUNNING),
    ("COMPLETING", JobState.COMPLETING, JobState.COMPLETING),
    (["COMPLETED", "COMPLETING"], JobState.COMPLETING, JobState.COMPLETING),
    (["CANCELLED"], JobState.CANCELLED, JobState.CANCELLED),
    ("CANCELLED by 1000", JobState.CANCELLED, JobState.CANCELLED),
    ("SUSPENDED", JobState.SUSPENDED, JobState.SUSPENDED),
    (["RUNNING", "STOPPED"], JobState.SUSPENDED, JobState.SUSPENDED),
    ("COMPLETED", JobState.COMPLETED, JobState.COMPLETED),
    ("FAILED", JobState.FAILED, JobState.FAILED),
    (["FAILED", "LAUNCH_FAILED"], JobState.FAILED, JobState.FAILED),
    ("TIMEOUT", JobState.TIMEOUT, JobState.TIMEOUT),
    ("NODE_FAIL", JobState.NODE_FAIL, JobState.NODE_FAIL),
    ("PREEMPTED", JobState.PREEMPTED, JobState.PREEMPTED),
    ("OUT_OF_MEMORY", JobState.OUT_OF_MEMORY, JobState.OUT_OF_MEMORY),
    ("BOOT_FAIL", JobState.BOOT_FAIL, JobState.BOOT_FAIL),
    ("DEADLINE", JobState.DEADLINE, JobState.DEADLINE),
    ("REQUEUED", JobState.PENDING, JobState.REQUEUED),
    (["PENDING", "REQUEUED"], JobState.PENDING, JobState.REQUEUED),
    (["PENDING", "REQUEUED", "COMPLETING"], JobState.COMPLETING, JobState.COMPLETING),
    ("REQUEUE_HOLD", JobState.PENDING, JobState.PENDING),
    ("SPECIAL_EXIT", JobState.PENDING, JobState.PENDING),
    (["CANCELLED", "REVOKED"], JobState.CANCELLED, JobState.CANCELLED),
    ("SOMETHING_NEW", JobState.UNKNOWN, JobState.UNKNOWN),
    (None, JobState.UNKNOWN, JobState.UNKNOWN),
]


@pytest.mark.parametrize(("raw", "live", "accounted"), STATES)
def test_job_states(raw: str | list[str] | None, live: JobState, accounted: JobState) -> None:
    """P12: words and lists of words, live and in the accounting."""
    assert job_state(words_of(raw)) is live
    assert job_state(words_of(raw), live=False) is accounted


NODES = [
    ("idle", [], NodeLoad.IDLE, False, True),
    ("mixed", ["DRAIN"], NodeLoad.MIXED, True, True),
    (["IDLE", "DRAIN"], None, NodeLoad.IDLE, True, True),
    (["DOWN", "NOT_RESPONDING"], None, NodeLoad.DOWN, False, False),
    ("DOWN*", None, NodeLoad.DOWN, False, True),
    ("allocated", ["COMPLETING"], NodeLoad.ALLOCATED, False, True),
    (["IDLE", "PLANNED"], None, NodeLoad.IDLE, False, True),
    (["IDLE", "MAINTENANCE"], None, NodeLoad.IDLE, False, True),
    (["ALLOCATED", "FAIL"], None, NodeLoad.ALLOCATED, True, True),
    ("future", [], NodeLoad.UNKNOWN, False, True),
]


@pytest.mark.parametrize(("state", "flags", "load", "cordoned", "answers"), NODES)
def test_node_states(
    state: str | list[str], flags: list[str] | None, load: NodeLoad, cordoned: bool, answers: bool
) -> None:
    """P11: what runs, whether somebody took it out, whether it answers."""
    words = (*words_of(state), *words_of(flags))
    assert (node_load(words), is_cordoned(words), responds(words)) == (load, cordoned, answers)


@given(st.from_regex(r"[A-Za-z0-9_.-]{1,64}", fullmatch=True), st.text(max_size=200), st.text(max_size=200))
def test_marks(owner: str, reason: str, earlier: str) -> None:
    """H6: a mark names its owner whatever stands behind it, and never breaks scontrol's line."""
    text = marked(owner, reason, earlier)
    assert is_owner(owner)
    assert owner_of(text) == owner
    assert '"' not in text
    assert "\n" not in text
    assert len(text) <= 1000


@pytest.mark.parametrize("reason", ["", "bad fan", "see sensaka:c1", "sensaka", "sensaka:", "Sensaka:c1 x"])
def test_reasons_of_others(reason: str) -> None:
    """H6: what only looks like our mark is somebody else's."""
    assert owner_of(reason) == ""


def test_an_earlier_reason_is_kept() -> None:
    """H6: the reason of a node that was down already comes back."""
    assert earlier_of(marked("c1", "repair", "smells of smoke")) == "smells of smoke"
    assert earlier_of(marked("c1", "repair")) == ""
    assert earlier_of("bad fan | earlier: x") == ""
