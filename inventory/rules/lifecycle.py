"""Life cycles of nodes and cards as transition tables (drawn in docs/states.md)."""

from sensaka.kernel.states import StateMachine, Transition, arrows

NODE = StateMachine(
    "node",
    initial="enrolled",
    states={
        "enrolled": "Known to Sensaka, not yet verified.",
        "verifying": "BMC and hardware are being checked.",
        "verifying_failed": "The check found something; a person decides.",
        "ready": "Verified, waiting to be provisioned.",
        "provisioning": "A provisioning run is at work.",
        "provisioning_failed": "The run ended with an error; the evidence is kept.",
        "active": "Serves work; its cards count as available when healthy.",
        "draining": "Runs what it has, takes nothing new.",
        "maintenance": "Out of the pool for repair or change.",
        "asleep": "Powered down on purpose, can be woken.",
        "retired": "No longer part of the installation; its history stays.",
    },
    transitions=(
        Transition("verify", "enrolled", "verifying"),
        Transition("adopt", "enrolled", "active"),
        Transition("pass", "verifying", "ready"),
        Transition("fail", "verifying", "verifying_failed"),
        Transition("verify", "verifying_failed", "verifying"),
        Transition("provision", "ready", "provisioning"),
        Transition("join", "provisioning", "active"),
        Transition("fail", "provisioning", "provisioning_failed"),
        Transition("provision", "provisioning_failed", "provisioning"),
        Transition("drain", "active", "draining"),
        Transition("resume", "draining", "active"),
        Transition("drained", "draining", "maintenance"),
        Transition("repair", "active", "maintenance"),
        Transition("verify", "maintenance", "verifying"),
        Transition("resume", "maintenance", "active"),
        Transition("sleep", "active", "asleep"),
        Transition("wake", "asleep", "active"),
        *arrows(
            "retire",
            (
                "enrolled",
                "verifying_failed",
                "ready",
                "provisioning_failed",
                "active",
                "maintenance",
                "asleep",
            ),
            "retired",
        ),
        Transition("enrol", "retired", "enrolled"),
    ),
)

CARD = StateMachine(
    "card",
    initial="present",
    states={
        "present": "Seen where it is said to be; it follows the state of its node.",
        "failed": "Its node sees it but it does not answer (lost, reset required).",
        "missing": "A complete reading of its node no longer lists it.",
        "retired": "Taken out for good; its history stays.",
    },
    transitions=(
        Transition("fail", "present", "failed"),
        Transition("recover", "failed", "present"),
        Transition("vanish", "present", "missing"),
        Transition("vanish", "failed", "missing"),
        Transition("return", "missing", "present"),
        Transition("fail", "missing", "failed"),
        *arrows("retire", ("present", "failed", "missing"), "retired"),
        Transition("return", "retired", "present"),
    ),
)
