#!/usr/bin/env python3
"""Reads frame.fits, model.fits.gz, psf.fits, preproc.fits and truth.fits in a folder with astropy and fitsio, and
checks them against the documentation: HDUs, types, header cards, values and checksums. Exits with 0 if all agree.

usage: check_outputs.py FOLDER
"""
import sys
import warnings

import fitsio
import numpy as np
from astropy.io import fits

folder = sys.argv[1]
warnings.simplefilter("error")  # astropy warns of wrong checksums and of cards that violate the standard


def names(path):
    with fits.open(path, checksum=True) as hdus:
        hdus.verify("exception")
        for hdu in hdus:
            hdu.data  # reading it verifies its checksum
            if hdu.header["NAXIS"] > 0:
                assert "CHECKSUM" in hdu.header or hdu.name in ("IMAGE", "IVAR", "MASK", "READNOISE"), hdu.name
        by_astropy = [hdu.name for hdu in hdus]
    with fitsio.FITS(path) as file:
        for hdu in file:
            if hdu.has_data():
                hdu.read()
    return by_astropy


frame = folder + "/frame.fits"
expected = ["FLUX", "IVAR", "MASK", "WAVELENGTH", "RESOLUTION", "FIBERMAP", "CHI2PIX", "SCORES"]
assert names(frame) == expected, names(frame)
with fits.open(frame) as hdus:
    types = {name: hdus[name].data.dtype.newbyteorder("=") for name in expected if name not in ("FIBERMAP", "SCORES")}
    assert types == {"FLUX": "f4", "IVAR": "f4", "MASK": "u4", "WAVELENGTH": "f8", "RESOLUTION": "f4", "CHI2PIX": "f4"}, types
    assert hdus["FLUX"].data.shape == (3, 20)
    assert hdus["RESOLUTION"].data.shape == (3, 11, 20)
    assert hdus["FLUX"].header["BUNIT"] == "electron/Angstrom"
    assert hdus["WAVELENGTH"].header["BUNIT"] == "Angstrom"
    assert hdus["MASK"].header["BITPIX"] == 32 and hdus["MASK"].header["BZERO"] == 2**31
    assert hdus["MASK"].data[1, 2] == 0x80000001 and hdus["MASK"].data[0, 1] == 257
    assert np.array_equal(hdus["WAVELENGTH"].data, np.arange(5760, 5760 + 19 * 0.8 + 0.4, 0.8))
    assert list(hdus["FIBERMAP"].data["TARGETID"]) == [39627000051060000 + i for i in range(3)]
    assert list(hdus["FIBERMAP"].data["OBJTYPE"]) == ["TGT"] * 3
    assert hdus["FIBERMAP"].header["TILEID"] == 80605
    assert [c.name for c in hdus["SCORES"].columns] == [
        "SUM_RAW_COUNT_R", "MEDIAN_RAW_COUNT_R", "MEDIAN_RAW_SNR_R", "MEDIAN_CHI2PIX_R", "OUTLIERS_CHI2PIX_R"]
    assert list(hdus["SCORES"].data["SUM_RAW_COUNT_R"]) == [1000.5, 1001.5, 1002.5]
    head = hdus[0].header
    for key, value in dict(NSPEC=3, WAVEMIN=5760.0, WAVEMAX=5775.2, WAVESTEP=0.8, IN_IMG="preproc-r0-00051060.fits",
                           ORIG_PSF="psf-r0-before.fits", HELIOCOR=1.0000712345678901, PSFERR=0.01, EXTRNAME="spexd",
                           EXTRVER="0.1.0", CAMERA="r0", EXPTIME=1000.0).items():
        assert head[key] == value, (key, head[key])
    assert head["IN_PSF"].endswith("/psf-r0-00051060.fits") and len(head["IN_PSF"]) > 80, head["IN_PSF"]
    assert head["LONGTEXT"].endswith("which goes on here"), head["LONGTEXT"]
    assert head["FIBERMIN"] == 0 and "CRPIX1" not in head and "DATE" not in head
head = fitsio.read_header(frame, ext="FLUX")
assert head["NSPEC"] == 3 and head["IN_PSF"].endswith("/psf-r0-00051060.fits"), head
assert fitsio.read(frame, ext="MASK").dtype == np.dtype("u4")
assert np.array_equal(fitsio.read(frame, ext="FLUX"), fits.getdata(frame, "FLUX"))

model = folder + "/model.fits.gz"
assert names(model) == ["MODEL"]
assert fits.getdata(model).dtype.newbyteorder("=") == "f4" and fits.getheader(model)["CAMERA"] == "r0"

psf = folder + "/psf.fits"
assert names(psf) == ["XTRACE", "YTRACE", "PSF"]
with fits.open(psf) as hdus:
    assert hdus["XTRACE"].data.shape == (3, 6) and hdus["XTRACE"].header["WAVEMAX"] == 7799
    table, head = hdus["PSF"].data, hdus["PSF"].header
    assert table["COEFF"].shape == (13, 3, 4), table["COEFF"].shape
    assert [p.strip() for p in table["PARAM"]][:4] == ["GHSIGX", "GHSIGY", "GH-0-0", "GH-0-1"], table["PARAM"]
    assert head["PSFTYPE"] == "GAUSS-HERMITE" and head["LEGDEG"] == 3 and head["GHDEGX"] == 2 and head["PSFERR"] == 0.02
    # This PSF has no tail. Readers that compute the tail nevertheless, such as specter, must get 0 and not NaN, also at
    # the centre of a spot (r = 0).
    tails = {p.strip(): c for p, c in zip(table["PARAM"], table["COEFF"]) if p.startswith("TAIL")}
    assert len(tails) == 5 and not any(c[:, 1:].any() for c in tails.values()), tails
    amplitude, core, index = (tails[name][:, 0] for name in ("TAILAMP", "TAILCORE", "TAILINDE"))
    for r in (0, 1):
        assert np.array_equal(amplitude * r**2 / (core**2 + r**2) ** (1 + index / 2), [0, 0, 0]), tails

assert names(folder + "/truth.fits") == ["FLUX", "WAVELENGTH", "FIBER"]
for name in ("plain.fits", "rice.fits"):
    path = folder + "/" + name
    assert [n for n in names(path) if n != "PRIMARY"] == ["IMAGE", "IVAR", "MASK", "READNOISE", "FIBERMAP"], names(path)
    image, mask = fitsio.read(path, ext="IMAGE"), fitsio.read(path, ext="MASK")
    assert image.shape == (24, 40) and image.dtype.newbyteorder("=") == "f4" and mask[2, 6] == 1024
    assert fitsio.read_header(path, ext="IMAGE")["CAMERA"].strip() == "r0"
    assert list(fitsio.read(path, ext="FIBERMAP")["FIBER"]) == [0, 1, 2]
