"""When and where a refused call is tried again, by the rules of client/balance/server_rotation.h. Nothing here
waits."""

from __future__ import annotations

import dataclasses
import enum
import logging
import random
import time
from collections.abc import Sequence

from spexd.errors import (
    DataLossError,
    DeadlineExceededError,
    ResourceExhaustedError,
    SpexdError,
    UnavailableError,
)

_MAX_DOUBLINGS = 10
_log = logging.getLogger("spexd")


@dataclasses.dataclass(frozen=True)
class RetryPolicy:
    """Policy for trying refused calls again. Times are in seconds. Waits are randomised, so that clients that were
    refused together do not return together."""

    #: attempts to reach a server, with waits of about ``first_wait``, twice that, and so on
    unavailable_attempts: int = 5
    #: first wait for a server that cannot be reached
    first_wait: float = 0.2
    #: limit of the doubled waits
    longest_wait: float = 10.0
    #: total of the waits for servers that are full; each wait is as long as the server says plus up to a quarter
    queue_patience: float = 600.0
    #: attempts at an upload or an answer that arrives damaged
    data_loss_attempts: int = 2
    #: time for a server to say whether it takes jobs; it is asked only if there are several servers
    health_patience: float = 2.0
    #: seed of the random waits and of the choice of the first server; by default a different one each time
    seed: int | None = None

    def spread(self, delay: float, rng: random.Random) -> float:
        """Returns ``delay`` plus up to a quarter of it."""
        return delay + rng.uniform(0, max(0.0, delay) / 4)

    def back_off(self, failures: int, delay: float | None, rng: random.Random) -> float:
        """Returns the wait after this number of failures to reach a server; at least ``delay``, if the server asked
        for that."""
        doubled = self.first_wait * 2 ** min(max(failures - 1, 0), _MAX_DOUBLINGS)
        wait = min(doubled, self.longest_wait)
        return float(max(wait / 2 + rng.uniform(0, wait), self.spread(delay or 0.0, rng)))


class Then(enum.Enum):
    """Next step after a call that failed."""

    END = enum.auto()  # not at all
    ELSEWHERE = enum.auto()  # the server did not take it: with the next one, or with this one later
    HERE = enum.auto()  # it may have been taken: with this server, later
    AGAIN = enum.auto()  # the transfer was damaged: with this server, at once


def then_of(error: SpexdError, taken: bool) -> Then:
    """Returns how to continue, by the contract's status codes. ``taken``: the server had taken the job."""
    delay = error.retry_delay is not None
    if isinstance(error, ResourceExhaustedError) and delay:
        return Then.ELSEWHERE
    if isinstance(error, UnavailableError) and (delay or not taken):
        return Then.ELSEWHERE
    return Then.AGAIN if isinstance(error, DataLossError) else Then.END


@dataclasses.dataclass
class Candidate:
    """A server to try after a wait in seconds."""

    server: int
    wait: float = 0.0
    only: bool = False  # whether no other server will do


@dataclasses.dataclass
class _Server:
    ready: float = 0.0  # earliest time of the next attempt
    full: bool = False
    gone: int = 0  # number of times it could not be reached
    out: bool = False
    refusal: SpexdError | None = None


class Attempts:
    """The attempts of one call: servers in a cycle, with waits only after all have refused."""

    def __init__(
        self, addresses: Sequence[str], policy: RetryPolicy, deadline: float | None, first: int | None = None
    ) -> None:
        """The cycle begins at server ``first``, modulo the number of servers; None: at a random one."""
        self._addresses = list(addresses)
        self._policy = policy
        self._deadline = deadline  # of time.monotonic
        self._rng = random.Random(policy.seed)
        self._servers = [_Server() for _ in addresses]
        self._first = self._rng.randrange(len(addresses)) if first is None else first % len(addresses)
        self._patience = policy.queue_patience
        self._damaged = 0
        self._stays = False  # whether one server may have taken the call
        self._repeats: Candidate | None = None

    def first(self) -> Candidate:
        """Returns the first candidate."""
        candidate = self._next(time.monotonic())
        assert candidate is not None
        return candidate

    def ready(self, candidate: Candidate) -> list[int]:
        """Returns the servers that may be tried after the wait of ``candidate``."""
        now = time.monotonic()
        ready = [k for k, server in enumerate(self._servers) if not server.out and server.ready <= now]
        return [candidate.server] if candidate.only else ready or [candidate.server]

    def add(self, addresses: Sequence[str]) -> None:
        """Adds servers, to be tried next."""
        if addresses:
            self._first = len(self._servers) + self._rng.randrange(len(addresses))
            self._addresses += addresses
            self._servers += [_Server() for _ in addresses]

    def note(self, candidate: Candidate, error: SpexdError, then: Then) -> bool:
        """Records how an attempt ended. Returns True if all have refused, so that others may be added. Raises an
        error that is final."""
        if then is Then.END:
            raise error
        if then is Then.AGAIN:
            self._again(candidate, error)
            return False
        now = time.monotonic()
        self._elsewhere(candidate, error, then, now)
        return not self._stays and all(server.out or server.ready > now for server in self._servers)

    def next(self, error: SpexdError) -> Candidate:
        """Returns the candidate after an attempt that ended with ``error``. Raises an error if there is none."""
        following, self._repeats = self._repeats or self._next(time.monotonic()), None
        if following is None:
            raise self._sum() from error
        if self._deadline is not None and time.monotonic() + following.wait >= self._deadline:
            raise DeadlineExceededError(
                f"no time for another attempt before the deadline; the last one: {error}"
            ) from error
        address = self._addresses[following.server]
        _log.info("%s; trying %s in %.3f s", error, address, following.wait)
        return following

    def _again(self, candidate: Candidate, error: SpexdError) -> None:
        self._damaged += 1
        if self._damaged >= self._policy.data_loss_attempts:
            raise error
        self._repeats = Candidate(candidate.server, only=True)

    def _elsewhere(self, candidate: Candidate, error: SpexdError, then: Then, now: float) -> None:
        server = self._servers[candidate.server]
        server.refusal = error
        server.full = isinstance(error, ResourceExhaustedError)
        if server.full:
            server.ready = now + self._policy.spread(max(error.retry_delay or 0.0, 0.001), self._rng)
        else:
            server.gone += 1
            server.out = server.gone >= self._policy.unavailable_attempts
            server.ready = now + self._policy.back_off(server.gone, error.retry_delay, self._rng)
        if then is Then.HERE:
            self._stays = True
            for other in self._servers:
                other.out = other.out or other is not server

    def _next(self, now: float) -> Candidate | None:
        count = len(self._servers)
        for k in range(count):
            index = (self._first + k) % count
            if not self._servers[index].out and self._servers[index].ready <= now:
                self._first = (index + 1) % count
                return Candidate(index)
        while left := [k for k in range(count) if not self._servers[k].out]:
            index = min(left, key=lambda k: self._servers[k].ready)
            server, wait = self._servers[index], self._servers[index].ready - now
            if server.full and wait > self._patience:
                server.out = True
                continue
            if server.full:
                self._patience -= wait
            self._first = (index + 1) % count
            return Candidate(index, wait)
        return None

    def _sum(self) -> SpexdError:
        refusals = [
            (address, server.refusal)
            for address, server in zip(self._addresses, self._servers, strict=True)
            if server.refusal is not None
        ]
        if len(self._servers) == 1:
            return refusals[0][1]
        full = any(isinstance(error, ResourceExhaustedError) for _, error in refusals)
        kind = ResourceExhaustedError if full else UnavailableError
        parts = [str(error) if address in str(error) else f"spexd at {address}: {error}" for address, error in refusals]
        return kind("no server took the job: " + "; ".join(parts))


class Pauses:
    """Waits between attempts to reach one server again, within the time for which it may stay silent."""

    def __init__(self, policy: RetryPolicy, deadline: float | None) -> None:
        self._policy = policy
        self._deadline = deadline
        self._rng = random.Random(policy.seed)
        self.reset()

    def reset(self) -> None:
        """Restarts the waits, after progress of the server."""
        self._failures = 0
        self._patience = self._policy.queue_patience

    def after(self, error: SpexdError) -> float:
        """Returns the wait after a call that ended with ``error``. Raises an error if no time is left for one."""
        self._failures += 1
        wait = self._policy.back_off(self._failures, error.retry_delay, self._rng)
        if wait > self._patience:
            raise error
        self._patience -= wait
        if self._deadline is not None and time.monotonic() + wait >= self._deadline:
            raise DeadlineExceededError(
                f"no time for another attempt before the deadline; the last one: {error}"
            ) from error
        _log.info("%s; trying again in %.3f s", error, wait)
        return wait
