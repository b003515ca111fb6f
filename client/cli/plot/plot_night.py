#!/usr/bin/env python3
"""Draws what `spex night` did: seconds, chi2pix and masked bins of every frame, in the order of the list.

plot_night.py NIGHT.json OUTPUT; `spex night --plot` calls it.
"""
import argparse
import json
import sys

sys.dont_write_bytecode = True  # nothing is left beside an installed script
import plot_common
from plot_common import GRID, LINE, MASKED, SOFT, ZOOM

plt = plot_common.load_pyplot()

FORMAT = 1
ARMS = {"b": LINE, "r": MASKED, "z": ZOOM}
PANELS = (
    ("seconds a frame", lambda frame: frame["seconds"]),
    ("median chi2pix", lambda frame: frame["chi2pix"]),
    ("masked bins (%)", lambda frame: 100 * frame["masked_bins"] / max(frame["bins"], 1)),
)


def draw(night):
    frames = night["frames"]
    states = [frame["state"] for frame in frames]
    figure, axes = plt.subplots(len(PANELS), 1, sharex=True, figsize=(10, 7), dpi=140)
    for axis, (label, value) in zip(axes, PANELS):
        for state, filled in (("written", True), ("skipped", False)):
            for arm in sorted({frame.get("camera", "")[:1] for frame in frames}):
                chosen = [(k, value(f)) for k, f in enumerate(frames)
                          if f["state"] == state and f.get("camera", "")[:1] == arm]
                if not chosen:
                    continue
                colour = ARMS.get(arm, SOFT)
                axis.plot(*zip(*chosen), "o", ms=3.5, color=colour, mfc=colour if filled else "white",
                          label="%s, %s" % (arm or "no camera", state))
        for k, state in enumerate(states):
            if state == "failed":
                axis.axvline(k, color=MASKED, lw=0.6, alpha=0.6)
        axis.set_ylabel(label)
        axis.set_ylim(bottom=0)
        axis.grid(True, color=GRID, linewidth=0.6)
        axis.set_axisbelow(True)
    handles, _ = axes[0].get_legend_handles_labels()
    if handles:
        axes[0].legend(loc="best", frameon=False, fontsize=8, ncol=3)
    axes[-1].set_xlabel("frame of the list; a line where one failed")
    counts = ", ".join("%d %s" % (states.count(state), state) for state in ("written", "skipped", "failed"))
    axes[0].set_title("%d frames: %s; %.0f s in all" % (len(frames), counts, night["seconds"]))
    figure.tight_layout()
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
