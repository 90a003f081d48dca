"""The life of a request as a transition table (drawn in docs/states.md)."""

from sensaka.kernel.states import StateMachine, Transition, arrows

REQUEST = StateMachine(
    "request",
    initial="submitted",
    states={
        "submitted": "Asked for, not yet checked.",
        "queued": "Waits; every reason is shown.",
        "starting": "Cards are promised to it; the cluster is told to start it.",
        "running": "Its work runs on its cards.",
        "preempted": "Lost its cards to work of a higher class; goes back to the queue with its history.",
        "completed": "Ended by itself, or was released, without an error.",
        "failed": "Ended with an error, or its node did.",
        "cancelled": "Somebody ended it.",
        "timed_out": "Its time limit ended it.",
        "rejected": "Could never be given: the answer says why.",
    },
    transitions=(
        Transition("accept", "submitted", "queued"),
        Transition("reject", "submitted", "rejected"),
        Transition("admit", "queued", "starting"),
        # what was offered may be withdrawn while a request waits for it
        Transition("reject", "queued", "rejected"),
        Transition("launch", "starting", "running"),
        # the cluster refused, or an observed job took the cards first; the request keeps its place
        Transition("return", "starting", "queued"),
        Transition("complete", "running", "completed"),
        # short work can be over before anybody saw it run
        Transition("complete", "starting", "completed"),
        *arrows("fail", ("starting", "running"), "failed"),
        *arrows("time_out", ("starting", "running"), "timed_out"),
        *arrows("preempt", ("starting", "running"), "preempted"),
        Transition("requeue", "preempted", "queued"),
        # its scheduler put it back by itself, for example after a node failed
        Transition("requeue", "running", "queued"),
        *arrows("cancel", ("submitted", "queued", "starting", "running", "preempted"), "cancelled"),
    ),
)

ENDED = frozenset({"completed", "failed", "cancelled", "timed_out", "rejected"})
"""Nothing leads out of these."""

WAITING = frozenset({"queued"})
"""What an admission plan decides about."""

HOLDING = frozenset({"starting", "running"})
"""Has an open allocation."""
