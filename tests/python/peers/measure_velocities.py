"""Measures velocities of the same stars by spexd and by rvspecfit on one thread, and the products of `spex bench`.

Prints medians. With --check it fails beyond the limits below. Needs spexd and rvspecfit; peers.sh provides both.
"""

import argparse
import importlib.metadata
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[threads] = "1"  # before the libraries start

import numpy as np  # noqa: E402
from astropy.io import fits  # noqa: E402
from rvspecfit_peer import Library, fit_star, spectrum, write_library  # noqa: E402

import spexd  # noqa: E402

# Seconds on one thread, for the best run of `spex bench`, that --check allows for a frame, a star, a frame.
LIMITS = {"sky": 0.5, "velocity": 0.02, "lines": 0.5}
MIN_RATIO = 20  # rvspecfit's processor time relative to spexd's
MAX_APART = 0.1  # median difference of the velocities, in errors


def fit_as_rvspecfit(frame, row, library):
    arrays = (frame.flux[row], frame.ivar[row], frame.mask[row], frame.resolution[row])
    return fit_star([spectrum("r", frame.wave, *arrays)], library)


def make_frame(binaries, templates, fibres, folder):
    """Simulates and extracts stars; returns the sky-subtracted frame and the true velocities."""
    grid = ["-w", "5760,7620,0.8"]
    stars = ["--stars", templates, "--emitters", "0", "--fibres", str(fibres), "--seed", "5"]
    command = [binaries / "spex", "simulate", *stars, *grid, "--out-dir", folder]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    inputs = ["-i", folder / "preproc-r0.fits", "-p", folder / "psf-r0.fits"]
    command = [binaries / "spex", *inputs, *grid, "-o", folder / "frame.fits", "--device", "cpu", "-q"]
    subprocess.run(command, check=True)
    with fits.open(folder / "sources-r0.fits") as truth:
        return spexd.Frame.from_fits(folder / "frame.fits").sky_subtracted(), truth[1].data["VRAD"].astype(float)


def timed(call):
    """Returns wall-clock seconds, processor seconds (which depend less on other load), and the result."""
    start, used = time.perf_counter(), time.process_time()
    result = call()
    return time.perf_counter() - start, time.process_time() - used, result


def say(what, samples):
    told = []
    for seconds in zip(*samples, strict=True):
        least, most = 1e3 * min(seconds), 1e3 * max(seconds)
        told.append(f"{1e3 * statistics.median(seconds):8.2f} ms ({least:.2f} .. {most:.2f})")
    print(f"{what:10} a star {told[0]}, of the processor {told[1]}")
    names = ("seconds", "processor_seconds")
    return dict(zip(names, map(list, zip(*samples, strict=True)), strict=True))


def pulls(velocities, errors, truth):
    values = (np.asarray(velocities) - truth) / np.asarray(errors)
    return f"robust sigma of pulls {1.4826 * np.median(np.abs(values - np.median(values))):.2f}"


def bench(binaries, folder):
    """Returns the seconds of each product in `spex bench`: (least, median)."""
    command = [binaries / "spex", "bench", "--device", "cpu", "--threads", "1", "--parts", "products", "--repeats", "5"]
    subprocess.run([*command, "--no-check", "-q", "--json", folder / "bench.json"], check=True, stdout=subprocess.DEVNULL)
    report = json.loads((folder / "bench.json").read_text())["products"]
    return {each["name"]: (each["seconds"]["min"], each["seconds"]["median"]) for each in report["products"]}


def beyond_limits(products, ratio, apart):
    """Returns messages about limits of --check that are exceeded."""
    wrong = [f"{name} takes {products[name][0]:.4f} s in spex bench, must be at most {limit} s"
             for name, limit in LIMITS.items() if products[name][0] > limit]  # fmt: skip
    if ratio < MIN_RATIO:
        wrong.append(f"rvspecfit takes {ratio:.1f} times as long, must be at least {MIN_RATIO}")
    if not apart < MAX_APART:
        wrong.append(f"velocities are {apart:.3f} errors apart, must be less than {MAX_APART}")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=pathlib.Path, required=True, help="folder of spex")
    parser.add_argument("--fibres", type=int, default=25)
    parser.add_argument("--stars", type=int, default=12, help="how many stars both fit")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--check", action="store_true", help="fail beyond the limits")
    args = parser.parse_args()
    before = os.getloadavg()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_library(folder / "templates.fits")
        frame, truth = make_frame(args.bin.resolve(), folder / "templates.fits", args.fibres, folder)
        library, templates = Library(folder / "templates.fits"), spexd.Templates(folder / "templates.fits")
        products = bench(args.bin.resolve(), folder)

    def fit_all():
        *seconds, table = timed(lambda: frame.velocities(templates, sky_subtracted=True, threads=1))
        return [each / len(table) for each in seconds], table

    fit_all()  # touches memory, wakes processors
    good = fit_all()[1]
    chosen = good[good["RVS_WARN"] == 0][: args.stars]
    fit_as_rvspecfit(frame, chosen["ROW"][0], library)  # numba compiles
    ours, theirs, found = [], [], []
    for row in chosen["ROW"]:
        ours.append(fit_all()[0])
        *seconds, fit = timed(lambda row=row: fit_as_rvspecfit(frame, row, library))
        theirs.append(seconds)
        found.append(fit)
    rows = chosen["ROW"]
    versions = {each: importlib.metadata.version(each) for each in ("rvspecfit", "numpy", "scipy")}
    print(f"{len(rows)} stars of {len(good)} that spexd fits at once, {len(frame.wave)} bins, {versions}")
    load = [round(value, 2) for value in (before[0], os.getloadavg()[0])]
    print(f"load before and after, this process included after: {load[0]}, {load[1]} on {os.cpu_count()} processors")
    result = {"spexd": say("spexd", ours), "rvspecfit": say("rvspecfit", theirs)}
    middle = {name: statistics.median(result[name]["processor_seconds"]) for name in result}
    away = np.array([fit["vel"] for fit in found]) - chosen["VRAD"]
    apart = np.median(np.abs(away) / chosen["VRAD_ERR"])
    ratio = middle["rvspecfit"] / middle["spexd"]
    print(f"{ratio:.0f} times the processor's time; velocities {apart:.3f} errors apart (median)")
    print(f"spexd {pulls(chosen['VRAD'], chosen['VRAD_ERR'], truth[rows])}; rvspecfit "
          f"{pulls([fit['vel'] for fit in found], [fit['vel_err'] for fit in found], truth[rows])}")  # fmt: skip
    for name, (least, median) in products.items():
        print(f"spex bench {name:9} {1e3 * median:8.2f} ms (at best {1e3 * least:.2f})")
    if args.json:
        result.update(bench=products, stars=len(rows), bins=len(frame.wave), load=load, versions=versions, processors=os.cpu_count())
        args.json.write_text(json.dumps(result, indent=1) + "\n")
    wrong = beyond_limits(products, ratio, apart) if args.check else []
    for each in wrong:
        print(f"measure_velocities: {each}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
