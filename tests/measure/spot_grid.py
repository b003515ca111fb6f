#!/usr/bin/env python3
"""Writes a SPOTGRID PSF of the size of desimodel's, for benchmarks, with the traces of a GAUSS-HERMITE PSF:

    spot_grid.py psf-r0.fits spot-grid.fits [--oversampling 15] [--grid 7]

An image has 13 x 13 CCD pixels: a Gaussian that differs from place to place, with a tail.
"""

import argparse

import numpy as np
from astropy.io import fits

PIXELS = 13


def image(oversampling, slit, spectrum):
    """A spot at a place on the slit and in the spectrum, both numbers of the grid."""
    place = (np.arange(PIXELS * oversampling) + 0.5) / oversampling - PIXELS / 2
    x, y = np.meshgrid(place, place)
    sigma_x, sigma_y, tilt = 1.05 + 0.05 * np.sin(slit), 1.1 + 0.05 * np.cos(spectrum), 0.01 * (slit - 3)
    light = np.exp(-0.5 * ((x + tilt * y) / sigma_x) ** 2 - 0.5 * (y / sigma_y) ** 2) + 0.002 / (1 + x**2 + y**2) ** 1.5
    return light / light.sum()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("traces", help="GAUSS-HERMITE PSF, PSFVER 3")
    parser.add_argument("psf", help="file to write")
    parser.add_argument("--oversampling", type=int, default=15, help="samples to a CCD pixel along an axis")
    parser.add_argument("--grid", type=int, default=7, help="positions on the slit, and wavelengths, with an image")
    flags = parser.parse_args()
    with fits.open(flags.traces) as source:
        parameters, x, y = (source[name] for name in ("PSF", "XTRACE", "YTRACE"))
        fibres = x.data.shape[0]
        primary = fits.PrimaryHDU()
        primary.header.update(
            PSFTYPE="SPOTGRID",
            NPIX_X=parameters.header["NPIX_X"],
            NPIX_Y=parameters.header["NPIX_Y"],
            NSPEC=fibres,
            CCDPIXSZ=0.015,
            PIXSIZE=0.015 / flags.oversampling,
        )
        hdus = [primary]
        for name, trace in (("XCOEFF", x), ("YCOEFF", y)):
            hdus.append(fits.ImageHDU(trace.data.astype("f8"), name=name))
            hdus[-1].header.update(WAVEMIN=trace.header["WAVEMIN"], WAVEMAX=trace.header["WAVEMAX"])
        places = range(flags.grid)
        spots = [[image(flags.oversampling, slit, spectrum) for spectrum in places] for slit in places]
        waves = np.linspace(x.header["WAVEMIN"] - 5, x.header["WAVEMAX"] + 5, flags.grid)
        for name, values in (
            ("SPOTS", np.array(spots, "f4")),
            ("FIBERPOS", np.arange(fibres, dtype="f8")),
            ("SPOTPOS", np.linspace(0, fibres - 1, flags.grid)),
            ("SPOTWAVE", waves),
        ):
            hdus.append(fits.ImageHDU(values, name=name))
        fits.HDUList(hdus).writeto(flags.psf, overwrite=True)


if __name__ == "__main__":
    main()
