#!/usr/bin/env python3
"""Draws an extracted frame: a few spectra with their errors, trace shifts, and the image beside its model and residual.

`spex plot` calls it; `plot_frame.py --help` lists the flags, which are those of `spex plot`.
"""
import argparse
import os
import sys

sys.dont_write_bytecode = True  # writes nothing beside an installed script
import plot_common
from plot_common import BAND, GRID, LINE, MASKED, SKY, SOFT, TRUTH, ZOOM

plt = plot_common.load_pyplot()
(np,) = plot_common.load("numpy")
import plot_data
import plot_image
import plot_shifts

ZOOM_ANGSTROM = 60
SPECTRUM, RESOLUTION, SHIFTS, PICTURES, HEAD, FOOT = 1.6, 1.75, 3.1, 4.0, 0.85, 0.5  # inches
MAX_LEGENDS = 8  # most fibres that the legend of the resolution names


def interesting(frame, row):
    """Returns a stretch of bins where this fibre differs most from the others, or is brightest if it does not
    differ."""
    bins = len(frame.wave)
    width = min(bins, max(8, int(round(ZOOM_ANGSTROM / max(frame.wave[-1] - frame.wave[0], 1e-6) * bins))))
    own = np.where(frame.good[row], frame.flux[row], 0)
    noise = np.sqrt(np.where(frame.good[row], frame.ivar[row], 0))
    if len(frame.flux) > 4 and frame.types[row] != "SKY":
        own = own - np.median(np.where(frame.good, frame.flux, 0), axis=0)
        own = own - np.median(own)
    # Lines that are also in the sky differ only in their sampling, so they count less.
    sky = np.median(np.where(frame.good, frame.flux, 0), axis=0)
    calm = 1 / (1 + np.maximum(sky / max(np.median(sky), 1e-6) - 1, 0)) if len(frame.flux) > 4 else 1
    strength = np.convolve(np.abs(own) * noise * (calm if frame.types[row] != "SKY" else 1), np.ones(5) / 5, "same")
    inside = strength[width // 2:bins - width + width // 2 + 1]
    start = int(np.argmax(inside)) if len(inside) else 0
    return slice(start, start + width)


def choose(frame, count):
    """Returns rows of different brightness: the brightest, a typical one and a sky fibre, spread over the frame."""
    rows = np.arange(len(frame.flux))
    alive = rows[frame.good.mean(axis=1) > 0.3]
    if len(alive) <= count:
        return list(alive) if len(alive) else list(rows[:count])
    sky = [r for r in alive if frame.types[r] == "SKY"]
    targets = sorted((r for r in alive if frame.types[r] != "SKY"), key=lambda r: frame.snr[r])
    wanted = []
    if sky:
        wanted.append(sky[len(sky) // 2])
    if targets:
        for fraction in (0.99, 0.85, 0.5, 0.25):
            wanted.append(targets[int(fraction * (len(targets) - 1))])
    unique = list(dict.fromkeys(wanted))
    for row in alive:
        if len(unique) >= count:
            break
        if row not in unique:
            unique.append(row)
    return sorted(unique[:count], key=lambda r: -frame.snr[r])


def step_lines(axis, wave, spectra, row, width, label="flux"):
    """Draws flux and error as steps, and masked bins as ticks on the axis. Returns flux and error, NaN without data."""
    good = spectra.good[row]
    flux = np.where(good, spectra.flux[row], np.nan)
    error = np.where(good, 1 / np.sqrt(np.where(good, spectra.ivar[row], 1)), np.nan)
    if good.any():
        axis.fill_between(wave, flux - error, flux + error, step="mid", color=BAND, alpha=0.8, linewidth=0, label="± 1 σ")
    axis.plot(wave, flux, color=LINE, linewidth=width, drawstyle="steps-mid", label=label)
    bad = np.flatnonzero(~good)
    if len(bad):
        axis.plot(wave[bad], np.zeros(len(bad)), "|", color=MASKED, markersize=5, markeredgewidth=0.8,
                  transform=axis.get_xaxis_transform(), clip_on=True, label="masked")
    axis.grid(True, color=GRID, linewidth=0.6)
    axis.set_axisbelow(True)
    return flux, error


def set_limits(axis, values, low_percentile, high_percentile, above):
    """Sets the y axis for these values; it includes 0."""
    finite = values[np.isfinite(values)]
    if len(finite):
        low, high = np.percentile(finite, [low_percentile, high_percentile])
        spread = max(high - low, 1e-6)
        axis.set_ylim(min(low - 0.15 * spread, 0), high + above * spread)


def draw_spectrum(axis, zoom, frame, spectra, row, overlay=None):
    """Draws one fibre's spectrum and a detail of it. `overlay`: (values [bin], colour, label) to be drawn over both."""
    wave = frame.wave
    flux, _ = step_lines(axis, wave, spectra, row, 0.6)
    # Sky lines may extend beyond the panel, because otherwise nothing else would be visible.
    set_limits(axis, flux, 0.5, 98.5, 0.45)
    axis.set_xlim(wave[0], wave[-1] if len(wave) > 1 else wave[0] + 1)
    bins = interesting(frame, row)
    axis.axvspan(wave[bins.start], wave[bins.stop - 1], color=ZOOM, alpha=0.25, linewidth=0, zorder=0)
    step_lines(zoom, wave, spectra, row, 1.0)
    if overlay is not None:
        values, colour, label = overlay
        axis.plot(wave, values, color=colour, linewidth=0.5, alpha=0.85, drawstyle="steps-mid", label=label)
        zoom.plot(wave, values, color=colour, linewidth=1.0, drawstyle="steps-mid", label=label)
    zoom.set_xlim(wave[bins.start] - 0.5, wave[bins.stop - 1] + 0.5)
    part = flux[bins][np.isfinite(flux[bins])]
    if len(part):
        low, high = min(part.min(), 0), part.max()
        zoom.set_ylim(low - 0.06 * (high - low + 1e-6), high + 0.12 * (high - low + 1e-6))
    for side in ("left", "bottom"):
        zoom.spines[side].set_color(ZOOM)
        zoom.spines[side].set_linewidth(1.4)
    zoom.tick_params(labelsize=7.5)
    zoom.locator_params(axis="x", nbins=4)
    zoom.locator_params(axis="y", nbins=4)


def draw_fibre(pairs, frame, row, subtracted, truth):
    """Draws the panels of one fibre: its spectrum and, if asked for, the sky-subtracted one below it."""
    title, overlay = "%s   median S/N %.1f per bin%s" % (
        frame.label(row), frame.snr[row], plot_data.said_of_fit("   median chi2pix", frame.fit(row))), None
    if truth is not None and np.isfinite(truth[row]).any():
        overlay = (truth[row], TRUTH, "R · truth")
        differences = plot_data.pulls(frame, row, truth[row])
        if len(differences):
            title += "   pulls against R · truth: robust σ %.4f" % plot_data.robust_sigma(differences)
    axis, zoom = pairs[0]
    draw_spectrum(axis, zoom, frame, frame, row, overlay)
    axis.set_title(title, pad=3)
    if subtracted is not None:
        axis, zoom = pairs[1]
        draw_spectrum(axis, zoom, frame, subtracted, row)
        axis.axhline(0, color=SOFT, linewidth=0.6)
        set_limits(axis, np.where(subtracted.good[row], subtracted.flux[row], np.nan), 0.5, 99.5, 0.3)
        axis.set_title("fibre %d without the sky" % frame.fibres[row], pad=3, color=SKY)


def draw_resolution(axis, detail, frame, rows):
    """Draws the widths of these fibres' resolution, and its row at the middle bin."""
    widths = frame.fwhm()
    bin_ = len(frame.wave) // 2
    shades = plt.get_cmap("viridis")(np.linspace(0, 0.85, max(len(rows), 2)))
    for shade, row in zip(shades, rows):
        axis.plot(frame.wave, widths[row], color=shade, linewidth=0.9, label="fibre %d" % frame.fibres[row])
        offsets, values = frame.resolution_row(row, bin_)
        detail.plot(offsets, values, color=shade, linewidth=1.0, marker=".", markersize=4)
    finite = widths[rows][np.isfinite(widths[rows])]
    if len(finite):
        low, high = np.percentile(finite, [0.5, 99.5])
        spread = max(high - low, 0.02 * high)
        axis.set_ylim(low - 0.35 * spread, high + 0.6 * spread)
        axis.set_title("resolution: FWHM (Å)   median %.2f Å, λ / FWHM %.0f" % (
            np.median(finite), np.nanmedian((frame.wave / widths[rows])[np.isfinite(widths[rows])])), pad=3)
    else:
        axis.set_title("resolution: no fibre shown has one", pad=3)
    axis.set_xlim(frame.wave[0], frame.wave[-1] if len(frame.wave) > 1 else frame.wave[0] + 1)
    if len(rows) <= MAX_LEGENDS:
        axis.legend(loc="upper right", frameon=False, fontsize=7.5, ncol=len(rows), borderpad=0)
    detail.set_title("row of R at %.0f Å" % frame.wave[bin_], pad=3, color=SOFT)
    detail.tick_params(labelsize=7.5)
    detail.set_xlabel("Å from the bin")
    for panel in (axis, detail):
        panel.grid(True, color=GRID, linewidth=0.6)
        panel.set_axisbelow(True)


def head_of(figure, frame, height, legends):
    """Draws title, origin and the legend of all panels."""
    handles = {}
    for axis in legends:
        for handle, label in zip(*axis.get_legend_handles_labels()):
            handles.setdefault(label, handle)
    figure.legend(handles.values(), handles.keys(), loc="upper right", bbox_to_anchor=(0.985, 1 - 0.12 / height),
                  ncol=len(handles), frameon=False, fontsize=8.5)
    source = os.path.basename(frame.card("IN_IMG"))
    figure.text(0.075, 1 - 0.24 / height, os.path.basename(frame.path), fontsize=13, weight="bold", va="center")
    figure.text(0.075, 1 - 0.47 / height, "%d spectra of %d bins, %.0f–%.0f Å%s%s" % (
        len(frame.flux), len(frame.wave), frame.wave[0], frame.wave[-1],
        plot_data.said_of_fit(", median chi2pix", frame.fit()), ", from " + source if source else ""),
        color=SOFT, va="center")


def draw(frame, rows, shown):
    """Draws the picture. `shown`: a Shown."""
    each = 1 if shown.subtracted is None else 2
    heights = [SPECTRUM] * (each * len(rows)) + ([RESOLUTION] if shown.resolution else [])
    spectra, panels = SPECTRUM * each * len(rows), sum(heights)
    pictures = 0.55 + PICTURES if shown.image else 0.1 if shown.resolution else 0
    height = HEAD + panels + (SHIFTS if frame.shifts else 0) + FOOT + pictures
    figure = plt.figure(figsize=(11, height), dpi=140)
    place = dict(left=0.075, right=0.975)
    top = figure.add_gridspec(len(heights), 2, top=1 - HEAD / height, bottom=1 - (HEAD + panels - 0.28) / height,
                              hspace=0.42, wspace=0.1, width_ratios=[3, 1.15], height_ratios=heights, **place)
    pairs = [(figure.add_subplot(top[k, 0]), figure.add_subplot(top[k, 1])) for k in range(len(heights))]
    fibres = pairs[:each * len(rows)]
    for k, row in enumerate(rows):
        draw_fibre(fibres[each * k:each * (k + 1)], frame, row, shown.subtracted, shown.truth)
    for axis, _ in pairs[:-1]:
        axis.tick_params(labelbottom=False)
    pairs[-1][0].set_xlabel("wavelength (Å)")
    if not shown.resolution:
        pairs[-1][1].set_xlabel("wavelength (Å)")
    figure.text(0.018, 1 - (HEAD + 0.5 * spectra) / height, "flux (electrons / Å)", rotation=90, va="center")
    fibres[0][1].set_title("detail", pad=3, color=SOFT)
    head_of(figure, frame, height, [axis for both in fibres for axis in both])
    if shown.resolution:
        draw_resolution(*pairs[-1], frame, rows)
    if frame.shifts:
        middle = figure.add_gridspec(1, 1, top=(FOOT + pictures + SHIFTS - 0.75) / height,
                                     bottom=(FOOT + pictures + 0.05) / height, left=0.075, right=0.965)
        plot_shifts.draw_shifts(figure, middle[0], frame.shifts)
    if shown.image:
        lower = figure.add_gridspec(1, 1, top=(FOOT + PICTURES - 0.4) / height, bottom=FOOT / height, **place)
        reason = plot_image.draw_images(figure, lower[0], shown.image, shown.window, frame, shown.traces)
        plot_image.masked_legend(figure, reason, 0.075, (FOOT + PICTURES - 0.1) / height)
    return figure


class Shown:
    """Everything drawn besides the spectra. It is read and checked before drawing begins."""

    def __init__(self, frame, arguments):
        self.subtracted = plot_data.read_subtracted(arguments.sframe, frame) if arguments.sframe else None
        self.truth = plot_data.read_truth(arguments.truth, frame) if arguments.truth else None
        self.resolution = arguments.resolution
        if self.resolution:
            frame.need_resolution("--resolution")
        self.traces = plot_data.Traces(arguments.psf) if arguments.psf else None
        if self.traces and self.traces.fibres < frame.first + len(frame.flux):
            raise ValueError("%s: has %d fibres, the frame's are %d to %d of its PSF" % (
                arguments.psf, self.traces.fibres, frame.first, frame.first + len(frame.flux) - 1))
        self.image = self.window = None
        if arguments.image:
            self.image = plot_image.Image(arguments.image, arguments.model)
            self.window = plot_image.window_of(arguments, self.image, frame, self.traces)


def main():
    parser = argparse.ArgumentParser(prog="spex plot", description=__doc__.split("\n")[0])
    parser.add_argument("frame")
    parser.add_argument("output")
    for flag in ("--image", "--model", "--psf", "--sframe", "--truth", "--window", "--window-spectra", "--fibres",
                 "--targets"):
        parser.add_argument(flag)
    parser.add_argument("--resolution", action="store_true")
    arguments = parser.parse_args()
    try:
        if bool(arguments.image) != bool(arguments.model):
            raise ValueError("--image and --model belong together")
        frame = plot_data.Frame(arguments.frame)
        rows = frame.rows_of(arguments.fibres, arguments.targets) or choose(frame, 4)
        shown = Shown(frame, arguments)
    except ValueError as error:
        sys.stderr.write("spex: %s\n" % error)
        return 2
    return plot_common.write(lambda: draw(frame, rows, shown), arguments.output)


if __name__ == "__main__":
    sys.exit(main())
