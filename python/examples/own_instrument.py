#!/usr/bin/env python3
"""The PSF of your own instrument, from a ray tracer: where the light falls, and how it is spread.

    own_instrument.py own.fits --picture own.png

The instrument is made up: 40 fibres in four groups, 15400 to 15800 Angstrom, wavelengths that fall as the CCD's row
rises. Its camera is out of focus at one end of the slit and has coma, so spots are asymmetric and vary with position.
Replace `traces` and `spot` by your own; docs/own-psf.md continues from here.
"""

import argparse

import numpy as np

import spexd

ROWS, COLUMNS = 512, 400
SCALE = 24.0  # pixels / mm along the slit
CORE = 1.25  # pixels: radius of a fibre's image
DIFFUSION = 0.35  # pixels, of charge in the detector
WAVES = np.linspace(15400, 15800, 21)  # Angstrom; somewhat more than falls on the CCD
OVERSAMPLING = 4
SAMPLES = 53  # along each axis of an image: 13.25 pixels; odd, so that the chief ray is in the middle of a sample
RAYS = 100_000


def slit():
    """Returns the positions of the fibres on the slit, mm: four groups of ten."""
    fibres = np.arange(40)
    places = 0.3 * fibres + 0.6 * (fibres // 10)
    return places - places.mean()


def traces(position, wave):
    """Returns the column and row where the chief ray of a slit position (mm) and a wavelength (Angstrom) arrives."""
    t = (wave - 15600) / 200
    x = COLUMNS / 2 + SCALE * position * (1 + 0.004 * t)
    y = ROWS / 2 - 270 * t + 6 * t**2 + 0.08 * position**2
    return x, y


def spot(position, wave, random):
    """Returns the image of a spot [row, column] from rays: the light in each sample."""
    s, t = position / 6.75, (wave - 15600) / 200
    (fx, fy), (u, v) = disc(random), disc(random)  # where a ray leaves the fibre, and where it crosses the pupil
    defocus = 0.5 + 0.8 * s + 0.3 * t
    coma_x, coma_y = 0.5 * s, 0.4 + 0.3 * t
    x = CORE * fx + defocus * u + coma_x * (3 * u**2 + v**2) + coma_y * 2 * u * v
    y = CORE * fy + defocus * v + coma_x * 2 * u * v + coma_y * (u**2 + 3 * v**2)
    x, y = (axis + random.normal(scale=DIFFUSION, size=RAYS) for axis in (x, y))
    edges = (np.arange(SAMPLES + 1) - SAMPLES / 2) / OVERSAMPLING  # of samples, in pixels from the chief ray
    return np.histogram2d(y, x, bins=(edges, edges))[0]


def disc(random):
    """Returns points that are evenly distributed over the unit disc: [axis, ray]."""
    radius, angle = np.sqrt(random.uniform(size=RAYS)), random.uniform(0, 2 * np.pi, RAYS)
    return radius * np.cos(angle), radius * np.sin(angle)


def arguments():
    """Returns the arguments of spexd.psf_from_spots."""
    random = np.random.default_rng(1)
    fibres = slit()
    x, y = traces(fibres[:, None], WAVES)
    positions = np.linspace(fibres[0], fibres[-1], 5)  # of images; spots of fibres between them are interpolated
    spot_waves = np.linspace(WAVES[0], WAVES[-1], 4)
    return {
        "wavelengths": WAVES,
        "x": x,
        "y": y,
        "spots": np.array([[spot(s, w, random) for w in spot_waves] for s in positions], np.float32),
        "oversampling": OVERSAMPLING,
        "image_shape": (ROWS, COLUMNS),
        "spot_positions": positions,
        "spot_wavelengths": spot_waves,
        "fibre_positions": fibres,
        "camera": "h1",
    }


def draw(instrument, path):
    from matplotlib.figure import Figure

    positions, spot_waves = instrument["spot_positions"], instrument["spot_wavelengths"]
    figure = Figure(figsize=(10, 4.6), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=(1, 1.5))
    axes = left.subplots()
    for x, y in zip(instrument["x"], instrument["y"], strict=True):
        axes.plot(x, y, color="0.75", lw=0.7, zorder=0)
    places = axes.scatter(instrument["x"], instrument["y"], 2, np.broadcast_to(WAVES, instrument["x"].shape), cmap="turbo")
    axes.set(xlim=(-0.5, COLUMNS - 0.5), ylim=(-0.5, ROWS - 0.5), xlabel="CCD column", ylabel="CCD row", aspect="equal")
    left.colorbar(places, ax=axes, shrink=0.8, label="wavelength, Angstrom")
    grid = right.subplots(len(spot_waves), len(positions))
    half = SAMPLES / OVERSAMPLING / 2
    for k, wave in enumerate(spot_waves):
        for j, position in enumerate(positions):
            axes = grid[-1 - k, j]
            axes.imshow(np.sqrt(instrument["spots"][j, k]), origin="lower", extent=2 * (-half, half), cmap="magma")
            axes.set(xticks=(), yticks=(), xlim=(-5, 5), ylim=(-5, 5))
            if k == 0:
                axes.set_xlabel(f"{position:.1f} mm")
            if j == 0:
                axes.set_ylabel(f"{wave:.0f}")
    right.suptitle("Spots: roots of light, 10 x 10 pixels")
    figure.savefig(path, dpi=80)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("psf", help="file to write")
    parser.add_argument("--picture", metavar="FILE", help="of traces and spots; needs matplotlib")
    flags = parser.parse_args(argv)
    instrument = arguments()
    print(spexd.psf_from_spots(flags.psf, **instrument, overwrite=True))
    if flags.picture:
        draw(instrument, flags.picture)


if __name__ == "__main__":
    main()
