#!/usr/bin/env python3
"""Writes the record of `spex night` as one HTML page for the next morning; it needs no network and no other file.

night_page.py NIGHT.json OUTPUT; `spex night --report` calls it.
"""
import html
import math
import sys

sys.dont_write_bytecode = True  # writes no cache beside an installed script
import night_findings
import plot_common
from night_findings import FAILED, time_text

WIDTH, HEIGHT = 620, 196  # size of a panel, in units of its drawing
LEFT, RIGHT, TOP, BOTTOM = 52, 14, 28, 34
BEYOND = 0.06  # fraction of the range of values that is added above and below
SIZES = ((300, 3.2), (1000, 2.4))  # (number of frames, size of marks up to it)
SMALLEST = 1.8
WIDE_RANGE = 10  # largest value / median above which an axis is logarithmic if it may be
TICK_ROOM = 62  # units of the drawing for one label of the horizontal axis
MARKS = {  # marks of arms, so that arms differ by more than colours
    "b": "M{x:.1f} {y:.1f}m-{s},0a{s},{s} 0 1,0 {d},0a{s},{s} 0 1,0 -{d},0z",
    "r": "M{x:.1f} {y:.1f}m-{s},-{s}h{d}v{d}h-{d}z",
    "z": "M{x:.1f} {y:.1f}m0,-{t}l{t},{d}h-{dt}z",
    "": "M{x:.1f} {y:.1f}m0,-{t}l{t},{t}l-{t},{t}l-{t},-{t}z",
}
STATE_WORDS = {"failed": "✕", "not reached": "–"}


def text(value):
    return html.escape(str(value))


def shown(quantity, value):
    return "" if value is None else "%.*f" % (quantity.digits, round(value, quantity.digits) + 0.0)  # avoids -0


# ---- The top: findings, and exposures by cameras.


def findings_list(night):
    if not night.findings:
        return '<p class="quiet">Nothing: no failures, and no frame is far from the others.</p>'
    items = ['<li><span class="badge %s">%s</span> <span>%s</span></li>' % (one.severity, one.severity, text(one.text))
             for one in night.findings]
    return "<ul>%s</ul>" % "".join(items)


def hover(night, frame):
    """Returns the text that a browser shows for a frame under the pointer."""
    parts = ["%s: %s" % (frame.name, frame.state)]
    for one in night.quantities:
        if one.name in frame.values:
            parts.append("%s %s %s" % (one.title, shown(one, frame.values[one.name]), one.unit))
    parts += [finding.text for finding in frame.findings]
    return "\n".join(parts)


def cell(night, frame):
    if frame is None:
        return "<td></td>"
    severity = night.severity(frame)
    state = frame.state.replace(" ", "-") if not frame.is_there else severity or "ok"
    word = STATE_WORDS.get(frame.state)
    values = "" if word else "".join(' data-%s="%s"' % (one.name.replace("_", "-"), shown(one, frame.values.get(one.name)))
                                     for one in night.quantities)
    first = night.quantities[0] if night.quantities else None
    number = word or (shown(first, frame.values.get(first.name)) if first else "")
    return '<td class="%s" title="%s"%s>%s</td>' % (state, text(hover(night, frame)), values, number)


def matrix(night):
    frames = {}
    for frame in night.frames:
        frames.setdefault((frame.exposure, frame.camera), frame)
    head = "".join("<th>%s</th>" % text(camera) for camera in night.cameras)
    rows = []
    for exposure in night.exposures:
        when = "<td class=when>%s</td>" % time_text(night.at[exposure]) if night.has_times else ""
        cells = "".join(cell(night, frames.get((exposure, camera))) for camera in night.cameras)
        rows.append("<tr><th>%s</th>%s%s</tr>" % (text(exposure), when, cells))
    return "<table id=matrix><thead><tr><th>exposure</th>%s%s</tr></thead><tbody>%s</tbody></table>" % (
        "<th>UT</th>" if night.has_times else "", head, "".join(rows))


def number_choice(night):
    options = ["<option value=%s>%s%s</option>" % (one.name.replace("_", "-"), text(one.title),
                                                  text(", " + one.unit if one.unit else "")) for one in night.quantities]
    return "<select id=number>%s</select>" % "".join(options) if options else ""


# ---- Panels over the night.


def x_of(axis, place):
    return LEFT + (place - axis.low) / (axis.high - axis.low) * (WIDTH - LEFT - RIGHT)


class Up:
    """The vertical axis for some values."""

    def __init__(self, values, may_be_log):
        values = sorted(values)
        self.log = may_be_log and values[0] > 0 and values[-1] > WIDE_RANGE * values[len(values) // 2]
        low, high = (self.scaled(values[k]) for k in (0, -1))
        room = BEYOND * (high - low) or 0.05 * abs(high) or 0.5
        self.low, self.high = low - room, high + room

    def scaled(self, value):
        return math.log10(value) if self.log else value

    def y(self, value):
        return HEIGHT - BOTTOM - (self.scaled(value) - self.low) / (self.high - self.low) * (HEIGHT - TOP - BOTTOM)

    def ticks(self):
        """Returns (y, label) of each tick."""
        if self.log:
            values = [m * 10.0 ** k for k in range(math.floor(self.low), math.ceil(self.high) + 1) for m in (1, 2, 5)]
            values = [value for value in values if self.low <= math.log10(value) <= self.high]
            if len(values) > 5:
                values = [value for value in values if round(math.log10(value), 6) % 1 == 0] or values
            return [(self.y(value), "%g" % value) for value in values]
        raw = (self.high - self.low) / 4
        power = 10.0 ** math.floor(math.log10(raw))
        step = power * next(m for m in (1, 2, 5, 10) if m * power >= raw)
        digits = max(0, -math.floor(math.log10(step) + 1e-9))
        first = math.ceil(self.low / step)
        return [(self.y(k * step), "%.*f" % (digits, k * step + 0.0)) for k in range(first, math.floor(self.high / step) + 1)]


def mark(arm, x, y, size):
    t = 1.25 * size
    return MARKS.get(arm, MARKS[""]).format(x=x, y=y, s=size, d=2 * size, t="%.2f" % t, dt="%.2f" % (2 * t))


def lines_of(night, quantity, across, up):
    """Returns a line for each camera."""
    parts = []
    for camera in night.cameras:
        points = ["%.1f,%.1f" % (x_of(across, across.place(f)), up.y(f.values[quantity.name])) for f in night.frames
                  if f.camera == camera and quantity.name in f.values]
        if len(points) > 1:
            parts.append('<polyline class="line %s" points="%s"/>' % (arm_class(camera[:1]), " ".join(points)))
    return parts


def arm_class(arm):
    return "arm-" + (arm if arm in MARKS and arm else "other")


def panel(night, quantity, across):
    frames = [frame for frame in night.frames if quantity.name in frame.values]
    up = Up([value for frame in frames for value in frame.drawn(quantity.name)], quantity.may_be_log)
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    size = next((size for most, size in SIZES if len(night.frames) <= most), SMALLEST)
    parts = []
    half = max(7, x_of(across, 0.5 * across.width) - x_of(across, 0) + 2 * size)
    for finding in night.findings:
        if finding.of_exposure:
            x = x_of(across, night.at[finding.frames[0].exposure])
            parts.append('<rect class=apart x="%.1f" y="%d" width="%.1f" height="%d"/>' % (
                x - half, TOP, 2 * half, bottom - TOP))
    for place, label in across.ticks((WIDTH - LEFT - RIGHT) // TICK_ROOM):
        x = x_of(across, place)
        parts.append('<path class=grid d="M%.1f %dV%d"/><text x="%.1f" y="%d" class=middle>%s</text>' % (
            x, TOP, bottom, x, bottom + 14, text(label)))
    for y, label in up.ticks():
        parts.append('<path class=grid d="M%d %.1fH%d"/><text x="%d" y="%.1f" class=end>%s</text>' % (
            LEFT, y, right, LEFT - 6, y + 4, label.replace("-", "−")))
    parts.append('<path class=edge d="M%d %dV%dH%d"/>' % (LEFT, TOP, bottom, right))
    parts += lines_of(night, quantity, across, up)
    odd = {frame for finding in night.findings if finding.quantity == quantity.name for frame in finding.frames}
    for frame in frames:
        if quantity.name in frame.ranges:
            low, high = frame.ranges[quantity.name]
            parts.append('<path class="range %s" d="M%.1f %.1fV%.1f"/>' % (
                arm_class(frame.arm), x_of(across, across.place(frame)), up.y(low), up.y(high)))
    for frame in frames:
        x, y = x_of(across, across.place(frame)), up.y(frame.values[quantity.name])
        if frame in odd:
            parts.append('<circle class=ring cx="%.1f" cy="%.1f" r="%.1f"/>' % (x, y, 2.1 * size))
        parts.append('<path class="%s" d="%s"><title>%s: %s %s</title></path>' % (
            arm_class(frame.arm), mark(frame.arm, x, y, size), text(frame.name), shown(quantity, frame.values[quantity.name]),
            text(quantity.unit)))
    for frame in night.frames:
        if frame.state == FAILED:
            parts.append('<path class=failure d="M%.1f %dm-3.5,-3.5l7,7m0,-7l-7,7"><title>%s failed</title></path>' % (
                x_of(across, across.place(frame)), bottom, text(frame.name)))
    unit = " (%s)" % quantity.unit if quantity.unit else ""
    parts.append('<text x="%d" y="16" class=title>%s</text>' % (LEFT, text(quantity.title + unit)))
    parts.append('<text x="%d" y="%d" class=end>%s</text>' % (right, HEIGHT - 5, across.title))
    return '<svg viewBox="0 0 %d %d" role="img" aria-label="%s over the night">%s</svg>' % (
        WIDTH, HEIGHT, text(quantity.title), "".join(parts))


def sample(arm):
    return '<svg class=sample viewBox="0 0 12 12"><path class="%s" d="%s"/></svg>' % (arm_class(arm), mark(arm, 6, 6, SIZES[0][1]))


def legend(night):
    arms = sorted({frame.arm for frame in night.frames if frame.is_there})
    parts = ["%s %s" % (sample(arm), text(arm)) for arm in arms]
    if any(finding.quantity for finding in night.findings):
        parts.append('<svg class=sample viewBox="0 0 16 16"><circle class=ring cx=8 cy=8 r=6 /></svg> needs attention')
    if any(frame.state == FAILED for frame in night.frames):
        parts.append('<svg class=sample viewBox="0 0 12 12"><path class=failure d="M6 6m-3.5,-3.5l7,7m0,-7l-7,7"/></svg> '
                     "failed frame")
    if any(finding.of_exposure for finding in night.findings):
        parts.append('<svg class=sample viewBox="0 0 12 12"><rect class=apart width=12 height=12 /></svg> exposure apart from '
                     "the night's")
    return "".join("<span>%s</span>" % part for part in parts)


def panels(night):
    if not any(frame.is_there for frame in night.frames):
        return "<p class=quiet>No frame was written.</p>"
    across = night_findings.Across(night)
    return "<p class=legend>%s</p><div id=panels>%s</div>" % (
        legend(night), "".join(panel(night, one, across) for one in night.quantities))


# ---- Tables.


def fraction(products, name, good):
    product = products.get(name)
    if not isinstance(product, dict):
        return ""
    return "failed" if "error" in product else "%s / %s" % (product.get(good, ""), product.get("targets", ""))


def table(name, columns, rows):
    """Returns a table. `columns`: (title, whether it has numbers)."""
    head = "".join('<th%s><button type=button>%s</button></th>' % (" class=n" if number else "", text(title))
                   for title, number in columns)
    body = []
    for row in rows:
        cells = "".join("<td%s>%s</td>" % (" class=n" if number else "", text(value))
                        for value, (_, number) in zip(row, columns))
        body.append("<tr>%s</tr>" % cells)
    return "<div class=scroll><table id=%s class=sortable><thead><tr>%s</tr></thead><tbody>%s</tbody></table></div>" % (
        name, head, "".join(body))


def frames_table(night):
    columns = [("exposure", False)] + ([("UT", False)] if night.has_times else []) + [("camera", False), ("state", False)]
    columns += [(one.column, True) for one in night.quantities]
    has_velocities = any("velocities" in frame.products for frame in night.frames)
    columns += ([("velocities", True)] if has_velocities else []) + [("queue (s)", True), ("about", False), ("image", False)]
    rows = []
    for frame in night.frames:
        row = [frame.exposure] + ([time_text(frame.time) if frame.time else ""] if night.has_times else [])
        row += [frame.camera, frame.state] + [shown(one, frame.values.get(one.name)) for one in night.quantities]
        if has_velocities:
            row.append(fraction(frame.products, "velocities", "good"))
        queue = frame.record.get("queue_seconds")
        about = dict.fromkeys(finding.about for finding in frame.findings)
        row += ["" if queue is None else "%.2f" % queue, ", ".join(about), frame.image]
        rows.append(row)
    return table("frames", columns, rows)


def exposures_table(night):
    if not night.products:
        return ""
    columns = [("file", False), ("state", False), ("arms", True), ("velocities", True), ("redshifts", True), ("time (s)", True),
               ("error", False)]
    rows = []
    for one in night.products:
        products = night_findings.part_of(one, "products")
        seconds = one.get("seconds")
        rows.append([one.get("output", ""), one["state"], len(one.get("frames") or ()) or "",
                     fraction(products, "velocities", "good"), fraction(products, "redshifts", "accepted"),
                     "" if seconds is None else "%.2f" % seconds, one.get("error", "")])
    return "<h2>Products over all arms</h2>" + table("exposures", columns, rows)


def page(night):
    return plot_common.page(
        "Night", "night_page.html", ("plot_page.css", "night_page.css"), ("night_page.js",), SUMMARY=text(night.summary()),
        FINDINGS=findings_list(night), CHOICE=number_choice(night), MATRIX=matrix(night), PANELS=panels(night),
        FRAMES=frames_table(night), EXPOSURES=exposures_table(night))


def main():
    path, output = plot_common.arguments_of("spex night --report", __doc__)
    night = night_findings.read(path)
    return plot_common.write_text(lambda: page(night), output)


if __name__ == "__main__":
    sys.exit(main())
