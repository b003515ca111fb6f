#!/usr/bin/env python3
"""The frames a second of `spexd.dask.extract_night`, beside those of as many processes with the same engine and no Dask.

measure_night.py --bin FOLDER [--frames N] [--check]    --check: fails below 85 % of the processes' frames a second
"""

import argparse
import concurrent.futures
import multiprocessing
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import distributed

import spexd
from spexd.dask import extract_night

FIBRES, ROWS = 50, 600
WORKERS = 2
TURNS = 3
SMALLEST_SHARE = 0.85

_engine = None


def make_engine():
    global _engine
    _engine = spexd.Engine("cpu", threads=1)


def extract(image, psf, outputs):
    """What a script does without Dask: one PSF, a frame after the other."""
    prepared = spexd.Psf(psf)
    for output in outputs:
        _engine.extract(image, psf=prepared).to_fits(output)


def seconds_of_processes(pool, image, psf, outputs):
    parts = [outputs[k::WORKERS] for k in range(WORKERS)]
    start = time.monotonic()
    for done in [pool.submit(extract, image, psf, part) for part in parts]:
        done.result()
    return time.monotonic() - start


def seconds_of_dask(dask, image, psf, outputs):
    table = [{"image": image, "psf": psf, "output": output} for output in outputs]
    start = time.monotonic()
    night = extract_night(dask, table, device="cpu")
    assert not night.failed, night.failed[0]
    return time.monotonic() - start


def measure(folder, programs, frames):
    size = ["--fibres", str(FIBRES), "--rows", str(ROWS)]
    command = [programs / "spex", "simulate", *size, "--out-dir", folder]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    image, psf = str(folder / "preproc-r0.fits"), str(folder / "psf-r0.fits")
    size = {"n_workers": WORKERS, "threads_per_worker": 1, "dashboard_address": None}
    spawn = multiprocessing.get_context("spawn")  # threads of Dask do not survive a fork
    processes, nights = [], []
    with (
        distributed.LocalCluster(**size) as cluster,
        distributed.Client(cluster) as dask,
        concurrent.futures.ProcessPoolExecutor(WORKERS, spawn, initializer=make_engine) as pool,
    ):
        dask.wait_for_workers(WORKERS)
        # In turns: other programs of the machine meet both.
        for turn in range(TURNS):
            for name, measured, seconds in (
                ("processes", processes, lambda outputs: seconds_of_processes(pool, image, psf, outputs)),
                ("dask", nights, lambda outputs: seconds_of_dask(dask, image, psf, outputs)),
            ):
                outputs = [str(folder / f"{name}-{turn}" / f"frame-{k:04}.fits") for k in range(frames)]
                os.mkdir(os.path.dirname(outputs[0]))
                measured.append(seconds(outputs))
    return processes, nights


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--frames", type=int, default=1500)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="spexd-night-") as name:
        processes, nights = measure(pathlib.Path(name), options.bin.resolve(), options.frames)
    share = min(processes) / min(nights)
    print(f"{options.frames} frames: processes {min(processes):.2f} s, Dask {min(nights):.2f} s, share {share:.3f}")
    print(f"all: processes {[round(s, 2) for s in processes]}, Dask {[round(s, 2) for s in nights]}")
    return int(options.check and share < SMALLEST_SHARE)


if __name__ == "__main__":
    sys.exit(main())
