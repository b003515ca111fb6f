"""Sky, velocities and redshifts of a frame equal those of spex analyse."""

import dataclasses
import re
import signal
import sys
import time

import numpy as np
import pytest
from conftest import run_spex

import spexd

fits = pytest.importorskip("astropy.io.fits")


def write_templates(path, wave, rows=None, temperatures=(4500.0, 6000.0)):
    """Writes a library of synthetic stars, two for each temperature; lines are wider and deeper in cooler stars."""
    step = 8 / 299792.458
    first, last = np.log(wave[0] * 0.996 - 13), np.log(wave[-1] * 1.004 + 13)
    log_wave = np.arange(first, last, step)
    random = np.random.default_rng(5)
    centres = random.uniform(first, last, 25)
    parameters = [(teff, logg) for teff in temperatures for logg in (2.0, 4.0)][:rows]
    flux = np.ones((len(parameters), len(log_wave)), np.float32)
    for k, (teff, logg) in enumerate(parameters):
        for centre, depth in zip(centres, random.uniform(0.1, 0.6, len(centres)), strict=True):
            width = (3 + logg) * step
            flux[k] *= 1 - depth * (1e4 / teff - 1) * np.exp(-0.5 * ((log_wave - centre) / width) ** 2)
    templates = fits.ImageHDU(flux, name="TEMPLATES")
    templates.header.update(LOGLAM=1, CRVAL1=first / np.log(10), CDELT1=step / np.log(10), NPAR=2)
    templates.header.update(PARNAM1="TEFF", PARNAM2="LOGG")
    columns = [fits.Column(name, "D", array=np.array(parameters)[:, k]) for k, name in enumerate(("TEFF", "LOGG"))]
    params = fits.BinTableHDU.from_columns(columns, name="PARAMS")
    fits.HDUList([fits.PrimaryHDU(), templates, params]).writeto(path)


@pytest.fixture(scope="module")
def products(frames, tmp_path_factory):
    """Returns a folder with the products that spex analyse made of the frame, and their inputs."""
    folder = tmp_path_factory.mktemp("products")
    frame = spexd.Frame.from_fits(frames / "frame.fits")
    write_templates(folder / "templates.fits", frame.wave)
    flat = np.random.default_rng(3).uniform(0.9, 1.1, frame.flux.shape)
    flat[4, 100:103] = 0
    fits.HDUList([fits.PrimaryHDU(), fits.ImageHDU(flat, name="FIBERFLAT")]).writeto(folder / "fiberflat.fits")
    out = ["--sky", folder / "sky.fits", "--sframe", folder / "sframe.fits", "--lines-out", folder / "z.fits"]
    out += ["--velocity", folder / "templates.fits", "--velocity-out", folder / "rv.fits"]
    run_spex("analyse", frames / "frame.fits", "--fiberflat", folder / "fiberflat.fits", *out)
    return folder


@pytest.fixture
def frame(frames):
    return spexd.Frame.from_fits(frames / "frame.fits")


def assert_is_table(table, path, hdu):
    expected = fits.getdata(path, hdu)
    names = [name for name in table.dtype.names if table[name].ndim == 1]
    assert names == list(expected.dtype.names) and len(table) == len(expected)
    for name in names:
        assert table[name].tobytes() == expected[name].astype(table[name].dtype).tobytes(), name


def test_the_sky_is_that_of_spex_to_the_byte(frame, products, tmp_path):
    sky = frame.sky(products / "fiberflat.fits")
    sky.to_fits(tmp_path / "sky.fits")
    assert (tmp_path / "sky.fits").read_bytes() == (products / "sky.fits").read_bytes()
    with fits.open(products / "sky.fits") as hdus:
        for name, values in [("SKY", sky.model), ("IVAR", sky.ivar), ("STATIVAR", sky.statistical_ivar)]:
            np.testing.assert_array_equal(values.astype(np.float32), hdus[name].data, err_msg=name)
        np.testing.assert_array_equal(sky.mask, hdus["MASK"].data)
        np.testing.assert_array_equal(sky.throughput.astype(np.float32), hdus["THRPUTCORR"].data)
        np.testing.assert_array_equal(sky.deconvolved, hdus["DECONVOLVED"].data)
        assert (len(sky.sky_fibres), sky.rejected) == (hdus[0].header["SKYFIB"], hdus[0].header["SKYREJ"])
    assert repr(sky) == f"<spexd.Sky of {len(sky.sky_fibres)} sky fibres for 50 fibres, {len(frame.wave)} bins>"


def test_spectra_without_the_sky_are_those_of_spex_to_the_byte(frame, products, tmp_path):
    clean = frame.sky_subtracted(fiberflat=fits.getdata(products / "fiberflat.fits", "FIBERFLAT"))
    clean.to_fits(tmp_path / "sframe.fits")
    assert (tmp_path / "sframe.fits").read_bytes() == (products / "sframe.fits").read_bytes()
    assert (clean.mask[4, 100:103] & spexd.BADFIBERFLAT).all()
    assert clean.fibres == frame.fibres and clean.header == frame.header


def test_velocities_are_those_of_spex_to_the_bit(frame, products):
    from astropy.table import Table

    templates = spexd.Templates(products / "templates.fits")
    assert len(templates) == 4 and list(templates.parameters["TEFF"]) == [4500, 6000]
    assert repr(templates).endswith("templates.fits: 4 spectra (2 TEFF, 2 LOGG)>")
    sky = frame.sky(products / "fiberflat.fits")
    stars = frame.velocities(templates, sky, models=True)
    assert_is_table(stars, products / "rv.fits", "RVTAB")
    with fits.open(products / "rv.fits") as hdus:
        for name in ("MODEL", "CONTINUUM", "CHI2"):
            np.testing.assert_array_equal(stars[name].astype(np.float32), hdus[name].data, err_msg=name)
        assert stars["CHI2"].shape[1] == len(hdus["VELOCITY"].data) == 81
    again = frame.velocities(products / "templates.fits", fiberflat=products / "fiberflat.fits", threads=1)
    assert_is_table(again, products / "rv.fits", "RVTAB")
    assert Table(again)["VRAD"][3] == stars["VRAD"][3]


def interrupt(number, stack):
    raise KeyboardInterrupt


def test_ctrl_c_stops_velocities_long_before_their_end(frame, tmp_path):
    write_templates(tmp_path / "many.fits", frame.wave, temperatures=np.linspace(4500, 6000, 30))
    templates, sky = spexd.Templates(tmp_path / "many.fits"), frame.sky()
    start = time.monotonic()
    frame.velocities(templates, sky, threads=1)
    whole = time.monotonic() - start
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, whole / 10)
        start = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            frame.velocities(templates, sky, threads=1)
        assert time.monotonic() - start < 0.7 * whole
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert len(frame.redshifts(sky)) == len(frame.flux) - len(sky.sky_fibres)


def test_redshifts_are_those_of_spex_to_the_bit(frame, products, frames, tmp_path):
    assert_is_table(frame.redshifts(frame.sky(products / "fiberflat.fits")), products / "z.fits", "ZLINES")
    assert_is_table(frame.redshifts(fiberflat=products / "fiberflat.fits"), products / "z.fits", "ZLINES")
    run_spex("analyse", products / "sframe.fits", "--sky-subtracted", "--lines-out", tmp_path / "z.fits")
    clean = spexd.Frame.from_fits(products / "sframe.fits")
    assert_is_table(clean.redshifts(sky_subtracted=True), tmp_path / "z.fits", "ZLINES")


def test_stars_are_drawn_with_their_models(products, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setenv("SPEXD_PYTHON", sys.executable)
    drawn = tmp_path / "stars.svg"
    row = fits.getdata(products / "rv.fits", "RVTAB")[7]
    flags = ["--velocities", products / "rv.fits", "--fibres", row["FIBER"]]
    run_spex("plot", products / "sframe.fits", *flags, "-o", drawn)
    texts = re.findall("<!-- (.*?) -->", drawn.read_text())
    assert any(f"v = {row['VRAD']:.2f} ± {row['VRAD_ERR']:.2f} km/s" in text for text in texts)
    assert {"best template", "χ²(v) above its minimum"} <= {text.split("   ")[0] for text in texts}


def test_products_are_of_the_arrays_as_they_are(frame):
    assert frame._to_native() is frame._held, "no copy"
    before = frame.sky().model.copy()
    frame.flux += 1  # in place
    raised = frame.sky().model
    assert (raised != before).any()
    frame.flux -= 1
    other = dataclasses.replace(frame, flux=frame.flux + 1)
    assert other._to_native() is not frame._held
    np.testing.assert_allclose(other.sky().model, raised, atol=1e-3)


def test_what_is_wrong_is_named(frame, products, image, psf, engine):
    templates = products / "templates.fits"
    with fits.open(image) as hdus:
        arrays = [hdus[name].data for name in ("IMAGE", "IVAR")]
    dark = engine.extract(*arrays, psf=psf, wavelength=(6600, 6620, 0.8))
    part = engine.extract(image, psf=psf, wavelength=(6600, 6620, 0.8))
    small = dataclasses.replace(frame)
    small.flux = small.flux[:10]
    write_templates(products / "hole.fits", frame.wave, rows=3)
    sky = frame.sky()
    wrong = [
        (dark.sky, "FIBERMAP"),
        (lambda: frame.sky(np.ones((3, 4))), "fiberflat"),
        (lambda: frame.sky(np.ones(3)), "fiberflat has shape"),
        (lambda: frame.sky(templates), "no HDU FIBERFLAT"),
        (lambda: frame.redshifts(threads=-1), "threads is -1"),
        (lambda: part.redshifts(sky), "sky: it is of 50 fibres x 253 bins, the frame has 50 x 26"),
        (lambda: part.sky_subtracted(sky), "sky has shape"),
        (lambda: frame.redshifts(sky, sky_subtracted=True), "sky_subtracted"),
        (lambda: frame.velocities(templates, sky, fiberflat=products / "fiberflat.fits"), "fiberflat"),
        (lambda: frame.velocities(templates, sky, degree=30), "degree"),
        (lambda: frame.redshifts(sky, most=-1), "redshift -1"),
        (lambda: frame.velocities(products / "sky.fits", sky), "no HDU TEMPLATES"),
        (lambda: spexd.Templates(products / "hole.fits"), "hole.fits"),
        (small.sky, "flux has shape"),
    ]
    for call, message in wrong:
        with pytest.raises(spexd.InvalidArgumentError, match=message):
            call()
    with pytest.raises(spexd.NotFoundError, match="nowhere"):
        spexd.Templates(products / "nowhere.fits")


def test_a_frame_without_good_sky_fibres_has_no_sky(frame):
    frame.ivar[frame.fibermap["OBJTYPE"] == b"SKY"] = 0
    with pytest.raises(spexd.FailedPreconditionError, match="sky"):
        frame.sky()
