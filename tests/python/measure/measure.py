"""Measures the cost of the Python package on top of the engine, and compares it with the C++ client.

Prints medians. With --check they must keep to their limits, which needs an idle machine.

build/dev/python-env/bin/python tests/python/measure/measure.py --bin build/dev/bin --fibres 500
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
from astropy.io import fits

import spexd

RESULT_BYTES = 60  # of one bin of a fibre
MAX_BESIDE_ENGINE = 5e-3  # seconds, for a warm call
MIN_THROUGHPUT = 0.75  # of Client.stream, relative to the C++ client's


def timed(call):
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def say(what, seconds, unit=1.0, name="s"):
    scaled = [unit * value for value in seconds]
    print(f"{what:58} {statistics.median(scaled):9.3f} {name} ({min(scaled):.3f} .. {max(scaled):.3f})", flush=True)


def measure_calls(folder, repeats):
    """Measures a warm call in this process: arrays, with a PSF and a grid that the engine has prepared. Returns
    faults."""
    with fits.open(folder / "preproc-r0.fits") as hdus:
        pixels, ivar = (np.ascontiguousarray(hdus[name].data, np.float32) for name in ("IMAGE", "IVAR"))
        mask = np.ascontiguousarray(hdus["MASK"].data, np.int32)
    engine, psf = spexd.Engine("cpu"), spexd.Psf(folder / "psf-r0.fits")
    engine.extract(pixels, ivar, mask, psf)
    calls, engines, decodes, summaries, own = [], [], [], [], []
    for _ in range(repeats):
        seconds, frame = timed(lambda: engine.extract(pixels, ivar, mask, psf))
        decode = frame.job.stages["decode"]
        calls.append(seconds)
        engines.append(frame.job.engine_seconds)
        decodes.append(decode)
        summaries.append(frame.job.run_seconds - frame.job.engine_seconds - decode)
        own.append(seconds - frame.job.run_seconds)
    print(f"in process, {engine!r}, {len(frame.flux)} fibres x {len(frame.wave)} bins of {pixels.shape} pixels")
    say("  the call", calls)
    say("  of it the engine", engines)
    say("  of it looking for pixels of negative ivar", decodes, 1e3, "ms")
    say("  of it BAD2DFIT and scores, from all spectra", summaries, 1e3, "ms")
    say("  of it all else: the package's own", own, 1e3, "ms")
    return faults_of_calls(calls, engines)


def faults_of_calls(calls, engines):
    """Returns faults if a call costs too much on top of the engine, by medians of seconds.

    >>> faults_of_calls([1.002, 1.003, 2.0], [1.0, 1.0, 1.0])
    []
    >>> faults_of_calls([1.006], [1.0])
    ['a warm call costs 6.0 ms beside the engine, limit 5 ms']
    """
    beside = statistics.median(call - engine for call, engine in zip(calls, engines, strict=True))
    if beside <= MAX_BESIDE_ENGINE:
        return []
    return [f"a warm call costs {1e3 * beside:.1f} ms beside the engine, limit {1e3 * MAX_BESIDE_ENGINE:.0f} ms"]


def faults_of_streams(ours, theirs):
    """Returns faults if a stream is too slow compared with the C++ client, by medians of seconds.

    >>> faults_of_streams([1.0, 1.3, 9.0], [1.0])
    []
    >>> faults_of_streams([1.4], [1.0])
    ["Client.stream has 71 % of the C++ client's throughput, limit 75 %"]
    """
    throughput = statistics.median(theirs) / statistics.median(ours)
    if throughput >= MIN_THROUGHPUT:
        return []
    percent = f"{100 * throughput:.0f} % of the C++ client's throughput, limit {100 * MIN_THROUGHPUT:.0f} %"
    return [f"Client.stream has {percent}"]


def measure_server(folder, binaries, repeats):
    """Runs the same job, by path and to the same file, with this package and with spex in turns; then fetches stored
    results. Returns faults of the streams."""
    ports = folder / "ports.json"
    flags = ["--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--port-file", ports, "--device", "cpu"]
    server = subprocess.Popen(
        [binaries / "spexd", *flags, "--allow-root", folder, "--jobs-dir", folder / "jobs"], stderr=subprocess.DEVNULL
    )
    try:
        while not ports.exists():
            time.sleep(0.01)
        address = json.loads(ports.read_text())["grpc"]
        with spexd.Client(address) as client:
            return compare(client, Spex(binaries / "spex", address, folder), folder, repeats)
    finally:
        server.terminate()
        server.wait()


class Spex:
    """Runs spex as a client of the server."""

    def __init__(self, program, address, folder):
        self._program, self._server = program, ["--server", address, "-o", folder / "spex.fits", "-q"]

    def __call__(self, *arguments):
        subprocess.run([self._program, *arguments, *self._server], check=True)


def compare(client, spex, folder, repeats):
    image, psf = folder / "preproc-r0.fits", folder / "psf-r0.fits"
    frame = client.extract(image, psf=psf)
    megabytes = frame.flux.size * RESULT_BYTES / 1e6
    ours, theirs, fetched, fetched_by_spex = [], [], [], []

    def stream():
        with client.stream(image, psf=psf) as stream:
            for _ in stream:
                pass
        stream.frame.to_fits(folder / "python.fits")

    def watch(job_id):
        frame = client.watch(job_id)
        frame.to_fits(folder / "python.fits")
        client.ack(frame)

    for _ in range(repeats):
        ours.append(timed(stream)[0])
        theirs.append(timed(lambda: spex("extract", "-i", image, "-p", psf))[0])
        assert (folder / "python.fits").read_bytes() == (folder / "spex.fits").read_bytes()
        jobs = [client.submit(image, psf=psf).job_id for _ in range(2)]
        for job in jobs:
            client.watch(job)
        fetched.append(timed(lambda: watch(jobs[0]))[0])
        fetched_by_spex.append(timed(lambda: spex("watch", jobs[1]))[0])
    print(f"on a server, {megabytes:.1f} MB of results, written to a file")
    say("  extract: Client.stream", ours)
    say("  extract: spex", theirs)
    say("  results that are there: Client.watch", fetched)
    say("  results that are there: spex watch", fetched_by_spex)
    return faults_of_streams(ours, theirs)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--fibres", type=int, default=500)
    parser.add_argument("--rows", type=int, help="of the CCD; default: the camera's")
    parser.add_argument("--repeats", type=int, default=5)
    parts = parser.add_mutually_exclusive_group()
    parts.add_argument("--calls", action="store_true", help="only calls in this process, without a server")
    parts.add_argument("--streams", action="store_true", help="only what comes from a server")
    parser.add_argument("--check", action="store_true", help="fail if a call or a stream is slower than its limit")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        simulate = ["simulate", "--camera", "r", "--fibres", str(options.fibres), "--seed", "1", "--out-dir", folder]
        simulate += ["--rows", str(options.rows)] if options.rows else []
        subprocess.run([options.bin.resolve() / "spex", *simulate], check=True, stdout=subprocess.DEVNULL)
        faults = [] if options.streams else measure_calls(folder, options.repeats)
        if not options.calls:
            faults += measure_server(folder, options.bin.resolve(), options.repeats)
    if options.check and faults:
        sys.exit("; ".join(faults))


if __name__ == "__main__":
    main()
