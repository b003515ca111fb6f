"""Checks joint velocities in a page of `spex plot --html` with headless Chromium.

check_arms_page.py PAGE SPECTRA VELOCITIES: exit code 77 if Chromium is not installed. The spectra are those of
arm_spectra.py, whose arms overlap.
"""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../support"))
import numpy as np
from astropy.io import fits
from chromium_pipe import check, chromium

TITLE, SUMMARY, READOUT = ("document.getElementById('%s').textContent" % name for name in ("title", "summary", "readout"))


def shows_rows_and_arms(browser, spectra):
    r, z = (spectra[arm + "_WAVELENGTH"].data for arm in "RZ")
    check("R %.1f–%.1f Å, Z %.1f–%.1f Å" % (r[0], r[-1], z[0], z[-1]) in browser.value(SUMMARY), browser.value(SUMMARY))
    browser.value("page.chooseNumber(4), page.point(%d)" % (len(r) + 10))
    target = spectra["FIBERMAP"].data["TARGETID"][4]
    check(browser.value(TITLE) == "Row 4 · TARGETID %d  ·  fibre 4" % target, browser.value(TITLE))
    said = browser.value(READOUT)
    check("%.2f Å" % z[10] in said and "arm Z, bin %d " % (len(r) + 10) in said, said)
    flux = float(said.split("flux ")[1].split(" ")[0].replace("−", "-"))
    check(abs(flux / spectra["Z_FLUX"].data[4, 10] - 1) < 2e-3 and "10⁻¹⁷ erg/(s cm² Å)" in said, said)
    both = browser.value("page.data.binsBetween(%r, %r)" % (float(z[1]), float(z[2])))
    check(both == [len(r) - 7, len(r) + 2], both, "bins of both arms where they overlap")


def shows_each_arms_scan(browser, velocities):
    stars = velocities["RVTAB"].data
    k = int(np.argmax(stars["DCHI2"]))
    browser.value("page.chooseNumber(%d)" % stars["FIBER"][k])
    place = browser.value("document.getElementById('place').textContent")
    check("v = %.2f ± %.2f km/s" % (stars["VRAD"][k], stars["VRAD_ERR"][k]) in place, place)
    parts = browser.value("page.star.parts.map(([name, scan]) => [name, Array.from(scan)])")
    check([name for name, _ in parts] == ["R", "Z"], parts)
    for name, scan in parts:
        chi2 = velocities[name + "_CHI2"].data[k]
        check(np.allclose(scan, chi2 - chi2.min(), atol=1e-3), name)


def main():
    url = "file://" + os.path.abspath(sys.argv[1])
    with chromium() as browser, fits.open(sys.argv[2]) as spectra, fits.open(sys.argv[3]) as velocities:
        browser.look(1280, 900)
        browser.open(url)
        shows_rows_and_arms(browser, spectra)
        shows_each_arms_scan(browser, velocities)
        check(browser.errors == [], browser.errors)
        check(browser.requests == [url], browser.requests)


if __name__ == "__main__":
    main()
