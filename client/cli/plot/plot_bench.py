#!/usr/bin/env python3
"""Draws the measurements of `spex bench --json`: stages beside their floors, and frames per second.

plot_bench.py BENCH.json OUTPUT; `spex bench --plot` calls it.
"""
import json
import sys

sys.dont_write_bytecode = True  # writes no cache beside an installed script
import plot_common
from plot_common import BAND, GRID, INK, LINE, SOFT, TRUTH, ZOOM

plt = plot_common.load_pyplot()

FORMAT = 1
OWN, PREPARED, MOVED = LINE, ZOOM, TRUTH


def three_digits(value):
    return "%.*f" % (3 if value < 1 else 2 if value < 10 else 1 if value < 100 else 0, value)


def milliseconds(seconds):
    return three_digits(1e3 * seconds) + " ms" if seconds < 1 else three_digits(seconds) + " s"


def median(values):
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else 0.5 * (ordered[middle - 1] + ordered[middle])


def draw_stages(axis, bench):
    """Draws a bar for each stage's seconds, with its spread, and its floor inside."""
    stages = bench["stages"]
    scale, unit = (1e3, "ms") if max(s["own_psf"]["median"] for s in stages) < 1 else (1, "s")
    places = range(len(stages))
    spent = [scale * s["own_psf"]["median"] for s in stages]
    spread = [[scale * (s["own_psf"]["median"] - s["own_psf"]["min"]) for s in stages],
              [scale * (s["own_psf"]["max"] - s["own_psf"]["median"]) for s in stages]]
    axis.barh(places, spent, height=0.62, color=BAND, label="measured (median, range)")
    axis.barh(places, [scale * s["floor"] for s in stages], height=0.62, color=OWN, label="floor; × is their ratio")
    axis.errorbar(spent, places, xerr=spread, fmt="none", ecolor=SOFT, elinewidth=0.9, capsize=2.5)
    reach = max(value + high for value, high in zip(spent, spread[1]))
    for place, stage in enumerate(stages):
        ratio = stage["own_psf"]["median"] / stage["floor"] if stage["floor"] > 0 else float("nan")
        axis.text(spent[place] + spread[1][place] + 0.015 * reach, place, "%s %s   %s ×" % (
            three_digits(spent[place]), unit, "%.1f" % ratio), va="center", fontsize=8)
    axis.set_yticks(list(places), [s["name"] for s in stages], color=INK)
    axis.tick_params(axis="y", length=0)
    axis.invert_yaxis()
    axis.set_xlim(0, 1.28 * reach)
    kind = "CPU" if bench["engine"]["kind"] == "cpu" else "device"
    axis.set_xlabel("%s time of one frame with its own PSF (%s)" % (kind, unit))
    total = scale * median([frame["engine"] for frame in bench["frames"]["own_psf"]])
    least = scale * sum(s["floor"] for s in stages)
    axis.set_title("Stages: %s %s in all, floor %s, ratio %.1f" % (
        three_digits(total), unit, three_digits(least), total / least), pad=6)
    axis.grid(True, axis="x", color=GRID, linewidth=0.6)
    axis.set_axisbelow(True)
    axis.legend(loc="lower right", frameon=False, fontsize=8)


def draw_throughput(axis, bench):
    """Draws frames per second, with a group of bars for each number in flight."""
    runs = bench["throughput"]
    counts = sorted({run["in_flight"] for run in runs})
    best = max(run["frames_per_second"] for run in runs)
    kinds = [kind for kind in (("own", "own PSF for each frame", OWN), ("prepared", "prepared PSF", PREPARED),
                               ("moved", "PSF moved by each frame's shifts", MOVED))
             if any(run["psf"] == kind[0] for run in runs)]
    width = 0.76 / len(kinds)
    for k, (psf, label, colour) in enumerate(kinds):
        rates = {run["in_flight"]: run["frames_per_second"] for run in runs if run["psf"] == psf}
        places = [counts.index(count) + (k - 0.5 * (len(kinds) - 1)) * width for count in rates]
        axis.bar(places, list(rates.values()), width=0.9 * width, color=colour, label=label)
        for place, rate in zip(places, rates.values()):
            axis.text(place, rate + 0.012 * best, three_digits(rate), ha="center", va="bottom", fontsize=8)
    axis.set_xticks(range(len(counts)), [str(count) for count in counts])
    axis.tick_params(axis="x", length=0)
    axis.set_xlim(-0.75, len(counts) - 0.25)
    axis.set_ylim(0, 1.25 * best)
    axis.set_xlabel("frames in flight")
    axis.set_ylabel("frames / s")
    axis.set_title("Throughput", pad=6)
    axis.grid(True, axis="y", color=GRID, linewidth=0.6)
    axis.set_axisbelow(True)
    axis.legend(loc="upper left", frameon=False, fontsize=8, ncol=2 if len(counts) > 1 else 1)


def latency(bench):
    """Returns a line about how long a frame takes."""
    parts = []
    for key, label in (("own_psf", "own PSF"), ("prepared", "prepared")):
        frames = bench.get("frames", {}).get(key)
        if frames:
            parts.append("frame, %s: %s, first bundle %s" % (
                label, milliseconds(median([f["wall"] for f in frames])),
                milliseconds(median([f["first_bundle"] for f in frames]))))
    if "cold" in bench:
        parts.append("cold start to the first bundle: %s" % milliseconds(bench["cold"]["total"]))
    return "     ".join(parts)


def draw(bench):
    panels = [(draw_stages, 1.55)] if bench.get("stages") else []
    panels += [(draw_throughput, 1.0)] if bench.get("throughput") else []
    figure = plt.figure(figsize=(11, 4.6), dpi=140)
    if panels:
        grid = figure.add_gridspec(1, len(panels), width_ratios=[width for _, width in panels], left=0.085,
                                   right=0.985, top=0.735, bottom=0.125, wspace=0.16)
        for k, (panel, _) in enumerate(panels):
            panel(figure.add_subplot(grid[0, k]), bench)
    engine, frame = bench["engine"], bench["input"]
    names = sorted({device["name"] for device in engine["devices"]})
    device = "%d × %s" % (len(engine["devices"]), ", ".join(names)) if names else engine["device"]
    figure.text(0.015, 0.945, "spexd %s, %s engine: %s" % (bench["version"], engine["kind"], device), fontsize=13,
                weight="bold", va="center")
    figure.text(0.015, 0.885, "%d fibres × %d bins, %.0f–%.0f Å by %g, %s" % (
        frame["fibres"], frame["bins"], frame["grid"]["first"], frame["grid"]["last"], frame["grid"]["step"],
        frame["description"]), color=SOFT, va="center")
    figure.text(0.015, 0.835, latency(bench), color=SOFT, va="center")
    return figure


def main():
    path, output = plot_common.arguments_of("spex bench --plot", __doc__)
    try:
        with open(path) as file:
            bench = json.load(file)
        if bench["format"] != FORMAT:
            raise ValueError("format %s, this script reads %d" % (bench["format"], FORMAT))
    except (OSError, ValueError, KeyError, TypeError) as error:
        sys.stderr.write("spex: %s: not what spex bench --json wrote: %s\n" % (path, error))
        return 2
    return plot_common.write(lambda: draw(bench), output)


if __name__ == "__main__":
    sys.exit(main())
