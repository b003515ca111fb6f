"""The choice of the server with which a job begins, by the rules of the C++ client (client/balance/server_speeds.h).
Nothing here waits."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Sequence

_EQUAL_FACTOR, _EQUAL_SECONDS = 1.5, 0.05  # smaller differences of speed are ignored
_FIRST_JOB_PATIENCE = 10.0
_HALF_LIFE, _HALF_LIFE_OF_FIRST = 300.0, 10.0
_MIN_AWAY, _MAX_AWAY = 1.0, 60.0
_WEIGHT_OF_THE_LAST = 0.1
_MAX_DOUBLINGS = 6


@dataclasses.dataclass
class _Record:
    outstanding: int = 0
    done: int = 0
    first: float = 0.0  # seconds of the first job, which also loads the PSF
    seconds: float = 0.0  # mean time between the ends of jobs while jobs are outstanding, after the first job
    last: float = 0.0  # when the last job ended, or when the first outstanding one began
    chosen: int = 0  # number of the last choice of this server; 0: never
    refusals: int = 0  # in a row
    away: float = float("-inf")  # time until which the server is not called

    def seconds_per_job(self, rest: float, now: float) -> float:
        """``rest``: the fraction of the first job's time that later jobs take, for a server that has done only one."""
        since = max(now - self.last, 0.0)
        seconds = self.seconds if self.done > 1 else rest * self.first
        if self.outstanding:
            return max(seconds, since / self.outstanding)
        half_life = _HALF_LIFE if self.done > 1 else min(_HALF_LIFE, _HALF_LIFE_OF_FIRST * self.first)
        return seconds * 0.5 ** (since / half_life) if half_life > 0 else 0.0


class Job:
    """A job on a server. Unless ``done`` or ``refused`` is called, its end says nothing about the server."""

    def __init__(self, server: int) -> None:
        self.server = server  #: index of the server
        self.was_done = False
        self.was_refused = False
        self.delay: float | None = None

    def done(self) -> None:
        """Notes that the server did the job, so that its time counts."""
        self.was_done = True

    def refused(self, delay: float | None) -> None:
        """Notes that the server refused the job or lost it. ``delay``: when the server asks to be called again."""
        self.was_refused, self.delay = True, delay


class Speeds:
    """The speeds of servers, as far as a client knows them. Threads may share it."""

    def __init__(self, first: int, clock: Callable[[], float] = time.monotonic) -> None:
        """Servers about which nothing is known take turns, beginning with ``first``, modulo their number."""
        self._first = first
        self._clock = clock
        self._lock = threading.RLock()  # reentrant: the end of a dropped job may interrupt any code
        self._records: dict[Hashable, _Record] = {}
        self._choices = 0

    @contextlib.contextmanager
    def job(self, servers: Sequence[Hashable], ready: Sequence[int]) -> Iterator[Job]:
        """A job on the one of ``ready`` (indices of ``servers``) that is expected to end it first."""
        with self._lock:
            job = Job(self._choose(servers, ready))
            server = servers[job.server]
            record = self._records[server]
            if record.outstanding == 0:
                record.last = self._clock()
            record.outstanding += 1
            self._choices += 1
            record.chosen = self._choices
        try:
            yield job
        finally:
            with self._lock:
                self._end(record, job)

    def _end(self, record: _Record, job: Job) -> None:
        now = self._clock()
        record.outstanding -= 1
        if job.was_refused:
            doubled = _MIN_AWAY * 2 ** min(record.refusals, _MAX_DOUBLINGS)
            record.refusals += 1
            record.away = now + min(max(doubled if job.delay is None else job.delay, _MIN_AWAY), _MAX_AWAY)
            return
        if job.was_done:
            record.done += 1
            took = now - record.last
            if record.done == 1:
                record.first = took
            else:
                record.seconds += max(_WEIGHT_OF_THE_LAST, 1 / (record.done - 1)) * (took - record.seconds)
        record.refusals, record.away, record.last = 0, float("-inf"), now

    def _choose(self, servers: Sequence[Hashable], ready: Sequence[int]) -> int:
        now = self._clock()
        known = {server: record for server, record in self._records.items() if record.outstanding or server in servers}
        self._records = known
        records = [known.setdefault(server, _Record()) for server in servers]
        count = len(servers)

        def order(index: int) -> tuple[int, int]:
            return records[index].chosen, (index - self._first) % count

        available = [index for index in ready if records[index].away <= now] or list(ready)
        unknown = [index for index in available if records[index].done == records[index].outstanding == 0]
        if unknown:
            return min(unknown, key=order)
        rest = self._rest_of_first()
        seconds = {
            index: records[index].seconds_per_job(rest, now)
            for index in available
            if records[index].done or now >= records[index].last + records[index].outstanding * _FIRST_JOB_PATIENCE
        }
        if not seconds:  # all are at their first jobs
            return min(available, key=lambda index: (records[index].outstanding, *order(index)))
        least = min(seconds.values())
        limit = max(_EQUAL_FACTOR * least, least + _EQUAL_SECONDS)
        seconds = {index: least if value <= limit else value for index, value in seconds.items()}
        best = min(
            seconds,
            key=lambda index: ((records[index].outstanding + 1) * seconds[index], records[index].outstanding),
        )
        equal = [
            index
            for index in seconds
            if seconds[index] == seconds[best] and records[index].outstanding <= records[best].outstanding + 1
        ]
        return min(equal, key=order)

    def _rest_of_first(self) -> float:
        fastest = min(
            (record for record in self._records.values() if record.done > 1),
            key=lambda record: record.seconds,
            default=None,
        )
        return 1.0 if fastest is None or fastest.seconds >= fastest.first else fastest.seconds / fastest.first
