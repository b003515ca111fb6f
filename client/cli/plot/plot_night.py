#!/usr/bin/env python3
"""Draws what `spex night` did: seconds, chi2pix, masked bins and trace shifts of every frame, exposure by exposure.

plot_night.py NIGHT.json OUTPUT; `spex night --plot` calls it.
"""
import argparse
import json
import os
import re
import sys

sys.dont_write_bytecode = True  # nothing is left beside an installed script
import plot_common
from plot_common import ARMS, GRID, SOFT

plt = plot_common.load_pyplot()

FORMAT = 2
FAILED = "#7b2d8e"
PANELS = (  # label, value of a frame, whether the axis may be logarithmic
    ("seconds a frame", lambda frame: frame["seconds"], False),
    ("median chi2pix", lambda frame: frame["chi2pix"], True),
    ("masked bins (%)", lambda frame: 100 * frame["masked_bins"] / max(frame["bins"], 1), False),
)
SHIFTS = (("x", "trace shift dx\n(pixels)"), ("y", "trace shift dy\n(pixels)"))
MARKERS = {"ok": "o", "weak": "v", "relative": "D"}
MAX_NAMED = 12  # cameras whose names stand at their last frames
PANEL_HEIGHT = 2.2  # inches
EXPOSURE_WIDTH = 0.7  # of the distance between exposures, over which their frames are spread
MAX_LABELS = 24
WIDE_RANGE = 10  # largest value / median, from which an axis that may be is logarithmic


def exposure_of(frame):
    """The label that the list gave the frame, else the number at the end of its name, else its name."""
    name = os.path.basename(frame.get("image") or frame["output"]).split(".fits")[0]
    number = re.search(r"\d{4,}$", name)
    return frame.get("expid") or (number.group().lstrip("0") if number else name)


def places(frames):
    """Exposures in the order of the list, and each frame's place: its exposure's number, and a part of one beside it."""
    members = {}
    for k, frame in enumerate(frames):
        members.setdefault(exposure_of(frame), []).append(k)
    at = [0.0] * len(frames)
    for number, of_one in enumerate(members.values()):
        for j, k in enumerate(of_one):
            at[k] = number + EXPOSURE_WIDTH * ((j + 0.5) / len(of_one) - 0.5)
    return list(members), at


def draw_frames(axis, frames, at, value):
    """One value of the frames that are there; returns all values."""
    values = []
    for state, filled in (("written", True), ("skipped", False)):
        for arm in sorted({frame.get("camera", "")[:1] for frame in frames}):
            chosen = [(x, value(f)) for x, f in zip(at, frames)
                      if f["state"] == state and f.get("camera", "")[:1] == arm]
            if not chosen:
                continue
            colour = ARMS.get(arm, SOFT)
            axis.plot(*zip(*chosen), "o", ms=3.5, color=colour, mfc=colour if filled else "white",
                      label="%s, %s" % (arm or "no camera", state))
            values += [y for _, y in chosen]
    bad = [(x, value(f)) for x, f in zip(at, frames) if f.get("bad_fit")]
    if bad:
        axis.plot(*zip(*bad), "x", ms=7, mew=1.2, color=FAILED, label="image and PSF do not fit")
    return values


def draw_shifts(axis, frames, at, name):
    """Means of the shifts of each camera with their errors, and bars from the smallest to the largest."""
    cameras, values = {}, []
    for x, frame in zip(at, frames):
        if frame.get("trace_shifts"):
            cameras.setdefault(frame["camera"], []).append((x, frame["trace_shifts"][name]))
    for camera, measurements in sorted(cameras.items()):
        colour = ARMS.get(camera[:1], SOFT)
        there = [(x, shift) for x, shift in measurements if shift["mean"] is not None]
        line = [(x, shift["mean"]) for x, shift in there if shift["status"] != "relative"]  # whose mean is not known
        if line:
            axis.plot(*zip(*line), color=colour, lw=0.6)
            if len(cameras) <= MAX_NAMED:
                axis.annotate(camera, line[-1], (6, 0), textcoords="offset points", fontsize=7.5, color=colour, va="center")
        for status, marker in MARKERS.items():
            chosen = [(x, shift) for x, shift in there if shift["status"] == status]
            if not chosen:
                continue
            x, shifts = zip(*chosen)
            mean, low, high, error = ([shift[key] for shift in shifts] for key in ("mean", "min", "max", "error"))
            axis.vlines(x, low, high, color=colour, lw=3, alpha=0.3, label="smallest to largest")
            error = [value or 0 for value in error]
            axis.errorbar(x, mean, yerr=error, fmt=marker, ms=3.5, color=colour, capsize=2.5,
                          lw=0.9, mfc=colour if status == "ok" else "white", label="mean, %s" % status)
            values += low + high + [m + sign * e for m, e in zip(mean, error) for sign in (-1, 1)]
        refused = [x for x, shift in measurements if shift["status"] == "refused"]
        axis.plot(refused, [0.05] * len(refused), "x", ms=6, mew=1.2, color=FAILED, label="refused" if refused else "",
                  transform=axis.get_xaxis_transform())
    low, high = min(values, default=0), max(values, default=0)
    room = max(0.12 * (high - low), 0.005)
    axis.set_ylim(low - 1.5 * room, high + room)


def legend_above(axis, axes):
    """A line above `axis` that explains the marks of `axes`."""
    known = {label: handle for one in axes for handle, label in zip(*one.get_legend_handles_labels())}
    if known:
        axis.legend(known.values(), known.keys(), loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.2,
                    frameon=False, fontsize=8, ncol=len(known), columnspacing=1.2, handletextpad=0.3)


def set_limits(axis, values, may_be_log):
    """All values within the axis, with room around them."""
    values = sorted(values)
    top = values[-1] if values and values[-1] > 0 else 1
    if may_be_log and values and values[0] > 0 and top > WIDE_RANGE * values[len(values) // 2]:
        axis.set_yscale("log")
        axis.set_ylim(values[0] / 1.5, 1.5 * top)
    else:
        axis.set_ylim(-0.04 * top, 1.08 * top)


def label_exposures(axis, exposures):
    """EXPID at as many exposures as have room for it."""
    step = -(-len(exposures) // MAX_LABELS)
    shown = range(0, len(exposures), step)
    turned = sum(len(exposures[k]) + 2 for k in shown) > 110
    axis.set_xticks(list(shown), [exposures[k] for k in shown], rotation=60 if turned else 0,
                    ha="right" if turned else "center", rotation_mode="anchor" if turned else "default")
    axis.set_xlim(-0.6, max(len(exposures), 1) - 0.4)
    axis.set_xlabel("exposure (EXPID), in the order of the list")


def draw(night):
    frames = night["frames"]
    states = [frame["state"] for frame in frames]
    exposures, at = places(frames)
    shifts = SHIFTS if any(frame.get("trace_shifts") for frame in frames) else ()
    panels = len(PANELS) + len(shifts)
    figure, axes = plt.subplots(panels, 1, sharex=True, figsize=(10, 1 + PANEL_HEIGHT * panels), dpi=140,
                                layout="constrained")
    for axis, (label, value, may_be_log) in zip(axes, PANELS):
        set_limits(axis, draw_frames(axis, frames, at, value), may_be_log)
        axis.set_ylabel(label)
    for axis, (name, label) in zip(axes[len(PANELS):], shifts):
        draw_shifts(axis, frames, at, name)
        axis.set_ylabel(label)
    if shifts:
        legend_above(axes[len(PANELS)], axes[len(PANELS):])
    for axis in axes:
        for k, x in enumerate(x for x, state in zip(at, states) if state == "failed"):
            axis.axvline(x, color=FAILED, lw=0.8, alpha=0.8, label="" if k else "failed")
        axis.grid(True, color=GRID, linewidth=0.6)
        axis.set_axisbelow(True)
    label_exposures(axes[-1], exposures)
    legend_above(axes[0], axes[:1])
    counts = ", ".join("%d %s" % (states.count(state), state)
                       for state in ("written", "skipped", "failed", "not reached")
                       if state in states or state != "not reached")
    figure.suptitle("%d frames: %s; %.0f s in all" % (len(frames), counts, night["seconds"]), fontsize=10)
    return figure


def main():
    parser = argparse.ArgumentParser(prog="spex night --plot", description=__doc__.split("\n")[0])
    parser.add_argument("night")
    parser.add_argument("output")
    arguments = parser.parse_args()
    try:
        with open(arguments.night) as file:
            night = json.load(file)
        if night["format"] != FORMAT:
            raise ValueError("format %s, this script reads %d" % (night["format"], FORMAT))
    except (OSError, ValueError, KeyError, TypeError) as error:
        sys.stderr.write("spex: %s: not what spex night --json wrote: %s\n" % (arguments.night, error))
        return 2
    return plot_common.write(lambda: draw(night), arguments.output)


if __name__ == "__main__":
    sys.exit(main())
