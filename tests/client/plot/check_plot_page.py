"""Uses a page of `spex plot --html` in headless Chromium as a user does: keys, mouse, fingers; dark mode, a phone.

check_plot_page.py PAGE FRAME: exit code 77 if Chromium is not installed. The frame is that of odd_frame.py.
"""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../support"))
import numpy as np
from astropy.io import fits
from chromium_pipe import check, chromium

TEXT = "document.getElementById('%s').textContent"
WAVES = "page.waves"
WHITE, BLACK = "rgb(255, 255, 255)", "rgb(20, 23, 29)"


def picks_fibres(browser):
    title = TEXT % "title"
    check(browser.value(title).startswith("Fibre 0 · "), browser.value(title))
    browser.value("document.getElementById('number').select(), document.getElementById('number').focus()")
    browser.key("1")
    browser.key("7")
    browser.key("Enter")
    check(browser.value(title).startswith("Fibre 17 · "), browser.value(title))
    browser.key("ArrowUp")
    check(browser.value(title).startswith("Fibre 18 · "), browser.value(title))
    browser.value("document.getElementById('number').select()")
    for digit in "777":
        browser.key(digit)
    browser.key("Enter")
    check(browser.value(TEXT % "problem") == "This page has fibres 0 to 29, not 777.", browser.value(TEXT % "problem"))
    check(browser.value("document.getElementById('number').value") == "18")
    browser.value("document.getElementById('kind').focus()")
    browser.key("s")  # "sky", by its first letter
    check("sky" in browser.value(title), browser.value(title))
    browser.value("document.getElementById('plot').focus()")
    browser.key("ArrowUp")
    check("sky" in browser.value(title), browser.value(title))
    listed = browser.value("Array.from(document.getElementById('list').options, (one) => one.text)")
    check(0 < len(listed) < 30 and all(" · sky · " in one for one in listed), listed)


def reads_bins(browser, hdus):
    browser.value("page.chooseNumber(2), page.whole(), page.point(null)")
    check(browser.value(TEXT % "title") == "Fibre 2 · target · 9223372036854775807", browser.value(TEXT % "title"))
    browser.key("Home")
    for _ in range(8):
        browser.key("ArrowRight")
    said = browser.value(TEXT % "readout")
    error = 1 / np.sqrt(hdus["IVAR"].data[2, 8])
    check("%.2f Å" % hdus["WAVELENGTH"].data[8] in said and "bin 8 " in said and "mask none" in said, said)
    flux = said.split("flux ")[1].split(" e/Å")[0].replace("−", "-").split(" ± ")
    check(abs(float(flux[0]) / hdus["FLUX"].data[2, 8] - 1) < 2e-3, said)
    check(abs(float(flux[1]) / error - 1) < 2e-3, said, error)
    check("R · truth" in said and "without the sky" in said and "FWHM" in said, said)
    for bin_, names in ((11, "mask BAD2DFIT "), (22, "mask ALLBADPIX, NODATA "), (30, "mask bit 20 ")):
        browser.value("page.point(%d)" % bin_)
        check(names in browser.value(TEXT % "readout"), browser.value(TEXT % "readout"))


def shows_trace_shifts(browser, hdus):
    table, cards = hdus["TRACESHIFT"].data, hdus["FLUX"].header
    browser.value("page.chooseNumber(2), page.point(0)")
    wave = hdus["WAVELENGTH"].data[0]
    said = ["%s %+.3f" % (name, np.interp(wave, table["WAVE"][2], table[name.upper()][2])) for name in ("dx", "dy")]
    readout = browser.value(TEXT % "readout").replace("−", "-")
    check("trace shift %s, %s pixels" % tuple(said) in readout, readout, said)
    label = browser.value("document.getElementById('shifts').getAttribute('aria-label')").replace("−", "-")
    check("dx: ok, mean %+.3f pixels, error at most %.3f" % (cards["MEANDX"], cards["ERRDX"]) in label, label)
    check("dy: relative, mean" in label, label)
    hidden = "document.getElementById('shifts').hidden"
    check(not browser.value(hidden))
    browser.value("document.getElementById('show-shifts').click()")
    check(browser.value(hidden))
    browser.value("document.getElementById('show-shifts').click()")


def zooms(browser):
    whole = browser.value(WAVES)
    box = browser.value("(r => [r.left, r.top, r.width])(document.getElementById('plot').getBoundingClientRect())")
    x, y = int(box[0] + 0.4 * box[2]), int(box[1]) + 80  # wheel events have whole pixels
    under = "page.axes[0].wave(%g)" % (x - box[0])
    before = browser.value(under)
    browser.mouse("mouseWheel", x, y, deltaX=0, deltaY=-400)
    near = browser.value(WAVES)
    check(near[1] - near[0] < 0.7 * (whole[1] - whole[0]) and abs(browser.value(under) - before) < 1e-6, near, before)
    browser.mouse("mouseMoved", x, y)
    check("%.2f" % browser.value("page.data.wave[page.data.binAt(%s)]" % under) in browser.value(TEXT % "readout"))
    browser.drag(x, y, x + 100, y + 5)
    nearer = browser.value(WAVES)
    check(abs(nearer[0] - before) < 1e-6 and nearer[1] < near[1], nearer)
    browser.double_click(x, y)
    check(browser.value(WAVES) == whole, browser.value(WAVES))
    browser.key("+")
    check(browser.value("page.waves[1] - page.waves[0]") < whole[1] - whole[0])
    browser.key("0")
    check(browser.value(WAVES) == whole, browser.value(WAVES))


def labels_two_ticks_of_every_axis(browser):
    least = """(() => {
        let least = Infinity;
        for (let range = 0.05; range < 50; range *= 1.07) {
            for (let low = -range; low < 2 * range; low += 0.011 * range) {
                const texts = new Set(ticksBetween(low, low + range, 3).map((tick) => tick.text));
                least = Math.min(least, texts.size);
            }
        }
        return least;
    })()"""
    check(browser.value(least) >= 2, browser.value(least))
    # The width of a real spectrograph's resolution.
    texts = browser.value("ticksBetween(1.51, 1.59, 3).map((tick) => tick.text)")
    check(texts == ["1.52", "1.54", "1.56", "1.58"], texts)


def draws_in_both_lights(browser):
    # Read from a copy, because Chromium warns of canvases that are read often.
    colours = """(canvas => {
        const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", {willReadFrequently: true});
        copy.drawImage(canvas, 0, 0);
        return new Set(new Uint32Array(copy.getImageData(0, 0, canvas.width, canvas.height).data.buffer)).size;
    })(document.getElementById("plot"))"""
    background = "getComputedStyle(document.body).backgroundColor"
    for dark, paper in ((False, WHITE), (True, BLACK)):
        browser.look(1280, 900, dark=dark)
        check(browser.value(background) == paper, browser.value(background))
        check(browser.value(colours) > 20, browser.value(colours))


def works_on_a_phone(browser):
    browser.look(360, 740, phone=True)
    width = browser.value("document.documentElement.scrollWidth")
    check(width == 360, width)
    browser.value("document.getElementById('plot').scrollIntoView()")
    top = browser.value("document.getElementById('plot').getBoundingClientRect().top")
    whole, y = browser.value(WAVES), top + 100
    browser.fingers([(150, y), (130, y), (110, y)], [(250, y), (270, y), (290, y)])
    pinched = browser.value(WAVES)
    check(0.3 < (pinched[1] - pinched[0]) / (whole[1] - whole[0]) < 0.8, pinched)
    browser.value("page.point(null)")
    browser.fingers([(200, y)])
    check(browser.value("page.bin !== null"))


def runs_nothing_from_the_file(browser):
    facts = browser.value(TEXT % "facts")
    check("</script><script>alert(1)</script>" in facts and "<img src=x" in facts, facts)
    check(browser.value("document.images.length") == 0)
    check(browser.value("document.querySelectorAll('#list b').length") == 0)
    # The page's policy refuses scripts that it does not contain.
    added = "(s => { s.textContent = 'window.ran = 1'; document.body.append(s); return window.ran === undefined; })"
    check(browser.value(added + "(document.createElement('script'))"))


def main():
    url = "file://" + os.path.abspath(sys.argv[1])
    with chromium() as browser, fits.open(sys.argv[2]) as hdus:
        browser.look(1280, 900)
        browser.open(url)
        picks_fibres(browser)
        reads_bins(browser, hdus)
        shows_trace_shifts(browser, hdus)
        zooms(browser)
        labels_two_ticks_of_every_axis(browser)
        draws_in_both_lights(browser)
        works_on_a_phone(browser)
        check(browser.errors == [], browser.errors)
        runs_nothing_from_the_file(browser)
        check(browser.requests == [url], browser.requests)


if __name__ == "__main__":
    main()
