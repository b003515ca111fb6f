"""rvspecfit set up to fit the model that spexd fits: the same templates, between the same nodes, in the same bins.

Needs rvspecfit; peers.sh provides it.
"""

import contextlib
import functools
import itertools
import logging

import numpy as np
import scipy.sparse
from astropy.io import fits
from rvspecfit import spec_fit, spec_inter, utils, vel_fit

EDGE = 8  # bins at either end that spexd gives no weight
LIGHT = 299792.458  # km/s
CONFIG = {  # rvspecfit's defaults, except the range of velocities, which is spexd's, and the library
    "template_lib": "in memory", "min_vel": -1000, "max_vel": 1000, "min_vel_step": 0.2, "vel_step0": 5,
    "min_vsini": 0.1, "max_vsini": 500, "second_minimizer": 1,
}  # fmt: skip
OPTIONS = {"npoly": 7}


def write_library(path, first=5500, last=7800, lines=120):
    """Writes 45 synthetic stars, as many as in a small library, on samples of 10 km/s between two wavelengths in
    Angstrom."""
    step = 10 / LIGHT
    log_wave = np.arange(np.log(first), np.log(last), step)
    random = np.random.default_rng(5)
    centres, depths = random.uniform(log_wave[0], log_wave[-1], lines), random.uniform(0.05, 0.5, lines)
    nodes = list(itertools.product(np.linspace(4000, 7000, 5), (2.0, 3.5, 5.0), (-2.0, -1.0, 0.0)))
    flux = np.ones((len(nodes), len(log_wave)), np.float32)
    for k, (teff, logg, feh) in enumerate(nodes):
        flux[k] *= np.exp(-0.8 * (log_wave - log_wave[0]) * (teff / 4000 - 1))
        for centre, depth in zip(centres, depths * 10 ** (0.3 * feh) * (4000 / teff) ** 2, strict=True):
            width = step * (2.5 + 0.5 * logg)
            near = slice(*np.searchsorted(log_wave, [centre - 8 * width, centre + 8 * width]))
            flux[k, near] *= 1 - depth * np.exp(-0.5 * ((log_wave[near] - centre) / width) ** 2)
    templates = fits.ImageHDU(flux, name="TEMPLATES")
    templates.header.update(LOGLAM=1, CRVAL1=log_wave[0] / np.log(10), CDELT1=step / np.log(10), NPAR=3)
    templates.header.update(PARNAM1="TEFF", PARNAM2="LOGG", PARNAM3="FEH")
    columns = [fits.Column(name, "D", array=np.array(nodes)[:, k]) for k, name in enumerate(("TEFF", "LOGG", "FEH"))]
    fits.HDUList([fits.PrimaryHDU(), templates, fits.BinTableHDU.from_columns(columns, name="PARAMS")]).writeto(path)


def low_pass(flux, wave, width):
    """Returns templates [template, sample] as bins of a width in Angstrom can represent them. spexd fits with such
    templates: those of a library after a sinc of 0.47 cycles per bin, 16 bins long on each side, in Kaiser's window
    of shape 6."""
    step = np.log(wave[1] / wave[0])
    half = int(np.ceil(16 * width / (wave[0] * step)))
    padded = np.pad(flux, ((0, 0), (half, half)), mode="edge")
    total, norm = np.zeros(flux.shape), np.zeros(len(wave))
    for k in range(-half, half + 1):
        bins = wave * np.expm1(k * step) / width
        window = np.i0(6 * np.sqrt(np.clip(1 - (bins / 16) ** 2, 0, None))) * (np.abs(bins) < 16)
        weight = np.sinc(0.94 * bins) * window * np.exp(k * step)
        total += weight * padded[:, half + k : half + k + len(wave)]
        norm += weight
    return total / norm


class Same:
    """rvspecfit's map from parameters to those of its grid: the identity."""

    def forward(self, values):
        return np.asarray(values, float)

    inverse = forward


class Library:
    """A library of templates for rvspecfit: the same spectra on the same grid, interpolated by rvspecfit's own
    classes.

    `arms`: the wavelengths of the bins of each arm, by its name. Each arm gets the part of the templates that it
    needs, after spexd's low-pass, and fluxes are interpolated. Without `arms`, an arm "r" has the templates as they
    are, and logarithms of fluxes are interpolated, as is rvspecfit's default.
    """

    def __init__(self, path, arms=None):
        with fits.open(path) as hdus:
            header, flux = hdus["TEMPLATES"].header, hdus["TEMPLATES"].data.astype(float)
            names = [header[f"PARNAM{k + 1}"] for k in range(header["NPAR"])]
            values = np.array([hdus["PARAMS"].data[name] for name in names], float)
        wave = 10 ** (header["CRVAL1"] + header["CDELT1"] * np.arange(flux.shape[1]))
        flux /= np.median(flux, axis=1)[:, None]
        nodes = [np.unique(row) for row in values]
        grid = np.full([len(each) for each in nodes], -1)
        grid[tuple(np.searchsorted(each, row) for each, row in zip(nodes, values, strict=True))] = np.arange(len(flux))
        self.names, self.nodes = [name.lower() for name in names], nodes
        spec_inter.interp_cache.template_lib = CONFIG["template_lib"]
        spec_inter.interp_cache.interps = {}
        parts = {"r": (wave, np.log(np.maximum(flux, 1e-4)))} if arms is None else {}
        for name, bins in (arms or {}).items():
            part = (wave > bins[0] * (1 - 1050 / LIGHT) - 15) & (wave < bins[-1] * (1 + 1050 / LIGHT) + 15)
            parts[name] = wave[part], low_pass(flux[:, part], wave[part], bins[1] - bins[0])
        for name, (samples, spectra) in parts.items():
            spec_inter.interp_cache.interps[name] = spec_inter.SpecInterpolator(
                name, spec_inter.GridInterp(nodes, grid, values, spectra, exp=arms is None),
                spec_inter.GridOutsideCheck(nodes, values, grid), samples, Same(), self.names, log_step=True,
            )  # fmt: skip

    def first_guesses(self):
        """Returns start values: the first and the last but one of each parameter, and the middle of the first
        parameter."""
        guesses = {name: [float(each[0]), float(each[-2])] for name, each in zip(self.names, self.nodes, strict=True)}
        guesses[self.names[0]].insert(1, float(self.nodes[0][len(self.nodes[0]) // 2]))
        return guesses

    def inside(self, parameters):
        """Moves parameters inside the grid, because at the last node rvspecfit takes the nearest of all templates."""
        return tuple(min(value, each[-1] - 1e-9) for value, each in zip(parameters, self.nodes, strict=True))


def chebyshev_basis(specdata, npoly, rbf=True):
    return spec_fit.get_poly_basis(specdata.lam, npoly, rbf=False)


def chi_square_alone(own, spec, templ, polys, get_coeffs=False, espec=None):
    _, coeffs = own(spec, templ, polys, get_coeffs=True, espec=espec)
    value = np.sum(((spec - coeffs @ (polys * templ)) / espec) ** 2)
    return (value, coeffs) if get_coeffs else value


@contextlib.contextmanager
def chi_square_with_chebyshev_continuum():
    """Makes rvspecfit minimise what spexd minimises: chi-square, with Chebyshev polynomials as continua.

    By default it minimises -2 ln L, with a determinant that depends on the fluxes of templates, so that the minimum
    is at other parameters. Version 0.9.0 ignores its own option for Chebyshev polynomials.
    """
    own = spec_fit.get_basis, spec_fit.get_chisq0
    spec_fit.get_basis = functools.lru_cache(100)(chebyshev_basis)
    spec_fit.get_chisq0 = functools.partial(chi_square_alone, own[1])
    try:
        yield
    finally:
        spec_fit.get_basis, spec_fit.get_chisq0 = own


def matrix(resolution):
    half = resolution.shape[0] // 2
    bins = resolution.shape[1]
    return scipy.sparse.dia_matrix((resolution.astype(float), np.arange(half, -half - 1, -1)), (bins, bins)).tocsr()


def spectrum(name, wave, flux, ivar, mask, resolution):
    """Returns an arm's spectrum of a star. Bins have weight where they have some for spexd."""
    bad = (mask != 0) | ~(ivar > 0)
    bad[:EDGE] = bad[-EDGE:] = True
    error = 1 / np.sqrt(np.where(bad, 1, ivar).astype(float))
    error[bad] = 1e9  # too large to have weight: not all of rvspecfit obeys a mask
    flux = np.where(bad, 0, flux).astype(float)
    return spec_fit.SpecData(name, wave, flux, error, badmask=bad, resolution=spec_fit.ResolMatrix(matrix(resolution)))


def chi_squares(data, velocity, parameters):
    """Returns chi-square of each spectrum of a star that does not rotate, at the best continuum of each."""
    options, config = utils.freezeDict(OPTIONS), utils.freezeDict(CONFIG)
    fit = spec_fit.get_chisq(data, velocity, parameters, options=options, config=config, full_output=True)
    return fit["chisq_array"]


def fit_star(data, library):
    """Fits a star as rvspecfit's users do: a first guess on few nodes, then the fit of all parameters."""
    coarse, config, options = (utils.freezeDict(each) for each in ({**CONFIG, "vel_step0": 25}, CONFIG, OPTIONS))
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)  # hides rvspecfit's warnings about its iterations
    try:
        guess = vel_fit.firstguess(data, options=options, config=coarse, paramsgrid=library.first_guesses())
        guess.setdefault("vsini", 5.0)
        return vel_fit.process(data, guess, options=options, config=config)
    finally:
        logging.disable(level)
