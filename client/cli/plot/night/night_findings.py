"""The record of a night as its report shows it: frames in the order of time, and what needs attention.

Used by night_page.py and plot_night.py. Uses only Python's standard library.
"""
import collections
import datetime
import itertools
import json
import math
import os
import re
import statistics
import sys

FORMAT = 2

# The limits of findings. docs/nights.md explains them.
LEAST_FRAMES = 4  # the least frames of a camera for which usual values are known
LEAST_CAMERAS = 3  # the least cameras of an exposure or a night for which common values are known
SIGMAS = 5  # a value is far from the usual if it differs by so many robust standard deviations and by the following
FAR_SNR = 0.25  # fraction of the usual
FAR_SKY = 0.3  # fraction of the usual
FAR_MASKED = 0.02  # fraction of bins above the usual
FAR_MASKED_CAMERA = 0.1  # fraction of bins by which a camera is above the others
FAR_SHIFT = 0.15  # pixels
FAR_SHIFT_CAMERA = 0.5  # pixels between a camera and the others
SLOW = 3  # multiple of the camera's median
SLOW_SECONDS = 1  # seconds above the camera's median

FAILED, ATTENTION, NOTE = "failed", "attention", "note"
MAX_NAMED = 6  # the most frames or cameras that a sentence names
UNMATCHED = "?"
SPREAD = 0.5  # fraction of the distance between exposures over which their cameras are drawn
TICK_LETTERS = 8  # letters that fit below a tick if as many ticks as possible are drawn
TICK_MINUTES = (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440)
BAD_FIT_WARNING = "image and PSF do not fit"  # left out, because bad_fit has the same meaning

# Quantities of frames: name, title, unit, title of a column, decimals, whether the axis may be logarithmic.
Quantity = collections.namedtuple("Quantity", "name title unit column digits may_be_log")
QUANTITIES = (
    Quantity("chi2pix", "Fit: median chi2pix", "", "chi2pix", 2, True),
    Quantity("snr", "S/N: median of targets", "per bin", "S/N", 1, False),
    Quantity("sky", "Sky level", "electrons/Å", "sky (e/Å)", 1, False),
    Quantity("masked", "Masked bins", "%", "masked (%)", 2, False),
    Quantity("shift_x", "Trace shift dx: mean and range", "pixels", "dx (pixels)", 3, False),
    Quantity("shift_y", "Trace shift dy: mean and range", "pixels", "dy (pixels)", 3, False),
    Quantity("redshifts", "Redshifts accepted", "% of targets", "redshifts (%)", 1, False),
    Quantity("seconds", "Time of a frame, in the queue too", "seconds", "time (s)", 2, True),
)


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value == value


def part_of(record, name):
    """Returns an object of a record; an empty one if there is none."""
    value = record.get(name)
    return value if isinstance(value, dict) else {}


def share(part, total):
    return 100 * part / total if is_number(part) and is_number(total) and total > 0 else None


def seconds_of(text):
    """Returns the seconds since 1970 of a DATE-OBS; None without a time."""
    found = re.match(r"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d(?:\.\d*)?)", text or "")
    if not found:
        return None
    *numbers, seconds = found.groups()
    try:
        day = datetime.datetime(*map(int, numbers), tzinfo=datetime.timezone.utc)
    except ValueError:
        return None
    return day.timestamp() + float(seconds)


class Frame:
    """A frame of the list. `values`: the known values of QUANTITIES. `ranges`: the smallest and largest
    numbers for values that are means."""

    def __init__(self, record):
        self.record = record
        self.state = record["state"]
        self.image = record.get("image", "")
        names = [os.path.basename(name) for name in (self.image, record.get("output", ""))]
        self.exposure = self.exposure_of(record, names)
        self.camera = record.get("camera") or self.camera_of(names)
        self.arm = self.camera[:1]
        self.time = seconds_of(record.get("observed"))
        self.products = part_of(record, "products")
        self.ranges = {}
        self.values = self.values_of(record) if self.is_there else {}
        self.findings = []

    @property
    def is_there(self):
        return self.state in ("written", "skipped")

    @property
    def name(self):
        return "%s %s" % (self.camera, self.exposure) if self.camera != UNMATCHED else os.path.basename(self.image)

    def drawn(self, name):
        """Returns the value of a quantity and the ends of its range, all of which an axis must show."""
        return self.values[name], *self.ranges.get(name, ())

    @staticmethod
    def exposure_of(record, names):
        """Returns the label in the list or EXPID, or else the number at the end of the image's name, or the name."""
        if record.get("expid"):
            return str(record["expid"])
        stem = names[0].split(".fits")[0]
        number = re.search(r"\d{4,}$", stem)
        return number.group().lstrip("0") if number else stem

    @staticmethod
    def camera_of(names):
        """Returns a part of a file's name that looks like a camera, for frames that could not be read."""
        for name in names:
            found = re.search(r"(?:^|[-_.])([a-z]\d{1,2})(?=[-_.])", name)
            if found:
                return found.group(1)
        return UNMATCHED

    def values_of(self, record):
        sky, redshifts = part_of(self.products, "sky"), part_of(self.products, "redshifts")
        values = {
            "chi2pix": record.get("chi2pix"), "snr": record.get("snr"), "sky": sky.get("level"),
            "masked": share(record.get("masked_bins"), record.get("bins")),
            "redshifts": share(redshifts.get("accepted"), redshifts.get("targets")),
        }
        for axis in "xy":
            shift = part_of(part_of(record, "trace_shifts"), axis)
            if shift.get("status") in ("ok", "weak"):  # other states have no mean
                values["shift_" + axis] = shift.get("mean")
                if is_number(shift.get("min")) and is_number(shift.get("max")):
                    self.ranges["shift_" + axis] = shift["min"], shift["max"]
        if is_number(record.get("seconds")):
            queue = record.get("queue_seconds")
            values["seconds"] = record["seconds"] + (queue if is_number(queue) else 0)
        return {name: value for name, value in values.items() if is_number(value)}


class Finding:
    """A sentence with its severity and subject: frames, a quantity ("": none), and whether it is a whole exposure."""

    def __init__(self, severity, about, text, frames=(), quantity="", of_exposure=False):
        self.severity, self.about, self.quantity = severity, about, quantity
        self.text = re.sub(r"(?<=\s)-(?=\d)", "\u2212", text.strip())
        self.frames, self.of_exposure = list(frames), of_exposure


class Night:
    """The frames and exposures of a night in the order of time, and the findings, worst first."""

    def __init__(self, record):
        self.seconds = record["seconds"]
        self.products = record["exposures"]  # records of the products of whole exposures
        self.frames = [Frame(frame) for frame in record["frames"]]
        listed = list(dict.fromkeys(frame.exposure for frame in self.frames))
        self.has_times, places = places_of(listed, self.frames)
        self.exposures = sorted(listed, key=lambda exposure: places[exposure])
        self.at = places  # places of exposures: seconds since 1970, or indices
        order = {exposure: k for k, exposure in enumerate(self.exposures)}
        self.cameras = sorted({frame.camera for frame in self.frames}, key=lambda name: (name[1:].zfill(3), name))
        self.frames.sort(key=lambda frame: (order[frame.exposure], self.cameras.index(frame.camera)))
        self.quantities = [one for one in QUANTITIES if any(one.name in frame.values for frame in self.frames)]
        self.findings = find(self)
        for finding in self.findings:
            for frame in finding.frames:
                frame.findings.append(finding)

    def severity(self, frame):
        """Returns the worst severity of a frame's findings; "" without any."""
        for severity in (FAILED, ATTENTION):
            if any(finding.severity == severity for finding in frame.findings):
                return severity
        return ""

    def label(self, exposure):
        """Returns an exposure's number and, if known, its time."""
        if not self.has_times:
            return exposure
        return "%s, %s UT" % (exposure, time_text(self.at[exposure]))

    def summary(self):
        states = collections.Counter(frame.state for frame in self.frames)
        counts = ", ".join("%d %s" % (states[state], state) for state in ("written", "skipped", "failed", "not reached")
                           if states[state])
        text = "%s of %s and %s: %s; %s in all" % (
            count(len(self.frames), "frame"), count(len(self.exposures), "exposure"), count(len(self.cameras), "camera"),
            counts or "none", "%.0f s" % self.seconds if self.seconds >= 10 else "%.1f s" % self.seconds)
        if self.has_times and self.exposures:
            first, last = (self.at[self.exposures[k]] for k in (0, -1))
            text = "%s to %s UT. %s" % (time_text(first, "%Y-%m-%d %H:%M"), time_text(last), text)
        return text


class Across:
    """The horizontal axis over the night: times, or exposures in the order of the list."""

    def __init__(self, night):
        self.night = night
        places = [night.at[exposure] for exposure in night.exposures] or [0]
        gaps = [b - a for a, b in zip(places, places[1:]) if b > a]
        # The cameras of an exposure are drawn beside each other.
        self.width = SPREAD * statistics.median(gaps) if gaps else SPREAD
        room = max(0.02 * (places[-1] - places[0]), 1.2 * self.width)
        self.low, self.high = places[0] - room, places[-1] + room
        self.title = "time (UT)" if night.has_times else "exposure, in the order of the list"

    def place(self, frame):
        cameras = self.night.cameras
        return self.night.at[frame.exposure] + self.width * ((cameras.index(frame.camera) + 0.5) / len(cameras) - 0.5)

    def ticks(self, most):
        """Returns (place, label) of at most `most` ticks."""
        if not self.night.has_times:
            longest = max(map(len, self.night.exposures), default=0)
            most = max(2, most * TICK_LETTERS // max(longest, TICK_LETTERS))
            step = -(-len(self.night.exposures) // most)
            return [(k, exposure) for k, exposure in enumerate(self.night.exposures) if k % step == 0]
        least = (self.high - self.low) / 60 / most
        step = 60 * next((minutes for minutes in TICK_MINUTES if minutes >= least), 1440 * math.ceil(least / 1440))
        form = "%H:%M" if step < 86400 else "%d %b"
        first = math.ceil(self.low / step)
        return [(k * step, time_text(k * step, form)) for k in range(first, math.floor(self.high / step) + 1)]


def time_text(seconds, form="%H:%M"):
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime(form)


def count(number, noun):
    return "%d %s%s" % (number, noun, "" if number == 1 else "s")


def places_of(exposures, frames):
    """Returns (whether places are times, {exposure: place}): times if most exposures have one, otherwise indices."""
    times = {}
    for frame in frames:
        if frame.time is not None:
            times[frame.exposure] = min(frame.time, times.get(frame.exposure, frame.time))
    if len(set(times.values())) < 2 or 2 * len(times) <= len(exposures):
        return False, {exposure: k for k, exposure in enumerate(exposures)}
    # Exposures without a time, whose frames all failed, are placed between their neighbours in the list.
    known = [k for k, exposure in enumerate(exposures) if exposure in times]
    gaps = [abs(times[exposures[b]] - times[exposures[a]]) / (b - a) for a, b in zip(known, known[1:])]
    gap = statistics.median(gaps)
    for k, exposure in enumerate(exposures):
        if exposure in times:
            continue
        before, after = [j for j in known if j < k], [j for j in known if j > k]
        if before and after:
            a, b = before[-1], after[0]
            part = (k - a) / (b - a)
            times[exposure] = (1 - part) * times[exposures[a]] + part * times[exposures[b]]
        else:
            near = before[-1] if before else after[0]
            times[exposure] = times[exposures[near]] + (k - near) * gap
    return True, times


# ---- Usual values.


def spread(values):
    """Returns a robust standard deviation of values in the order of time, insensitive to outliers and to one step."""
    middle = statistics.median(values)
    about_middle = statistics.median(abs(value - middle) for value in values)
    about_next = statistics.median(abs(b - a) for a, b in zip(values, values[1:])) / 2 ** 0.5
    return 1.4826 * min(about_middle, about_next)


def lower_quartile(values):
    return sorted(values)[(len(values) - 1) // 4]


def by_camera(frames):
    cameras = collections.defaultdict(list)
    for frame in frames:
        cameras[frame.camera].append(frame)
    return cameras


def runs(things, chosen):
    """Returns the runs of adjacent things that are chosen."""
    chosen = set(chosen)
    return [list(stretch) for is_chosen, stretch in itertools.groupby(things, chosen.__contains__) if is_chosen]


# ---- Sentences.


def join(parts):
    parts = list(parts)
    if len(parts) > MAX_NAMED:
        parts[MAX_NAMED - 1:] = ["%d more" % (len(parts) - MAX_NAMED + 1)]
    return parts[0] if len(parts) == 1 else "%s and %s" % (", ".join(parts[:-1]), parts[-1])


def named(night, frames):
    """Returns a short text with frames by cameras and exposures: "b0 51060, r1 51066 to 51069"."""
    chosen, parts, whole = set(frames), [], []
    for exposure in night.exposures:
        of_one = [frame for frame in night.frames if frame.exposure == exposure]
        if len(of_one) >= LEAST_CAMERAS and chosen.issuperset(of_one):
            whole.append(exposure)
            chosen.difference_update(of_one)
    for stretch in runs(night.exposures, whole):
        parts.append("all cameras of %s" % (stretch[0] if len(stretch) == 1 else "%s to %s" % (stretch[0], stretch[-1])))
    cameras = by_camera(night.frames)
    for camera in night.cameras:
        for stretch in runs(cameras[camera], chosen):
            if len(stretch) < 3:
                parts += [frame.name for frame in stretch]
            else:
                parts.append("%s to %s" % (stretch[0].name, stretch[-1].exposure))
    return join(parts)


def reason_of(frame, text):
    """Returns a message without the frame's name."""
    for name in (frame.image, frame.record.get("output", ""), os.path.basename(frame.image)):
        if name:
            text = text.replace(name, "")
    return text.strip(" ,:") or "no reason was given"


def grouped(pairs):
    """Groups (text, thing) pairs whose texts differ only in numbers: [(text, [things])], the largest group first."""
    groups = {}
    for text, thing in pairs:
        groups.setdefault(re.sub(r"\d+", "#", text), (text, []))[1].append(thing)
    return sorted(groups.values(), key=lambda group: -len(group[1]))


def times_usual(ratio):
    return "%.0f %%" % (100 * ratio) if ratio < 2 else "%.1f times" % ratio


# ---- Findings.


def find(night):
    """Returns all findings, worst first."""
    exposures = Conditions(night)
    found = [*failures(night), *not_reached(night), *failed_exposures(night), *bad_fits(night), *failed_bundles(night),
             *failed_products(night), *exposures.findings(), *masked(night), *shifts(night), *exposures.odd_frames(),
             *warnings(night), *slow(night)]
    order = (FAILED, ATTENTION, NOTE)
    return sorted(found, key=lambda finding: order.index(finding.severity))


def failures(night):
    failed = [(reason_of(f, f.record.get("error", "")), f) for f in night.frames if f.state == "failed"]
    for reason, frames in grouped(failed):
        yield Finding(FAILED, "failed", "%s failed: %s." % (said_of(night, frames), reason.rstrip(".")), frames)


def said_of(night, frames):
    """Returns a text with the frames, and their number if there are several."""
    text = named(night, frames)
    return text if len(frames) == 1 else "%s (%s)" % (count(len(frames), "frame"), text)


def not_reached(night):
    frames = [frame for frame in night.frames if frame.state == "not reached"]
    if frames:
        yield Finding(FAILED, "not reached", "%s not reached: the run ended before." % said_of(night, frames), frames)


def failed_exposures(night):
    failed = [(str(one.get("error", "no reason was given")), os.path.basename(one.get("output", "")))
              for one in night.products if one["state"] == "failed"]
    for reason, names in grouped(failed):
        yield Finding(FAILED, "products", "Products over all arms were not made (%s): %s." % (
            join(names), reason.rstrip(".")))


def bad_fits(night):
    cameras = by_camera(night.frames)
    for camera in night.cameras:
        bad = [frame for frame in cameras[camera] if frame.record.get("bad_fit") is True]
        good = [frame.values["chi2pix"] for frame in cameras[camera] if frame not in bad and "chi2pix" in frame.values]
        if not bad:
            continue
        worst = max(frame.values.get("chi2pix", 0) for frame in bad)
        usual = ", where it has %.2f otherwise" % statistics.median(good) if good else ""
        yield Finding(ATTENTION, "fit", "Image and PSF do not fit in %s: median chi2pix %s%.2f%s. "
                      "The PSF may be of another time, or the noise of the image is wrong." % (
                          named(night, bad), "up to " if len(bad) > 1 else "", worst, usual), bad, "chi2pix")


def failed_bundles(night):
    failed = [(str(text), frame) for frame in night.frames for text in frame.record.get("failed_bundles") or ()]
    for reason, frames in grouped(failed):
        yield Finding(ATTENTION, "bundles", "%s failed in %s: %s." % (
            count(len(frames), "bundle"), named(night, frames), reason.rstrip(".")), dict.fromkeys(frames))


def failed_products(night):
    """Yields one finding for products that fail for the same reason, such as all that need a sky."""
    failed = {}
    for frame in night.frames:
        for name, product in frame.products.items():
            if isinstance(product, dict) and "error" in product:
                failed.setdefault((frame, reason_of(frame, str(product["error"]))), []).append(name)
    groups = grouped(("%s not made: %s" % (join(names), reason), frame) for (frame, reason), names in failed.items())
    for text, frames in groups:
        yield Finding(ATTENTION, "products", "%s: %s." % (said_of(night, frames), text.rstrip(".")), frames)


class Conditions:
    """S/N and sky level of exposures and frames, compared with the usual values of each camera."""

    def __init__(self, night):
        self.night = night
        lengths = [frame.record.get("exposure_seconds") for frame in night.frames if frame.is_there]
        self.has_lengths = all(is_number(length) and length > 0 for length in lengths)
        self.ratios = {name: self.ratios_of(name) for name in ("snr", "sky")}
        self.common = {name: self.common_of(ratios) for name, ratios in self.ratios.items()}

    def rate(self, name, frame):
        """Returns S/N or sky level scaled to an exposure of 1 s, so that exposures of different lengths compare."""
        length = frame.record["exposure_seconds"] if self.has_lengths else 1
        return frame.values[name] / (length ** 0.5 if name == "snr" else length)

    def ratios_of(self, name):
        """Returns the ratios of frames to the median of their camera, without frames with a bad fit."""
        ratios = {}
        for frames in by_camera(self.night.frames).values():
            frames = [frame for frame in frames if name in frame.values and frame.record.get("bad_fit") is not True]
            if len(frames) < LEAST_FRAMES:
                continue
            usual = statistics.median(self.rate(name, frame) for frame in frames)
            if usual > 0:
                ratios.update((frame, self.rate(name, frame) / usual) for frame in frames)
        return ratios

    def common_of(self, ratios):
        """Returns {exposure: median over its cameras} for exposures with enough cameras."""
        members = collections.defaultdict(list)
        for frame, ratio in ratios.items():
            members[frame.exposure].append(ratio)
        return {exposure: statistics.median(members[exposure]) for exposure in self.night.exposures
                if len(members[exposure]) >= LEAST_CAMERAS}

    def is_far(self, name, exposure):
        common = self.common[name]
        if exposure not in common or len(common) < LEAST_FRAMES:
            return False
        far = max(SIGMAS * spread(list(common.values())), FAR_SNR if name == "snr" else FAR_SKY)
        return abs(common[exposure] - 1) > far

    def findings(self):
        for exposure in self.night.exposures:
            far = [name for name in ("snr", "sky") if self.is_far(name, exposure)]
            if not far:
                continue
            said = {"snr": "S/N", "sky": "sky level"}
            parts = ["%s %s of the usual" % (said[name], times_usual(self.common[name][exposure]))
                     for name in ("snr", "sky") if exposure in self.common[name]]
            faint = "snr" in far and self.common["snr"][exposure] < 1
            bright = "sky" in far and self.common["sky"][exposure] > 1
            why = ("Clouds, twilight or the Moon?" if faint and bright else "Clouds, or light that missed the fibres?"
                   if faint else "Twilight, the Moon or a lamp?" if bright else "")
            frames = [frame for frame in self.night.frames if frame.exposure == exposure and frame.is_there]
            severity = ATTENTION if faint or bright else NOTE
            yield Finding(severity, "sky" if far == ["sky"] else "S/N", "Exposure %s: %s in its %s. %s" % (
                self.night.label(exposure), ", ".join(parts), count(len(frames), "camera"), why), frames, far[0], True)

    def odd_frames(self):
        """Yields findings of frames that differ from the other cameras of their exposure."""
        for name, title, least in (("snr", "S/N", FAR_SNR), ("sky", "sky level", FAR_SKY)):
            common = self.common[name]
            rest = {frame: ratio / common.get(frame.exposure, 1) for frame, ratio in self.ratios[name].items()
                    if common.get(frame.exposure, 1) > 0}
            for camera, frames in by_camera(rest).items():
                far = max(SIGMAS * spread([rest[frame] for frame in frames]), least)
                odd = [frame for frame in frames if abs(rest[frame] - 1) > far]
                for stretch in runs(frames, odd):
                    ratio = statistics.median(rest[frame] for frame in stretch)
                    beside = " beside the other cameras of its exposure" if stretch[0].exposure in common else ""
                    yield Finding(ATTENTION, title, "%s: %s %s of the camera's usual%s." % (
                        named(self.night, stretch), title, times_usual(ratio), beside), stretch, name)


def when(night, stretch, frames):
    """Returns a text that says which frames of a camera a run has."""
    name = stretch[0].camera
    if len(stretch) == 1:
        return "%s %s" % (name, stretch[0].exposure)
    if stretch[-1] is frames[-1]:
        return "%s from %s on (%d frames)" % (name, night.label(stretch[0].exposure), len(stretch))
    return "%s %s to %s" % (name, stretch[0].exposure, stretch[-1].exposure)


def masked(night):
    """Compares a camera with itself and, as a whole, with the other cameras."""
    with_bins = by_camera(frame for frame in night.frames if "masked" in frame.values)
    medians = {camera: statistics.median(f.values["masked"] for f in frames) for camera, frames in with_bins.items()}
    for camera, frames in with_bins.items():
        others = [value for other, value in medians.items() if other != camera]
        if len(others) + 1 >= LEAST_CAMERAS and medians[camera] > statistics.median(others) + 100 * FAR_MASKED_CAMERA:
            many = [frame for frame in frames if frame.values["masked"] > statistics.median(others) + 100 * FAR_MASKED]
            where = "in all its frames" if len(many) == len(frames) else "in %d of %d frames, from %s on" % (
                len(many), len(frames), night.label(many[0].exposure))
            yield Finding(ATTENTION, "masked", "%s: %.1f %% of the bins are masked %s, in other cameras %.1f %%. "
                          "A dead amplifier?" % (camera, medians[camera], where, statistics.median(others)), many, "masked")
            continue
        if len(frames) < LEAST_FRAMES:
            continue
        values = [frame.values["masked"] for frame in frames]
        usual = lower_quartile(values)
        far = max(SIGMAS * spread(values), 100 * FAR_MASKED)
        for stretch in runs(frames, [frame for frame in frames if frame.values["masked"] > usual + far]):
            share_of = statistics.median(frame.values["masked"] for frame in stretch)
            why = " A dead amplifier?" if len(stretch) > 1 else ""
            yield Finding(ATTENTION, "masked", "%s: %.1f %% of the bins are masked, usually %.1f %%.%s" % (
                when(night, stretch, frames), share_of, usual, why), stretch, "masked")


def shifts(night):
    """Compares a camera with itself and, as a whole, with the other cameras."""
    for axis in "xy":
        name = "shift_" + axis
        measured = by_camera(frame for frame in night.frames if name in frame.values)
        usual = {camera: statistics.median_low(f.values[name] for f in frames) for camera, frames in measured.items()}
        for camera, frames in measured.items():
            others = [value for other, value in usual.items() if other != camera]
            of_others = statistics.median(others) if len(others) + 1 >= LEAST_CAMERAS else 0
            if abs(usual[camera] - of_others) > FAR_SHIFT_CAMERA:
                yield Finding(ATTENTION, "traces", "%s: traces lie %+.2f pixels in %s from its PSF, those of other cameras "
                              "%+.2f. Is the PSF of this camera and time?" % (camera, usual[camera], axis, of_others),
                              frames, name)
            if len(frames) < LEAST_FRAMES:
                continue
            far = max(SIGMAS * spread([frame.values[name] for frame in frames]), FAR_SHIFT)
            odd = [frame for frame in frames if abs(frame.values[name] - usual[camera]) > far]
            for stretch in runs(frames, odd):
                value = statistics.median(frame.values[name] for frame in stretch)
                yield Finding(ATTENTION, "traces", "%s: traces lie %+.2f pixels in %s from the PSF, usually %+.2f. Another "
                              "PSF, or a spectrograph that moved?" % (when(night, stretch, frames), value, axis,
                                                                     usual[camera]), stretch, name)


def warnings(night):
    texts = [(reason_of(frame, str(text)), frame) for frame in night.frames for text in frame.record.get("warnings") or ()
             if BAD_FIT_WARNING not in str(text)]
    for text, frames in grouped(texts):
        yield Finding(NOTE, "warning", "%s: %s." % (said_of(night, frames), text.rstrip(".")), frames)


def parts_of(frame):
    """Returns the seconds of each stage and of the queue."""
    parts = {name: value for name, value in part_of(frame.record, "stages").items() if is_number(value)}
    parts["the queue"] = frame.record.get("queue_seconds") or 0
    return parts


def slow(night):
    """Yields findings of slow frames that this run extracted, with the part that exceeded its usual time most."""
    slow_frames = []
    for frames in by_camera(f for f in night.frames if f.state == "written" and "seconds" in f.values).values():
        if len(frames) < LEAST_FRAMES:
            continue
        usual = statistics.median(frame.values["seconds"] for frame in frames)
        parts = {frame: parts_of(frame) for frame in frames}
        for frame in frames:
            seconds = frame.values["seconds"]
            if seconds <= max(SLOW * usual, usual + SLOW_SECONDS):
                continue
            beyond = {name: value - statistics.median(parts[other].get(name, 0) for other in frames)
                      for name, value in parts[frame].items()}
            most = max(beyond, key=beyond.get)
            slow_frames.append((most if beyond[most] > 0.3 * (seconds - usual) else "", seconds / usual, frame))
    for part in dict.fromkeys(part for part, _, _ in slow_frames):
        those = [(times, frame) for other, times, frame in slow_frames if other == part]
        times, worst = max(those, key=lambda pair: pair[1].values["seconds"])
        where = "" if not part else ", most of it in %s" % (part if part == "the queue" else "stage " + part)
        yield Finding(NOTE, "slow", "Slow: %s; %s took %.1f s, %.0f times the camera's median%s." % (
            said_of(night, [frame for _, frame in those]), worst.name if len(those) > 1 else "it",
            worst.values["seconds"], times, where), [frame for _, frame in those], "seconds")


def read(path):
    """Returns the night in a file. Ends the process with 2 if the file is none."""
    try:
        with open(path, encoding="utf-8") as file:
            record = json.load(file)
        if record["format"] != FORMAT:
            raise ValueError("format %s, this script reads %d" % (record["format"], FORMAT))
        return Night(record)
    except (OSError, ValueError, KeyError, TypeError) as error:
        sys.stderr.write("spex: %s: not what spex night --json wrote: %s\n" % (path, error))
        sys.exit(2)
