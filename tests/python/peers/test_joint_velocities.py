"""Joint velocities of three arms by spex analyse and by rvspecfit, on the same spectra with the same templates."""

import resource
import statistics
import time

import numpy as np
import pytest
from astropy.io import fits
from conftest import run_spex
from rvspecfit import spec_fit, spec_inter
from rvspecfit_peer import (
    CONFIG, Library, chi_square_with_chebyshev_continuum, chi_squares, fit_star, matrix, spectrum, write_library,
)  # fmt: skip

# The full ranges of DESI's cameras.
ARMS = {"B": np.arange(3600, 5800.1, 0.8), "R": np.arange(5760, 7620.1, 0.8), "Z": np.arange(7520, 9824.1, 0.8)}
ARRAYS = ("FLUX", "IVAR", "MASK", "RESOLUTION")
STARS, ROTATING = 8, 2  # the last ones rotate
MAX_CHI_SQUARE_APART = 1e-4
MAX_VELOCITY_APART = 0.1  # in errors, for fits that end at the same minimum
SAME_MINIMUM = 0.5  # difference of chi-square
MIN_RATIO = 10  # rvspecfit's processor time relative to spex's


def resolution_of(sigma, bins):
    """Returns the resolution [diagonal, bin] of lines of Gaussian width `sigma`, in bins."""
    profile = np.exp(-0.5 * (np.arange(-5, 6) / sigma) ** 2)
    return np.broadcast_to((profile / profile.sum())[:, None], (len(profile), bins))


def made_up_spectra(library):
    """Returns {HDU: [row, ..]} of stars between the templates. Cameras are miscalibrated; 1 % of the bins are masked
    and have wrong light."""
    random = np.random.default_rng(12)
    hdus = {f"{arm}_{array}": [] for arm in ARMS for array in ARRAYS}
    for row in range(STARS):
        velocity, level = random.uniform(-400, 400), 10 ** random.uniform(0.6, 1.4)
        parameters = tuple(random.uniform(nodes[0], nodes[-1]) for nodes in library.nodes)
        for arm, wave in ARMS.items():
            light = spec_inter.getInterpolator(arm, CONFIG)
            template = light.eval(parameters)
            if row >= STARS - ROTATING:
                template = spec_fit.convolve_vsini(light.lam, template, 60.0)
            star = spec_fit.evalRV(spec_fit.getRVInterpol(light.lam, template), velocity, wave)
            x = np.linspace(-1, 1, len(wave))
            shape = np.polynomial.chebyshev.chebval(x, [1, *random.normal(0, 0.1, 4)]) * random.normal(1, 0.05)
            resolution = resolution_of(1.0, len(wave))
            flux = level * shape * (matrix(resolution) @ star) + random.normal(size=len(wave))
            mask = (random.uniform(size=len(wave)) < 0.01).astype(np.int32)
            flux[mask != 0] += 50
            for array, values in zip(ARRAYS, (flux, np.ones(len(wave)), mask, resolution), strict=True):
                hdus[f"{arm}_{array}"].append(values.astype(np.int32 if array == "MASK" else np.float32))
    return {name: np.array(rows) for name, rows in hdus.items()}


def write_spectra(path, spectra, copies=1):
    rows = STARS * copies
    fibermap = np.rec.fromarrays([np.arange(rows), np.array(["TGT"] * rows)], names=["TARGETID", "OBJTYPE"])
    hdus = [fits.PrimaryHDU(), fits.BinTableHDU(fibermap, name="FIBERMAP")]
    hdus += [fits.ImageHDU(wave, name=f"{arm}_WAVELENGTH") for arm, wave in ARMS.items()]
    hdus += [fits.ImageHDU(np.concatenate([values] * copies), name=name) for name, values in spectra.items()]
    fits.HDUList(hdus).writeto(path)


def analyse(folder, name):
    """Returns the table of velocities of all rows of a file, and the processor seconds that it took."""
    files = [folder / f"{name}.fits", "--velocity", folder / "templates.fits", "--velocity-out", folder / f"rv-{name}.fits"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run_spex("analyse", *files, "--exclude", "none", "--threads", 1, "--device", "cpu", "-q")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return fits.getdata(folder / f"rv-{name}.fits", "RVTAB"), seconds


class Stars:
    """The stars as data for rvspecfit with its library, the folder of their file, and their table by spex."""

    def __init__(self, folder):
        self.folder = folder
        write_library(folder / "templates.fits", 3560, 9890, lines=500)
        self.library = Library(folder / "templates.fits", ARMS)
        self.spectra = made_up_spectra(self.library)
        write_spectra(folder / "stars.fits", self.spectra)
        self.table, self.seconds = analyse(folder, "stars")

    def data(self, row):
        return [spectrum(arm, wave, *(self.spectra[f"{arm}_{array}"][row] for array in ARRAYS)) for arm, wave in ARMS.items()]

    def parameters(self, row):
        return self.library.inside(float(self.table[name.upper()][row]) for name in self.library.names)


@pytest.fixture(scope="module")
def stars(tmp_path_factory):
    with chi_square_with_chebyshev_continuum():
        yield Stars(tmp_path_factory.mktemp("arms"))


def test_chi_square_of_each_arm_is_that_of_rvspecfit(stars, capsys):
    table = stars.table
    assert (table["RVS_WARN"] & 32 == 0).all()
    still = np.flatnonzero(table["VSINI"] == 0)  # the kernels of rotation differ
    assert len(still) >= 2
    theirs = np.array([chi_squares(stars.data(row), table["VRAD"][row], stars.parameters(row)) for row in still])
    ours = np.stack([table[f"CHISQ_{arm}"][still] for arm in ARMS], axis=1)
    with capsys.disabled():
        apart = np.abs(theirs - ours)
        print(f"\nchi-square of {apart.size} arms: {apart.max():.1e} apart at most, median {np.median(apart):.1e}", end="")
    np.testing.assert_allclose(theirs, ours, rtol=0, atol=MAX_CHI_SQUARE_APART)
    np.testing.assert_allclose(table["CHISQ_TOT"][still], ours.sum(axis=1), rtol=1e-12)


def test_velocities_are_those_of_rvspecfit_and_take_less_time(stars, capsys):
    table, copies = stars.table, 5
    fit_star(stars.data(0), stars.library)  # numba compiles
    theirs, found = [], []
    for row in range(STARS):
        start = time.process_time()
        found.append(fit_star(stars.data(row), stars.library))
        theirs.append(time.process_time() - start)
    write_spectra(stars.folder / "many.fits", stars.spectra, copies)
    ours = (analyse(stars.folder, "many")[1] - stars.seconds) / (STARS * (copies - 1))
    apart = (np.array([fit["vel"] for fit in found]) - table["VRAD"]) / table["VRAD_ERR"]
    # rvspecfit's simplex may end above the minimum: at a node, or at the end of a parameter's range.
    worse = np.array([sum(fit["chisq_array"]) for fit in found]) - table["CHISQ_TOT"]
    same = worse < SAME_MINIMUM
    ratio = np.median([fit["vel_err"] for fit in found] / table["VRAD_ERR"])
    with capsys.disabled():
        print(f"\n{STARS} stars, three arms: velocities {np.sqrt(np.mean(apart**2)):.3f} errors apart (rms), "
              f"{np.abs(apart[same]).max():.3f} at most of {same.sum()} at the same minimum, "
              f"{np.abs(apart).max():.3f} of all; errors of rvspecfit {ratio:.3f} of ours", end="")  # fmt: skip
        print(f"\nchi-square of rvspecfit's fits minus ours: {worse.min():.4f} .. {worse.max():.4f}", end="")
        print(f"\nseconds of the processor a star: rvspecfit {statistics.median(theirs):.2f} "
              f"({min(theirs):.2f} .. {max(theirs):.2f}), spex {ours:.3f}", end="")  # fmt: skip
    assert same.sum() >= STARS / 2 and worse.min() > -SAME_MINIMUM
    assert np.abs(apart[same]).max() < MAX_VELOCITY_APART
    assert statistics.median(theirs) > MIN_RATIO * ours
