#!/usr/bin/env python3
"""Compares the throughput of `spexd.dask.extract_night` with that of as many `spex extract` on the same frames.

measure_night.py --bin FOLDER [--frames N] [--fibres N] [--rows N] [--check]

--check: fails below 85 % of the frames a second without Dask.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import distributed

from spexd.dask import extract_night

WORKERS = 2
TURNS = 3
SMALLEST_SHARE = 0.85


def seconds_of_processes(spex, images, psf, folder):
    """Extracts as a script does without Dask and without a list: one process for each part of the frames."""
    flags = ["-q", "-p", psf, "--output-dir", folder, "--device", "cpu", "--server", "", "--threads", "1"]
    start = time.monotonic()
    processes = [subprocess.Popen([spex, "extract", *flags, "-i", *images[k::WORKERS]]) for k in range(WORKERS)]
    assert [process.wait() for process in processes] == [0] * WORKERS
    return time.monotonic() - start


def seconds_of_dask(dask, images, psf, folder):
    table = [{"image": image, "psf": psf, "output": folder / image.name} for image in images]
    start = time.monotonic()
    night = extract_night(dask, table, device="cpu")
    assert not night.failed, night.failed[0]
    return time.monotonic() - start


def measure(folder, spex, frames, size):
    subprocess.run([spex, "simulate", *size, "--out-dir", folder], check=True, stdout=subprocess.DEVNULL)
    images, psf = [folder / f"image-{k:04}.fits" for k in range(frames)], folder / "psf-r0.fits"
    for image in images:
        os.link(folder / "preproc-r0.fits", image)
    workers = {"n_workers": WORKERS, "threads_per_worker": 1, "dashboard_address": None}
    processes, nights = [], []
    with distributed.LocalCluster(**workers) as cluster, distributed.Client(cluster) as dask:
        dask.wait_for_workers(WORKERS)
        # The kinds take turns, so that other programs of the machine affect both.
        for _ in range(TURNS):
            processes.append(seconds_of_processes(spex, images, psf, folder / "frames"))
            shutil.rmtree(folder / "frames")
            nights.append(seconds_of_dask(dask, images, psf, folder / "frames"))
            shutil.rmtree(folder / "frames")
    return processes, nights


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--frames", type=int, default=1500)
    parser.add_argument("--fibres", default="50")
    parser.add_argument("--rows", default="600")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="spexd-night-") as name:
        size = ["--fibres", options.fibres, "--rows", options.rows]
        processes, nights = measure(pathlib.Path(name), options.bin.resolve() / "spex", options.frames, size)
    share = min(processes) / min(nights)
    print(f"{options.frames} frames: processes {min(processes):.2f} s, Dask {min(nights):.2f} s, share {share:.3f}")
    print(f"all: processes {[round(s, 2) for s in processes]}, Dask {[round(s, 2) for s in nights]}")
    return int(options.check and share < SMALLEST_SHARE)


if __name__ == "__main__":
    sys.exit(main())
