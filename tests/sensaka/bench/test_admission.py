"""The admission bench on a short queue: everything gets admitted, each once, and the report says so."""

import json

import pytest

from pools.models import Allocation, Request
from sensaka.bench.admission import GOAL, KUEUE, _report
from sensaka.bench.admission_work import admit_for, fill

pytestmark = pytest.mark.django_db


def test_a_short_queue_is_worked_off() -> None:
    found = admit_for(fill(12, 5, 4), 60)
    assert (found["left"], sum(started for started, _ in found["passes"])) == (0, 12)
    assert set(Request.objects.values_list("state", "attempt")) == {("completed", 1)}
    assert not Allocation.objects.filter(span__endswith=None).exists()


def test_the_report_sets_the_figure_beside_the_peer() -> None:
    found = {"passes": [(900, 1.0), (100, 1.0)], "ending": 1.0, "wall": 4.0, "left": 3, "told": 3, "telling": 2.0}
    report = _report(found, 5.0, 6.0)
    told = json.loads(report.line())
    assert [(row["value"], row["peer_value"]) for row in told["rows"][:2]] == [(500.0, KUEUE), (250.0, KUEUE)]
    assert told["rows"][0]["ratio"] == round(KUEUE / 500, 4)
    assert (told["cpu_seconds"], report.failed) == (5.0, [])
    slow = _report(found | {"passes": [(100, 1.0)]}, 5.0, 6.0)
    assert slow.failed == [f"100 admissions a second are fewer than {GOAL:.0f}"]
