"""Tables of velocities and redshifts as spex analyse writes them, beside the frame that they are of."""
import plot_common

np, fits = plot_common.load("numpy", "astropy.io.fits")
import plot_data

MAX_EACH = 3  # stars and galaxies that are chosen
SECURE_GAP = 25  # docs/analysis.md, like the bits of warnings
STAR_WARNINGS = (
    (1, "hardly better than a continuum"), (2, "at the edge of the scan"), (4, "large error"),
    (8, "beyond the templates"), (16, "fast rotation"), (32, "too few bins"), (64, "no error"),
    (128, "V2 is nearly as good"))
UNEXPLAINED, UNLIKELY = 1 << 24, 1 << 25  # of ZWARN


def warning_of(star):
    """What RVS_WARN says of a row of RVTAB; empty without a warning."""
    return "   ".join(text for bit, text in STAR_WARNINGS if star["RVS_WARN"] & bit)


def is_accepted(galaxy):
    return int(galaxy["ZWARN"]) == 0


def said_of_gap(galaxy):
    if is_accepted(galaxy):
        return "secure" if galaxy["GAP"] > SECURE_GAP else "accepted"
    return "not accepted: lines of no redshift" if int(galaxy["ZWARN"]) & (UNEXPLAINED | UNLIKELY) else "not accepted"


class Table:
    """A table of products, a row for each target of the frame."""

    def __init__(self, path, hdu, frame):
        self.path = path
        try:
            with fits.open(path) as hdus:
                self.table = np.asarray(hdus[hdu].data)
                self.rows = [int(row) for row in self.table["ROW"]]
                self.read(hdus)
        except plot_data.BAD_FILE as error:
            raise ValueError("%s: not a file of spex analyse with an HDU %s: %s" % (path, hdu, plot_data.why(error)))
        if self.rows and max(self.rows) >= len(frame.flux):
            raise ValueError("%s: has row %d, the frame %d spectra" % (path, max(self.rows), len(frame.flux)))

    def best(self, order):
        """Rows of the frame in descending order, those without a value last."""
        return [self.rows[k] for k in np.argsort(-np.nan_to_num(order, nan=-np.inf, posinf=1e30), kind="stable")]

    def of(self, row):
        return self.rows.index(row)


class Stars(Table):
    def __init__(self, path, frame):
        super().__init__(path, "RVTAB", frame)
        shape = (len(self.rows), len(frame.wave))
        if self.model.shape != shape or self.continuum.shape != shape or np.abs(self.wave - frame.wave).max() > 1e-6:
            raise ValueError("%s: its wavelengths are not those of the frame" % path)

    def read(self, hdus):
        self.model, self.continuum, self.wave, self.chi2, self.velocity = (
            np.asarray(hdus[name].data, float) for name in ("MODEL", "CONTINUUM", "WAVELENGTH", "CHI2", "VELOCITY"))
        # Names of the templates' parameters: columns with an error of their own.
        names = self.table.dtype.names
        self.parameters = [name for name in names if name + "_ERR" in names and name != "VRAD"]

    def chosen(self):
        return self.best(np.where(self.table["RVS_WARN"] == 0, self.table["DCHI2"], np.nan))[:MAX_EACH]


class Galaxies(Table):
    def __init__(self, path, frame):
        super().__init__(path, "ZLINES", frame)

    def read(self, hdus):
        lines, header = np.asarray(hdus["LINES"].data), hdus["LINES"].header
        self.lines = [(header["GROUP%d" % line["GROUP"]], float(line["WAVE"]), float(line["RATIO"])) for line in lines]

    def chosen(self):
        return self.best(np.where(self.table["ZWARN"] == 0, self.table["GAP"], np.nan))[:MAX_EACH]
