"""How jobs are assigned to servers, with simulated servers and a simulated clock (as
tests/client/server_speeds_test.cc)."""

import contextlib

import pytest

from spexd._speeds import Speeds


class Night:
    """Servers that do one job after the other, each with its own time per job."""

    def __init__(self, *seconds):
        self.now = 0.0
        self.seconds = seconds
        self.counts = [0] * len(seconds)
        self._free = [0.0] * len(seconds)
        self._speeds = Speeds(0, lambda: self.now)

    def run(self, jobs, outstanding):
        """Does this many jobs with this many outstanding at once; returns when the last one ends."""
        running = []
        while jobs or running:
            while jobs and len(running) < outstanding:
                assignment = contextlib.ExitStack()
                job = assignment.enter_context(self._speeds.job(range(len(self.seconds)), range(len(self.seconds))))
                self.counts[job.server] += 1
                self._free[job.server] = max(self._free[job.server], self.now) + self.seconds[job.server]
                running.append((self._free[job.server], job, assignment))
                jobs -= 1
            first = min(running, key=lambda entry: entry[0])
            running.remove(first)
            self.now, job, assignment = first
            job.done()
            assignment.close()
        return self.now


@pytest.mark.parametrize("times", [1.0, 1.4, 2.0, 3.0, 6.0, 12.0])
def test_a_slow_server_makes_a_night_no_longer(times):
    alone = Night(0.12).run(40, 4)
    # Half of the jobs outstanding at once go to each server before its speed is known.
    assert Night(0.12, 0.12 * times).run(40, 8) <= max(alone + 0.12, 4 * 0.12 * times)


def test_servers_share_the_jobs_by_their_speeds():
    night = Night(1.0, 3.0)
    assert night.run(200, 8) <= 150 + 6
    assert night.counts[1] == pytest.approx(50, abs=6)


@pytest.mark.parametrize("outstanding", [1, 3])
def test_equal_servers_take_turns(outstanding):
    night = Night(0.2, 0.22, 0.19)
    night.run(30, outstanding)
    assert night.counts == [10, 10, 10]


def test_a_server_that_refuses_a_job_is_left_alone_for_a_while():
    night = Night(1.0, 1.0)
    night.run(4, 1)
    speeds = night._speeds

    def server():
        with speeds.job(range(2), range(2)) as job:
            return job.server

    with speeds.job(range(2), range(2)) as job:
        job.refused(None)
    assert {server() for _ in range(4)} == {1 - job.server}
    night.now += 1.1
    assert server() == job.server
