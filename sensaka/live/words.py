"""The words of states and sources, as pages write them."""

from inventory.rules.lifecycle import CARD, NODE

SOURCES = {"agent": "the agent on its node", "exporter": "an exporter page", "bmc": "the BMC", "user": "a person"}
KIND_WORDS = {
    "busy": "Busy",
    "idle": "Idle",
    "unknown": "Unknown",
    "out": "Not available",
    "failed": "Failed",
    "missing": "Missing",
}
# The mark of a kind, as sensaka.css draws it: [data-kind] on the page, the state of the cell on the wire.
KIND_TAGS = {"busy": "busy", "idle": "idle", "unknown": "unknown", "out": "off", "failed": "bad", "missing": "bad"}
CARD_STATES = CARD.states
NODE_STATES = NODE.states
NODE_TAGS = {
    "active": "good",
    "asleep": "off",
    "retired": "off",
    "enrolled": "free",
    "verifying": "free",
    "ready": "free",
    "provisioning": "free",
    "draining": "warn",
    "maintenance": "warn",
    "verifying_failed": "bad",
    "provisioning_failed": "bad",
}
POWER_TAGS = {"on": "good", "off": "off", "turning_on": "warn", "turning_off": "warn", "unknown": "unknown"}
FAILURES = {
    "timeout": "No answer in time",
    "unreachable": "Can't be reached",
    "authentication": "Log-in refused",
    "tls": "Certificate not trusted",
    "protocol": "Answer not understood",
    "not_supported": "Not supported",
    "permission": "No permission",
    "lost": "Device lost",
    "busy": "Device busy",
    "missing_library": "Library missing",
    "implausible": "Implausible value",
    "unknown": "Failed",
}
# States of runs, as pages say them, and their marks.
JOB_WORDS = {
    "pending": "Waiting",
    "running": "Running",
    "suspended": "Suspended",
    "completing": "Ending",
    "completed": "Completed",
    "failed": "Failed",
    "cancelled": "Cancelled",
    "timeout": "Time limit",
    "node_fail": "Node failed",
    "preempted": "Preempted",
    "out_of_memory": "Out of memory",
    "requeued": "Requeued",
    "boot_fail": "Node did not boot",
    "deadline": "Deadline passed",
    "unknown": "Unknown",
}
JOB_TAGS = {
    "pending": "free",
    "running": "busy",
    "suspended": "warn",
    "completing": "busy",
    "completed": "good",
    "failed": "bad",
    "cancelled": "off",
    "timeout": "bad",
    "node_fail": "bad",
    "preempted": "warn",
    "out_of_memory": "bad",
    "requeued": "warn",
    "boot_fail": "bad",
    "deadline": "warn",
    "unknown": "unknown",
}
# Conditions of a cluster's connection (inventory.selectors.clusters).
CONDITION_WORDS = {
    "none": "Not connected",
    "off": "Switched off",
    "new": "Not read yet",
    "lost": "Out of reach",
    "late": "Late",
    "partly": "Read in part",
    "well": "Read",
}
CONDITION_TAGS = {
    "none": "off", "off": "off", "new": "free", "lost": "bad", "late": "warn", "partly": "warn", "well": "good",
}  # fmt: skip
# States of requests, as pages say them, and their marks.
REQUEST_WORDS = {
    "submitted": "Submitted",
    "queued": "Waiting",
    "starting": "Starting",
    "running": "Running",
    "preempted": "Preempted",
    "completed": "Completed",
    "failed": "Failed",
    "cancelled": "Cancelled",
    "timed_out": "Time limit",
    "rejected": "Rejected",
}
REQUEST_TAGS = {
    "submitted": "free", "queued": "free", "starting": "busy", "running": "busy", "preempted": "warn",
    "completed": "good", "failed": "bad", "cancelled": "off", "timed_out": "bad", "rejected": "bad",
}  # fmt: skip
SCHEDULERS = {"slurm": "Slurm", "kubernetes": "Kubernetes"}


def state_words(state: str) -> str:
    """`provisioning_failed` as people read it."""
    return state.replace("_", " ").capitalize()
