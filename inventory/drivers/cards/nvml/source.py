"""Every NVIDIA card of this node in one reading, whatever single cards do.

One thread for the library and one for each card (see `workers`); a round waits for them until its
deadline and reports who did not answer. A card that is lost or hangs keeps its place in the reading
under the identity that it had before, so that nobody takes it for gone.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar

import pynvml
from msgspec.structs import replace

from inventory.drivers.cards.nvml.calls import STALE, describe, kind_of
from inventory.drivers.cards.nvml.library import Library, Survey
from inventory.drivers.cards.nvml.session import CardSession
from inventory.drivers.cards.values import short
from inventory.drivers.cards.workers import Job, Worker
from inventory.observations import CardReading, FailureKind, NodeReading, ProcessReading, ReadFailure

T = TypeVar("T")
CardRound = tuple[CardReading, tuple[ProcessReading, ...]]


class _Slot:
    """The thread of one index and the session that lives in it."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.worker = Worker(f"nvml-{index}")
        self.session: CardSession | None = None

    def read(self, library: Library) -> CardRound:
        """One round of this card, opening it first where needed."""
        if self.session is None:
            self.session = CardSession(self.index, library.events)
        try:
            return self.session.read()
        except pynvml.NVMLError:
            self.drop()
            raise

    def drop(self) -> None:
        """Forget the handle. Its buffers are freed where the library still answers."""
        session, self.session = self.session, None
        if session is None:
            return
        try:
            session.close()
        except pynvml.NVMLError:
            return  # the library is closed or the card gone; either frees the buffers


@dataclass(frozen=True, slots=True)
class _Missed:
    """A card that gave nothing this round."""

    index: int
    failure: ReadFailure


class NvmlCards:
    """Reads the NVIDIA cards of this node. One reader at a time; `read` never raises.

    `retry_lost` is after how many seconds the library is opened again because a card is lost: a card
    that was reset comes back only then, and each opening costs every card one round of rates.
    """

    name = "NVML"

    def __init__(self, *, retry_lost: float = 300.0) -> None:
        self.available = False
        self.reason = "not tried yet"
        self._library = Library()
        self._control = Worker("nvml")
        self._slots: dict[int, _Slot] = {}
        self._known: dict[int, CardReading] = {}
        self._versions = ("", "")
        self._reopen = False
        self._retry_lost = retry_lost
        self._retry_at = float("inf")

    def open(self, *, deadline: float = 10.0) -> None:
        """Find out whether there are cards to read, and why not: sets `available` and `reason`.

        What was available once stays so: from then on a failure is a fact about cards that exist.
        """
        self._survey(time.monotonic() + deadline)

    def read(self, *, deadline: float) -> NodeReading:
        """One reading of all cards within `deadline` seconds. See ReadsCards."""
        until = time.monotonic() + deadline
        observed_at = datetime.now(UTC)
        survey = self._survey(until)
        if isinstance(survey, ReadFailure):
            return self._nothing(observed_at, survey)
        self._versions = (survey.driver_version, survey.runtime_version)
        answers = self._ask_cards(survey.count, until)
        rounds = {index: answer for index, answer in answers.items() if not isinstance(answer, _Missed)}
        missed = [answer for answer in answers.values() if isinstance(answer, _Missed)]
        if not any(miss.failure.kind is FailureKind.LOST for miss in missed):
            self._retry_at = float("inf")
        seen = {card.uuid for card, _ in rounds.values()}
        stand_ins = [one for one in (self._stand_in(miss, seen) for miss in missed) if one is not None]
        self._remember(rounds)
        return NodeReading(
            observed_at=observed_at,
            driver_version=survey.driver_version,
            runtime_version=survey.runtime_version,
            cards=tuple(card for card, _ in rounds.values()) + tuple(stand_ins),
            processes=tuple(process for _, processes in rounds.values() for process in processes),
            failures=tuple(self._named(miss) for miss in missed),
            complete=not missed,
        )

    def close(self) -> None:
        """Let the threads end and the library go; a later read opens it again.

        A thread whose call hangs is kept, and so is the library under it.
        """
        if not any(slot.worker.busy for slot in self._slots.values()):
            job = self._control.submit(self._close_all)
            if job is not None:
                job.wait(1.0)
        for worker in (self._control, *(slot.worker for slot in self._slots.values())):
            worker.close()
        self.available, self.reason = False, "closed"

    def _close_all(self) -> None:
        for slot in self._slots.values():
            slot.drop()
        self._library.close()

    def _survey(self, until: float) -> Survey | ReadFailure:
        answer = self._answer(self._control, self._look, until)
        if isinstance(answer, Survey):
            self.available = self.available or answer.count > 0
            self.reason = f"driver {answer.driver_version}, {answer.count} cards"
            self._reopen = False
            for index in [one for one in self._known if one >= answer.count]:
                del self._known[index]
        else:
            self.reason = answer.detail
        return answer

    def _look(self) -> Survey:
        """In the library's thread, while no card is being read."""
        hanging = any(slot.worker.busy for slot in self._slots.values())
        lost_long = time.monotonic() >= self._retry_at
        # Shutting the library down under a call that hangs in it would crash the process; and a driver
        # that a call hangs in has not been loaded again anyway.
        reopen = (self._reopen or lost_long) and not hanging
        if reopen:
            self._retry_at = float("inf")
            self._drop_all()
        survey = self._library.survey(reopen=reopen, may_reopen=not hanging)
        if survey.fresh:
            self._drop_all()
        return survey

    def _drop_all(self) -> None:
        for slot in self._slots.values():
            if not slot.worker.busy:
                slot.drop()

    def _ask_cards(self, count: int, until: float) -> dict[int, CardRound | _Missed]:
        """Start every card, then collect: the slowest decides how long it takes, not the sum."""
        jobs: dict[int, Job[CardRound] | None] = {}
        for index in range(count):
            slot = self._slots.setdefault(index, _Slot(index))
            jobs[index] = slot.worker.submit(partial(slot.read, self._library))
        answers: dict[int, CardRound | _Missed] = {}
        for index, job in jobs.items():
            answer = self._outcome(job, until, f"NVML index {index}")
            answers[index] = _Missed(index, answer) if isinstance(answer, ReadFailure) else answer
        return answers

    def _answer(self, worker: Worker, work: Callable[[], Survey], until: float) -> Survey | ReadFailure:
        return self._outcome(worker.submit(work), until, "NVML")

    def _outcome(self, job: Job[T] | None, until: float, what: str) -> T | ReadFailure:
        if job is None:
            return ReadFailure(what=what, kind=FailureKind.TIMEOUT, detail="a call of an earlier round still hangs")
        if not job.wait(until - time.monotonic()):
            return ReadFailure(what=what, kind=FailureKind.TIMEOUT, detail="no answer within the deadline")
        try:
            return job.result()
        except pynvml.NVMLError as error:
            self._reopen = self._reopen or error.value in STALE
            kind = kind_of(error)
            if kind is FailureKind.LOST:
                self._retry_at = min(self._retry_at, time.monotonic() + self._retry_lost)
            return ReadFailure(what=what, kind=kind, detail=describe(error))
        except Exception as error:  # a fault of ours in one card must not hide the others
            detail = f"{type(error).__name__}: {error}"
            return ReadFailure(what=what, kind=FailureKind.UNKNOWN, detail=detail[:2000])

    def _stand_in(self, miss: _Missed, seen: set[str]) -> CardReading | None:
        """The card that stood at this index before, unless it answers at another index now."""
        known = self._known.get(miss.index)
        if known is None or not known.uuid or known.uuid in seen:
            return None
        detail = short(f"{known.uuid} at {known.pci_address}")
        failure = ReadFailure(what=detail, kind=miss.failure.kind, detail=miss.failure.detail)
        return replace(known, failures=(failure,))

    def _named(self, miss: _Missed) -> ReadFailure:
        """The failure with the card that was last seen at its index: an index alone names nothing."""
        known = self._known.get(miss.index)
        if known is None or not known.uuid:
            return miss.failure
        detail = f"{miss.failure.detail}; last seen there: {known.uuid}, serial {known.serial or 'unknown'}"
        return replace(miss.failure, detail=detail[:2000])

    def _remember(self, rounds: dict[int, CardRound]) -> None:
        for index, (card, _) in rounds.items():
            slices = tuple(replace(one, values=None) for one in card.slices)
            self._known[index] = replace(card, values=None, failures=(), slices=slices)

    def _nothing(self, observed_at: datetime, failure: ReadFailure) -> NodeReading:
        """The library itself gave nothing: every known card keeps its place, with the reason."""
        cards = (self._stand_in(_Missed(index, failure), set()) for index in self._known)
        return NodeReading(
            observed_at=observed_at,
            driver_version=self._versions[0],
            runtime_version=self._versions[1],
            cards=tuple(card for card in cards if card is not None),
            failures=(failure,),
            complete=False,
        )
