"""State machines refuse what their table does not have."""

import pytest

from inventory.rules.lifecycle import CARD, NODE
from sensaka.kernel.errors import IllegalTransition
from sensaka.kernel.states import StateMachine, Transition


def test_an_event_leads_to_the_state_of_the_table() -> None:
    assert NODE.target("enrolled", "adopt") == "active"
    assert CARD.target("missing", "return") == "present"


def test_an_impossible_event_names_what_would_be_possible() -> None:
    with pytest.raises(IllegalTransition, match="possible: resume, retire, verify"):
        NODE.target("maintenance", "sleep")


def test_every_state_but_the_last_can_be_left_and_reached() -> None:
    for machine in (NODE, CARD):
        reached = {arrow.target for arrow in machine.transitions} | {machine.initial}
        assert reached == set(machine.states)
        assert {arrow.source for arrow in machine.transitions} == set(machine.states)


@pytest.mark.parametrize(
    ("transitions", "initial"),
    [
        pytest.param([Transition("go", "a", "nowhere")], "a", id="unknown target"),
        pytest.param([Transition("go", "a", "b"), Transition("go", "a", "a")], "a", id="two arrows for one event"),
        pytest.param([], "nowhere", id="unknown initial state"),
    ],
)
def test_a_wrong_table_does_not_start(transitions: list[Transition], initial: str) -> None:
    with pytest.raises(ValueError, match="thing"):
        StateMachine("thing", initial=initial, states={"a": "A.", "b": "B."}, transitions=transitions)
