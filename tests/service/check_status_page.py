"""Checks the operator's page in headless Chromium, at the widths of a phone and of a desktop, and takes a picture of each.

check_status_page.py URL FOLDER: writes status-420.png and status-1280.png; exit code 77 if Chromium is not installed.
The page must have one running job and one that has ended.
"""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from chromium_pipe import check, chromium

ROOT = "document.documentElement"
COLOURS = "Array.from(document.querySelectorAll('#ended .legend i'), (one) => getComputedStyle(one).backgroundColor)"


def fits(browser, width):
    browser.look(width, 800)
    browser.look(width, browser.value(ROOT + ".scrollHeight"))  # all of it, as in the picture
    seen = browser.value("[innerWidth, %s.clientWidth, %s.scrollWidth]" % (ROOT, ROOT))
    check(seen == [width, width, width], seen)


def main():
    url, pictures = sys.argv[1:]
    os.makedirs(pictures, exist_ok=True)
    with chromium() as browser:
        browser.open(url)
        browser.call("Fetch.enable")  # holds the next request, with which the page reloads itself
        check(browser.value("document.querySelectorAll('#under-way .bar').length") == 1)
        check(browser.value("document.querySelectorAll('#ended .bar').length") == 1)
        colours = browser.value(COLOURS)
        check(len(set(colours)) == len(colours) > 10 and "rgba(0, 0, 0, 0)" not in colours, colours)
        for width in (420, 1280):
            fits(browser, width)
            browser.screenshot(os.path.join(pictures, "status-%d.png" % width))
        browser.wait_for("Fetch.requestPaused")
        check(set(browser.requests) == {url}, browser.requests)
        check(browser.errors == [], browser.errors)


if __name__ == "__main__":
    main()
