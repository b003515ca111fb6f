"""Tables of velocities and redshifts that spex analyse writes, matched to their spectra."""
import os

import plot_common

np, fits = plot_common.load("numpy", "astropy.io.fits")
import plot_arms
import plot_data

MAX_EACH = 3  # the most stars, and galaxies, of a frame that are chosen
MAX_SHIFT = 1e-6  # Angstrom; largest difference of equal wavelengths
SECURE_GAP = 25  # docs/analysis.md, like the bits of warnings
STAR_WARNINGS = (
    (1, "hardly better than a continuum"), (2, "at the edge of the scan"), (4, "large error"),
    (8, "beyond the templates"), (16, "fast rotation"), (32, "too few bins"), (64, "no error"),
    (128, "V2 is nearly as good"))
STAR_COLUMNS = ("VRAD", "VRAD_ERR", "VSINI", "CHISQ_TOT", "DCHI2", "V2", "RVS_WARN")
UNEXPLAINED, UNLIKELY = 1 << 24, 1 << 25  # bits of ZWARN


def warning_of(star):
    """Returns a text about RVS_WARN of a row of RVTAB; empty without a warning."""
    return "   ".join(text for bit, text in STAR_WARNINGS if star["RVS_WARN"] & bit)


def is_accepted(galaxy):
    return int(galaxy["ZWARN"]) == 0


def said_of_gap(galaxy):
    if is_accepted(galaxy):
        return "secure" if galaxy["GAP"] > SECURE_GAP else "accepted"
    return "not accepted: lines of no redshift" if int(galaxy["ZWARN"]) & (UNEXPLAINED | UNLIKELY) else "not accepted"


class Table:
    """A table of products. `rows`: the row of the spectra for each row of the table."""

    def __init__(self, path, hdu, spectra, arms):
        self.path = path
        try:
            with fits.open(path) as hdus:
                self.table = np.asarray(hdus[hdu].data)
                self.joint = "ROW" not in self.table.dtype.names
                # A copy of the fibermap's rows has more columns that identify rows.
                source = np.asarray(hdus["FIBERMAP"].data) if self.joint and "FIBERMAP" in hdus else self.table
                if len(source) != len(self.table):
                    raise TypeError("FIBERMAP has %d rows, %s %d" % (len(source), hdu, len(self.table)))
                wanted = self.keys(source, spectra) if self.joint else [int(row) for row in self.table["ROW"]]
                self.read(hdus)
        except plot_data.BAD_FILE as error:
            raise ValueError("%s: not a file of spex analyse with an HDU %s: %s" % (path, hdu, plot_data.why(error)))
        if not self.joint and isinstance(spectra, plot_arms.Targets):
            raise ValueError("%s: is of a single frame, which is to be named instead of %s" % (path, spectra.path))
        self.rows = self.matched(wanted, spectra) if self.joint else wanted
        many = len(arms[0].flux)
        if self.rows and not 0 <= min(self.rows) <= max(self.rows) < many:
            raise ValueError("%s: has row %d, the frame %d spectra" % (path, max(self.rows), many))

    @staticmethod
    def keys(table, spectra):
        """Returns the keys of rows: TARGETID, and EXPID and FIBER if the spectra have them, too."""
        own = () if spectra.table is None else spectra.table.dtype.names
        names = [name for name in ("TARGETID", "EXPID", "FIBER") if name in table.dtype.names and name in own]
        if "TARGETID" not in names:
            raise KeyError("a TARGETID is needed, here and in FIBERMAP of %s" % spectra.path)
        return [tuple((name, int(row[name])) for name in names) for row in table]

    def matched(self, wanted, spectra):
        """Returns the first row of the spectra for each key."""
        places, names = {}, [name for name, _ in wanted[0]] if wanted else []
        for row, one in enumerate(spectra.table):
            places.setdefault(tuple((name, int(one[name])) for name in names), row)
        for key in wanted:
            if key not in places:
                raise ValueError("%s: is not of %s, which has no %s" % (
                    self.path, spectra.path, ", ".join("%s %d" % pair for pair in key)))
        return [places[key] for key in wanted]

    def best(self, order):
        """Returns the best rows by `order`, largest first and NaN last: a few for a frame, one for several arms."""
        order = np.argsort(-np.nan_to_num(order, nan=-np.inf, posinf=1e30), kind="stable")
        return [self.rows[k] for k in order][:1 if self.joint else MAX_EACH]

    def of(self, row):
        return self.rows.index(row)


class Stars(Table):
    """Velocities. `models`, `continua`: [star, bin] or None by arm. `scans`: (name, chi2 [star, velocity])."""

    def __init__(self, path, spectra, arms, models=None):
        super().__init__(path, "RVTAB", spectra, arms)
        if self.joint:
            self.models, self.continua = read_models(models or models_beside(path), self, arms), [None] * len(arms)
            return
        if models:
            raise ValueError("--star-models %s: goes with a joint fit; %s has its models in it" % (models, path))
        shape = (len(self.rows), len(arms[0].wave))
        if len(arms) > 1 or self.model.shape != shape or self.continuum.shape != shape or \
                np.abs(self.wave - arms[0].wave).max() > MAX_SHIFT:
            raise ValueError("%s: its wavelengths are not those of the frame" % path)
        self.models, self.continua = [self.model], [self.continuum]

    def read(self, hdus):
        self.velocity = np.asarray(hdus["VELOCITY"].data, float)
        self.chi2 = image_of(hdus["CHI2"], len(self.velocity))
        if self.joint:
            self.scans = [(hdu.name[:-len("_CHI2")], image_of(hdu, len(self.velocity))) for hdu in hdus
                          if hdu.name[1:].endswith("_CHI2")]
        else:
            self.scans = []
            self.model, self.continuum, self.wave = (
                np.asarray(hdus[name].data, float) for name in ("MODEL", "CONTINUUM", "WAVELENGTH"))
        for name, chi2 in [("", self.chi2)] + self.scans:
            if chi2.shape != (len(self.table), len(self.velocity)):
                raise TypeError("%sCHI2 has shape %s, RVTAB %d rows and VELOCITY %d values" % (
                    name and name + "_", chi2.shape, len(self.table), len(self.velocity)))
        names = self.table.dtype.names
        stems = ("VRAD", "VRAD_ERR", "CHISQ", "NPIX", "SN")
        for name in STAR_COLUMNS + tuple("%s_%s" % (stem, part) for part, _ in self.scans for stem in stems):
            if name not in names:
                raise KeyError("RVTAB has no column %s" % name)
        # The templates' parameters are the columns that have an error.
        self.parameters = [name for name in names if name + "_ERR" in names and name != "VRAD"]
        self.bins = self.table["NPIX_TOT" if self.joint else "NBIN"]

    def chosen(self):
        return self.best(np.where(self.table["RVS_WARN"] == 0, self.table["DCHI2"], np.nan))


def image_of(hdu, columns):
    """Returns an image with a row for each target. Without targets, the HDU has no data."""
    return np.zeros((0, columns)) if hdu.data is None else np.asarray(hdu.data, float)


def models_beside(path):
    """Returns the file of models that spex analyse writes beside a table rvtab_*."""
    folder, name = os.path.split(path)
    if not name.startswith("rvtab_"):
        raise ValueError("%s: its name does not tell where its models are; --star-models names them" % path)
    return os.path.join(folder, "rvmod_" + name[len("rvtab_"):])


def read_models(path, stars, arms):
    """Returns the models of each arm [star, bin], or None for an arm that the fit left out."""
    try:
        with fits.open(path) as hdus:
            targets = [int(number) for number in hdus["FIBERMAP"].data["TARGETID"]]
            found = {arm.name: (np.asarray(hdus[arm.name + "_WAVELENGTH"].data, float),
                                image_of(hdus[arm.name + "_MODEL"], len(arm.wave)))
                     for arm in arms if arm.name + "_MODEL" in hdus}
            if not found:
                raise KeyError("it has no model of arm %s" % ", ".join(arm.name for arm in arms))
    except plot_data.BAD_FILE as error:
        raise ValueError("%s: not a file of models of spex analyse (--star-models names another): %s" % (
            path, plot_data.why(error)))
    if targets != [int(number) for number in stars.table["TARGETID"]]:
        raise ValueError("%s: its targets are not those of %s" % (path, stars.path))
    for arm in arms:
        wave, model = found.get(arm.name, (arm.wave, None))
        if wave.shape != arm.wave.shape or np.abs(wave - arm.wave).max() > MAX_SHIFT:
            raise ValueError("%s: %s_WAVELENGTH is not that of the spectra" % (path, arm.name))
        if model is not None and model.shape != (len(targets), len(wave)):
            raise ValueError("%s: %s_MODEL has shape %s, not %d targets x %d bins" % (
                path, arm.name, model.shape, len(targets), len(wave)))
    return [found.get(arm.name, (None, None))[1] for arm in arms]


class Galaxies(Table):
    def __init__(self, path, spectra, arms):
        super().__init__(path, "ZLINES", spectra, arms)

    def read(self, hdus):
        lines, header = np.asarray(hdus["LINES"].data), hdus["LINES"].header
        self.lines = [(header["GROUP%d" % line["GROUP"]], float(line["WAVE"]), float(line["RATIO"])) for line in lines]

    def chosen(self):
        return self.best(np.where(self.table["ZWARN"] == 0, self.table["GAP"], np.nan))
