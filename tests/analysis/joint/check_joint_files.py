#!/usr/bin/env python3
"""Reads rvtab.fits, rvmod.fits and zlines.fits of a folder with astropy, and checks that they contain what is documented
and what joint_files_test.cc wrote into them. Exit code 0 if they do.

usage: check_joint_files.py FOLDER rows|targets|empty
"""
import sys
import warnings

import numpy as np
from astropy.io import fits
from astropy.table import Table

folder, kind = sys.argv[1:]
warnings.simplefilter("error")  # astropy warns of wrong checksums and of cards that violate the standard
COUNT = {"rows": 3, "targets": 3, "empty": 0}[kind]
FIRST = {"rows": [0, 1, 3], "targets": [0, 1, 2], "empty": []}[kind]
IDS = np.array([39627000000100001, 100, 101, 100])[FIRST]


def read(name):
    with fits.open(f"{folder}/{name}.fits", checksum=True, memmap=False) as hdus:
        hdus.verify("exception")
        return {hdu.name: (hdu.header, hdu.data) for hdu in hdus}


def forms(header):
    return {header[f"TTYPE{k + 1}"]: header[f"TFORM{k + 1}"] for k in range(header["TFIELDS"])}


tab, mod, lines = read("rvtab"), read("rvmod"), read("zlines")
names = ["PRIMARY", "RVTAB", "FIBERMAP"]
if kind != "targets":
    names += ["SCORES", "EXP_FIBERMAP"]
assert list(tab) == names + ["VELOCITY", "CHI2", "B_CHI2", "R_CHI2", "Z_CHI2"], list(tab)
arms = [f"{arm}_{what}" for arm in "BRZ" for what in ("WAVELENGTH", "MODEL")]
assert list(mod) == ["PRIMARY", *arms, "FIBERMAP"], list(mod)
assert list(lines) == ["PRIMARY", "ZLINES", "LINES"], list(lines)

header, table = tab["RVTAB"]
fitted = ["VRAD", "VRAD_ERR", "VRAD_ERR_COND", "VSINI", "TEFF", "TEFF_ERR", "LOGG", "LOGG_ERR", "CHISQ_TOT", "CHISQ_C_TOT"]
expected = dict.fromkeys(fitted, "1D") | {"NPIX_TOT": "1K"}
for arm in "BRZ":
    for name in ("CHISQ", "CHISQ_C", "NPIX", "VRAD", "VRAD_ERR"):
        expected[f"{name}_{arm}"] = "1K" if name == "NPIX" else "1D"
expected |= {"DCHI2": "1D", "V2": "1D", "RVS_WARN": "1K", "FIBER": "1J", "REF_CAT": "2A", "TARGET_RA": "1D", "TARGETID": "1K"}
if kind != "targets":
    expected["EXPID"] = "1J"
expected |= {"NUMEXP": "1J"} | {f"SN_{arm}": "1E" for arm in "BRZ"} | {"SUCCESS": "1L"}
if kind == "rows":
    expected |= {"RR_Z": "1D", "RR_SPECTYPE": "6A", "RR_SUBTYPE": "1A"}
assert list(forms(header).items()) == list(expected.items()), forms(header)
units = {c: table.columns[c].unit for c in ("VRAD", "VRAD_ERR_Z", "V2", "VSINI", "TEFF", "TEFF_ERR", "LOGG", "TARGET_RA")}
assert list(units.values()) == ["km s-1"] * 4 + ["K", "K", None, "deg"], units
assert header["SPECSYS"] == ("BARYCENT" if kind == "targets" else "TOPOCENT")
assert tab["PRIMARY"][0]["SURVEY"] == "main" and mod["PRIMARY"][0]["HPXPIXEL"] == 7
assert len(table) == len(tab["FIBERMAP"][1]) == len(mod["FIBERMAP"][1]) == len(lines["ZLINES"][1]) == COUNT
assert len(Table.read(f"{folder}/rvtab.fits", hdu="RVTAB")) == COUNT
assert len(lines["LINES"][1]) > 5 and "GROUP0" in lines["LINES"][0]

assert np.array_equal(mod["B_WAVELENGTH"][1], 4500 + 0.8 * np.arange(100)) and mod["B_WAVELENGTH"][1].dtype == ">f8"
assert np.array_equal(tab["VELOCITY"][1], np.linspace(-50, 50, 5))
assert (tab["CHI2"][0]["NAXIS1"], tab["CHI2"][0]["NAXIS2"]) == (5, COUNT)
assert (mod["R_MODEL"][0]["NAXIS1"], mod["R_MODEL"][0]["NAXIS2"], mod["R_MODEL"][0]["BITPIX"]) == (100, COUNT, -32)

columns = ["TARGETID", "FIBER"] + (["EXPID"] if kind != "targets" else []) + ["TARGET_RA"]
columns += ["Z", "ZERR", "ZWARN", "DCHI2", "SNR", "GAP", "Z2", "NLINES"]
assert list(lines["ZLINES"][1].columns.names) == columns, lines["ZLINES"][1].columns.names

if COUNT:
    assert list(table["TARGETID"]) == list(IDS) == list(tab["FIBERMAP"][1]["TARGETID"])
    assert list(table["NUMEXP"]) == ([1, 1, 1] if kind == "rows" else [1, 2, 1])
    assert list(table["FIBER"]) == list(np.array([3, 4, 5, 4])[FIRST]) and list(table["REF_CAT"])[:2] == ["G3", ""]
    np.testing.assert_array_equal(table["VRAD"], [30, np.nan, 32])
    np.testing.assert_array_equal(table["VRAD_R"], [31, np.nan, 33])
    np.testing.assert_array_equal(table["TEFF"], [5000, np.nan, 5000])
    assert np.isnan(table["VRAD_Z"]).all() and list(table["NPIX_Z"]) == [0, 0, 0]
    assert list(table["SUCCESS"]) == [True, False, True] and list(table["RVS_WARN"]) == [0, 32, 0]
    assert list(table["SN_B"]) == ([1.5, 2.5, 4.5] if kind == "rows" else [4, 4, 4]) and list(table["SN_Z"]) == [4, 4, 4]
    assert (mod["B_MODEL"][1][0] == 7).all() and np.isnan(mod["B_MODEL"][1][1]).all()
    assert np.isnan(mod["Z_MODEL"][1]).all()
    assert list(tab["CHI2"][1][0]) == [5, 4, 3, 4, 5] and np.isnan(tab["CHI2"][1][1]).all()
    assert list(tab["R_CHI2"][1][2]) == [2, 1, 0, 1, 2] and np.isnan(tab["Z_CHI2"][1]).all()
    assert list(lines["ZLINES"][1]["SNR"]) == [4, 4, 4] and list(lines["ZLINES"][1]["TARGETID"]) == list(IDS)
if kind == "rows":
    assert list(table["EXPID"]) == [10, 10, 11]
    assert list(table["RR_SPECTYPE"]) == ["STAR", "GALAXY", ""] and list(table["RR_Z"]) == [0.1, 0.2, 0.2]
    assert list(tab["SCORES"][1]["MEDIAN_COADD_SNR_B"]) == [1.5, 2.5, 4.5]
    assert list(tab["EXP_FIBERMAP"][1]["TARGETID"]) == [100]
if kind == "empty":
    assert len(tab["EXP_FIBERMAP"][1]) == 0 and len(tab["SCORES"][1]) == 0
