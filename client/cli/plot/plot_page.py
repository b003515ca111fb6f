#!/usr/bin/env python3
"""Writes the spectra of a frame as one HTML page for a browser. The page needs no network and no other file.

`spex plot --html` calls it. The page is plot_page.html with its style and scripts, and the data in base64.
"""
import argparse
import base64
import json
import os
import sys

sys.dont_write_bytecode = True  # writes no cache beside an installed script
import plot_common

np, _ = plot_common.load("numpy", "astropy")
import plot_arms
import plot_data
import plot_tables

SCRIPTS = ("plot_page_data.js", "plot_page_panels.js", "plot_page.js", "plot_page_input.js")
FWHM_STEPS = 65535  # widths are 16-bit integers: 0 is none, 65535 the largest width
HEADER_CARDS = ("CAMERA", "EXPID", "NIGHT", "TILEID", "PROGRAM", "OBSTYPE", "EXPTIME", "IN_IMG", "IN_PSF", "EXTRNAME",
                "EXTRVER", "CHI2MED", "CHI2OUT", "TSSTATX", "MEANDX", "TSSTATY", "MEANDY")


def coded(values, kind):
    return base64.b64encode(np.ascontiguousarray(values).astype(kind).tobytes()).decode()


def fibres_of(frame, rows):
    """Returns the page's list of fibres. Target ids are texts, because JavaScript would round numbers."""
    ids = plot_data.column(frame.table, "TARGETID")
    ra, dec = (plot_data.column(frame.table, name) for name in ("TARGET_RA", "TARGET_DEC"))
    fibres = []
    for row in rows:
        fibre = {"number": frame.fibres[row], "kind": frame.kind(row), "snr": round(float(frame.snr[row]), 2)}
        fit = plot_data.said_of_fit("median chi2pix", frame.fit(row))
        if fit:
            fibre["fit"] = fit
        if ids is not None:
            fibre["target"] = plot_data.text_of(ids[row])
        if ra is not None and dec is not None and np.isfinite([ra[row], dec[row]]).all():
            fibre["place"] = "RA %.5f°, Dec %+.5f°" % (ra[row], dec[row])
        fibres.append(fibre)
    return fibres


def masked_bins(mask):
    """Returns masked bins as runs of one value: [first bin, end bin, value], bins counted over all fibres."""
    flat = mask.ravel()
    edges = np.concatenate([[0], np.flatnonzero(np.diff(flat.astype(np.int64))) + 1, [flat.size]])
    stretches = np.stack([edges[:-1], edges[1:], flat[edges[:-1]]], axis=1)
    return stretches[stretches[:, 2] != 0]


def widths_of(frame, rows):
    """Returns the FWHM of the resolution as 16-bit integers, and the width of one step."""
    widths = frame.fwhm()[rows]
    largest = np.nanmax(widths, initial=0)
    step = largest / FWHM_STEPS if largest > 0 else 1.0
    return np.where(np.isfinite(widths), np.rint(np.nan_to_num(widths) / step), 0), float(step)


def add_stars(rows, arms, stars, about, data):
    """Adds models and chi2(v) of the stars of a table (NaN for other fibres), and the texts about each."""
    models = np.full((len(rows), sum(len(arm.wave) for arm in arms)), np.nan)
    scans = {name: np.full((len(rows), len(stars.velocity)), np.nan) for name in ["scan"] + [n for n, _ in stars.scans]}
    for place, row in enumerate(rows):
        if row not in stars.rows:
            continue
        k = stars.of(row)
        star = stars.table[k]
        models[place] = np.concatenate([np.full(len(arm.wave), np.nan) if model is None else model[k]
                                        for arm, model in zip(arms, stars.models)])
        for name, chi2 in [("scan", stars.chi2)] + stars.scans:
            scans[name][place] = chi2[k] - np.nanmin(chi2[k], initial=np.inf)
        said = "v = %.2f ± %.2f km/s" % (star["VRAD"], star["VRAD_ERR"]) if np.isfinite(star["VRAD"]) else "no velocity"
        about["fibres"][place]["star"] = {
            "said": "   ".join(part for part in (said, plot_tables.warning_of(star)) if part),
            "velocity": float(star["VRAD"]) if np.isfinite(star["VRAD"]) else None,
        }
    about["velocities"] = [float(velocity) for velocity in stars.velocity]
    about["parts"] = [name for name, _ in stars.scans]
    data["model"], data["scan"] = coded(models, "<f4"), coded(scans.pop("scan"), "<f4")
    if scans:  # [part, row, velocity]
        data["partscans"] = coded(np.stack(list(scans.values())), "<f4")


def add_galaxies(rows, galaxies, about):
    for place, row in enumerate(rows):
        if row not in galaxies.rows:
            continue
        galaxy = galaxies.table[galaxies.of(row)]
        if np.isfinite(galaxy["Z"]):
            said = "z = %.5f, GAP %.1f (%s)" % (galaxy["Z"], galaxy["GAP"], plot_tables.said_of_gap(galaxy))
            about["fibres"][place]["galaxy"] = {"said": said, "z": float(galaxy["Z"]),
                                               "accepted": plot_tables.is_accepted(galaxy)}
    about["lines"] = [[name, wave] for name, wave, _ in galaxies.lines]


def shifts_of(shifts, rows):
    """Returns the trace shifts for the page, rounded to a thousandth of what a picture shows."""
    axes = {}
    for name, one in (("dx", shifts.x), ("dy", shifts.y)):
        values = None if one.values is None else np.round(one.values[rows], 5).tolist()
        axes[name] = {"said": one.said(), "values": values}
    return {**axes, "note": "; ".join(filter(None, (shifts.fate, shifts.reason))),
            "u": np.round(shifts.u[rows], 5).tolist(), "waves": shifts.wave.tolist()}


def contents(frame, rows, subtracted, truth, unit):
    """Returns (description, {name: base64}) of the page's contents."""
    shape = frame.flux[rows].shape
    facts = [[card, frame.card(card)] for card in HEADER_CARDS if frame.card(card)]
    about = {
        "file": os.path.basename(frame.path), "bins": shape[1], "fibres": fibres_of(frame, rows), "facts": facts,
        "maskNames": plot_data.MASK_NAMES, "step": float(frame.step), "fwhmStep": 0, "unit": unit,
    }
    if frame.shifts:
        about["shifts"] = shifts_of(frame.shifts, rows)
    data = {
        "wave": coded(frame.wave, "<f8"),
        "flux": coded(frame.flux[rows], "<f4"), "ivar": coded(frame.ivar[rows], "<f4"),
        "mask": coded(masked_bins(frame.mask[rows]), "<u4"),
    }
    if frame.resolution is not None:
        widths, about["fwhmStep"] = widths_of(frame, rows)
        data["fwhm"] = coded(widths, "<u2")
    if subtracted is not None:
        data["skyflux"], data["skyivar"] = coded(subtracted.flux[rows], "<f4"), coded(subtracted.ivar[rows], "<f4")
        data["skymask"] = coded(masked_bins(subtracted.mask[rows]), "<u4")
    if truth is not None:
        data["truth"] = coded(truth[rows], "<f4")
    return about, data


def page(about, data):
    """Returns the page. Text of files is only in JSON and base64, in which no tag can begin."""
    described = json.dumps(about, allow_nan=False)
    for character in "<>&":
        described = described.replace(character, "\\u%04x" % ord(character))
    return plot_common.page("Spectra", "plot_page.html", ("plot_page.css",), SCRIPTS, ABOUT=described,
                            DATA="\n".join('<script type="text/plain" id="data-%s">%s</script>' % item
                                           for item in data.items()))


def main():
    parser = argparse.ArgumentParser(prog="spex plot --html", description=__doc__.split("\n")[0])
    parser.add_argument("spectra", nargs="+")
    parser.add_argument("output")
    for flag in ("--sframe", "--truth", "--fibres", "--targets", "--velocities", "--redshifts", "--star-models"):
        parser.add_argument(flag)
    arguments = parser.parse_args()
    try:
        spectra, arms = plot_arms.read(arguments.spectra)
        joint = isinstance(spectra, plot_arms.Targets)
        if joint and (arguments.sframe or arguments.truth):
            raise ValueError("--sframe and --truth go with a single frame, not with %s" % spectra.path)
        frame = plot_arms.Joined(spectra) if joint else spectra
        rows = spectra.rows_of(arguments.fibres, arguments.targets) or list(range(len(frame.flux)))
        subtracted = plot_data.read_subtracted(arguments.sframe, frame) if arguments.sframe else None
        truth = plot_data.read_truth(arguments.truth, frame) if arguments.truth else None
        stars = None
        if arguments.velocities:
            stars = plot_tables.Stars(arguments.velocities, spectra, arms, arguments.star_models)
        galaxies = plot_tables.Galaxies(arguments.redshifts, spectra, arms) if arguments.redshifts else None
    except ValueError as error:
        sys.stderr.write("spex: %s\n" % error)
        return 2

    about, data = contents(frame, rows, subtracted, truth, arms[0].unit)
    if joint:
        about["arms"] = frame.arms()
        for fibre, row in zip(about["fibres"], rows):
            fibre["row"] = spectra.label(row)
    if stars is not None:
        add_stars(rows, arms, stars, about, data)
    if galaxies is not None:
        add_galaxies(rows, galaxies, about)

    return plot_common.write_text(lambda: page(about, data), arguments.output)


if __name__ == "__main__":
    sys.exit(main())
