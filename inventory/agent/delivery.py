"""Delivers the spool in order, each record until the server has taken or refused it.

What an answer means: 2xx, stored, go on. 409 `unknown_cards`, the server lacks a report: send it and try again.
400, 413 and 422 from Sensaka itself, the record will never be taken: it is counted and left, so that nothing blocks
the queue. 401 and 403, the token does not hold: try once a minute with the token then on disk. All else, and silence:
wait and try again, up to 30 s with jitter. A sample sent twice is stored once, so repeating is always right.
"""

import logging
import random
import threading
from collections.abc import Callable
from typing import Any

import msgspec

from inventory.agent.clock import Clock
from inventory.agent.segments import Kind, Record
from inventory.agent.spool import Batch, Spool
from inventory.agent.telling import Teller
from inventory.agent.transport import Answer, Client, Unreachable, packed

log = logging.getLogger("sensaka.agent")

REPORT_PATH = "/api/v1/agents/report/"
TELEMETRY_PATH = "/api/v1/telemetry/"
MAX_SAMPLES = 2000
MAX_BYTES = 1_000_000
LONGEST_BACKOFF = 30.0  # s
TOKEN_RETRY = 60.0  # s
LONGEST_RETRY_AFTER = 300.0  # s
IDLE = 60.0  # s; a new record wakes the delivery earlier
# Waits (s) between tries after 409: a server may take a moment from a report to knowing its cards. After the last
# one it is believed.
UNKNOWN_WAITS = (0.0, 2.0, 5.0, 10.0, 20.0)


class Delivery:
    """The delivering side. `newest_report` gives the report of the latest round, `read_token` the token on disk."""

    def __init__(
        self,
        spool: Spool,
        client: Client,
        *,
        interval: int,
        read_token: Callable[[], str],
        newest_report: Callable[[], bytes | None],
        clock: Clock,
    ) -> None:
        self._spool, self._client, self._clock = spool, client, clock
        self._interval = interval
        self._read_token, self._newest_report = read_token, newest_report
        self._token = ""
        self._report: bytes | None = None
        self._limit = MAX_SAMPLES
        self._failures = 0
        self._unknown = 0
        self._tell = Teller(log, clock)
        self.wake = threading.Event()
        self.delivered_at = 0.0
        self.trouble = ""

    def run(self, stop: threading.Event) -> None:
        """Delivers until `stop` is set; `stop` and a `Client.close` end it at once."""
        while not stop.is_set():
            self.wake.clear()
            delay = self.step()
            if delay is None:
                self._clock.wait(self.wake, IDLE)
            elif delay > 0:
                self._clock.wait(stop, delay)

    def step(self) -> float | None:
        """Sends at most one batch. Seconds to wait before the next; None when all is delivered."""
        batch = self._spool.peek(max_samples=self._limit, max_bytes=MAX_BYTES)
        if batch is None:
            return None
        try:
            answer = self._send(batch)
        except Unreachable as error:
            return self._again(batch, str(error), kind=error.kind)
        except OSError as error:
            return self._again(batch, f"the node token can't be read: {error}", kind="token")
        return self._judge(batch, answer)

    def _send(self, batch: Batch) -> Answer:
        if batch.records[0].kind is Kind.REPORT:
            return self._post(REPORT_PATH, batch.records[0].payload)
        samples = b",".join(record.payload for record in batch.records)
        return self._post(TELEMETRY_PATH, b'{"interval":%d,"samples":[%b]}' % (self._interval, samples))

    def _post(self, path: str, body: bytes) -> Answer:
        self._token = self._token or self._read_token()
        headers = {
            "X-Sensaka-Spooled": str(self._spool.pending),
            "X-Sensaka-Dropped": str(self._spool.progress.dropped),
        }
        if path == TELEMETRY_PATH:
            body, encoding = packed(body)
            headers.update(encoding)
        return self._client.request("POST", path, body, token=self._token, headers=headers)

    def _judge(self, batch: Batch, answer: Answer) -> float:
        if 200 <= answer.status < 300:
            return self._taken(batch)
        if answer.status in (401, 403):
            self._token = ""  # read again: the node may have been enrolled anew
            self.trouble = f"the server does not accept this node's token ({answer.says}); enrol the node again"
            self._tell.warning("token", "%s; readings are kept until then", self.trouble)
            self._spool.release(batch)
            return TOKEN_RETRY
        if answer.status == 409 and answer.json().get("code") == "unknown_cards":
            return self._unknown_cards(batch, answer)
        if answer.status == 413 or (answer.status in (400, 422) and answer.is_problem):
            return self._refused(batch, answer)
        wait = answer.retry_after
        return self._again(batch, answer.says, kind=f"status {answer.status}", wait=wait)

    def _taken(self, batch: Batch) -> float:
        if self._failures or self.trouble:
            log.info("delivering again; %d records wait", self._spool.pending)
        if batch.records[0].kind is Kind.REPORT:
            self._report = batch.records[0].payload
        self._spool.acknowledge(batch)
        self._failures = self._unknown = 0
        self._limit = min(MAX_SAMPLES, self._limit * 2)
        self.trouble = ""
        self.delivered_at = self._clock.wall()
        return 0.0

    def _again(self, batch: Batch, detail: str, *, kind: str, wait: float | None = None) -> float:
        self._spool.release(batch)
        self._failures += 1
        self.trouble = detail
        self._tell.warning(kind, "not delivered, will be tried again: %s", detail)
        if wait is not None:
            return min(wait, LONGEST_RETRY_AFTER)
        longest = min(LONGEST_BACKOFF, 2.0 ** min(self._failures, 6) / 2)
        return longest * random.uniform(0.5, 1.0)  # noqa: S311 - jitter, not a secret

    def _refused(self, batch: Batch, answer: Answer) -> float:
        """Halves a refused batch until one record is left, and of that leaves the samples that were named."""
        if len(batch.records) > 1:
            self._spool.release(batch)
            self._limit = max(1, batch.samples // 2)
            return 0.0
        named = answer.json().get("samples")
        places = {one.get("index") for one in named if isinstance(one, dict)} if isinstance(named, list) else set()
        reason = f"the server refused samples of a round of {batch.samples}: {answer.says}"
        return self._leave_part(batch, lambda place, _: place not in places, reason)

    def _leave_part(self, batch: Batch, keeps: Callable[[int, dict[str, Any]], bool], reason: str) -> float:
        """Delivers what `keeps` keeps of the batch's one record, and leaves the rest."""
        kept = _part(batch.records[0], keeps)
        if 0 < kept.count < batch.samples:
            try:
                answer = self._send(Batch((kept,), batch.segment, batch.end))
            except Unreachable as error:
                return self._again(batch, str(error), kind=error.kind)
            if not 200 <= answer.status < 300 and answer.status not in (400, 409, 413, 422):
                return self._again(batch, answer.says, kind=f"status {answer.status}")
        self._leave(batch, reason)
        return 0.0

    def _leave(self, batch: Batch, reason: str) -> None:
        self._spool.count(refused=1)
        self._spool.acknowledge(batch)
        self._failures = self._unknown = 0
        self._tell.error("refused", "%s (%d records refused so far)", reason, self._spool.progress.refused)

    def _unknown_cards(self, batch: Batch, answer: Answer) -> float:
        """Sends the report that held when the samples were read, then the newest, then gives up the unknown cards."""
        self._unknown += 1
        if self._unknown > len(UNKNOWN_WAITS):
            return self._without(batch, answer.json().get("cards"))
        self._spool.release(batch)
        report = (self._report if self._unknown == 1 else None) or self._newest_report()
        if report is None:
            return self._again(batch, "the server does not know these cards and no report is at hand", kind="unknown")
        try:
            told = self._post(REPORT_PATH, report)
        except Unreachable as error:
            self._unknown -= 1
            return self._again(batch, str(error), kind=error.kind)
        if not 200 <= told.status < 300:
            if not (told.is_problem and told.status in (400, 422)):
                self._unknown -= 1
            return self._again(batch, told.says, kind=f"status {told.status}")
        return UNKNOWN_WAITS[self._unknown - 1]

    def _without(self, batch: Batch, unknown: Any) -> float:
        """Delivers one record without the cards that the server does not want to know; the next try anew."""
        if len(batch.records) > 1:
            self._spool.release(batch)
            self._limit = max(1, batch.records[0].count)
            return 0.0
        names = unknown if isinstance(unknown, list) else []
        tries = self._unknown
        reason = f"the server does not know the cards {unknown} in spite of a report; their samples are left"
        wait = self._leave_part(batch, lambda _, sample: sample.get("card") not in names, reason)
        self._unknown = tries  # further records of these cards need no further reports; a success resets it
        return wait


def _part(record: Record, keeps: Callable[[int, dict[str, Any]], bool]) -> Record:
    """The record with the samples that `keeps` keeps, told by their place and content; a report has none."""
    if record.kind is not Kind.SAMPLES:
        return Record(record.kind, record.second, 0, b"")
    samples: list[dict[str, Any]] = msgspec.json.decode(b"[%b]" % record.payload)
    kept = [sample for place, sample in enumerate(samples) if keeps(place, sample)]
    return Record(record.kind, record.second, len(kept), b",".join(msgspec.json.encode(sample) for sample in kept))
