"""Checks velocities and redshifts in a page of `spex plot --html` with headless Chromium.

check_products_page.py PAGE VELOCITIES REDSHIFTS: exit code 77 if Chromium is not installed. The page has all fibres.
"""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../support"))
import numpy as np
from astropy.io import fits
from chromium_pipe import check, chromium

PLACE, READOUT = ("document.getElementById('%s').textContent" % name for name in ("place", "readout"))
SCAN_IS_SHOWN = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(" \
                "() => done(!document.getElementById('scan').hidden))))"


def shows_stars(browser, stars, models):
    k = int(np.argmax(stars["NBIN"]))
    browser.value("page.chooseNumber(%d), page.point(40)" % stars["FIBER"][k])
    place, said = browser.value(PLACE), browser.value(READOUT)
    check("v = %.2f ± %.2f km/s" % (stars["VRAD"][k], stars["VRAD_ERR"][k]) in place, place)
    model = float(said.split("model ")[1].split(",")[0].split("  ")[0].replace("−", "-"))
    check(abs(model / models[k, 40] - 1) < 2e-3, said, models[k, 40])
    check(browser.value(SCAN_IS_SHOWN))
    box = browser.value("page.star.scan.length === page.data.velocities.length && Math.min(...page.star.scan)")
    check(box == 0, box)
    browser.value("page.shown.scan = false, page.redraw()")
    check(not browser.value(SCAN_IS_SHOWN))
    browser.value("page.shown.scan = true, page.redraw()")


def shows_galaxies(browser, galaxies):
    gaps = np.where(galaxies["ZWARN"] == 0, galaxies["GAP"], -1)
    for k, accepted in ((int(np.argmax(gaps)), True), (int(np.argmin(gaps)), False)):
        check((gaps[k] > 9) == accepted, gaps)
        browser.value("page.chooseNumber(%d), page.point(30)" % galaxies["FIBER"][k])
        place, said = browser.value(PLACE), browser.value(READOUT)
        check("z = %.5f, GAP %.1f (" % (galaxies["Z"][k], galaxies["GAP"][k]) in place, place)
        rest = browser.value("page.data.wave[30]") / (1 + galaxies["Z"][k])
        check(("rest wavelength %.2f Å" % rest in said) == accepted, said)
        check((browser.value("page.lines.length") > 0) == accepted)


def leaves_the_sky_alone(browser, targets):
    sky = next(fibre for fibre in range(browser.value("page.data.fibres.length")) if fibre not in targets)
    browser.value("page.chooseNumber(%d), page.point(40)" % sky)
    check("v =" not in browser.value(PLACE) and "z =" not in browser.value(PLACE), browser.value(PLACE))
    check("model" not in browser.value(READOUT) and not browser.value(SCAN_IS_SHOWN))


def main():
    url = "file://" + os.path.abspath(sys.argv[1])
    with chromium() as browser, fits.open(sys.argv[2]) as velocities, fits.open(sys.argv[3]) as lines:
        stars, galaxies = velocities["RVTAB"].data, lines["ZLINES"].data
        browser.look(1280, 900)
        browser.open(url)
        shows_stars(browser, stars, velocities["MODEL"].data)
        shows_galaxies(browser, galaxies)
        leaves_the_sky_alone(browser, set(stars["FIBER"]))
        check(browser.errors == [], browser.errors)
        check(browser.requests == [url], browser.requests)


if __name__ == "__main__":
    main()
