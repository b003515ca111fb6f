#!/usr/bin/env python3
"""Writes FITS files as the pipeline's tools do, and beside each file what those tools read back from it.

usage: make_inputs.py FOLDER [GOLDENS]

FOLDER gets NAME.fits (HDU DATA, tile-compressed) and NAME-expected.fits (the primary, plain), and psf-v2.fits. With
GOLDENS, prints the SHA-256 of the real frame's image and ivar after the mask rule.
"""
import hashlib
import os
import sys

import fitsio
import numpy as np
from astropy.io import fits

random = np.random.default_rng(51060)


def noise(shape=(37, 101)):
    return (random.normal(size=shape) * 20 + 300).astype("f4")


def with_zeros(data):
    data = data.copy()
    data[::5, ::3] = 0
    return data


def with_nans(data):
    data = data.copy()
    data[3, 4:20] = np.nan
    return data


def by_astropy(folder, name, data, **how):
    path = os.path.join(folder, name + ".fits")
    fits.HDUList([fits.PrimaryHDU(), fits.CompImageHDU(data, name="DATA", **how)]).writeto(path)
    with fits.open(path) as hdus:
        values = np.array(hdus["DATA"].data)
    fits.PrimaryHDU(values).writeto(os.path.join(folder, name + "-expected.fits"))


def by_fitsio(folder, name, data, **how):
    path = os.path.join(folder, name + ".fits")
    with fitsio.FITS(path, "rw") as file:
        file.write(data, extname="DATA", **how)
    fitsio.write(os.path.join(folder, name + "-expected.fits"), fitsio.read(path, ext="DATA"))


def make_images(folder):
    ints = random.integers(-30000, 30000, (37, 101))
    for kind in ("RICE_1", "GZIP_1", "GZIP_2"):
        short = kind.split("_")[0].lower() + kind[-1]
        for dither, how in ((-1, "plain"), (1, "dither1"), (2, "dither2")):
            by_astropy(folder, f"{short}-{how}", with_zeros(noise()), compression_type=kind, quantize_method=dither,
                       dither_seed=77 + dither)
        by_astropy(folder, f"{short}-nan", with_nans(noise()), compression_type=kind, quantize_method=1, dither_seed=9990)
        by_astropy(folder, f"{short}-double", noise().astype("f8"), compression_type=kind, quantize_method=1, dither_seed=3)
        by_astropy(folder, f"{short}-u8", random.integers(0, 255, (37, 101)).astype("u1"), compression_type=kind)
        by_astropy(folder, f"{short}-i2", ints.astype("i2"), compression_type=kind)
        by_astropy(folder, f"{short}-i4", (ints * 30000).astype("i4"), compression_type=kind)
        by_astropy(folder, f"{short}-u2", (ints + 30000).astype("u2"), compression_type=kind)
        by_astropy(folder, f"{short}-u4", ((ints + 30000).astype("u4") * 50000).astype("u4"), compression_type=kind)
        by_astropy(folder, f"{short}-tiles", noise((53, 64)), compression_type=kind, tile_size=(20, 16), quantize_method=1,
                   dither_seed=12)
        by_astropy(folder, f"{short}-whole", noise((53, 64)), compression_type=kind, tile_size=(64, 53), quantize_method=1,
                   dither_seed=12)
    by_astropy(folder, "gzip1-lossless", noise(), compression_type="GZIP_1", quantize_level=0)
    by_astropy(folder, "gzip2-lossless", noise(), compression_type="GZIP_2", quantize_level=0)
    by_astropy(folder, "cube", noise((5, 11, 64)), compression_type="RICE_1", quantize_method=1, dither_seed=1,
               tile_size=(30, 4, 2))
    # Rows that cannot be quantised are compressed by gzip; a long row uses the sequence of random numbers more than
    # once.
    constant = noise((20, 300))
    constant[4:7] = 2.5
    by_fitsio(folder, "fallback", constant, compress="RICE", qlevel=16, qmethod="SUBTRACTIVE_DITHER_1", dither_seed=5)
    by_fitsio(folder, "fallback2", constant, compress="RICE", qlevel=16, qmethod="SUBTRACTIVE_DITHER_2", dither_seed=5)
    by_fitsio(folder, "long", noise((3, 25000)), compress="RICE", qlevel=4, qmethod="SUBTRACTIVE_DITHER_1", dither_seed=9999)
    by_fitsio(folder, "fitsio-nan", with_nans(noise()), compress="RICE", qlevel=4, qmethod="SUBTRACTIVE_DITHER_2",
              dither_seed=8)
    by_fitsio(folder, "fitsio-mask", random.integers(0, 3, (37, 101)).astype("i4"), compress="RICE")


def make_psf_v2(folder):
    """Writes a version 2 PSF: X and Y are rows of the table, and each row has its own domain."""
    names = ["X", "Y", "GHSIGX", "GHSIGY", "GH-0-0", "GH-1-0", "GH-0-1", "GH-1-1", "TAILAMP", "CONT"]
    table = np.zeros(len(names), dtype=[("PARAM", "S8"), ("WAVEMIN", "f8"), ("WAVEMAX", "f8"), ("COEFF", "f8", (2, 3))])
    for k, name in enumerate(names):
        table["PARAM"][k] = name
        table["WAVEMIN"][k], table["WAVEMAX"][k] = (5500 + k, 7800 - k)
        table["COEFF"][k] = 0 if name in ("GH-1-1", "TAILAMP") else 1 + k + 0.1 * np.arange(6).reshape(2, 3)
    hdu = fits.BinTableHDU(table, name="PSF")
    values = dict(PSFTYPE="GAUSS-HERMITE", PSFVER="2", NPIX_X=100, NPIX_Y=90, HSIZEX=5, HSIZEY=4, FIBERMIN=0, FIBERMAX=1,
                  LEGDEG=2, GHDEGX=1, GHDEGY=1, PSFERR=0.0)
    for key, value in values.items():
        hdu.header[key] = value
    fits.HDUList([fits.PrimaryHDU(), hdu]).writeto(os.path.join(folder, "psf-v2.fits"))


def print_real(goldens):
    with fitsio.FITS(os.path.join(goldens, "preproc-r0-00051060.fits")) as file:
        image, ivar, mask = (file[name].read() for name in ("IMAGE", "IVAR", "MASK"))
    bad = ((mask.astype("i8") & 767) != 0) | ~np.isfinite(image) | ~np.isfinite(ivar) | ~(ivar > 0)
    for name, values in (("image", image), ("ivar", ivar)):
        values = np.where(bad, np.float32(0), values).astype("<f4")
        print(name, hashlib.sha256(values.tobytes()).hexdigest())


if __name__ == "__main__":
    make_images(sys.argv[1])
    make_psf_v2(sys.argv[1])
    if len(sys.argv) > 2:
        print_real(sys.argv[2])
