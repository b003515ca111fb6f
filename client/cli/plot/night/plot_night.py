#!/usr/bin/env python3
"""Draws the record of `spex night`: what needs attention, exposures by cameras, numbers of frames over the night.

plot_night.py NIGHT.json OUTPUT; `spex night --plot` calls it.
"""
import sys
import textwrap

sys.dont_write_bytecode = True  # writes no cache beside an installed script
import night_findings
import plot_common
from night_findings import ATTENTION, FAILED, NOTE
from plot_common import ARMS, GRID, INK, SOFT

plt = plot_common.load_pyplot()

PURPLE = "#6a1b7d"
APART = "#f1e4cf"
FACES = {"ok": "#dbe9f6", ATTENTION: "#ffd08a", FAILED: PURPLE, NOTE: "white", "not reached": "white"}
WORDS = {FAILED: "×", "not reached": "–"}
MARKERS = {"b": "o", "r": "s", "z": "^"}
WIDE_RANGE = 10  # largest value / median above which an axis is logarithmic if it may be
WIDTH = 11  # inches, like all sizes below
PANEL, LINE, ROW = 1.75, 0.21, 0.23
MAX_FINDINGS = 14
MAX_ROWS = 60  # number of exposures beyond which cells have no numbers and are lower
LETTERS = 138  # letters in a line of text
MAX_TICKS = 7
MANY_FRAMES = 600  # number of frames from which marks are smaller
MAX_NAMED = 40  # the most cameras whose names are above the matrix


def draw_findings(axis, lines):
    axis.set_axis_off()
    axis.set(xlim=(0, WIDTH), ylim=(len(lines), 0))
    for k, (severity, text) in enumerate(lines):
        if severity:
            colour = "white" if severity == FAILED else INK
            axis.text(0.42, k + 0.5, severity, fontsize=7.5, ha="center", va="center", color=colour,
                      bbox={"facecolor": FACES[severity], "edgecolor": SOFT, "lw": 0.4, "boxstyle": "round,pad=0.25"})
        axis.text(0.95, k + 0.5, text, fontsize=8.5, va="center")


def finding_lines(night):
    """Returns (severity, text) of each line. Only the first line of a finding has its severity."""
    lines = []
    for finding in night.findings[:MAX_FINDINGS]:
        texts = textwrap.wrap(finding.text, LETTERS)
        lines += [(finding.severity if k == 0 else "", text) for k, text in enumerate(texts)]
    more = len(night.findings) - MAX_FINDINGS
    if more > 0:
        lines.append(("", "and %d more, which the page of --report tells" % more))
    return lines or [("", "Nothing: no failures, and no frame is far from the others.")]


def row_height(night):
    return ROW if len(night.exposures) <= MAX_ROWS else ROW * MAX_ROWS / len(night.exposures)


def draw_matrix(axis, night):
    """Draws a cell with chi2pix for each frame."""
    rows = {exposure: k for k, exposure in enumerate(night.exposures)}
    columns = {camera: k for k, camera in enumerate(night.cameras)}
    numbers = len(rows) <= MAX_ROWS and len(columns) <= MAX_NAMED
    for frame in night.frames:
        state = frame.state if not frame.is_there else night.severity(frame) or "ok"
        x, y = columns[frame.camera], rows[frame.exposure]
        axis.add_patch(plt.Rectangle((x + 0.03, y + 0.06), 0.94, 0.88, facecolor=FACES[state], lw=0.5,
                                     edgecolor=SOFT if state == "not reached" else "none", ls=":"))
        said = WORDS.get(state) or ("%.2f" % frame.values["chi2pix"] if "chi2pix" in frame.values else "")
        if numbers:
            axis.text(x + 0.5, y + 0.52, said, ha="center", va="center", fontsize=7.5 if len(columns) <= 18 else 5,
                      color="white" if state == FAILED else INK)
    axis.set(xlim=(0, max(len(columns), 12)), ylim=(max(len(rows), 1), 0))
    axis.xaxis.tick_top()
    axis.set_xticks([k + 0.5 for k in columns.values()], list(columns), fontsize=8 if len(columns) <= 24 else 5.5)
    step = 1 if len(rows) <= MAX_ROWS else -(-len(rows) // MAX_ROWS)
    axis.set_yticks([k + 0.5 for k in rows.values()][::step], [night.label(e) for e in list(rows)[::step]], fontsize=8)
    axis.tick_params(length=0)
    for spine in axis.spines.values():
        spine.set_visible(False)
    handles = [plt.Rectangle((0, 0), 1, 1, facecolor=FACES[state], edgecolor=SOFT, lw=0.4)
               for state in ("ok", ATTENTION, FAILED, "not reached")]
    axis.legend(handles, ["as usual", "needs attention", "× failed", "– not reached"], loc="lower right", ncol=4,
                frameon=False, fontsize=8, bbox_to_anchor=(1, 1.02 + 0.2 / max(len(rows), 1)), borderaxespad=0.4,
                handlelength=1.2)


def draw_panel(axis, night, quantity, across):
    name = quantity.name
    there = [frame for frame in night.frames if name in frame.values]
    for finding in night.findings:
        if finding.of_exposure:
            middle = night.at[finding.frames[0].exposure]
            axis.axvspan(middle - 0.6 * across.width, middle + 0.6 * across.width, color=APART, lw=0, zorder=0,
                         label="exposure apart from the night's")
    for camera in night.cameras:
        frames = [frame for frame in there if frame.camera == camera]
        if not frames:
            continue
        points = [across.place(frame) for frame in frames], [frame.values[name] for frame in frames]
        colour = ARMS.get(camera[:1], SOFT)
        ranges = [(across.place(frame), *frame.ranges[name]) for frame in frames if name in frame.ranges]
        if ranges:
            axis.vlines(*zip(*ranges), color=colour, lw=2.5, alpha=0.3)
        axis.plot(*points, color=colour, lw=0.6, alpha=0.45)
        axis.plot(*points, MARKERS.get(camera[:1], "D"), ms=3.4 if len(night.frames) <= MANY_FRAMES else 2, color=colour, label=camera[:1])
    odd = {frame for finding in night.findings if finding.quantity == name for frame in finding.frames
           if name in frame.values}
    if odd:
        axis.plot([across.place(frame) for frame in odd], [frame.values[name] for frame in odd], "o", ms=7.5, mfc="none",
                  mec=INK, mew=0.9, label="needs attention")
    failed = [across.place(frame) for frame in night.frames if frame.state == "failed"]
    if failed:
        axis.plot(failed, [0] * len(failed), "x", ms=5, mew=1.4, color=PURPLE, label="failed frame", clip_on=False,
                  transform=axis.get_xaxis_transform())
    values = sorted(value for frame in there for value in frame.drawn(name))
    if quantity.may_be_log and values[0] > 0 and values[-1] > WIDE_RANGE * values[len(values) // 2]:
        axis.set_yscale("log")
        axis.set_ylim(values[0] / 1.5, 1.5 * values[-1])
        axis.yaxis.set_major_formatter("{x:g}")
    else:
        room = 0.08 * (values[-1] - values[0]) or 0.05 * abs(values[0]) or 0.5
        axis.set_ylim(values[0] - room, values[-1] + room)
    axis.set_title(quantity.title + (" (%s)" % quantity.unit if quantity.unit else ""), fontsize=9)
    axis.set_xlim(across.low, across.high)
    places, labels = zip(*across.ticks(MAX_TICKS))
    axis.set_xticks(places, labels)
    axis.grid(True, color=GRID, linewidth=0.6)
    axis.set_axisbelow(True)


def draw(night):
    lines = finding_lines(night)
    panel_rows = -(-len(night.quantities) // 2)
    heights = [LINE * len(lines), row_height(night) * max(len(night.exposures), 1), PANEL * panel_rows]
    titles = 0.75 + 0.5 + 0.35
    figure = plt.figure(figsize=(WIDTH, sum(heights) + titles + 0.5), dpi=100, layout="constrained")
    top, middle, bottom = figure.subfigures(3, 1, height_ratios=[heights[0] + 0.45, heights[1] + 0.75, heights[2] + 0.6])
    figure.suptitle(night.summary(), fontsize=10, x=0.01, ha="left")
    draw_findings(top.subplots(), lines)
    axis = middle.subplots()
    draw_matrix(axis, night)
    axis.set_title("Median chi2pix of exposures and cameras", fontsize=9, pad=6)
    if panel_rows:
        across = night_findings.Across(night)
        grid = bottom.add_gridspec(panel_rows + 1, 2, height_ratios=[0.16] + [1] * panel_rows)
        axes = [bottom.add_subplot(grid[1 + k // 2, k % 2]) for k in range(len(night.quantities))]
        for axis, quantity in zip(axes, night.quantities):
            draw_panel(axis, night, quantity, across)
            axis.set_xlabel(across.title, fontsize=8)
        known = {label: handle for one in axes for handle, label in zip(*one.get_legend_handles_labels())}
        known = dict(sorted(known.items(), key=lambda item: (len(item[0]) > 1, item[0])))
        marks = bottom.add_subplot(grid[0, :])
        marks.set_axis_off()
        marks.legend(known.values(), known.keys(), loc="center left", ncol=len(known), frameon=False, fontsize=8,
                     handletextpad=0.3, columnspacing=1.2, borderaxespad=0)
    return figure


def main():
    path, output = plot_common.arguments_of("spex night --plot", __doc__)
    night = night_findings.read(path)
    return plot_common.write(lambda: draw(night), output)


if __name__ == "__main__":
    sys.exit(main())
