#!/usr/bin/env python3
"""Draws an extracted frame: a few spectra with their errors, and the image beside its model and residual.

plot_frame.py FRAME OUTPUT [--image PREPROC --model MODEL] [--fibres 3,17,40]; `spex plot` calls it.
"""
import argparse
import os
import sys

sys.dont_write_bytecode = True  # nothing is left beside an installed script
import plot_common
from plot_common import BAND, GRID, LINE, MASKED, SOFT, ZOOM

plt, np, fits = plot_common.load("numpy", "astropy.io.fits")

ZOOM_ANGSTROM = 60


def column(table, *names):
    """The first of `names` that `table` has, or None."""
    for name in names:
        if table is not None and name in table.dtype.names:
            return table[name]
    return None


class Frame:
    """What is drawn of a frame file."""

    def __init__(self, path):
        with fits.open(path) as hdus:
            self.header = hdus["FLUX"].header if "FLUX" in hdus else hdus[0].header
            self.flux = np.asarray(hdus["FLUX"].data, float)
            self.ivar = np.asarray(hdus["IVAR"].data, float)
            self.mask = np.asarray(hdus["MASK"].data)
            self.wave = np.asarray(hdus["WAVELENGTH"].data, float)
            self.table = np.asarray(hdus["FIBERMAP"].data) if "FIBERMAP" in hdus else None
        self.first = int(self.header.get("FIBERMIN", 0))
        self.good = (self.mask == 0) & (self.ivar > 0)
        noise = np.sqrt(np.where(self.good, self.ivar, 0))
        signal = np.where(self.good, self.flux, np.nan) * np.where(self.good, noise, np.nan)
        with np.errstate(all="ignore"):
            import warnings

            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)
                self.snr = np.nan_to_num(np.nanmedian(signal, axis=1))
        self.types = self.read_types()

    def read_types(self):
        types = column(self.table, "OBJTYPE", "OBJECT_TYPE")
        if types is None:
            return [""] * len(self.flux)
        return [t.decode().strip() if isinstance(t, bytes) else str(t).strip() for t in types]

    def interesting(self, row):
        """Bins of a stretch where this fibre differs most from the others, or has most light if it is like them."""
        bins = len(self.wave)
        width = min(bins, max(8, int(round(ZOOM_ANGSTROM / max(self.wave[-1] - self.wave[0], 1e-6) * bins))))
        own = np.where(self.good[row], self.flux[row], 0)
        noise = np.sqrt(np.where(self.good[row], self.ivar[row], 0))
        if len(self.flux) > 4 and self.types[row] != "SKY":
            own = own - np.median(np.where(self.good, self.flux, 0), axis=0)
            own = own - np.median(own)
        # Lines that stand in the sky, too, only differ by how they are sampled.
        sky = np.median(np.where(self.good, self.flux, 0), axis=0)
        calm = 1 / (1 + np.maximum(sky / max(np.median(sky), 1e-6) - 1, 0)) if len(self.flux) > 4 else 1
        strength = np.convolve(np.abs(own) * noise * (calm if self.types[row] != "SKY" else 1), np.ones(5) / 5, "same")
        inside = strength[width // 2:bins - width + width // 2 + 1]
        start = int(np.argmax(inside)) if len(inside) else 0
        return slice(start, start + width)

    def label(self, row):
        fibres = column(self.table, "FIBER", "FIBRE")
        number = int(fibres[row]) if fibres is not None else self.first + row
        kind = {"TGT": "target", "SKY": "sky"}.get(self.types[row], self.types[row])
        return "fibre %d%s" % (number, "  ·  " + kind if kind else "")

    def choose(self, count):
        """Rows of different brightness: the brightest, one typical, a sky fibre, spread over the frame."""
        rows = np.arange(len(self.flux))
        alive = rows[self.good.mean(axis=1) > 0.3]
        if len(alive) <= count:
            return list(alive) if len(alive) else list(rows[:count])
        sky = [r for r in alive if self.types[r] == "SKY"]
        targets = sorted((r for r in alive if self.types[r] != "SKY"), key=lambda r: self.snr[r])
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
        return sorted(unique[:count], key=lambda r: -self.snr[r])


def step_lines(axis, frame, row, width):
    """Flux and its error as steps; masked bins as ticks on the axis."""
    wave, good = frame.wave, frame.good[row]
    flux = np.where(good, frame.flux[row], np.nan)
    error = np.where(good, 1 / np.sqrt(np.where(good, frame.ivar[row], 1)), np.nan)
    axis.fill_between(wave, flux - error, flux + error, step="mid", color=BAND, alpha=0.8, linewidth=0, label="± 1 σ")
    axis.plot(wave, flux, color=LINE, linewidth=width, drawstyle="steps-mid", label="flux")
    bad = np.flatnonzero(~good)
    if len(bad):
        axis.plot(wave[bad], np.zeros(len(bad)), "|", color=MASKED, markersize=5, markeredgewidth=0.8,
                  transform=axis.get_xaxis_transform(), clip_on=True, label="masked")
    axis.grid(True, color=GRID, linewidth=0.6)
    axis.set_axisbelow(True)
    return flux


def draw_spectrum(axis, zoom, frame, row, last):
    wave = frame.wave
    flux = step_lines(axis, frame, row, 0.6)
    finite = flux[np.isfinite(flux)]
    if len(finite):
        # Sky lines may run out of the panel, or nothing else would be seen.
        low, high = np.percentile(finite, [0.5, 98.5])
        spread = max(high - low, 1e-6)
        axis.set_ylim(min(low - 0.15 * spread, 0), high + 0.45 * spread)
    axis.set_xlim(wave[0], wave[-1] if len(wave) > 1 else wave[0] + 1)
    axis.set_title("%s   median S/N %.1f per bin" % (frame.label(row), frame.snr[row]), pad=3)

    bins = frame.interesting(row)
    axis.axvspan(wave[bins.start], wave[bins.stop - 1], color=ZOOM, alpha=0.25, linewidth=0, zorder=0)
    step_lines(zoom, frame, row, 1.0)
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
    if last:
        axis.set_xlabel("wavelength (Å)")
        zoom.set_xlabel("wavelength (Å)")
    else:
        axis.tick_params(labelbottom=False)


def read_images(image_path, model_path):
    with fits.open(image_path) as hdus:
        names = [hdu.name for hdu in hdus]
        pixels = np.asarray((hdus["IMAGE"] if "IMAGE" in names else hdus[0]).data, float)
        ivar = np.asarray(hdus["IVAR"].data, float) if "IVAR" in names else np.ones_like(pixels)
        mask = np.asarray(hdus["MASK"].data) if "MASK" in names else np.zeros(pixels.shape, int)
    with fits.open(model_path) as hdus:
        model = np.asarray(next(hdu.data for hdu in hdus if hdu.data is not None), float)
    if model.shape != pixels.shape:
        sys.exit("spex: the image has %d x %d pixels, the model %d x %d" % (pixels.shape + model.shape))
    good = ((mask & 767) == 0) & (ivar > 0) & np.isfinite(pixels)
    return pixels, model, ivar, good


def window(model):
    """A stretch of the CCD, as wide as a few bundles, with light in it."""
    rows, columns = model.shape
    height, width = min(rows, 420), min(columns, 420)
    profile = np.convolve(np.abs(model).sum(axis=0), np.ones(width), "valid")
    left = int(np.argmax(profile))
    bright = np.convolve(np.abs(model[:, left:left + width]).sum(axis=1), np.ones(height), "valid")
    bottom = int(np.argmax(bright))
    return slice(bottom, bottom + height), slice(left, left + width)


def draw_images(figure, spec, image_path, model_path):
    pixels, model, ivar, good = read_images(image_path, model_path)
    rows, columns = window(model)
    cut = np.where(good, pixels, np.nan)[rows, columns]
    sketch = model[rows, columns]
    residual = np.where(good, (pixels - model) * np.sqrt(np.where(good, ivar, 0)), np.nan)[rows, columns]
    top = np.percentile(sketch, 99.3)
    scale = max(top / 60, 1.0)
    extent = (columns.start, columns.stop, rows.start, rows.stop)
    light = plt.get_cmap("magma").copy()
    light.set_bad("#5b8e7d")
    pull = plt.get_cmap("RdBu_r").copy()
    pull.set_bad("#c9ccd1")
    panels = [
        ("image", np.arcsinh(cut / scale), light, 0, np.arcsinh(top / scale)),
        ("model", np.arcsinh(sketch / scale), light, 0, np.arcsinh(top / scale)),
        ("residual (image − model) / σ", residual, pull, -4, 4),
    ]
    axes = spec.subgridspec(1, 3, wspace=0.12).subplots(sharey=True)
    for axis, (title, data, colours, low, high) in zip(axes, panels):
        drawn = axis.imshow(data, origin="lower", cmap=colours, vmin=low, vmax=high, extent=extent, aspect="auto",
                            interpolation="nearest")
        axis.set_title(title, pad=3)
        axis.set_xlabel("CCD column")
        for side in axis.spines.values():
            side.set_visible(False)
        bar = figure.colorbar(drawn, ax=axis, fraction=0.046, pad=0.02)
        bar.outline.set_visible(False)
        bar.ax.tick_params(labelsize=7, length=2)
        if colours is light:
            ticks = [t for t in (0, 10, 30, 100, 300, 1000, 3000, 10000, 30000) if t <= top]
            bar.set_ticks([np.arcsinh(t / scale) for t in ticks])
            bar.set_ticklabels(["%d" % t for t in ticks])
    axes[0].set_ylabel("CCD row")
    finite = residual[np.isfinite(residual)]
    if len(finite):
        low, high = np.percentile(finite, [15.87, 84.13])
        axes[2].set_title("residual (image − model) / σ    robust σ %.2f" % (0.5 * (high - low)), pad=3)


def draw(frame, rows, arguments):
    with_images = bool(arguments.image and arguments.model)
    panel, pictures, head, foot = 1.6, 3.7, 0.85, 0.5  # inches
    between = 0.55 if with_images else 0
    spectra = panel * len(rows)
    height = head + spectra + foot + (between + pictures if with_images else 0)
    figure = plt.figure(figsize=(11, height), dpi=140)
    place = dict(left=0.075, right=0.975)
    top = figure.add_gridspec(len(rows), 2, top=1 - head / height, bottom=1 - (head + spectra - 0.28) / height,
                              hspace=0.42, wspace=0.1, width_ratios=[3, 1.15], **place)
    axes = [figure.add_subplot(top[k, 0]) for k in range(len(rows))]
    zooms = [figure.add_subplot(top[k, 1]) for k in range(len(rows))]
    for k, row in enumerate(rows):
        draw_spectrum(axes[k], zooms[k], frame, row, k == len(rows) - 1)
    figure.text(0.018, 1 - (head + 0.5 * spectra) / height, "flux (electrons / Å)", rotation=90, va="center")
    zooms[0].set_title("detail", pad=3, color=SOFT)
    handles = {}
    for axis in axes + zooms:
        for handle, label in zip(*axis.get_legend_handles_labels()):
            handles.setdefault(label, handle)
    figure.legend(handles.values(), handles.keys(), loc="upper right", bbox_to_anchor=(0.985, 1 - 0.12 / height), ncol=3,
                  frameon=False, fontsize=8.5)
    source = os.path.basename(str(frame.header.get("IN_IMG", "")))
    figure.text(0.075, 1 - 0.24 / height, os.path.basename(arguments.frame), fontsize=13, weight="bold", va="center")
    figure.text(0.075, 1 - 0.47 / height, "%d spectra of %d bins, %.0f–%.0f Å%s" % (
        len(frame.flux), len(frame.wave), frame.wave[0], frame.wave[-1], ", from " + source if source else ""),
        color=SOFT, va="center")
    if with_images:
        lower = figure.add_gridspec(1, 1, top=(foot + pictures - 0.1) / height, bottom=foot / height, **place)
        draw_images(figure, lower[0], arguments.image, arguments.model)
    return figure


def main():
    parser = argparse.ArgumentParser(prog="spex plot", description=__doc__.split("\n")[0])
    parser.add_argument("frame")
    parser.add_argument("output")
    parser.add_argument("--image")
    parser.add_argument("--model")
    parser.add_argument("--fibres")
    arguments = parser.parse_args()
    if bool(arguments.image) != bool(arguments.model):
        parser.error("--image and --model belong together")
    try:
        frame = Frame(arguments.frame)
    except (OSError, KeyError, TypeError, AttributeError) as error:
        sys.stderr.write("spex: %s: not a frame: %s\n" % (arguments.frame, error))
        return 2
    if arguments.fibres:
        try:
            rows = [int(text) - frame.first for text in arguments.fibres.split(",")]
        except ValueError:
            parser.error("--fibres %s: expected numbers with commas between them" % arguments.fibres)
        if not all(0 <= row < len(frame.flux) for row in rows):
            parser.error("--fibres %s: the frame has %d to %d" % (
                arguments.fibres, frame.first, frame.first + len(frame.flux) - 1))
    else:
        rows = frame.choose(4)
    return plot_common.write(lambda: draw(frame, rows, arguments), arguments.output)


if __name__ == "__main__":
    sys.exit(main())
