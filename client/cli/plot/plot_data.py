"""The data that pictures and pages show of a frame: its spectra, and what other files say about them.

If a file is not what it should be, every reader raises ValueError with a message for the user.
"""
import warnings

import plot_common

np, fits = plot_common.load("numpy", "astropy.io.fits")

# Names of the bits of MASK, as in the pipeline's specmask.
MASK_NAMES = ("SOMEBADPIX", "ALLBADPIX", "COSMIC", "LOWFLAT", "BADFIBERFLAT", "BRIGHTSKY", "BADSKY", "BAD2DFIT",
              "NODATA", "BADFIBER")
NODATA = 256
GOOD_CHI2PIX = 1  # largest median of a frame whose image and PSF match
WORST_CHI2PIX = 10  # bins beyond it have no pull, as in `spex compare`
KINDS = {"TGT": "target", "SKY": "sky", "STD": "standard star", "": ""}
FWHM_PER_SIGMA = 2 * np.sqrt(2 * np.log(2))
# Descriptions of files that are not frames, by the ending of an HDU's name.
OTHER_FILES = (("_FLUX", "; spectra of several arms are drawn with --velocities or --redshifts"),
               ("RVTAB", "; it is a table of results: name its spectra, and this file with --velocities"),
               ("ZLINES", "; it is a table of results: name its spectra, and this file with --redshifts"))
# The exceptions of reading a file that is damaged or of another kind.
BAD_FILE = (OSError, KeyError, TypeError, AttributeError, IndexError, ValueError, fits.VerifyError)


def why(error):
    """Returns the message of an error, without the quotes of a KeyError."""
    return error.args[0] if isinstance(error, KeyError) and error.args else error


def column(table, *names):
    """Returns the column of the first of `names` that `table` has, or None."""
    for name in names:
        if table is not None and name in table.dtype.names:
            return table[name]
    return None


def text_of(value):
    return value.decode(errors="replace").strip() if isinstance(value, bytes) else str(value).strip()


def said_of_fit(what, median):
    """Returns a text about a median chi2pix; empty if it is not known."""
    if np.isnan(median):
        return ""
    return "%s %.2f%s" % (what, median, "" if median <= GOOD_CHI2PIX else " (a good fit has at most %g)" % GOOD_CHI2PIX)


def pair(flag, text, part, convert):
    """Returns the two numbers of LOW:HIGH."""
    try:
        low, high = [convert(number) for number in part.split(":")]
    except ValueError:
        raise ValueError("%s %s: expected LOW:HIGH,LOW:HIGH, not \"%s\"" % (flag, text, part))
    if not low < high:
        raise ValueError("%s %s: %s is empty: the first must be below the second" % (flag, text, part))
    return low, high


def two_pairs(flag, text, convert):
    """Returns the numbers of LOW:HIGH,LOW:HIGH as two pairs."""
    parts = text.split(",")
    if len(parts) != 2:
        raise ValueError("%s %s: expected LOW:HIGH,LOW:HIGH" % (flag, text))
    return [pair(flag, text, part, convert) for part in parts]


class AxisShifts:
    """Trace shifts in x or y: `values` in pixels [fibre, wavelength]; None if they were not measured."""

    def __init__(self, header, table, axis):
        self.status = text_of(header["TSSTAT" + axis])
        self.measured = self.status not in ("refused", "none")
        self.values = np.asarray(table["D" + axis], float) if self.measured else None
        self.mean, self.error = (float(header[name + axis]) if self.measured else np.nan for name in ("MEAND", "ERRD"))

    def said(self, between=", "):
        if not self.measured:
            return {"none": "not asked for"}.get(self.status, self.status)
        said = "%s, mean %+.3f pixels%serror at most %.3f" % (self.status, self.mean, between, self.error)
        return said.replace("-", "−")


class TraceShifts:
    """Trace shifts of a frame, from its cards and its table TRACESHIFT (docs/trace-shifts.md)."""

    def __init__(self, hdus):
        table, header = hdus["TRACESHIFT"].data, hdus["FLUX"].header
        self.x, self.y = (AxisShifts(header, table, axis) for axis in "XY")
        self.u = np.asarray(table["U"], float)  # [fibre]
        self.wave = np.asarray(table["WAVE"], float)[0]  # the same for all fibres
        self.fibres = [int(number) for number in table["FIBER"]]
        self.moved = bool(header["TSMOVED"])
        self.reason = text_of(hdus["TRACESHIFT"].header.get("REASON", ""))

    @property
    def measured(self):
        return self.x.measured or self.y.measured

    @property
    def fate(self):
        """A note about shifts that were measured but not applied."""
        return "" if self.moved or not self.measured else "too small to be applied"


def card_of(header, name):
    """Returns a card as text; "" if it is missing or unreadable."""
    try:
        return text_of(header.get(name, ""))
    except fits.VerifyError:
        return ""


def median_snr(flux, ivar, good):
    """Returns the median signal to noise of each row; 0 without data."""
    noise = np.sqrt(np.where(good, ivar, 0))
    signal = np.where(good, flux, np.nan) * np.where(good, noise, np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # for fibres without any data
        return np.nan_to_num(np.nanmedian(signal, axis=1))


class Rows:
    """Rows of spectra with their fibermap. The subclasses have `path`."""

    def read_rows(self, hdus, count):
        """Reads the fibermap of `count` spectra. Without a fibermap or FIBER, `fibres` is None."""
        self.table = np.asarray(hdus["FIBERMAP"].data) if "FIBERMAP" in hdus else None
        if self.table is not None and len(self.table) != count:
            self.table = None
        numbers = column(self.table, "FIBER", "FIBRE")  # used because the header may lack FIBERMIN
        self.fibres = None if numbers is None else [int(n) for n in numbers]
        targets = column(self.table, "TARGETID")
        self.targets = None if targets is None else [int(n) for n in targets]
        types = column(self.table, "OBJTYPE", "OBJECT_TYPE")
        self.types = [""] * count if types is None else [text_of(t) for t in types]

    def rows_of(self, fibres, targets):
        """Returns the rows of fibres or targets, which are texts of numbers with commas; None if both are empty.

        ValueError says what is wrong.
        """
        if fibres:
            return self.rows_with("--fibres", fibres, self.fibres, "FIBER (--targets takes TARGETIDs)")
        return self.rows_with("--targets", targets, self.targets, "TARGETID") if targets else None

    def rows_with(self, flag, text, numbers, name):
        try:
            wanted = [int(number) for number in text.split(",")]
        except ValueError:
            raise ValueError("%s %s: expected numbers with commas between them" % (flag, text))
        if numbers is None:
            raise ValueError("%s %s: the FIBERMAP of %s has no %s" % (flag, text, self.path, name))
        for number in wanted:
            if number not in numbers:
                raise ValueError("%s %s: %s has %d to %d, not %d" % (
                    flag, text, self.name, min(numbers), max(numbers), number))
        found = (row for number in wanted for row, other in enumerate(numbers) if other == number)
        return list(dict.fromkeys(found))

    def kind(self, row):
        return KINDS.get(self.types[row], self.types[row])


class Frame(Rows):
    """The contents of a frame file that are shown."""

    name = "the frame"

    def __init__(self, path):
        self.path = path
        try:
            with fits.open(path) as hdus:
                self.read(hdus)
        except BAD_FILE as error:
            raise ValueError("%s: not a frame: %s" % (path, why(error)))
        self.good = (self.mask == 0) & (self.ivar > 0)
        self.snr = median_snr(self.flux, self.ivar, self.good)

    def read(self, hdus):
        if "FLUX" not in hdus:
            raise KeyError("there is no HDU FLUX" + next((said for name, said in OTHER_FILES if any(
                hdu.name.endswith(name) for hdu in hdus)), ""))
        self.header = hdus["FLUX"].header
        self.flux = np.asarray(hdus["FLUX"].data, float)
        self.ivar = np.asarray(hdus["IVAR"].data, float)
        self.mask = np.asarray(hdus["MASK"].data)
        self.wave = np.asarray(hdus["WAVELENGTH"].data, float)
        shape = self.flux.shape
        if len(shape) != 2 or self.ivar.shape != shape or self.mask.shape != shape or self.wave.shape != shape[1:]:
            raise TypeError("FLUX, IVAR, MASK and WAVELENGTH do not have one shape")
        self.resolution = np.asarray(hdus["RESOLUTION"].data, float) if "RESOLUTION" in hdus else None
        if self.resolution is not None and (self.resolution.ndim != 3 or self.resolution.shape[::2] != shape):
            raise TypeError("RESOLUTION has shape %s, FLUX %s" % (self.resolution.shape, shape))
        self.chi2pix = np.asarray(hdus["CHI2PIX"].data, float) if "CHI2PIX" in hdus else np.full(shape, np.nan)
        self.shifts = TraceShifts(hdus) if "TRACESHIFT" in hdus and "TSSTATX" in self.header else None
        if self.shifts and len(self.shifts.u) != shape[0]:
            raise TypeError("TRACESHIFT has %d rows, FLUX %d spectra" % (len(self.shifts.u), shape[0]))
        # The first spectrum's row in the PSF. Pipelines write only FIBERMIN.
        self.first = int(self.header.get("SPECMIN", self.header.get("FIBERMIN", 0)))
        self.read_rows(hdus, shape[0])
        if self.fibres is None:
            first = int(self.header.get("FIBERMIN", self.first))
            self.fibres = [first + row for row in range(shape[0])]

    def card(self, name):
        return card_of(self.header, name)

    def fit(self, rows=slice(None)):
        """Returns the median chi2pix over bins with data of these rows; NaN if it is not known."""
        values = self.chi2pix[rows][(self.mask[rows] & NODATA) == 0]
        values = values[np.isfinite(values)]
        return float(np.median(values)) if values.size else np.nan

    @property
    def step(self):
        """Angstrom per bin."""
        return (self.wave[-1] - self.wave[0]) / (len(self.wave) - 1) if len(self.wave) > 1 else 1.0

    def label(self, row):
        return "fibre %d%s" % (self.fibres[row], "  ·  " + self.kind(row) if self.kind(row) else "")

    def need_resolution(self, flag):
        if self.resolution is None:
            raise ValueError("%s: the frame %s has no HDU RESOLUTION" % (flag, self.path))

    def resolution_row(self, row, bin_):
        """Returns offsets in Angstrom and the values R[bin, k] of one fibre, for k within the grid."""
        half = self.resolution.shape[1] // 2
        k = np.arange(max(bin_ - half, 0), min(bin_ + half + 1, len(self.wave)))
        return self.wave[k] - self.wave[bin_], self.resolution[row, bin_ - k + half, k]

    def fwhm(self):
        """Returns the FWHM of the resolution in Angstrom [fibre, bin]; NaN where there is none.

        It is that of the Gaussian with the same R[j, j] and geometric mean of R[j, j - 1] and R[j, j + 1]:
        for a Gaussian of width s, ln R[j, j] - mean ln R[j, j +- 1] is 1 / (2 s^2) in bins.
        """
        half = self.resolution.shape[1] // 2
        width = np.full(self.flux.shape, np.nan)
        if half < 1 or len(self.wave) < 3:
            return width
        centre = self.resolution[:, half, 1:-1]
        before, after = self.resolution[:, half + 1, :-2], self.resolution[:, half - 1, 2:]
        with np.errstate(all="ignore"):
            drop = np.log(centre) - 0.5 * (np.log(before) + np.log(after))
            sound = (centre > 0) & (before > 0) & (after > 0) & (drop > 0)
            width[:, 1:-1] = np.where(sound, FWHM_PER_SIGMA * self.step / np.sqrt(2 * drop), np.nan)
        return width


class Spectra:
    """Flux, ivar and mask of a frame's fibres after sky subtraction."""

    def __init__(self, flux, ivar, mask):
        self.flux, self.ivar, self.mask = flux, ivar, mask
        self.good = (mask == 0) & (ivar > 0)


def read_subtracted(path, frame):
    """Reads spectra from which spex analyse subtracted the sky. (A sky file lacks the scales of bright lines.)"""
    try:
        with fits.open(path) as hdus:
            if "SKY" in hdus:
                raise TypeError("it is the sky itself; spex analyse --sframe writes the spectra without it")
            flux, ivar = np.asarray(hdus["FLUX"].data, float), np.asarray(hdus["IVAR"].data, float)
            mask, wave = np.asarray(hdus["MASK"].data), np.asarray(hdus["WAVELENGTH"].data, float)
    except BAD_FILE as error:
        raise ValueError("%s: not an sframe: %s" % (path, why(error)))
    if flux.shape != frame.flux.shape or ivar.shape != flux.shape or mask.shape != flux.shape:
        raise ValueError("%s: has %s spectra x bins, the frame %s" % (
            path, " x ".join(map(str, flux.shape)), " x ".join(map(str, frame.flux.shape))))
    if wave.shape != frame.wave.shape or np.abs(wave - frame.wave).max() > 1e-6:
        raise ValueError("%s: its wavelengths are not those of the frame" % path)
    return Spectra(flux, ivar, mask)


def band_limits(wave, frame):
    """Returns samples [bin, tap] and weights [bin, tap] that limit a uniformly sampled spectrum to the frame's band.

    The filter is that of core/model/low_pass.h; NaN where the samples do not cover a bin.
    """
    step = (wave[-1] - wave[0]) / (len(wave) - 1)
    wide = max(frame.step, step)
    reach = int(np.ceil(16 * wide / step))
    samples = np.rint((frame.wave - wave[0]) / step).astype(int)[:, None] + np.arange(-reach, reach + 1)
    away = (wave[0] + step * samples - frame.wave[:, None]) / wide
    window = np.sqrt(np.clip(1 - (away / 16) ** 2, 0, None))
    weights = np.sinc(0.94 * away) * np.i0(6 * window) * ((np.abs(away) < 16) & (samples >= 0) & (samples < len(wave)))
    slack = 0.5 * (step - frame.step) + 1e-6 * step
    covered = (frame.wave > wave[0] - slack) & (frame.wave < wave[-1] + slack)
    with np.errstate(invalid="ignore", divide="ignore"):
        weights = np.where(covered[:, None], weights / weights.sum(1, keepdims=True), np.nan)
    return np.clip(samples, 0, len(wave) - 1), weights


def resolve(resolution, spectrum):
    """Returns R times a spectrum; NaN for rows that reach beyond the grid."""
    half, bins = resolution.shape[0] // 2, len(spectrum)
    result = np.full(bins, np.nan)
    rows = np.arange(half, bins - half)
    result[rows] = sum(resolution[d + half, rows - d] * spectrum[rows - d] for d in range(-half, half + 1))
    return result


def read_truth(path, frame):
    """Returns R * truth [fibre, bin], the truth band-limited as in `spex compare --truth`; NaN without truth."""
    frame.need_resolution("--truth")
    try:
        with fits.open(path) as hdus:
            flux, wave = np.asarray(hdus["FLUX"].data, float), np.asarray(hdus["WAVELENGTH"].data, float)
            rows = np.asarray(hdus["FIBER"].data if hdus["FIBER"].is_image else hdus["FIBER"].data["FIBER"])
        if flux.ndim != 2 or flux.shape != (len(rows), len(wave)) or len(wave) < 2:
            raise TypeError("FLUX has shape %s, FIBER %s, WAVELENGTH %s" % (flux.shape, rows.shape, wave.shape))
    except BAD_FILE as error:
        raise ValueError("%s: not a truth of spex simulate: %s" % (path, why(error)))
    expected = np.full(frame.flux.shape, np.nan)
    places = {int(fibre): k for k, fibre in enumerate(rows)}
    common = [row for row in range(len(expected)) if frame.first + row in places]
    if not common:
        raise ValueError("%s: the truth has none of the frame's fibres" % path)
    samples, weights = band_limits(wave, frame)
    for row in common:
        light = flux[places[frame.first + row]]
        expected[row] = resolve(frame.resolution[row], np.einsum("jk,jk->j", weights, light[samples]))
    return expected


def pulls(frame, row, expected):
    """Returns differences from the truth in sigma, of the bins that `spex compare --truth` uses."""
    use = (frame.mask[row] == 0) & ~(frame.chi2pix[row] >= WORST_CHI2PIX) & np.isfinite(expected)
    return ((frame.flux[row] - expected) * np.sqrt(np.maximum(frame.ivar[row], 0)))[use]


def robust_sigma(values):
    low, high = np.percentile(values, [15.8655253931457, 84.1344746068543])
    return 0.5 * (high - low)


class Traces:
    """The positions of fibres and wavelengths on the CCD, from a PSF's XTRACE and YTRACE (version 2: X and Y)."""

    def __init__(self, path):
        try:
            with fits.open(path) as hdus:
                self.x, self.y = (self.read(hdus, axis) for axis in "XY")
            if self.x[2].ndim != 2 or self.y[2].ndim != 2 or len(self.x[2]) != len(self.y[2]):
                raise TypeError("its traces are not tables of one row a fibre")
        except BAD_FILE as error:
            raise ValueError("%s: not a PSF: %s" % (path, why(error)))
        self.fibres = len(self.y[2])

    @staticmethod
    def read(hdus, axis):
        """Returns (lowest wavelength, highest wavelength, coefficients [fibre, degree])."""
        name = axis + "TRACE"
        if name in hdus:
            header = hdus[name].header
            return float(header["WAVEMIN"]), float(header["WAVEMAX"]), np.asarray(hdus[name].data, float)
        for hdu in hdus[1:]:
            table = hdu.data
            if hdu.is_image or not {"PARAM", "WAVEMIN", "WAVEMAX", "COEFF"} <= set(table.dtype.names or ()):
                continue
            for line in table:
                if text_of(line["PARAM"]) == axis:
                    return float(line["WAVEMIN"]), float(line["WAVEMAX"]), np.asarray(line["COEFF"], float)
        raise KeyError("there is no %s" % name)

    @staticmethod
    def at(trace, fibre, wave):
        low, high, coefficients = trace
        place = 2 * (np.asarray(wave, float) - low) / (high - low) - 1
        return np.polynomial.legendre.legval(place, coefficients[fibre])

    def column(self, fibre, wave):
        """Returns the CCD column of a fibre. `fibre`: its row in the PSF."""
        return self.at(self.x, fibre, wave)

    def row(self, fibre, wave):
        return self.at(self.y, fibre, wave)
