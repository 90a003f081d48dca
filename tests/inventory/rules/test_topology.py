"""Numbers in slot names, and numberings that fit (I5)."""

import pytest

from inventory.rules.topology import join_positions, position


@pytest.mark.parametrize(
    ("slot", "number"),
    [
        ("3", 3), ("GPU_SXM_3", 3), ("GPU.Slot.3-1", 3), ("Video.Slot.7-1", 7), ("OAM_5", 5), ("SXM5", 5), ("GPU_0", 0),
        ("HGX_GPU_SXM_8", 8), ("PCIe Slot 12", 12), ("CPU1 Slot 4", 4), ("Riser 2", 2), ("left", None), ("", None),
    ],
)  # fmt: skip
def test_the_number_of_a_slot(slot: str, number: int | None) -> None:
    assert position(slot) == number


@pytest.mark.parametrize(
    ("known", "observed", "joined"),
    [
        pytest.param({"a": "0", "b": "1"}, {0: "GPU_SXM_1", 1: "GPU_SXM_2"}, {0: "a", 1: "b"}, id="from 0 and from 1"),
        pytest.param({"a": "1", "b": "2"}, {0: "2", 1: "1"}, {0: "b", 1: "a"}, id="same numbering"),
        pytest.param(
            {"a": "0", "b": "1", "c": "2", "d": "3"}, {0: "1", 1: "2", 2: "4"}, {0: "a", 1: "b", 2: "d"}, id="one lost"
        ),
        pytest.param({"a": "0", "b": "1", "c": "2"}, {0: "1", 1: "2"}, {}, id="two numberings fit"),
        pytest.param({"a": "1", "b": "1"}, {0: "1"}, {}, id="a number twice"),
        pytest.param({"a": "left"}, {0: "1"}, {}, id="no number"),
        pytest.param({"a": "1"}, {0: "7"}, {}, id="too far apart"),
        pytest.param({}, {0: "1"}, {}, id="nobody"),
    ],
)  # fmt: skip
def test_joining_two_numberings(known: dict[str, str], observed: dict[int, str], joined: dict[int, str]) -> None:
    """I5: joined only where exactly one shift fits."""
    assert join_positions(known, observed) == joined
