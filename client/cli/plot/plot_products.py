#!/usr/bin/env python3
"""Draws velocities and redshifts of a frame: each star's best model and chi2(v), each galaxy's lines and their stack.

`spex plot --velocities --redshifts` calls it; the flags are those of `spex plot`.
"""
import argparse
import os
import sys

sys.dont_write_bytecode = True  # nothing is left beside an installed script
import plot_common
from plot_common import BAND, GRID, LINE, MASKED, SKY, SOFT, TRUTH

plt = plot_common.load_pyplot()
(np,) = plot_common.load("numpy")
import plot_data
from plot_tables import Galaxies, Stars, said_of_gap, warning_of

PANEL, HEAD, FOOT = 2.6, 0.75, 0.5  # inches
LIGHT_SPEED = 299792.458  # km/s
AROUND = 1200  # km/s of a line that is drawn
STACK_STEP = 50  # km/s


def steps(axis, x, flux, error, **style):
    axis.fill_between(x, flux - error, flux + error, step="mid", color=BAND, alpha=0.7, linewidth=0, label="± 1 σ")
    axis.plot(x, flux, color=LINE, linewidth=0.6, drawstyle="steps-mid", **style)


def spectrum_of(spectra, row):
    """Flux and error of a row, NaN without data."""
    good = spectra.good[row]
    error = np.where(good, 1 / np.sqrt(np.where(good, spectra.ivar[row], 1)), np.nan)
    return np.where(good, spectra.flux[row], np.nan), error


def limit(axis, values, above=0.25):
    finite = values[np.isfinite(values)]
    if len(finite):
        low, high = np.percentile(finite, [0.5, 99.5])
        spread = max(high - low, 1e-6)
        axis.set_ylim(low - 0.1 * spread, high + above * spread)


def draw_star(axes, frame, spectra, stars, row):
    """`axes`: of the spectrum, of its residual, of chi2(v)."""
    spectrum, residual, scan = axes
    k, wave = stars.of(row), frame.wave
    star = stars.table[k]
    flux, error = spectrum_of(spectra, row)
    steps(spectrum, wave, flux, error, label="flux without sky")
    spectrum.plot(wave, stars.model[k], color=TRUTH, linewidth=0.9, label="best template")
    spectrum.plot(wave, stars.continuum[k], color=SKY, linewidth=0.9, linestyle="--", label="its continuum (a polynomial)")
    limit(spectrum, np.concatenate([flux, stars.continuum[k]]))
    spectrum.set_ylabel("electrons / Å")
    pulls = (flux - stars.model[k]) / error
    residual.plot(wave, pulls, ".", color=LINE, markersize=1.5)
    residual.axhline(0, color=SOFT, linewidth=0.6)
    residual.set(ylim=(-5, 5), yticks=[-3, 3], ylabel="σ")
    values = "  ".join(("%s %.3g" if abs(star[name]) < 1000 else "%s %.0f") % (name, star[name])
                       for name in stars.parameters + ["VSINI"])
    warning = warning_of(star)
    spectrum.set_title("%s   v = %.2f ± %.2f km/s   χ² / bins = %.0f / %d   %s%s" % (
        frame.label(row), star["VRAD"], star["VRAD_ERR"], star["CHISQ_TOT"], star["NBIN"], values, "   " + warning if warning else ""),
        pad=3, fontsize=8.5)
    chi2 = stars.chi2[k]
    scan.plot(stars.velocity, chi2 - chi2.min(), color=LINE, linewidth=0.9)
    scan.axvline(star["VRAD"], color=TRUTH, linewidth=0.9, label="v")
    if np.isfinite(star["V2"]):
        scan.axvline(star["V2"], color=MASKED, linewidth=0.9, linestyle=":", label="V2")
    scan.set_title("χ²(v) above its minimum   DCHI2 %.3g" % star["DCHI2"], pad=3, color=SOFT)
    scan.set_xlabel("km/s")


def line_in(spectra, frame, row, wave, z):
    """Velocities, flux above the continuum and its weight of the bins around a line at a redshift."""
    velocity = LIGHT_SPEED * np.log(frame.wave / (wave * (1 + z)))
    near = np.abs(velocity) < AROUND
    use = near & spectra.good[row]
    beside = use & (np.abs(velocity) > 300)
    level = np.median(spectra.flux[row][beside]) if beside.sum() > 4 else 0.0
    flux, weight = np.where(use, spectra.flux[row] - level, np.nan), np.where(use, spectra.ivar[row], 0)
    return velocity[near], flux[near], weight[near]


def stack_of(spectra, frame, row, galaxies, z):
    """Signal to noise of all lines together by velocity, with the weights of their ratios: (velocities, values)."""
    edges = np.arange(-AROUND, AROUND + STACK_STEP, STACK_STEP)
    signal, information = np.zeros(len(edges) - 1), np.zeros(len(edges) - 1)
    for _, wave, ratio in galaxies.lines:
        velocity, flux, weight = line_in(spectra, frame, row, wave, z)
        place = np.digitize(velocity, edges) - 1
        inside = (place >= 0) & (place < len(signal)) & (weight > 0)
        np.add.at(signal, place[inside], ratio * weight[inside] * flux[inside])
        np.add.at(information, place[inside], ratio**2 * weight[inside])
    with np.errstate(all="ignore"):
        return 0.5 * (edges[1:] + edges[:-1]), np.where(information > 0, signal / np.sqrt(information), np.nan)


def draw_galaxy(axes, frame, spectra, galaxies, row):
    """`axes`: of the spectrum, of each line in velocity, of their stack."""
    spectrum, cuts, stack = axes
    galaxy, wave = galaxies.table[galaxies.of(row)], frame.wave
    z = galaxy["Z"]
    flux, error = spectrum_of(spectra, row)
    steps(spectrum, wave, flux, error, label="flux without sky")
    spectrum.set_ylabel("electrons / Å")
    limit(spectrum, flux, 0.6)
    inside = [(name, rest, ratio) for name, rest, ratio in galaxies.lines if wave[0] < rest * (1 + z) < wave[-1]]
    seen = set()
    traces = [line_in(spectra, frame, row, rest, z) for _, rest, _ in inside]
    pulls = [line * np.sqrt(weight) for _, line, weight in traces]
    finite = np.concatenate([pull[np.isfinite(pull)] for pull in pulls] or [np.zeros(1)])
    apart = max(7.0, 0.6 * finite.max(initial=0))
    for k, (name, rest, _) in enumerate(inside):
        spectrum.axvline(rest * (1 + z), color=TRUTH, linewidth=0.7, linestyle=":", label="lines at z")
        if name not in seen:
            spectrum.text(rest * (1 + z), 0.97, " " + name, transform=spectrum.get_xaxis_transform(), fontsize=7.5,
                          va="top", color=TRUTH)
        seen.add(name)
        cuts.plot(traces[k][0], pulls[k] - apart * k, color=LINE, linewidth=0.7, drawstyle="steps-mid")
        cuts.text(-0.96 * AROUND, 3 - apart * k, "%.0f Å" % rest, fontsize=7, color=TRUTH)
    spectrum.set_title("%s   z = %.5f   S/N %.1f   GAP %.1f (%s)   z2 = %.5f   significant groups of lines: %d" % (
        frame.label(row), z, galaxy["SNR"], galaxy["GAP"], said_of_gap(galaxy), galaxy["Z2"], galaxy["NLINES"]), pad=3)
    cuts.set(yticks=[], xlim=(-AROUND, AROUND))
    cuts.set_title("lines at z (σ of a bin)", pad=3, color=SOFT)
    velocity, values = stack_of(spectra, frame, row, galaxies, z)
    stack.plot(velocity, values, color=TRUTH, linewidth=1.0, drawstyle="steps-mid")
    stack.axhline(0, color=SOFT, linewidth=0.6)
    stack.set(xlim=(-AROUND, AROUND), xlabel="km/s from z")
    stack.set_title("their stack (σ)", pad=3, color=SOFT)
    for axis in (cuts, stack):
        axis.axvline(0, color=SOFT, linewidth=0.6, linestyle=":")


def draw(frame, spectra, stars, galaxies, panels):
    """`panels`: (draw_star or draw_galaxy, row of the frame) from the top."""
    height = HEAD + PANEL * len(panels) + FOOT
    figure = plt.figure(figsize=(12, height), dpi=130)
    grid = figure.add_gridspec(len(panels), 1, left=0.065, right=0.985, top=1 - HEAD / height, bottom=FOOT / height,
                               hspace=0.3)
    legend = {}
    for place, (draw_panel, row) in zip(grid, panels):
        both = place.subgridspec(1, 2, width_ratios=[3, 1.3], wspace=0.1)
        if draw_panel is draw_star:
            left = both[0].subgridspec(2, 1, height_ratios=[3, 1], hspace=0.08)
            spectrum = figure.add_subplot(left[0])
            axes = (spectrum, figure.add_subplot(left[1], sharex=spectrum), figure.add_subplot(both[1]))
            spectrum.tick_params(labelbottom=False)
            draw_star(axes, frame, spectra, stars, row)
        else:
            right = both[1].subgridspec(1, 2, wspace=0.25)
            spectrum = figure.add_subplot(both[0])
            axes = (spectrum, figure.add_subplot(right[0]), figure.add_subplot(right[1]))
            draw_galaxy(axes, frame, spectra, galaxies, row)
        spectrum.set_xlim(frame.wave[0], frame.wave[-1])
        for axis in axes:
            axis.grid(True, color=GRID, linewidth=0.6)
            axis.set_axisbelow(True)
            axis.tick_params(labelsize=7.5)
            for handle, label in zip(*axis.get_legend_handles_labels()):
                legend.setdefault(label, handle)
    figure.text(0.33, 0.12 / height, "wavelength (Å)", ha="center")
    figure.text(0.065, 1 - 0.22 / height, os.path.basename(frame.path), fontsize=13, weight="bold", va="center")
    figure.legend(legend.values(), legend.keys(), loc="upper right", bbox_to_anchor=(0.985, 1 - 0.06 / height),
                  ncol=len(legend), frameon=False, fontsize=8.5)
    return figure


def panels_of(frame, tables, fibres):
    """What is drawn: of the fibres asked for all that the tables have, else the best of each table."""
    panels = []
    for draw_panel, table in tables:
        rows = table.chosen()
        if fibres:
            rows = [row for row in frame.rows_of(fibres) if row in table.rows]
        panels += [(draw_panel, row) for row in rows]
    if not panels:
        raise ValueError("%s: there is no target%s to draw" % (tables[0][1].path, " among --fibres" if fibres else ""))
    return panels


def main():
    parser = argparse.ArgumentParser(prog="spex plot", description=__doc__.split("\n")[0])
    parser.add_argument("frame")
    parser.add_argument("output")
    for flag in ("--sframe", "--velocities", "--redshifts", "--fibres"):
        parser.add_argument(flag)
    arguments = parser.parse_args()
    try:
        frame = plot_data.Frame(arguments.frame)
        spectra = plot_data.read_subtracted(arguments.sframe, frame) if arguments.sframe else frame
        stars = Stars(arguments.velocities, frame) if arguments.velocities else None
        galaxies = Galaxies(arguments.redshifts, frame) if arguments.redshifts else None
        tables = [pair for pair in ((draw_star, stars), (draw_galaxy, galaxies)) if pair[1] is not None]
        panels = panels_of(frame, tables, arguments.fibres)
    except ValueError as error:
        sys.stderr.write("spex: %s\n" % error)
        return 2
    return plot_common.write(lambda: draw(frame, spectra, stars, galaxies, panels), arguments.output)


if __name__ == "__main__":
    sys.exit(main())
