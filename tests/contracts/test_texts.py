"""I3, I4: what JSON can spell and no text can hold does not stop a reading."""

import json

from hypothesis import given
from hypothesis import strategies as st

from inventory.drivers.cards.amd.documents import load
from inventory.drivers.texts import storable


def test_half_a_surrogate_pair_becomes_a_question_mark() -> None:
    source = r'{"Model": "H100\ud800", "Name": "\ud83d\ude00", "Path": "\\ud800", "Count": 3}'
    assert storable(json.loads(source), source) == {"Model": "H100?", "Name": "😀", "Path": r"\ud800", "Count": 3}
    assert load(f"[{source}]")[0]["Model"] == "H100?"


@given(st.dictionaries(st.text(st.characters()), st.text(st.characters()) | st.integers() | st.none()))
def test_whatever_json_says_can_be_stored(value: dict[str, str | int | None]) -> None:
    source = json.dumps(value)
    kept = storable(json.loads(source), source)
    assert json.dumps(kept, ensure_ascii=False).encode() is not None
    assert len(kept) <= len(value)
    if not any("\ud800" <= letter <= "\udfff" for letter in json.dumps(value, ensure_ascii=False)):
        assert kept == value
