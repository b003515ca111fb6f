#!/usr/bin/env python3
"""What the sky model misses, from frame to frame: principal components of the residuals of sky fibres.

    in_situ.py psf-r0.fits preproc-r0-*.fits -o components.png

Each frame is extracted. The residuals of its sky fibres after subtraction of the sky, divided by their errors, are
kept: one snapshot for each fibre. With a GPU (and CuPy) the spectra stay in its memory, where CuPy reads them without a
copy, keeps the snapshots and decomposes them; otherwise numpy does the same. Components above the noise are patterns
that the sky model lacks. Watch them, but do not subtract them: that would also remove light of emission lines. The
spectra are not flat-fielded, so the first pattern is the throughput of the fibres.
"""

import argparse

import numpy as np

import spexd

CLIP = 5  # sigma; larger residuals are clipped, so that a missed cosmic ray makes no component
MIN_DATA = 0.8  # least fraction of a fibre's bins that have data


def choose():
    """Returns an engine, and the library that holds its spectra: CuPy with a GPU, else numpy."""
    engine = spexd.Engine()
    if engine.kind == "cuda":
        try:
            import cupy

            return engine, cupy
        except ImportError:
            print("CuPy is not installed: the snapshots are kept by numpy")
    return engine, np


def snapshots_of(frame, xp):
    """Returns the residuals of the frame's sky fibres over their errors [fibre, bin], as an array of `xp`; 0 without
    data."""
    sky = frame.sky()
    rows = np.array(sky.sky_fibres)
    arrays = (frame.flux, frame.ivar, frame.mask)
    if xp is not np:
        kept = frame.on_device
        arrays = tuple(xp.from_dlpack(array) for array in (kept.flux, kept.ivar, kept.mask))
    flux, ivar, mask = (array[rows] for array in arrays)
    model, model_ivar = xp.asarray(sky.model[rows]), xp.asarray(sky.statistical_ivar[rows])
    # The sky was fitted to these fibres, so the variance of their residuals is smaller by that of the fit.
    good = (mask == 0) & (ivar > 0) & (model_ivar > ivar) & xp.asarray(sky.mask[rows] == 0)
    weight = xp.where(good, 1 / (1 / xp.where(good, ivar, 1) - 1 / xp.where(good, model_ivar, 2)), 0)
    pulls = xp.where(good, flux - model, 0) * xp.sqrt(weight)
    return xp.clip(pulls, -CLIP, CLIP)[good.mean(axis=1) > MIN_DATA]


def components_of(snapshots, xp):
    """Returns the variances, largest first, and the vectors [component, bin] of snapshots [snapshot, bin] about
    their mean."""
    _, values, vectors = xp.linalg.svd(snapshots - snapshots.mean(axis=0), full_matrices=False)
    largest = xp.take_along_axis(vectors, xp.abs(vectors).argmax(axis=1)[:, None], axis=1)
    return values**2 / len(snapshots), vectors * xp.sign(largest)


def draw(wave, variances, vectors, amplitudes, bounds, path):
    """Draws the first components, their variances beside that of noise, and the size of each in every frame."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    count = len(vectors)
    figure, axes = plt.subplot_mosaic(
        [["vectors", "variances"], ["vectors", "series"]], figsize=(11, 1.5 + 1.1 * count), dpi=130,
        layout="constrained", width_ratios=[2.4, 1],
    )  # fmt: skip
    for k, vector in enumerate(vectors):
        axes["vectors"].plot(wave, vector / np.abs(vectors).max() - 1.2 * k, lw=0.6, color=f"C{k}")
        axes["vectors"].text(wave[0], 0.45 - 1.2 * k, f"component {k + 1}", color=f"C{k}", size=9)
        frames = [np.sqrt(np.mean(amplitudes[first:last, k] ** 2)) for first, last in bounds]
        axes["series"].plot(range(1, len(frames) + 1), frames, "o-", ms=3, color=f"C{k}")
    axes["vectors"].set(xlabel="wavelength [Å]", yticks=[], title="components of the sky's residuals")
    edge = (1 + np.sqrt(len(wave) / len(amplitudes))) ** 2
    shown = variances[: 4 * count]
    colours = [f"C{k}" if k < count else "0.8" for k in range(len(shown))]
    axes["variances"].bar(range(1, len(shown) + 1), shown, color=colours)
    axes["variances"].axhline(edge, color="0.3", lw=0.8, ls="--", label="largest of noise alone")
    axes["variances"].set(xlabel="component", title="variance [sigma²]")
    axes["variances"].legend(frameon=False)
    axes["series"].set(xlabel="frame", title="rms amplitude in each frame", ylim=(0, None))
    for name in ("variances", "series"):
        axes[name].xaxis.get_major_locator().set_params(integer=True)
    figure.savefig(path)
    plt.close(figure)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("psf")
    parser.add_argument("frames", nargs="+", help="preprocessed frames of one camera, with a FIBERMAP")
    parser.add_argument("-o", "--output", required=True, help="picture to write")
    parser.add_argument("--wavelength", help="first, last and step, as 5760,7620,0.8; default: the PSF's range")
    parser.add_argument("--count", type=int, default=4, help="components to draw")
    options = parser.parse_args(arguments)

    engine, xp = choose()
    psf = spexd.Psf(options.psf)
    kept, wave = [], None
    for path in options.frames:
        frame = engine.extract(path, psf=psf, wavelength=options.wavelength, keep_on_device=xp is not np)
        kept.append(snapshots_of(frame, xp))
        wave = frame.wave
        print(f"{path}: {len(kept[-1])} snapshots")
    snapshots = xp.concatenate(kept)
    if len(snapshots) < 2:
        parser.error("the frames have fewer than two sky fibres with data")
    variances, vectors = components_of(snapshots, xp)
    count = min(options.count, len(vectors))
    amplitudes = (snapshots - snapshots.mean(axis=0)) @ vectors[:count].T
    ends = np.cumsum([len(part) for part in kept])
    bounds = list(zip([0, *ends[:-1]], ends, strict=True))
    variances, vectors, amplitudes = (
        array if xp is np else array.get() for array in (variances, vectors[:count], amplitudes)
    )
    draw(wave, variances, vectors, amplitudes, bounds, options.output)
    print(f"Wrote {options.output}: {len(snapshots)} snapshots of {len(kept)} frames, by {xp.__name__}")


if __name__ == "__main__":
    main()
