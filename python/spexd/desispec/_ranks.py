"""Steps that the ranks of a communicator do together. They use its rank, size, gather and bcast."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from typing import Any, TypeVar

from spexd.errors import SpexdError, StatusCode, error_of

T = TypeVar("T")


class Ranks:
    """The ranks of a communicator, or this process alone."""

    def __init__(self, comm: Any) -> None:
        self._comm = comm
        self.rank: int = 0 if comm is None else comm.rank

    def placements(self) -> list[tuple[str, frozenset[int]]]:
        """Returns the host and the processors of each rank."""
        here = (socket.gethostname(), frozenset(os.sched_getaffinity(0)))
        if self._comm is None:
            return [here]
        answer: list[tuple[str, frozenset[int]]] = self._comm.bcast(self._comm.gather(here, root=0), root=0)
        return answer

    def together(self, step: Callable[[], T]) -> list[T]:
        """Runs a step on each rank; returns the results on rank 0, elsewhere an empty list. If the step fails on
        some ranks, all raise: those their own error, the others that of the lowest of them."""
        if self._comm is None:
            return [step()]
        result, error = None, None
        try:
            result = step()
        except Exception as raised:  # the other ranks wait for this one
            error = raised
        told = self._comm.gather((result, _told(error)), root=0)
        first = self._comm.bcast(None if told is None else _first(told), root=0)
        if error is not None:
            raise error
        if first is not None:
            rank, code, text = first
            raise error_of(code, f"rank {rank}: {text}")
        return [] if told is None else [result for result, _ in told]


def _told(error: Exception | None) -> tuple[int, str] | None:
    """Converts an error for sending, because not every exception can be sent."""
    if error is None:
        return None
    if isinstance(error, SpexdError):
        return int(error.code), str(error)
    return int(StatusCode.UNKNOWN), repr(error)


def _first(told: list[tuple[Any, tuple[int, str] | None]]) -> tuple[int, int, str] | None:
    return next(((rank, *error) for rank, (_, error) in enumerate(told) if error is not None), None)


def divide(fibres: range, bundle_size: int, ranks: int) -> list[range]:
    """Returns the fibres of each rank that gets any: whole bundles, divided as evenly as possible. The first rank gets
    most.

    >>> divide(range(0, 500), 100, 3)
    [range(0, 200), range(200, 400), range(400, 500)]
    >>> divide(range(30, 70), 25, 16)
    [range(30, 50), range(50, 70)]
    """
    first, end = fibres.start // bundle_size, -(-fibres.stop // bundle_size)
    shares = min(ranks, end - first)
    each, left = divmod(end - first, shares)
    edges = [first + rank * each + min(rank, left) for rank in range(shares + 1)]
    bounds = [min(max(edge * bundle_size, fibres.start), fibres.stop) for edge in edges]
    return [range(*pair) for pair in zip(bounds, bounds[1:], strict=False)]
