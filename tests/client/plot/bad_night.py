"""Checks the report of `spex night` for nights that went wrong, and for nights that did not.

bad_night.py FOLDER_OF_SCRIPTS OUTPUT: also writes the JSON of a night with clouds, a dead amplifier, a moved PSF,
failures and slow frames, as `spex night --json` would.
"""
import copy
import json
import random
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import night_findings

CAMERAS = ("b0", "r0", "z0", "b1", "r1", "z1")
FIRST = 51060
LEVELS = {"b": (4.0, 60.0), "r": (6.0, 110.0), "z": (7.5, 190.0)}  # S/N and sky of the arms
MARKUP = "</script><script>alert(1)</script>"


def shift(mean, status="ok"):
    return {"status": status, "mean": mean, "min": mean - 0.02, "max": mean + 0.02, "error": 0.01}


def quiet_night(exposures=20, seconds=900):
    """Returns a night whose values scatter by a few per cent and whose traces drift by less than 0.1 pixels."""
    dice = random.Random(5)
    frames = []
    for k in range(exposures):
        for camera in CAMERAS:
            snr, sky = LEVELS[camera[0]]
            label = "%s-%08d" % (camera, FIRST + k)
            minutes = 80 + 20 * k
            frames.append({
                "state": "written", "image": "preproc/preproc-%s.fits" % label, "output": "out/frame-%s.fits" % label,
                "expid": str(FIRST + k), "camera": camera, "exposure_seconds": seconds,
                "observed": "2026-11-%02dT%02d:%02d:00" % (12 + minutes // 1440, minutes // 60 % 24, minutes % 60),
                "written": 1.7e9 + 1200 * k, "chi2pix": 0.95 * dice.gauss(1, 0.01), "bad_fit": False,
                "outliers_chi2pix": 0.01, "largest_chi2pix": 1.1, "snr": snr * dice.gauss(1, 0.03),
                "masked_bins": 2000 + dice.randrange(100), "nodata_bins": 900, "bins": 100000, "spectra": 500,
                "seconds": 2.4 * dice.gauss(1, 0.05), "queue_seconds": 0.1,
                "stages": {"decode": 0.2, "solve": 1.5, "spots": 0.7}, "failed_bundles": [], "warnings": [],
                "trace_shifts": {"x": shift(0.02 + 0.003 * k), "y": shift(-0.01 + dice.gauss(0, 0.004))},
                "products": {"sky": {"level": sky * dice.gauss(1, 0.03), "fibres": 40, "rejected_bins": 3, "rounds": 2},
                             "sframe": {}, "velocities": {"targets": 100, "good": 80},
                             "redshifts": {"targets": 360, "accepted": 230 + dice.randrange(20)}},
            })
    exposures = [{"state": "written", "output": "out/zlines-%d-%08d.fits" % (s, FIRST + k), "seconds": 0.4, "frames": ["f"] * 3,
                  "products": {"redshifts": {"targets": 360, "accepted": 280}}} for k in range(exposures) for s in (0, 1)]
    return {"format": 2, "seconds": 210.0, "frames": frames, "exposures": exposures}


def frames_of(night, camera=None, first=0, last=999):
    return [frame for frame in night["frames"]
            if camera in (None, frame.get("camera")) and first <= int(frame["expid"]) - FIRST <= last]


def fail(frame, error):
    kept = {key: frame[key] for key in ("image", "output", "expid")}
    frame.clear()
    frame.update(kept, state="failed", error=error)


def bad_night():
    night = quiet_night()
    for frame in frames_of(night, None, 7, 7):  # clouds
        frame["snr"] *= 0.3
    for frame in frames_of(night, "r1", 12):  # a dead amplifier
        frame["masked_bins"] += 25000
    for frame in frames_of(night, "z0", 15, 16):  # another PSF
        frame["trace_shifts"]["x"] = shift(0.62)
    for frame in frames_of(night, "b0", 3, 3):
        frame.update(chi2pix=7.3, bad_fit=True, snr=30.0, warnings=["image and PSF do not fit each other: .."])
    for frame in frames_of(night, "z1", 5, 5):
        for product in ("sky", "sframe", "redshifts"):
            frame["products"][product] = {"error": "no sky fibre has data"}
    for frame in frames_of(night, "b1", 9, 9):
        frame.update(seconds=14.0, stages={**frame["stages"], "decode": 11.9})
    for frame in frames_of(night, None, 17, 17):
        frame["queue_seconds"] = 20.0
    for frame in frames_of(night, None, 19, 19):
        fail(frame, "%s: the server was lost" % frame["image"])
    fail(frames_of(night, "r0", 10, 10)[0], MARKUP)
    night["exposures"][4] = {"state": "failed", "output": "out/zlines-0-00051062.fits", "error": "no arm has a sky"}
    return night


SENTENCES = [
    "6 frames (all cameras of 51079) failed: the server was lost.",
    "r0 51070 failed: %s." % MARKUP,
    "Products over all arms were not made (zlines-0-00051062.fits): no arm has a sky.",
    "Image and PSF do not fit in b0 51063: median chi2pix 7.30, where it has 0.95 otherwise. "
    "The PSF may be of another time, or the noise of the image is wrong.",
    "z1 51065: sky, sframe and redshifts not made: no sky fibre has data.",
    "Exposure 51067, 03:40 UT: S/N 30 % of the usual, sky level 100 % of the usual in its 6 cameras. "
    "Clouds, or light that missed the fibres?",
    "r1 from 51072, 05:20 UT on (7 frames): 27.1 % of the bins are masked, usually 2.0 %. A dead amplifier?",
    "z0 51075 to 51076: traces lie +0.62 pixels in x from the PSF, usually +0.05. "
    "Another PSF, or a spectrograph that moved?",
    "Slow: 6 frames (all cameras of 51077); r1 51077 took 22.6 s, 9 times the camera's median, most of it in the queue.",
    "Slow: b1 51069; it took 14.1 s, 6 times the camera's median, most of it in stage decode.",
]


def sentences(record):
    return [finding.text for finding in night_findings.Night(copy.deepcopy(record)).findings]


def says_what_went_wrong(night):
    assert sentences(night) == SENTENCES, sentences(night)


def is_silent_about_usual_nights():
    night = quiet_night()
    assert sentences(night) == [], sentences(night)
    for frame in frames_of(night, None, 3, 9):  # a different exposure time, which scales S/N and sky
        frame["exposure_seconds"] /= 4
        frame["snr"] /= 2
        frame["products"]["sky"]["level"] /= 4
    assert sentences(night) == [], sentences(night)
    few = quiet_night(2)
    few["frames"][0]["snr"] *= 3
    assert sentences(few) == [], sentences(few)
    assert sentences({"format": 2, "seconds": 0, "frames": [], "exposures": []}) == []


def tells_steps_wherever_they_are():
    for first in (1, 5, 10, 15, 18):
        night = quiet_night()
        for frame in frames_of(night, "r1", first):
            frame["masked_bins"] += 25000
            frame["trace_shifts"]["y"]["mean"] += 0.4
        masked, *traces = sentences(night)
        assert "r1" in masked and "A dead amplifier?" in masked and "from %d" % (FIRST + first) in masked, masked
        assert len(traces) == 1 and traces[0].startswith("r1") and " in y from the PSF" in traces[0], traces


def compares_cameras():
    night = quiet_night()
    for frame in frames_of(night, "r1"):
        frame["masked_bins"] = 27000
        frame["trace_shifts"]["x"]["mean"] -= 0.8
    masked, traces = sentences(night)
    assert masked == "r1: 27.0 % of the bins are masked in all its frames, in other cameras 2.1 %. A dead amplifier?", masked
    assert traces.startswith("r1: traces lie −0.75 pixels in x from its PSF, those of other cameras +0.05."), traces


def tells_the_sky():
    night = quiet_night()
    for frame in frames_of(night, None, 19, 19):  # at dawn
        frame["products"]["sky"]["level"] *= 4
        frame["snr"] *= 0.6
    frames_of(night, "z0", 4, 4)[0]["products"]["sky"]["level"] *= 2.2
    exposure, frame = sentences(night)
    assert exposure.startswith("Exposure 51079, 07:40 UT: S/N 6") and exposure.endswith("Clouds, twilight or the Moon?"), exposure
    assert frame.startswith("z0 51064: sky level 2.") and "beside the other cameras of its exposure" in frame, frame


def names_many_frames_shortly():
    night = quiet_night()
    for frame in frames_of(night, None, 2, 4) + frames_of(night, None, 8, 8) + frames_of(night, "z1", 10, 12):
        fail(frame, "the disk is full")
    assert sentences(night) == ["27 frames (all cameras of 51062 to 51064, all cameras of 51068 and z1 51070 to 51072) "
                                "failed: the disk is full."], sentences(night)


def bears_odd_records():
    night = quiet_night(4)
    for frame in night["frames"][3:]:  # without times and products
        for key in ("observed", "products", "trace_shifts", "stages", "queue_seconds", "exposure_seconds"):
            del frame[key]
    night["frames"][5] = {"state": "not reached", "image": "a<b>.fits", "output": "o.fits"}
    night["frames"][6].update(products=3, trace_shifts={"x": None}, chi2pix=None, snr="?", warnings=["odd 1"], observed="-")
    found = sentences(night)
    assert found == ["a<b>.fits not reached: the run ended before.", "b0 51061: odd 1."], found


def main():
    night = bad_night()
    says_what_went_wrong(night)
    is_silent_about_usual_nights()
    tells_steps_wherever_they_are()
    compares_cameras()
    tells_the_sky()
    names_many_frames_shortly()
    bears_odd_records()
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        json.dump(night, file)


if __name__ == "__main__":
    main()
