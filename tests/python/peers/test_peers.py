"""Products compared with those of the field's own programs. peers.sh runs this where they are installed."""

import os

os.environ.setdefault("DESI_LOGLEVEL", "WARNING")

import numpy as np  # noqa: E402
import pytest  # noqa: E402
from astropy.io import fits  # noqa: E402
from astropy.table import Table, vstack  # noqa: E402
from conftest import run_spex  # noqa: E402
from desispec import coaddition, io, sky  # noqa: E402
from desispec.fiberflat import apply_fiberflat  # noqa: E402
from desispec.frame import Frame  # noqa: E402
from desispec.spectra import Spectra  # noqa: E402
from rvspecfit import spec_fit  # noqa: E402
from test_products import write_templates  # noqa: E402

import spexd  # noqa: E402


@pytest.fixture
def frame(frames):
    return spexd.Frame.from_fits(frames / "frame.fits")


def test_the_sky_is_that_of_desispec(frame):
    their_frame = Frame(
        frame.wave, frame.flux.astype(float), frame.ivar.astype(float), frame.mask, frame.resolution.astype(float),
        meta={"CAMERA": "r0", "FLAVOR": "science"}, fibermap=Table(frame.fibermap), fibers=np.arange(len(frame.flux)),
    )  # fmt: skip
    theirs, ours = sky.compute_sky(their_frame, add_variance=False), frame.sky()
    known = (theirs.ivar > 0) & (ours.statistical_ivar > 0)
    assert known.mean() > 0.95
    # desispec rejects for at least five rounds, spexd until nothing is rejected: in the end, the same bins.
    differences = np.abs(theirs.flux - ours.model) * np.sqrt(ours.statistical_ivar)
    assert differences[known].max() < 1e-3
    # desispec's variance is for the frame's mean resolution in all fibres, spexd's for each fibre's own.
    ratio = np.median((ours.statistical_ivar / np.where(known, theirs.ivar, np.inf))[known])
    assert ratio == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize("factor", [1, 1 + 8e-5, 1 - 8e-5])
def test_a_fiberflat_counts_as_in_desispec(frames, tmp_path, factor):
    frame_path, flat_path = tmp_path / "frame.fits", tmp_path / "fiberflat.fits"
    rng = np.random.default_rng(4)
    with fits.open(frames / "frame.fits") as hdus:
        wave, shape = hdus["WAVELENGTH"].data, hdus["FLUX"].data.shape
        level = rng.uniform(0.9, 1.1, (shape[0], 1))
        flat, passed = (level * (1 + 0.1 * np.sin(at / 7)) for at in (wave, wave / factor))
        hdus["FLUX"].data = (hdus["FLUX"].data * passed).astype("f4")
        hdus[0].header["HELIOCOR"] = factor
        hdus.writeto(frame_path)
    ivar, mask = rng.uniform(1e4, 1e6, shape), np.zeros(shape, np.uint32)
    ivar[3], ivar[5, 20:24], mask[7] = 0, 0, 1
    names = ("FIBERFLAT", "IVAR", "MASK", "MEANSPEC", "WAVELENGTH")
    arrays = (flat.astype("f4"), ivar.astype("f4"), mask, np.ones(len(wave)), wave)
    images = [fits.ImageHDU(array, name=name) for name, array in zip(names[1:], arrays[1:], strict=True)]
    fits.HDUList([fits.PrimaryHDU(arrays[0], fits.Header({"EXTNAME": names[0]})), *images]).writeto(flat_path)

    theirs = io.read_frame(str(frame_path))
    apply_fiberflat(theirs, io.read_fiberflat(str(flat_path)))
    out = ["--sky", tmp_path / "sky.fits", "--sframe", tmp_path / "sframe.fits"]
    run_spex("analyse", frame_path, "--fiberflat", flat_path, *out)
    ours, model = fits.open(tmp_path / "sframe.fits"), fits.open(tmp_path / "sky.fits")
    np.testing.assert_array_equal((ours["MASK"].data & spexd.BADFIBERFLAT) != 0, (theirs.mask & spexd.BADFIBERFLAT) != 0)
    good = (theirs.mask == 0) & (model["IVAR"].data > 0)
    assert (ours["IVAR"].data[theirs.mask != 0] == 0).all() and good.mean() > 0.8
    # The variance of the sky was added to that of the spectra.
    before = 1 / (1 / ours["IVAR"].data[good].astype(float) - 1 / model["IVAR"].data[good])
    np.testing.assert_allclose(before, theirs.ivar[good], rtol=1e-4)


def test_a_coadd_is_that_of_desispec(frames, frame, tmp_path):
    second = tmp_path / "second.fits"
    other = spexd.Frame.from_fits(frames / "frame.fits")
    other.flux += np.random.default_rng(2).normal(size=other.flux.shape).astype(np.float32)
    other.mask[3, 20:24] |= spexd.NODATA
    other.to_fits(second)
    with fits.open(second, mode="update", checksum=True) as hdus:
        hdus[0].header["EXPID"] += 1
    run_spex("coadd", frames / "frame.fits", second, "-o", tmp_path / "coadd.fits")

    maps = [Table(each.fibermap) for each in (frame, other)]
    for number, table in enumerate(maps):
        table["EXPID"] = number
    both = {
        name: {"r": np.concatenate([getattr(each, name) for each in (frame, other)])}
        for name in ("flux", "ivar", "mask", "resolution")
    }
    theirs = Spectra(
        ["r"], {"r": frame.wave}, both["flux"], both["ivar"], both["mask"], both["resolution"], vstack(maps)
    )
    # Sums two exposures without desispec's search for cosmic rays; the tables of exposures are not compared.
    coaddition.coadd(theirs, cosmics_nsig=0)
    with fits.open(tmp_path / "coadd.fits") as ours:
        order = {target: row for row, target in enumerate(theirs.fibermap["TARGETID"])}
        rows = [order[target] for target in ours["FIBERMAP"].data["TARGETID"]]
        assert len(rows) > 30
        np.testing.assert_array_equal(ours["R_MASK"].data, theirs.mask["r"][rows])
        np.testing.assert_allclose(ours["R_FLUX"].data, theirs.flux["r"][rows], rtol=1e-5, atol=1e-4)
        np.testing.assert_allclose(ours["R_IVAR"].data, theirs.ivar["r"][rows], rtol=1e-6)
        inner = np.s_[:, :, 5:-5]  # near the ends of the matrix desispec keeps elements of other rows
        np.testing.assert_allclose(ours["R_RESOLUTION"].data[inner], theirs.resolution_data["r"][rows][inner], atol=1e-6)


def test_chi_square_of_a_star_is_that_of_rvspecfit(frame, tmp_path):
    write_templates(tmp_path / "templates.fits", frame.wave)
    clean = frame.sky_subtracted()
    stars = clean.velocities(tmp_path / "templates.fits", sky_subtracted=True, models=True)
    position = 2 * (frame.wave - frame.wave[0]) / (frame.wave[-1] - frame.wave[0]) - 1
    polynomials = np.polynomial.chebyshev.chebvander(position, 6).T
    compared = 0
    for star in stars[::5]:
        row, good = star["ROW"], np.zeros(len(frame.wave), bool)
        good[8:-8] = ((clean.mask[row] == 0) & (clean.ivar[row] > 0))[8:-8]
        if not np.isfinite(star["VRAD"]) or star["NBIN"] != good.sum():
            continue
        template = (star["MODEL"] / star["CONTINUUM"])[good]  # R times the templates at the velocity
        error = 1 / np.sqrt(clean.ivar[row][good].astype(float))
        flux = clean.flux[row][good].astype(float)
        value = spec_fit.get_chisq0(flux, template, polynomials[:, good], espec=error)
        # rvspecfit's value is -2 ln L of a likelihood marginalised over the continuum: chi-square and two more terms.
        design = template / error * polynomials[:, good]
        marginal = np.linalg.slogdet(design @ design.T)[1] + 2 * np.log(error).sum()
        assert np.ravel(value)[0] - marginal == pytest.approx(star["CHISQ_TOT"], rel=1e-7), row
        compared += 1
    assert compared >= 5
