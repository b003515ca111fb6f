#!/usr/bin/env python3
"""Runs `spex night` over many small frames while its processes and its servers are killed.

night_test.py BIN FRAMES            every frame and its products are made once, and a resumed run redoes nothing
night_test.py BIN FRAMES --speed    throughput with a list is at least 85 % of that without a list, also when two runs
                                    share the list and the processors; with sky and redshifts it is at least 75 % of
                                    that without them
"""

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
from many_frames import Night

SERVERS = 3
RUNS = 2  # processes of spex night at the same time
MIN_SHARE = 0.85  # of the throughput without spex night
MIN_SHARE_WITH_PRODUCTS = 0.75  # of the throughput of spex night without products
TURNS = 3
LOST_SERVER = 3  # exit code


class Server:
    """A spexd that uses the same port when it is started again."""

    def __init__(self, programs, folder, number):
        self._ports = folder / f"ports-{number}.json"
        self._log = open(folder / f"spexd-{number}.log", "ab")
        self._command = [f"{programs}/spexd", "--http", "127.0.0.1:0", "--port-file", str(self._ports)]
        self._command += ["--device", "cpu", "--threads", "1", "--allow-root", str(folder)]
        self.address = "127.0.0.1:0"
        self.start()

    def start(self):
        self._ports.unlink(missing_ok=True)
        self._process = subprocess.Popen([*self._command, "--listen", self.address], stdout=self._log, stderr=self._log)
        end = time.monotonic() + 60
        while not self._ports.exists():
            assert self._process.poll() is None and time.monotonic() < end, f"spexd did not start: {self._log.name}"
            time.sleep(0.01)
        self.address = json.loads(self._ports.read_text())["grpc"]

    def kill(self):
        self._process.kill()
        self._process.wait()


class Runs:
    """Processes of `spex night` that share one list. One that ends because it lost a server (code 3) is started
    again."""

    def __init__(self, night, flags):
        self._command = [night.spex, "night", str(night.list), "--progress", "none", "-q", *night.products, *flags]
        self._processes = [self._start() for _ in range(RUNS)]

    def _start(self):
        return subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def kill_one(self, which):
        """Kills a process and starts another in its place."""
        self._processes[which].kill()
        self._processes[which].communicate()
        self._processes[which] = self._start()

    def are_at_work(self):
        return any(process.poll() in (None, LOST_SERVER) for process in self._processes)

    def continue_stopped(self):
        for which, process in enumerate(self._processes):
            if process.poll() == LOST_SERVER:
                process.communicate()
                self._processes[which] = self._start()

    def end(self):
        """Waits for the end of all processes; to be called when no more servers are killed."""
        self.continue_stopped()
        for which, process in enumerate(self._processes):
            errors = process.communicate()[1]
            if process.returncode == LOST_SERVER:  # a server was killed while this one ran
                again = self._processes[which] = self._start()
                errors += again.communicate()[1]
                process = again
            assert process.returncode == 0, f"exit code {process.returncode}: {errors}"


def summary(night, flags):
    """Returns what a run prints that finds all frames finished."""
    command = [night.spex, "night", str(night.list), "--progress", "none", *night.products, *flags]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def survives(night, flags, kills, servers=()):
    """Kills processes in turn, each when a further part of the frames is recorded, and checks the frames afterwards."""
    count, results = len(night.frames()), len(night.names()[0])
    night.forget()
    runs = Runs(night, flags)
    before, killed = {}, 0
    while runs.are_at_work() and killed < kills:
        runs.continue_stopped()
        if len(night.records()) < (killed + 1) * results / (kills + 1):
            time.sleep(0.02)
            continue
        before = {**before, **night.state()}
        if servers and killed % 2 == 0:
            server = servers[killed // 2 % len(servers)]
            server.kill()
            server.start()
        else:
            runs.kill_one(killed % RUNS)
        killed += 1
    runs.end()
    assert killed == kills, f"{killed} kills, must be {kills}"
    night.check()
    after = night.state()
    again = [name for name, file in before.items() if after[name] != file]
    assert not again, f"frames that were finished were extracted again: {again}"
    said = summary(night, flags)
    assert f"0 of {count} frames written, {count} skipped" in said, said
    assert night.state() == after
    night.check()


def main():
    programs, count = os.path.realpath(sys.argv[1]), int(sys.argv[2])
    kills = max(4, count // 100)
    with tempfile.TemporaryDirectory(prefix="spexd-night-") as name, contextlib.ExitStack() as stack:
        folder = pathlib.Path(name)
        night = Night(programs, folder)
        if "--speed" in sys.argv[3:]:
            night.make(count)
            return speed(night)
        night.make(count, fibres=10, rows=200, products=True)
        print(f"One engine in each process: {count} frames, {kills} processes killed.")
        survives(night, ["--device", "cpu", "--threads", "1", "--in-flight", "2"], kills)
        servers = [Server(programs, folder, number) for number in range(SERVERS)]
        for server in servers:
            stack.callback(server.kill)
        print(f"{SERVERS} servers: {count} frames, {kills} processes and servers killed.")
        survives(night, ["--server", ",".join(server.address for server in servers)], kills, servers)
    return 0


def seconds_of(night, runs, *more):
    """Returns the seconds of runs that share the list and the processors."""
    threads = str(max(1, os.cpu_count() // runs))
    command = [night.spex, "night", str(night.list), "-q", "--progress", "none", "--device", "cpu", "--threads", threads]
    night.forget()
    start = time.monotonic()
    processes = [subprocess.Popen([*command, *more], stderr=subprocess.DEVNULL) for _ in range(runs)]
    assert [process.wait() for process in processes] == [0] * runs
    return time.monotonic() - start


def speed(night):
    """Measures runs of each kind in turns, so that other programs of the machine affect all of them."""
    seconds = {"extract": [], "one run": [], f"{RUNS} runs": [], "sky and redshifts": []}
    for _ in range(TURNS):
        seconds["extract"].append(night.bare("--device", "cpu", "--threads", str(os.cpu_count())))
        seconds["one run"].append(seconds_of(night, 1))
        seconds[f"{RUNS} runs"].append(seconds_of(night, RUNS))
        seconds["sky and redshifts"].append(seconds_of(night, 1, "--products", "sky,redshifts"))
    best = {name: min(all_of_it) for name, all_of_it in seconds.items()}
    # The run with products is compared with the same night without them, all others with one `spex extract`.
    shares = {name: best["one run" if name == "sky and redshifts" else "extract"] / one for name, one in best.items()}
    print(f"{len(night.frames())} frames")
    for name, all_of_it in seconds.items():
        print(f"{name}: {best[name]:.2f} s, share {shares[name]:.3f}; all {[round(s, 2) for s in all_of_it]}")
    good = all(share >= (MIN_SHARE_WITH_PRODUCTS if name == "sky and redshifts" else MIN_SHARE) for name, share in shares.items())
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
