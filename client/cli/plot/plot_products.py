#!/usr/bin/env python3
"""Draws velocities and redshifts: each star's best model and chi2(v), each galaxy's lines and their stack, in all arms.

`spex plot --velocities --redshifts` calls it; the flags are those of `spex plot`.
"""
import argparse
import itertools
import os
import sys

sys.dont_write_bytecode = True  # writes nothing beside an installed script
import plot_common
from plot_common import ARMS, GRID, INK, LINE, MASKED, SKY, SOFT, TRUTH

plt = plot_common.load_pyplot()
(np,) = plot_common.load("numpy")
import plot_arms
from plot_frame import step_lines
from plot_tables import Galaxies, Stars, said_of_gap, warning_of

PANEL, ARM, ALONE, HEAD, FOOT = 2.6, 1.75, 3.5, 0.75, 0.5  # inches; for a frame, for each arm, least for arms
TITLE, BETWEEN = 0.3, 0.78  # inches of extra title above several arms; inches between targets
LIGHT_SPEED = 299792.458  # km/s
AROUND = 1200  # km/s around a line that are drawn
STACK_STEP = 50  # km/s
ALL = "all"  # name of all arms together
FLUX = {False: "flux without sky", True: "flux"}  # labels for a frame, for several arms
MAX_TITLE = 110  # characters in a line above a panel
MAX_ENTRIES = 6  # in a legend beside the file's name


def limit(axis, shown, above=0.25):
    """Sets the y axis for a flux, whose noise may exceed it, and for the curves that follow it in `shown`."""
    finite = [values[np.isfinite(values)] for values in shown if np.isfinite(values).any()]
    if finite:
        low, high = np.percentile(finite[0], [0.5, 99.5])
        low, high = min([low] + [part.min() for part in finite[1:]]), max([high] + [part.max() for part in finite[1:]])
        spread = max(high - low, 1e-6)
        axis.set_ylim(low - 0.1 * spread, high + above * spread)


class Layout:
    """The axes of one target: for each arm a spectrum, on request with its residual below; other axes at the right."""

    def __init__(self, figure, place, arms, joint, residuals):
        self.joint = joint
        left, right = place.subgridspec(1, 2, width_ratios=[3, 1.3], wspace=0.1)
        self.figure, self.right = figure, right
        self.frame = None
        if joint:  # an invisible axis around the panels of all arms
            self.frame = figure.add_subplot(left, frame_on=False, xticks=[], yticks=[])
            self.frame.set_ylabel(arms[0].unit, labelpad=30)
        self.spectra, self.residuals, self.others = [], [], []
        for arm, part in zip(arms, left.subgridspec(len(arms), 1, hspace=0.42)):
            both = part.subgridspec(2, 1, height_ratios=[3, 1], hspace=0.08) if residuals else [part]
            self.spectra.append(figure.add_subplot(both[0]))
            self.spectra[-1].set_xlim(arm.wave[0], arm.wave[-1] if len(arm.wave) > 1 else arm.wave[0] + 1)
            if residuals:
                self.spectra[-1].tick_params(labelbottom=False)
                self.residuals.append(figure.add_subplot(both[1], sharex=self.spectra[-1]))
        if not joint:
            self.spectra[0].set_ylabel(arms[0].unit)

    def add_right(self, rows, columns, **style):
        """Adds axes at the right."""
        self.others += [self.figure.add_subplot(part) for part in self.right.subgridspec(rows, columns, **style)]
        return self.others

    def title(self, first, second, **style):
        if self.joint:
            self.frame.set_title(first + "\n" + second, pad=19, linespacing=1.4)
        else:
            parts = [part for part in (first, second) if part]
            between = "   " if len(first + second) < MAX_TITLE else "\n"
            self.spectra[0].set_title(between.join(parts), pad=3, **style)

    @property
    def axes(self):
        return self.spectra + self.residuals + self.others


def short(value):
    """Formats a value with three digits, without an exponent."""
    return ("%.0f" if abs(value) >= 1000 else "%.3g") % value


def said_of(star, stars):
    """Returns a text with parameters, warnings, and the number of exposures that were fitted."""
    values = "  ".join("%s %s" % (name, short(star[name])) for name in stars.parameters + ["VSINI"])
    said = [values if np.isfinite(star["VRAD"]) else "", warning_of(star)]
    if stars.joint and star["RVS_WARN"] == 0:
        said.append("no warning")
    if "NUMEXP" in stars.table.dtype.names and star["NUMEXP"] > 1:
        said.append("fit of %d exposures, of which this is the first" % star["NUMEXP"])
    return "   ".join(part for part in said if part)


def said_of_arm(arm, stars, star):
    """Returns a text about an arm in a joint fit, or about the parts into which it was cut."""
    names = [name for name, _ in stars.scans]
    said = []
    for name in [arm.name] if arm.name in names else [name for name in names if name[0] in arm.name]:
        value = lambda column: star["%s_%s" % (column, name)]  # noqa: E731
        if value("NPIX"):
            said.append("%sS/N %.1f   χ² / bins = %.0f / %d" % (
                "" if name == arm.name else name + ": ", value("SN"), value("CHISQ"), value("NPIX")))
            if name == arm.name:
                said.append("v = %.2f ± %.2f km/s" % (value("VRAD"), value("VRAD_ERR")))
    return "   ".join([arm.name] + (said or ["no data"]))


def draw_star(figure, place, spectra, arms, stars, row):
    k = stars.of(row)
    star = stars.table[k]
    layout = Layout(figure, place, arms, stars.joint, True)
    template = "best template" if not stars.joint else "joint model"
    for panel, residual, arm, models, continua in zip(layout.spectra, layout.residuals, arms, stars.models, stars.continua):
        flux, error = step_lines(panel, arm.wave, arm, row, 0.6, label=FLUX[stars.joint])
        shown = [flux]
        if models is not None:
            panel.plot(arm.wave, models[k], color=TRUTH, linewidth=0.9, label=template)
            residual.plot(arm.wave, (flux - models[k]) / error, ".", color=LINE, markersize=1.5)
            shown.append(np.where(arm.good[row], models[k], np.nan))
        if continua is not None:
            panel.plot(arm.wave, continua[k], color=SKY, linewidth=0.9, linestyle="--", label="its continuum (a polynomial)")
            shown.append(continua[k])
        limit(panel, shown)
        residual.axhline(0, color=SOFT, linewidth=0.6)
        residual.set(ylim=(-5, 5), yticks=[-3, 3], ylabel="σ")
        if stars.joint:
            panel.set_title(said_of_arm(arm, stars, star), pad=3, fontsize=8.5, color=SOFT)
    velocity = "v = %.2f ± %.2f km/s" % (star["VRAD"], star["VRAD_ERR"]) if np.isfinite(star["VRAD"]) else "no velocity"
    layout.title("%s   %s   χ² / bins = %.0f / %d" % (spectra.label(row), velocity, star["CHISQ_TOT"], stars.bins[k]),
                 said_of(star, stars), fontsize=8.5)
    if stars.joint:
        scan, velocities = layout.add_right(2, 1, height_ratios=[2, 1], hspace=0.45)
        draw_arms(velocities, stars, star)
    else:
        (scan,) = layout.add_right(1, 1)
    draw_scan(scan, stars, star, k)
    return layout.axes


def colour_of(part):
    return {ALL: INK, "_": LINE}.get(part) or ARMS.get(part[0].lower(), SOFT)


def draw_scan(axis, stars, star, k):
    """Draws chi2 by velocity above its minimum, for each part of a joint fit and for all."""
    for name, chi2 in stars.scans + [(ALL if stars.scans else "_", stars.chi2)]:
        if np.isfinite(chi2[k]).any():
            axis.plot(stars.velocity, chi2[k] - np.nanmin(chi2[k]), color=colour_of(name), linewidth=0.9, label=name)
    if stars.scans and axis.lines:
        axis.legend(loc="upper center", ncol=len(axis.lines), frameon=False, fontsize=7.5, columnspacing=1.2, handlelength=1.4)
        axis.set_ylim(top=1.13 * axis.get_ylim()[1])
    axis.axvline(star["VRAD"], color=TRUTH, linewidth=0.9, label="v")
    if np.isfinite(star["V2"]):
        axis.axvline(star["V2"], color=MASKED, linewidth=0.9, linestyle=":", label="V2")
    axis.set_xlim(stars.velocity[0], stars.velocity[-1])
    axis.set_title("χ²(v) above its minimum   DCHI2 " + short(star["DCHI2"]), pad=3, color=SOFT)
    axis.set_xlabel("km/s")


def draw_arms(axis, stars, star):
    """Draws the velocity from each part of a joint fit, and from all."""
    names = [name for name, _ in stars.scans]
    all_arms = star["VRAD"], star["VRAD_ERR"]
    values = [(star["VRAD_" + name], star["VRAD_ERR_" + name]) for name in names] + [all_arms]
    for place, (name, (velocity, error)) in enumerate(zip(names + [ALL], values)):
        if np.isfinite([velocity, error]).all():
            axis.errorbar(velocity, place, xerr=error, fmt="o", color=colour_of(name), markersize=4, elinewidth=1.0, capsize=2)
    if np.isfinite(all_arms).all():
        axis.axvspan(all_arms[0] - all_arms[1], sum(all_arms), color=TRUTH, alpha=0.2, linewidth=0)
    axis.set_yticks(range(len(names) + 1), names + [ALL])
    axis.set_ylim(len(names) + 0.6, -0.6)
    axis.set_title("velocity by arm", pad=3, color=SOFT)
    axis.set_xlabel("km/s")


def line_in(arm, row, wave, z):
    """Returns velocities, flux above the continuum and its weight, for an arm's bins around a line at a redshift."""
    velocity = LIGHT_SPEED * np.log(arm.wave / (wave * (1 + z)))
    near = np.abs(velocity) < AROUND
    use = near & arm.good[row]
    beside = use & (np.abs(velocity) > 300)
    level = np.median(arm.flux[row][beside]) if beside.sum() > 4 else 0.0
    flux, weight = np.where(use, arm.flux[row] - level, np.nan), np.where(use, arm.ivar[row], 0)
    return velocity[near], flux[near], weight[near]


def stack_of(arms, row, galaxies, z):
    """Returns (velocities, values): the S/N of all lines together by velocity, weighted by their ratios."""
    edges = np.arange(-AROUND, AROUND + STACK_STEP, STACK_STEP)
    signal, information = np.zeros(len(edges) - 1), np.zeros(len(edges) - 1)
    for arm, (_, wave, ratio) in itertools.product(arms, galaxies.lines):
        velocity, flux, weight = line_in(arm, row, wave, z)
        place = np.digitize(velocity, edges) - 1
        inside = (place >= 0) & (place < len(signal)) & (weight > 0)
        np.add.at(signal, place[inside], ratio * weight[inside] * flux[inside])
        np.add.at(information, place[inside], ratio**2 * weight[inside])
    with np.errstate(all="ignore"):
        return 0.5 * (edges[1:] + edges[:-1]), np.where(information > 0, signal / np.sqrt(information), np.nan)


def lines_in(arm, galaxies, z):
    """Returns the lines at a redshift that are in an arm: (name, rest wavelength)."""
    return [(name, rest) for name, rest, _ in galaxies.lines if arm.wave[0] < rest * (1 + z) < arm.wave[-1]]


def draw_lines(axis, arm, galaxies, z):
    """Marks lines at a redshift. The first line of each name is labelled."""
    seen = set()
    for name, rest in lines_in(arm, galaxies, z):
        axis.axvline(rest * (1 + z), color=TRUTH, linewidth=0.7, linestyle=":", label="lines at z")
        if name not in seen:
            late = rest * (1 + z) > arm.wave[0] + 0.93 * (arm.wave[-1] - arm.wave[0])
            axis.text(rest * (1 + z), 0.97, " %s " % name, transform=axis.get_xaxis_transform(), fontsize=7.5, va="top",
                      ha="right" if late else "left", color=TRUTH)
        seen.add(name)


def draw_galaxy(figure, place, spectra, arms, galaxies, row):
    galaxy = galaxies.table[galaxies.of(row)]
    z = galaxy["Z"]
    layout = Layout(figure, place, arms, galaxies.joint, False)
    for panel, arm in zip(layout.spectra, arms):
        flux, _ = step_lines(panel, arm.wave, arm, row, 0.6, label=FLUX[galaxies.joint])
        limit(panel, [flux], 0.6)
        draw_lines(panel, arm, galaxies, z)
        if galaxies.joint:
            panel.set_title(arm.name, pad=3, fontsize=8.5, color=SOFT)
    cuts, stack = layout.add_right(1, 2, wspace=0.25)
    inside = [(arm, rest) for arm in arms for _, rest in lines_in(arm, galaxies, z)]
    traces = [line_in(arm, row, rest, z) for arm, rest in inside]
    pulls = [line * np.sqrt(weight) for _, line, weight in traces]
    finite = np.concatenate([pull[np.isfinite(pull)] for pull in pulls] or [np.zeros(1)])
    apart = max(7.0, 0.6 * finite.max(initial=0))
    for k, (arm, rest) in enumerate(inside):
        cuts.plot(traces[k][0], pulls[k] - apart * k, color=LINE, linewidth=0.7, drawstyle="steps-mid")
        cuts.text(-0.96 * AROUND, 3 - apart * k, "%.0f Å%s" % (rest, " " + arm.name if galaxies.joint else ""), fontsize=7,
                  color=TRUTH)
    layout.title("%s   z = %.5f   S/N %.1f   GAP %.1f (%s)" % (
        spectra.label(row), z, galaxy["SNR"], galaxy["GAP"], said_of_gap(galaxy)), "z2 = %.5f   significant groups of lines: %d" % (
        galaxy["Z2"], galaxy["NLINES"]))
    cuts.set(yticks=[], xlim=(-AROUND, AROUND))
    low, high = cuts.get_ylim()
    cuts.set_ylim(low, max(high, 3 + 0.06 * (3 - low)))  # keeps the topmost text inside
    cuts.set_title("lines at z (σ of a bin)", pad=3, color=SOFT)
    velocity, values = stack_of(arms, row, galaxies, z)
    stack.plot(velocity, values, color=TRUTH, linewidth=1.0, drawstyle="steps-mid")
    stack.axhline(0, color=SOFT, linewidth=0.6)
    stack.set(xlim=(-AROUND, AROUND), xlabel="km/s from z")
    stack.set_title("their stack (σ)", pad=3, color=SOFT)
    for axis in (cuts, stack):
        axis.axvline(0, color=SOFT, linewidth=0.6, linestyle=":")
    return layout.axes


def draw(spectra, arms, panels):
    """Draws the picture. `panels`: (draw_star or draw_galaxy, its table, row of the spectra) from the top."""
    sizes = [max(ARM * len(arms), ALONE) if table.joint else PANEL for _, table, _ in panels]
    title = TITLE if panels[0][1].joint else 0
    between = BETWEEN + 2 * title
    height = HEAD + title + sum(sizes) + between * (len(panels) - 1) + FOOT
    figure = plt.figure(figsize=(12, height), dpi=130)
    grid = figure.add_gridspec(len(panels), 1, left=0.065, right=0.985, top=1 - (HEAD + title) / height,
                               bottom=FOOT / height, height_ratios=sizes, hspace=between / np.mean(sizes))
    legend = {}
    for place, (draw_panel, table, row) in zip(grid, panels):
        for axis in draw_panel(figure, place, spectra, arms, table, row):
            axis.grid(True, color=GRID, linewidth=0.6)
            axis.set_axisbelow(True)
            axis.tick_params(labelsize=7.5)
            own = axis.get_legend()
            shown = [text.get_text() for text in own.get_texts()] if own else []
            for handle, label in zip(*axis.get_legend_handles_labels()):
                if label not in shown:
                    legend.setdefault(label, handle)
    figure.text(0.33, 0.12 / height, "wavelength (Å)", ha="center")
    figure.text(0.065, 1 - 0.22 / height, os.path.basename(spectra.path), fontsize=13, weight="bold", va="center")
    figure.legend(legend.values(), legend.keys(), loc="upper right", bbox_to_anchor=(0.985, 1 - 0.06 / height),
                  ncol=len(legend) if len(legend) <= MAX_ENTRIES else (len(legend) + 1) // 2, frameon=False, fontsize=8.5)
    return figure


def panels_of(tables, rows):
    """Returns the panels: those of the rows that were asked for and are in the tables, else the best of each table."""
    panels = []
    for draw_panel, table in tables:
        chosen = table.chosen() if rows is None else [row for row in rows if row in table.rows]
        panels += [(draw_panel, table, row) for row in chosen]
    if not panels:
        raise ValueError("%s: there is no target%s to draw" % (
            tables[0][1].path, "" if rows is None else " among --fibres or --targets"))
    return panels


def main():
    parser = argparse.ArgumentParser(prog="spex plot", description=__doc__.split("\n")[0])
    parser.add_argument("spectra", nargs="+")
    parser.add_argument("output")
    for flag in ("--sframe", "--velocities", "--redshifts", "--star-models", "--fibres", "--targets"):
        parser.add_argument(flag)
    arguments = parser.parse_args()
    try:
        spectra, arms = plot_arms.read(arguments.spectra, arguments.sframe)
        stars = Stars(arguments.velocities, spectra, arms, arguments.star_models) if arguments.velocities else None
        galaxies = Galaxies(arguments.redshifts, spectra, arms) if arguments.redshifts else None
        tables = [pair for pair in ((draw_star, stars), (draw_galaxy, galaxies)) if pair[1] is not None]
        panels = panels_of(tables, spectra.rows_of(arguments.fibres, arguments.targets))
    except ValueError as error:
        sys.stderr.write("spex: %s\n" % error)
        return 2
    return plot_common.write(lambda: draw(spectra, arms, panels), arguments.output)


if __name__ == "__main__":
    sys.exit(main())
