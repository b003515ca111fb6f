#!/usr/bin/env python3
"""Draws principal components of sky residuals: the first ones, their variances beside noise, their size in each frame.

`spex plot` calls it for a file of `spex pca`.
"""
import os
import sys

sys.dont_write_bytecode = True  # writes nothing beside an installed script
import plot_common
from plot_common import GRID, LINE, MASKED, SKY, SOFT, TRUTH, ZOOM

plt = plot_common.load_pyplot()
np, fits = plot_common.load("numpy", "astropy.io.fits")
import plot_data

COLOURS = (LINE, TRUTH, SKY, MASKED, ZOOM)  # of the components that are drawn
NAMED_FRAMES = 12  # most frames that are named below the time series


class Components:
    """A file of spex pca."""

    def __init__(self, path):
        self.path = path
        try:
            with fits.open(path) as hdus:
                self.vectors, self.wave, self.amplitudes = (
                    np.asarray(hdus[name].data, float) for name in ("EIGENVECTORS", "WAVELENGTH", "AMPLITUDE"))
                self.variances = np.asarray(hdus["COMPONENTS"].data["VARIANCE"], float)
                header = hdus["EIGENVECTORS"].header
                self.noise, self.spectra = float(header["NOISEVAR"]), float(header["NSPECTRA"])
                self.frames = [str(header["FRAM%d" % k]) for k in range(len(self.amplitudes))]
        except plot_data.BAD_FILE as error:
            raise ValueError("%s: not a file of spex pca: %s" % (path, plot_data.why(error)))


def draw_vectors(axis, pca, count):
    most = np.abs(pca.vectors[:count]).max()
    for k in range(count):
        axis.plot(pca.wave, pca.vectors[k] / most - 2 * k, color=COLOURS[k], linewidth=0.6)
        axis.text(0.005, -2 * k + 0.75, "component %d   variance %.3g" % (k + 1, pca.variances[k]), fontsize=8,
                  color=COLOURS[k], transform=axis.get_yaxis_transform())
    axis.set(xlim=(pca.wave[0], pca.wave[-1]), ylim=(-2 * count + 0.9, 1.15), yticks=[-2 * k for k in range(count)],
             yticklabels=[], xlabel="wavelength (Å)")
    axis.tick_params(left=False)
    axis.set_title("eigenvectors of the sky's residuals (σ)", pad=3, color=SOFT)


def label_powers(axis):
    """Labels powers of ten on a logarithmic y axis, and also 2 and 5 times these if the axis has fewer than two."""
    low, high = axis.get_ylim()
    powers = 10.0 ** np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
    for factors in ((1,), (1, 2, 5)):
        ticks = [factor * power for power in powers for factor in factors if low <= factor * power <= high]
        if len(ticks) >= 2:
            break
    axis.set_yticks(ticks, ["%g" % tick for tick in ticks])
    axis.yaxis.set_minor_formatter(plt.NullFormatter())


def draw_variances(axis, pca, count):
    place = np.arange(1, len(pca.variances) + 1)
    axis.bar(place, pca.variances, color=[COLOURS[k] if k < count else GRID for k in range(len(place))])
    axis.axhline(pca.noise, color=SOFT, linewidth=0.9, linestyle="--", label="largest of noise alone")
    if pca.variances[0] > 20 * pca.noise:
        axis.set_yscale("log")
        label_powers(axis)
    axis.set_xlabel("component")
    axis.set_title("variance (σ²)", pad=3, color=SOFT)
    axis.legend(frameon=False, fontsize=8)


def draw_series(axis, pca, count):
    frames = np.arange(1, len(pca.frames) + 1)
    for k in range(count):
        axis.plot(frames, pca.amplitudes[:, k], "o-", color=COLOURS[k], markersize=3, linewidth=0.9)
    axis.set_ylim(0, None)
    if len(frames) <= NAMED_FRAMES:
        names = [os.path.splitext(name)[0] for name in pca.frames]
        axis.set_xticks(frames, names, rotation=30, ha="right", fontsize=7)
    else:
        axis.set_xlabel("frame")
    axis.set_title("rms amplitude in each frame (σ)", pad=3, color=SOFT)


def draw(pca):
    count = min(len(COLOURS), len(pca.vectors))
    figure = plt.figure(figsize=(12, 2.6 + 0.9 * count), dpi=130, layout="constrained")
    grid = figure.add_gridspec(2, 2, width_ratios=[2.3, 1])
    axes = (figure.add_subplot(grid[:, 0]), figure.add_subplot(grid[0, 1]), figure.add_subplot(grid[1, 1]))
    for axis, draw_panel in zip(axes, (draw_vectors, draw_variances, draw_series)):
        axis.grid(True, color=GRID, linewidth=0.6)
        axis.set_axisbelow(True)
        axis.tick_params(labelsize=7.5)
        draw_panel(axis, pca, count)
    figure.suptitle("%s   %g sky spectra of %d frames" % (os.path.basename(pca.path), pca.spectra, len(pca.frames)),
                    x=0.01, ha="left", fontsize=12, weight="bold")
    return figure


def main():
    path, output = plot_common.arguments_of("spex plot", __doc__)
    try:
        pca = Components(path)
    except ValueError as error:
        sys.stderr.write("spex: %s\n" % error)
        return 2
    return plot_common.write(lambda: draw(pca), output)


if __name__ == "__main__":
    sys.exit(main())
