"""What slurmctld says no with: Slurm's own numbers (slurm_errno.h) and words."""

from enum import IntEnum


class Code(IntEnum):
    """The numbers that are told."""

    UNSPECIFIED = -1
    INVALID_PARTITION = 2000
    ACCESS_DENIED = 2002
    NOT_AVAILABLE = 2014
    INVALID_JOB = 2017
    INVALID_NODE = 2018
    ALREADY_DONE = 2021
    INVALID_ACCOUNT = 2045
    INVALID_TIME_LIMIT = 2051
    NOT_PENDING = 2073
    INVALID_ARRAY = 2081
    NOT_RUNNING = 2085
    NOT_SUSPENDED = 2087
    INVALID_QUERY = 9000
    FAIL_PARSING = 9001


_WORDS = {
    Code.UNSPECIFIED: "Unspecified error",
    Code.INVALID_PARTITION: "Invalid partition name specified",
    Code.ACCESS_DENIED: "Access/permission denied",
    Code.NOT_AVAILABLE: "Requested node configuration is not available",
    Code.INVALID_JOB: "Invalid job id specified",
    Code.INVALID_NODE: "Invalid node name specified",
    Code.ALREADY_DONE: "Job/step already completing or completed",
    Code.INVALID_ACCOUNT: "Invalid account or account/partition combination specified",
    Code.INVALID_TIME_LIMIT: "Requested time limit is invalid (missing or exceeds some limit)",
    Code.NOT_PENDING: "Job is no longer pending execution",
    Code.INVALID_ARRAY: "Invalid job array specification",
    Code.NOT_RUNNING: "Job not running",
    Code.NOT_SUSPENDED: "Job not suspended",
    Code.INVALID_QUERY: "Query has invalid contents",
    Code.FAIL_PARSING: "Unable to parse request",
}


class SlurmRefusal(Exception):
    """slurmctld does not do what was asked; `detail` says more than the number's own words."""

    def __init__(self, code: Code, detail: str = "") -> None:
        super().__init__(detail or _WORDS[code])
        self.code, self.words, self.detail = code, _WORDS[code], detail
