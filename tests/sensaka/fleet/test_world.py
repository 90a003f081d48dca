"""The state of the fleet: it outlives a restart, its counters only grow, another fleet's state is refused."""

import json
from pathlib import Path

import numpy as np
import pytest

from sensaka.fleet.acts import perform
from sensaka.fleet.physics import COUNTERS
from sensaka.fleet.plan import make_plan
from sensaka.fleet.readings import node_reading
from sensaka.fleet.slices import instance_ids
from sensaka.fleet.storage import WorldFiles
from sensaka.fleet.world import StateError, World
from tests.sensaka.fleet.conftest import NOON


def test_a_restart_goes_on_with_the_same_cards_and_higher_counters(world: World, tmp_path: Path) -> None:
    """Ends and starts again an hour later: energy has grown by what the cards draw, nothing fell."""
    perform(world, {"do": "swap_cards", "a": "fra-h100-05:0", "b": "fra-h100-06:1"})
    perform(world, {"do": "pull_card", "node": "fra-h100-07", "slot": 3})
    path = tmp_path / "folder with space"
    path.mkdir()
    WorldFiles(path).save(world)
    before = {name: getattr(world.sensors, name).copy() for name in COUNTERS}

    again = WorldFiles(path).load(make_plan(seed=1, nodes=64, ipmi=True), NOON + 3600)

    assert again.places == world.places
    assert again.shelf == world.shelf
    for name in COUNTERS:
        assert (getattr(again.sensors, name) >= np.round(before[name], 3)).all(), name
    drawn = (again.sensors.energy - before["energy"]).sum()
    assert 64 * 8 * 40 * 3600 < drawn < 64 * 8 * 750 * 3600
    assert again.at == NOON + 3600


@pytest.mark.parametrize(("seed", "nodes"), [(2, 64), (1, 8)])
def test_another_fleets_state_is_refused(world: World, tmp_path: Path, seed: int, nodes: int) -> None:
    WorldFiles(tmp_path).save(world)

    with pytest.raises(StateError, match="fleet of 64 nodes with seed 1"):
        WorldFiles(tmp_path).load(make_plan(seed=seed, nodes=nodes, ipmi=True), NOON)


def test_a_damaged_state_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "world.json").write_text('{"seed": 1, "size": 64')

    with pytest.raises(StateError, match=r"world\.json can't be read"):
        WorldFiles(tmp_path).load(make_plan(seed=1, nodes=64, ipmi=True), NOON)


def test_a_damaged_schedulers_file_is_named(world: World, tmp_path: Path) -> None:
    WorldFiles(tmp_path).save(world)
    (tmp_path / "slurm-fra-train.json").write_text('{"now": 1')

    with pytest.raises(StateError, match=r"slurm-fra-train\.json can't be read"):
        WorldFiles(tmp_path).load(make_plan(seed=1, nodes=64, ipmi=True), NOON)


def test_a_save_leaves_no_partial_file(world: World, tmp_path: Path) -> None:
    WorldFiles(tmp_path).save(world)

    kept = ["slurm-fra-train.json", "slurm-sin-train.json", "world.json"]
    assert sorted(path.name for path in tmp_path.iterdir()) == kept
    assert json.loads((tmp_path / "world.json").read_text())["size"] == 64


def test_readings_are_marked_simulated_and_consistent(world: World) -> None:
    for node in world.plan.nodes:
        reading = node_reading(world, node)
        assert reading.simulated
        assert len(reading.cards) == 8
        for card in reading.cards:
            assert card.values is not None
            assert card.values.power is not None
            assert card.values.memory_used is not None
            assert 0 <= card.values.power <= card.values.power_limit
            assert 0 <= card.values.memory_used <= card.memory_total
            held = {process.card_uuid for process in reading.processes}
            if card.values.memory_used > 0.05 * card.memory_total:
                assert card.uuid in held


def test_mig_cards_have_slices_with_their_own_activity(world: World) -> None:
    cut = [card for node in world.plan.nodes for card in node_reading(world, node).cards if card.slices]

    assert len(cut) == 40
    for card in cut:
        assert card.mig_enabled
        assert card.values is not None
        assert card.values.utilization is None
        assert card.values.sm_activity is not None
    assert len({part.values.sm_activity for card in cut for part in card.slices if part.values}) > 20


@pytest.mark.parametrize(
    ("profiles", "expected"),
    [
        (("3g.40gb", "3g.40gb"), ["1", "2"]),
        (("4g.40gb", "3g.40gb"), ["1", "2"]),
        (("1g.10gb",) * 3, ["7", "8", "9"]),
        (("3g.40gb", "2g.20gb", "1g.10gb"), ["1", "3", "7"]),
    ],
)
def test_instance_ids_follow_the_size_of_the_instance(profiles: tuple[str, ...], expected: list[str]) -> None:
    assert instance_ids(profiles) == expected
