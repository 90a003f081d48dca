"""What can go wrong on the way to Slurm: one exception inside the driver, data outside.

Codes are Slurm's own (slurm_errno.h); those listed were seen from a real server.
"""

import re
from collections.abc import Sequence

from inventory.drivers.clusters.capabilities import ActResult, Outcome
from inventory.drivers.clusters.slurm.wire import WireError
from inventory.observations import FailureKind, ReadFailure

CODE_UNSPECIFIED = -1
CODE_AUTHENTICATION = 1007
CODE_INVALID_JOB = 2017
CODE_INVALID_NODE = 2018
CODE_ALREADY_DONE = 2021
CODE_HELD = 2042  # not an error: "held, pending release", told of a job that was submitted so
CODE_EMPTY = 9003  # not an error: "nothing found" for an empty list

_TEXTS = (
    (re.compile(r"invalid job id|unable to find jobid|invalid node name|no jobs?/steps? specified", re.I), "missing"),
    (re.compile(r"unexpected message received for job", re.I), "missing"),  # scontrol suspend and resume
    (re.compile(r"failure to query node", re.I), "missing"),  # slurmrestd 24.11
    (re.compile(r"already (completing|completed|done|finished)", re.I), "over"),
    (re.compile(r"authentication|munge|token|credential", re.I), FailureKind.AUTHENTICATION),
    (re.compile(r"permission|access.*denied|not permitted|only root|privilege", re.I), FailureKind.PERMISSION),
    (
        re.compile(
            r"unable to contact|connection (refused|failure|reset)|slurmdbd.*down|communication|socket timed out"
            r"|zero bytes|unable to connect|slurm_persist|problem talking to the database|cannot stat file",
            re.I,
        ),
        FailureKind.UNREACHABLE,
    ),
    (re.compile(r"disabled|not configured|not supported|invalid option", re.I), FailureKind.NOT_SUPPORTED),
)


class SlurmError(Exception):
    """One request that gave nothing.

    `answered` is True when Slurm itself said no: then what was asked did not happen. `note` is
    "missing" for a job or node that does not exist, "over" for a job that has ended.
    """

    def __init__(
        self, what: str, kind: FailureKind, detail: str, *, answered: bool = False, note: str = "", code: int = 0
    ) -> None:
        super().__init__(f"{what}: {kind} {detail}")
        self.what, self.kind, self.detail = what, kind, detail
        self.answered, self.note, self.code = answered, note, code

    def failure(self) -> ReadFailure:
        """The same as data, within the bounds of the struct."""
        return ReadFailure(what=self.what[:200], kind=self.kind, detail=self.detail[:2000])

    def result(self) -> ActResult:
        """The same as the end of an act."""
        outcome = Outcome.FAILED
        if self.note == "missing":
            outcome = Outcome.NOT_FOUND
        elif self.kind is FailureKind.NOT_SUPPORTED:
            outcome = Outcome.NOT_SUPPORTED
        elif self.kind is FailureKind.PROTOCOL and self.answered:
            outcome = Outcome.REFUSED
        elif self.kind is FailureKind.TIMEOUT:
            outcome = Outcome.UNKNOWN
        return ActResult(outcome=outcome, detail=self.detail[:2000], kind=self.kind)


def unsupported(what: str, detail: str) -> SlurmError:
    """For what no door to this server can do."""
    return SlurmError(what, FailureKind.NOT_SUPPORTED, detail)


def from_text(what: str, text: str, *, code: int = 0) -> SlurmError:
    """What Slurm said, sorted by its words."""
    # slurmctld hangs up on a message whose credential it can't accept; it may have other reasons too
    hint = " (do munge's keys and the clocks of the hosts agree?)" if "zero bytes" in text.lower() else ""
    for pattern, meaning in _TEXTS:
        if pattern.search(text):
            if isinstance(meaning, FailureKind):
                return SlurmError(what, meaning, text + hint, answered=True, code=code)
            return SlurmError(what, FailureKind.PROTOCOL, text, answered=True, note=meaning, code=code)
    return SlurmError(what, FailureKind.PROTOCOL, text, answered=True, code=code)


def from_errors(what: str, errors: Sequence[WireError]) -> SlurmError:
    """The errors of an answer as one."""
    text = "; ".join(error.text for error in errors)
    codes = {error.code for error in errors}
    if CODE_AUTHENTICATION in codes:
        return SlurmError(what, FailureKind.AUTHENTICATION, text, answered=True, code=CODE_AUTHENTICATION)
    for code, note in ((CODE_INVALID_JOB, "missing"), (CODE_INVALID_NODE, "missing"), (CODE_ALREADY_DONE, "over")):
        if code in codes:
            return SlurmError(what, FailureKind.PROTOCOL, text, answered=True, note=note, code=code)
    if codes == {CODE_UNSPECIFIED}:  # with an accepted token: slurmctld gave no answer to slurmrestd
        return SlurmError(what, FailureKind.UNREACHABLE, f"{text} (slurmctld does not answer?)", code=CODE_UNSPECIFIED)
    return from_text(what, text, code=next(iter(codes), 0))
