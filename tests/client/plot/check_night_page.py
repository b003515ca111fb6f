"""Uses a page of `spex night --report` in headless Chromium as an observer does, also in dark mode and on a phone.

check_night_page.py PAGE: exit code 77 if Chromium is not installed. The night is that of bad_night.py.
"""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../support"))
from chromium_pipe import check, chromium

CELLS = "Array.from(document.querySelectorAll('%s'), (cell) => cell.textContent)"
COLUMN = "Array.from(document.getElementById('%s').tBodies[0].rows, (row) => row.cells[%d].textContent)"


def tells_what_needs_attention_first(browser):
    badges = browser.value(CELLS % "#findings .badge")
    check(badges == ["failed"] * 3 + ["attention"] * 5 + ["note"] * 2, badges)
    check(browser.value("document.getElementById('findings').getBoundingClientRect().top") < 250)


def shows_a_cell_for_each_frame(browser):
    check(browser.value(CELLS % "#matrix td.failed") == ["✕"] * 7)
    amplifier = browser.value("Array.from(document.querySelectorAll('#matrix tr'), (row) => row.cells[6].className)")
    check(amplifier[13:20] == ["attention"] * 7, amplifier)
    about = "document.querySelector('#matrix tr:nth-child(13) td:nth-child(7)').title"
    check("A dead amplifier?" in browser.value(about), browser.value(about))


def shows_another_number_if_asked(browser):
    masked = "#matrix tr:nth-child(13) td:nth-child(7)"
    check(browser.value(CELLS % masked)[0].startswith("0.9"))
    browser.value("document.getElementById('number').focus()")
    for letter in "mas":
        browser.key(letter)
    check(browser.value(CELLS % masked)[0].startswith("27."), browser.value(CELLS % masked))
    check(browser.value(CELLS % "#matrix td.failed") == ["✕"] * 7)


def draws_a_panel_for_each_number(browser):
    panels = browser.value("document.querySelectorAll('#panels svg').length")
    check(panels == browser.value("document.getElementById('number').options.length") == 8, panels)
    outside = """Array.from(document.querySelectorAll('#panels svg'), (panel) => {
        const whole = panel.getBoundingClientRect();
        return Array.from(panel.querySelectorAll('text'), (text) => text.getBoundingClientRect()).filter((box) =>
            box.left < whole.left || box.right > whole.right || box.top < whole.top || box.bottom > whole.bottom).length;
    })"""
    check(browser.value(outside) == [0] * panels, browser.value(outside))
    overlapping = """Array.from(document.querySelectorAll('#panels svg'), (panel) => {
        const boxes = Array.from(panel.querySelectorAll('text'), (text) => text.getBoundingClientRect());
        return boxes.filter((a, k) => boxes.some((b, j) => j > k && a.left < b.right && b.left < a.right &&
            a.top + 1 < b.bottom && b.top + 1 < a.bottom)).length;
    })"""
    check(browser.value(overlapping) == [0] * panels, browser.value(overlapping))
    labels = browser.value("Array.from(document.querySelectorAll('#panels svg'), (panel) => "
                           "[panel.querySelectorAll('.middle').length, panel.querySelectorAll('.end').length - 1])")
    check(min(min(pair) for pair in labels) >= 2, labels)


def sorts_tables(browser):
    titles = browser.value(CELLS % "#frames th")
    seconds = titles.index("time (s)")
    click = "document.querySelectorAll('#frames th button')[%d].click()"
    browser.value(click % seconds)
    column = browser.value(COLUMN % ("frames", seconds))
    there = [float(text) for text in column if text]
    check(len(there) == 113 and there == sorted(there) and not any(column[113:]), column)
    browser.value(click % seconds)
    column = browser.value(COLUMN % ("frames", seconds))
    check([float(text) for text in column[:113]] == there[::-1] and not any(column[113:]), column)
    browser.value(click % 0)
    exposures = browser.value(COLUMN % ("frames", 0))
    check(exposures == sorted(exposures), exposures)
    check(len(browser.value(COLUMN % ("exposures", 0))) == 40)


def can_be_read_in_both_lights(browser):
    for dark, paper in ((False, "rgb(255, 255, 255)"), (True, "rgb(20, 23, 29)")):
        browser.look(1280, 900, dark=dark)
        check(browser.value("getComputedStyle(document.body).backgroundColor") == paper)
        contrast = """(() => {
            const light = (colour) => {
                const [r, g, b] = colour.match(/[0-9.]+/g).slice(0, 3)
                    .map((part) => part / 255).map((part) => part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
                return 0.2126 * r + 0.7152 * g + 0.0722 * b;
            };
            return Math.min(...Array.from(document.querySelectorAll('#matrix td.ok, #matrix td.attention, .failed'), (cell) => {
                const style = getComputedStyle(cell);
                const both = [light(style.color), light(style.backgroundColor)].sort((a, b) => a - b);
                return (both[1] + 0.05) / (both[0] + 0.05);
            }));
        })()"""
        check(browser.value(contrast) > 4.5, browser.value(contrast), dark)


def works_on_a_phone(browser):
    browser.look(360, 740, phone=True)
    check(browser.value("document.documentElement.scrollWidth") == 360, browser.value("document.documentElement.scrollWidth"))


def runs_nothing_of_the_night(browser):
    check("</script><script>alert(1)</script>" in browser.value("document.getElementById('findings').textContent"))
    check(browser.value("document.scripts.length") == 1)
    added = "(s => { s.textContent = 'window.ran = 1'; document.body.append(s); return window.ran === undefined; })"
    check(browser.value(added + "(document.createElement('script'))"))


def main():
    url = "file://" + os.path.abspath(sys.argv[1])
    with chromium() as browser:
        browser.look(1280, 900)
        browser.open(url)
        tells_what_needs_attention_first(browser)
        shows_a_cell_for_each_frame(browser)
        shows_another_number_if_asked(browser)
        draws_a_panel_for_each_number(browser)
        sorts_tables(browser)
        can_be_read_in_both_lights(browser)
        works_on_a_phone(browser)
        check(browser.errors == [], browser.errors)
        runs_nothing_of_the_night(browser)
        check(browser.requests == [url], browser.requests)


if __name__ == "__main__":
    main()
