"""Spectra of one or several arms, from a frame, the frames of an exposure's cameras, or a file of spectra (B_FLUX)."""
import re

import plot_common

np, fits = plot_common.load("numpy", "astropy.io.fits")
import plot_data

SUPERSCRIPTS = str.maketrans("+-0123456789", "⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
MAX_UNIT = 40  # characters that have room beside a panel
ELECTRONS = "electrons / Å"


def unit_of(header, otherwise):
    """Returns the unit of a flux for an axis, by BUNIT in its header."""
    text = plot_data.card_of(header, "BUNIT")
    if text.lower().replace(" ", "").rstrip("s") in ("electron/angstrom", "electron/angstroms"):
        return ELECTRONS
    text = re.sub(r"\b1[eE]([+-]?\d+)", r"10**\1", text).replace("Angstrom", "Å").replace("$", "")
    text = re.sub(r"\*\*\s*\(?([+-]?\d+)\)?", lambda power: power.group(1).lstrip("+").translate(SUPERSCRIPTS), text)
    text = re.sub(r"(?<=[a-zÅ])(-?\d)\b", lambda power: power.group(1).translate(SUPERSCRIPTS), text)
    return text if text and len(text) <= MAX_UNIT else otherwise


class Arm:
    """One arm: `wave` [bin]; `flux`, `ivar`, `mask` and `good` [row, bin]. The only arm of a frame may have no name."""

    def __init__(self, name, wave, flux, ivar, mask, unit):
        self.name, self.wave, self.flux, self.ivar, self.unit = name, wave, flux, ivar, unit
        self.mask = np.zeros(flux.shape, int) if mask is None else mask
        if flux.ndim != 2 or not flux.shape[1] or wave.shape != flux.shape[1:]:
            raise TypeError("flux and wavelengths of arm %s do not have one shape" % name)
        if ivar.shape != flux.shape or self.mask.shape != flux.shape:
            raise TypeError("flux, ivar and mask of arm %s do not have one shape" % name)
        self.good = (self.mask == 0) & (ivar > 0) & np.isfinite(ivar) & np.isfinite(flux)


def arm_of(frame, subtracted=None):
    """Returns the arm of a frame, named by the letter of its camera. `subtracted`: its sky-subtracted spectra."""
    spectra = subtracted or frame
    return Arm(frame.card("CAMERA")[:1].upper(), frame.wave, spectra.flux, spectra.ivar, spectra.mask,
               unit_of(frame.header, ELECTRONS))


class Targets(plot_data.Rows):
    """Spectra of several arms: `arms` in the order of wavelength, with the same rows in each."""

    def __init__(self, paths):
        self.path = self.name = paths[0]
        if len(paths) == 1:
            self.read_spectra()
        else:
            self.read_frames(paths)
        self.arms.sort(key=lambda arm: arm.wave[0])

    def read_spectra(self):
        try:
            with fits.open(self.path) as hdus:
                names = [hdu.name[:-len("_FLUX")] for hdu in hdus if hdu.name[1:].endswith("_FLUX")]
                if not names:
                    raise KeyError("it has neither FLUX nor B_FLUX, R_FLUX ..")
                self.arms = [self.read_arm(hdus, name) for name in names]
                rows = {arm.name: len(arm.flux) for arm in self.arms}
                if len(set(rows.values())) > 1:
                    raise TypeError("its arms have different numbers of rows: %s" % rows)
                self.header = hdus[0].header
                self.read_rows(hdus, len(self.arms[0].flux))
        except plot_data.BAD_FILE as error:
            raise ValueError("%s: neither a frame nor a file of spectra: %s" % (self.path, plot_data.why(error)))

    @staticmethod
    def read_arm(hdus, name):
        flux, ivar, wave = (np.asarray(hdus[name + "_" + what].data, float) for what in ("FLUX", "IVAR", "WAVELENGTH"))
        mask = np.asarray(hdus[name + "_MASK"].data) if name + "_MASK" in hdus else None
        return Arm(name, wave, flux, ivar, mask, unit_of(hdus[name + "_FLUX"].header, "flux"))

    def read_frames(self, paths):
        frames = [plot_data.Frame(path) for path in paths]
        first = frames[0]
        self.arms = []
        for frame in frames:
            arm = arm_of(frame)
            if not arm.name or arm.name in [other.name for other in self.arms]:
                raise ValueError("%s: CAMERA is \"%s\": frames of different cameras are drawn together" % (
                    frame.path, frame.card("CAMERA")))
            for card in ("NIGHT", "EXPID"):
                if frame.card(card) != first.card(card):
                    raise ValueError("%s and %s are not of one exposure: %s %s and %s" % (
                        first.path, frame.path, card, first.card(card), frame.card(card)))
            if len(frame.flux) != len(first.flux) or frame.targets != first.targets:
                raise ValueError("%s and %s do not have the same TARGETIDs row by row" % (first.path, frame.path))
            self.arms.append(arm)
        self.header = first.header
        self.table, self.fibres, self.targets, self.types = first.table, first.fibres, first.targets, first.types

    def label(self, row):
        """Returns TARGETID and what distinguishes its rows."""
        parts = ["TARGETID %d" % self.targets[row] if self.targets else "row %d" % row]
        exposures = plot_data.column(self.table, "EXPID")
        if exposures is not None:
            parts.append("exposure %d" % exposures[row])
        if self.fibres:
            parts.append("fibre %d" % self.fibres[row])
        return "  ·  ".join(parts + ([self.kind(row)] if self.kind(row) not in ("", "target") else []))


class Joined:
    """The arms of targets one after the other, like a frame. Wavelengths rise only within each arm."""

    resolution = shifts = None

    def __init__(self, targets):
        self.targets, self.path, self.table, self.kind = targets, targets.path, targets.table, targets.kind
        self.wave = np.concatenate([arm.wave for arm in targets.arms])
        self.flux, self.ivar, self.mask = (np.concatenate([getattr(arm, name) for arm in targets.arms], axis=1)
                                           for name in ("flux", "ivar", "mask"))
        self.step = min(((arm.wave[-1] - arm.wave[0]) / (len(arm.wave) - 1) for arm in targets.arms if len(arm.wave) > 1),
                        default=1.0)
        self.fibres = list(range(len(self.flux)))  # row numbers, because a fibre may have several rows
        good = np.concatenate([arm.good for arm in targets.arms], axis=1)
        self.snr = plot_data.median_snr(self.flux, self.ivar, good)

    def card(self, name):
        return plot_data.card_of(self.targets.header, name)

    @staticmethod
    def fit(_):
        return np.nan

    def arms(self):
        """Returns (name, first bin, end bin) of each arm."""
        ends = np.cumsum([len(arm.wave) for arm in self.targets.arms])
        return [[arm.name, int(end) - len(arm.wave), int(end)] for arm, end in zip(self.targets.arms, ends)]


def read(paths, sframe=None):
    """Returns (Frame or Targets, its arms). ValueError names a file that is wrong."""
    if len(paths) == 1 and not has_arms(paths[0]):
        frame = plot_data.Frame(paths[0])
        return frame, [arm_of(frame, plot_data.read_subtracted(sframe, frame) if sframe else None)]
    if sframe:
        raise ValueError("--sframe %s: goes with a single frame; for several arms name spectra without the sky" % sframe)
    targets = Targets(paths)
    return targets, targets.arms


def has_arms(path):
    try:
        with fits.open(path) as hdus:
            return "FLUX" not in hdus and any(hdu.name[1:].endswith("_FLUX") for hdu in hdus)
    except plot_data.BAD_FILE:
        return False
