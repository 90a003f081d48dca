"""Which node of ours a scheduler's node is."""

from uuid import UUID

from inventory.rules.identity import NodeIdentity
from inventory.rules.scheduler_nodes import OurNode, SeenNode, match_nodes

A, B, C = (UUID(int=number) for number in (1, 2, 3))
M1, M2 = NodeIdentity("a" * 32), NodeIdentity("b" * 32)


def test_by_machine_id_whatever_the_names_are() -> None:
    ours = [OurNode(A, "old", "old", identity=M1), OurNode(B, "new", "new", identity=M2)]
    assert match_nodes([SeenNode("new", "new", M1)], ours, {}) == {"new": A}


def test_system_uuid_in_either_byte_order() -> None:
    ours = [OurNode(A, "x", identity=NodeIdentity("", "", "33221100-5544-7766-8899-aabbccddeeff"))]
    seen = SeenNode("n1", "n1", NodeIdentity("", "", "00112233-4455-6677-8899-aabbccddeeff"))
    assert match_nodes([seen], ours, {}) == {"n1": A}


def test_a_renamed_node_is_followed_by_its_identity() -> None:
    """The name is new to the scheduler, the machine is not."""
    ours = [OurNode(A, "n1", "n1", identity=M1)]
    assert match_nodes([SeenNode("gpu-01", "gpu-01", M1)], ours, {"n1": A}) == {"gpu-01": A}


def test_a_renamed_node_is_followed_by_the_host_name_it_tells() -> None:
    ours = [OurNode(A, "n1", "gpu-01", tells_itself=True)]
    assert match_nodes([SeenNode("gpu-01", "gpu-01")], ours, {"n1": A}) == {"gpu-01": A}


def test_two_nodes_that_swap_names() -> None:
    ours = [OurNode(A, "n1", "n2", tells_itself=True), OurNode(B, "n2", "n1", tells_itself=True)]
    seen = [SeenNode("n1", "n1"), SeenNode("n2", "n2")]
    assert match_nodes(seen, ours, {"n1": A, "n2": B}) == {"n1": B, "n2": A}


def test_a_node_that_tells_its_name_takes_over_from_the_one_made_for_the_scheduler() -> None:
    ours = [OurNode(A, "n1", "n1"), OurNode(B, "n1~2", "n1", tells_itself=True)]
    assert match_nodes([SeenNode("n1", "n1")], ours, {"n1": A}) == {"n1": B}


def test_what_it_was_before_outlives_an_operators_renaming() -> None:
    assert match_nodes([SeenNode("n1", "n1")], [OurNode(A, "rack 3 left")], {"n1": A}) == {"n1": A}


def test_another_machine_under_the_old_name_is_another_node() -> None:
    ours = [OurNode(A, "n1", "n1", identity=M1)]
    assert match_nodes([SeenNode("n1", "n1", M2)], ours, {"n1": A}) == {"n1": None}


def test_names_of_other_clusters_do_not_count() -> None:
    ours = [OurNode(A, "n1", "n1", in_cluster=False, tells_itself=True)]
    assert match_nodes([SeenNode("n1", "n1")], ours, {}) == {"n1": None}


def test_short_and_full_names() -> None:
    ours = [OurNode(A, "n1.example.org", "n1.example.org"), OurNode(B, "n10", "n10")]
    assert match_nodes([SeenNode("n1"), SeenNode("n10")], ours, {}) == {"n1": A, "n10": B}


def test_a_short_name_that_two_nodes_have_names_neither() -> None:
    ours = [OurNode(A, "n1.a.org"), OurNode(B, "n1.b.org")]
    assert match_nodes([SeenNode("n1")], ours, {}) == {"n1": None}


def test_many_daemons_on_one_host_are_told_apart_by_name() -> None:
    """Slurm's multiple slurmd: one host name, many node names."""
    ours = [OurNode(A, "c1", "host"), OurNode(B, "c2", "host")]
    seen = [SeenNode("c1", "host"), SeenNode("c2", "host"), SeenNode("c3", "host")]
    assert match_nodes(seen, ours, {}) == {"c1": A, "c2": B, "c3": None}


def test_no_node_is_given_twice() -> None:
    found = match_nodes([SeenNode("n1", "n1"), SeenNode("n2", "n1")], [OurNode(A, "n1", "n1")], {"n2": A})
    assert found == {"n1": None, "n2": A}
