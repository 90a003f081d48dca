"""The life of a request: every state is reached, ended ones have no way out, each open one can be cancelled."""

import pytest

from pools.rules.lifecycle import ENDED, HOLDING, REQUEST, WAITING
from sensaka.kernel.errors import IllegalTransition


def _reached() -> set[str]:
    found, edge = {REQUEST.initial}, [REQUEST.initial]
    while edge:
        state = edge.pop()
        for event in REQUEST.events(state):
            if (target := REQUEST.target(state, event)) not in found:
                found.add(target)
                edge.append(target)
    return found


def test_every_state_can_be_reached() -> None:
    assert _reached() == set(REQUEST.states)


def test_exactly_the_ended_states_have_no_way_out() -> None:
    assert {state for state in REQUEST.states if not REQUEST.events(state)} == ENDED


@pytest.mark.parametrize("state", sorted(set(REQUEST.states) - ENDED))
def test_whatever_is_open_can_be_cancelled(state: str) -> None:
    assert REQUEST.target(state, "cancel") == "cancelled"


@pytest.mark.parametrize("state", sorted(HOLDING))
def test_what_holds_cards_can_be_preempted_and_comes_back(state: str) -> None:
    assert REQUEST.target(REQUEST.target(state, "preempt"), "requeue") in WAITING


def test_a_waiting_request_is_not_preempted() -> None:
    with pytest.raises(IllegalTransition, match="possible: admit, cancel, reject"):
        REQUEST.target("queued", "preempt")
