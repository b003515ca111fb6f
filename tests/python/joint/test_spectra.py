"""Joint velocities and redshifts of files of spectra, and of the frames of an exposure, equal those of spex analyse."""

import gc
import os
import pathlib
import shutil
import signal
import time

import numpy as np
import pytest
from conftest import run_spex
from test_products import assert_is_table, interrupt, write_templates

import spexd

fits = pytest.importorskip("astropy.io.fits")

# Arm B extends into 4300 to 4450 Angstrom, which are left out of fits to files of spectra.
GRIDS = {"B": np.arange(4200, 4400, 0.8), "R": np.arange(4700, 4900, 0.8), "Z": np.arange(5000, 5160, 0.8)}
RESOLUTION = np.array([0.05, 0.25, 0.4, 0.25, 0.05])
VELOCITY = 120.0  # km/s, the same for all stars


def write_spectra(path, templates, targets, **columns):
    """Writes a file of spectra of stars, one for each of `targets`. The row before the last is sky; the last row has
    no data in arm Z and a bad FIBERSTATUS. `columns`: further columns of the fibermap."""
    random = np.random.default_rng(8)
    rows = len(targets)
    flux, header = fits.getdata(templates, "TEMPLATES", header=True)
    log_wave = np.log(10) * (header["CRVAL1"] + header["CDELT1"] * np.arange(flux.shape[1]))
    hdus = [fits.PrimaryHDU(header=fits.Header({"SURVEY": "main", "HPXPIXEL": 7}))]
    for arm, wave in GRIDS.items():
        star = np.interp(np.log(wave / (1 + VELOCITY / 299792.458)), log_wave, flux[1])
        star = np.convolve(np.pad(star, 2, mode="edge"), RESOLUTION, mode="valid")
        spectra = 100 * star + random.normal(size=(rows, len(wave)))
        ivar = np.ones(spectra.shape)
        if arm == "Z":
            ivar[-1] = 0
        mask = (random.uniform(size=spectra.shape) < 0.01).astype(np.int32)
        resolution = np.broadcast_to(RESOLUTION[:, None], (rows, len(RESOLUTION), len(wave)))
        parts = {"WAVELENGTH": wave, "FLUX": spectra, "IVAR": ivar, "MASK": mask, "RESOLUTION": resolution}
        for name, values in parts.items():
            kind = {"WAVELENGTH": np.float64, "MASK": np.int32}.get(name, np.float32)
            hdus.append(fits.ImageHDU(values.astype(kind), name=f"{arm}_{name}"))
    status = np.zeros(rows, np.int32)
    status[-1] = 1 << 9
    given = {
        "TARGETID": np.array(targets, np.int64),
        "FIBER": np.arange(rows, dtype=np.int32),
        "OBJTYPE": np.array(["TGT"] * (rows - 2) + ["SKY", "TGT"]),
        "FIBERSTATUS": status,
        "TARGET_RA": np.linspace(10, 11, rows),
        "REF_CAT": np.array((["G3", ""] * rows)[:rows]),
        **columns,
    }
    table = np.rec.fromarrays(list(given.values()), names=list(given))
    hdus.insert(1, fits.BinTableHDU(table, name="FIBERMAP"))
    hdus.append(fits.BinTableHDU(np.rec.fromarrays([given["TARGETID"], np.arange(rows)], names=["TARGETID", "EXPID"])))
    hdus[-1].name = "EXP_FIBERMAP"
    fits.HDUList(hdus).writeto(path)


@pytest.fixture(scope="module")
def spectra_files(tmp_path_factory):
    """Returns a folder with spectra.fits, templates.fits and the files that spex analyse made of them."""
    folder = tmp_path_factory.mktemp("spectra")
    write_templates(folder / "templates.fits", np.array([4200.0, 5160.0]))
    targets = [39627000000100001, 102, 101, 102, 900, 103]
    write_spectra(folder / "spectra.fits", folder / "templates.fits", targets, EXPID=np.array([1, 1, 1, 2, 2, 2], np.int32))
    asked = ["--velocity", folder / "templates.fits", "--lines"]
    run_spex("analyse", folder / "spectra.fits", *asked, "--output-dir", folder)
    targets = ["--per-target", "--exclude", "4200,4210", "--exclude", "4380,4390", "--npoly", 4]
    run_spex("analyse", folder / "spectra.fits", *asked, *targets, "--output-dir", folder / "targets")
    return folder


@pytest.fixture
def spectra(spectra_files):
    return spexd.read_spectra(spectra_files / "spectra.fits")


def test_a_file_of_spectra_is_read_as_it_is(spectra, spectra_files):
    assert list(spectra.arms) == ["B", "R", "Z"] and len(spectra) == 6
    with fits.open(spectra_files / "spectra.fits") as hdus:
        for name, arm in spectra.arms.items():
            np.testing.assert_allclose(arm.wave, GRIDS[name], rtol=1e-12)
            for array in ("flux", "ivar", "mask", "resolution"):
                np.testing.assert_array_equal(getattr(arm, array), hdus[f"{name}_{array.upper()}"].data, err_msg=array)
        for table, hdu in [(spectra.fibermap, "FIBERMAP"), (spectra.exposure_map, "EXP_FIBERMAP")]:
            np.testing.assert_array_equal(table["TARGETID"], hdus[hdu].data["TARGETID"])
    assert spectra.header["SURVEY"] == "main" and spectra.scores is None
    assert list(spectra.selected_rows) == [0, 1, 2, 3]
    assert repr(spectra).startswith("<spexd.Spectra: 6 rows, B 4200.0 to 4399.2, R 4700.0 to ")
    assert repr(spectra.arms["Z"]) == "<spexd.SpectraArm Z: 6 rows, 200 bins from 5000.0 to 5159.2 Angstrom>"


def test_velocities_are_those_of_spex_to_the_bit(spectra, spectra_files):
    from astropy.table import Table

    templates = spexd.Templates(spectra_files / "templates.fits")
    stars = spectra.velocities(templates, models=True)
    assert_is_table(stars, spectra_files / "rvtab_spectra.fits", "RVTAB")
    with fits.open(spectra_files / "rvmod_spectra.fits") as hdus:
        for arm in spectra.arms:
            np.testing.assert_array_equal(stars[f"{arm}_MODEL"], hdus[f"{arm}_MODEL"].data, err_msg=arm)
    with fits.open(spectra_files / "rvtab_spectra.fits") as hdus:
        for name in ("CHI2", "B_CHI2", "R_CHI2", "Z_CHI2"):
            np.testing.assert_array_equal(stars[name].astype(np.float32), hdus[name].data, err_msg=name)
        assert stars["CHI2"].shape == (4, len(hdus["VELOCITY"].data))
    np.testing.assert_allclose(stars["VRAD"], VELOCITY, atol=10)
    assert list(stars["TARGETID"]) == [39627000000100001, 102, 101, 102] and list(stars["EXPID"]) == [1, 1, 1, 2]
    assert list(stars["REF_CAT"]) == [b"G3", b"", b"G3", b""]
    np.testing.assert_array_equal(stars["SUCCESS"], stars["RVS_WARN"] == 0)
    again = spectra.velocities(spectra_files / "templates.fits", threads=1)
    assert_is_table(again, spectra_files / "rvtab_spectra.fits", "RVTAB")
    assert Table(again)["VRAD"][2] == stars["VRAD"][2]


def test_exposures_of_a_target_are_fitted_together(spectra, spectra_files):
    ranges = [(4200, 4210), (4380, 4390)]
    stars = spectra.velocities(spectra_files / "templates.fits", per_target=True, exclude=ranges, degree=3)
    assert_is_table(stars, spectra_files / "targets" / "rvtab_spectra.fits", "RVTAB")
    assert list(stars["TARGETID"]) == [39627000000100001, 102, 101] and list(stars["NUMEXP"]) == [1, 2, 1]
    assert "EXPID" not in stars.dtype.names
    galaxies = spectra.redshifts(per_target=True)
    assert_is_table(galaxies, spectra_files / "targets" / "zlines_spectra.fits", "ZLINES")


def test_redshifts_are_those_of_spex_to_the_bit(spectra, spectra_files):
    assert_is_table(spectra.redshifts(), spectra_files / "zlines_spectra.fits", "ZLINES")
    assert_is_table(spectra.redshifts(threads=1), spectra_files / "zlines_spectra.fits", "ZLINES")


def expect_the_same_stars(stars, others):
    """Expects nearly the same fits. The scan uses the mean resolution of the fitted rows, so fits start slightly
    apart."""
    np.testing.assert_array_equal(stars["TARGETID"], others["TARGETID"])
    np.testing.assert_array_equal(stars["NPIX_TOT"], others["NPIX_TOT"])
    assert (np.abs(stars["VRAD"] - others["VRAD"]) < 0.01 * others["VRAD_ERR"]).all()
    np.testing.assert_allclose(stars["CHISQ_TOT"], others["CHISQ_TOT"], atol=0.01)


def test_rows_are_those_that_are_asked_for(spectra, spectra_files):
    templates = spexd.Templates(spectra_files / "templates.fits")
    whole = spectra.velocities(templates)
    some = spectra.velocities(templates, [3, 0])
    assert list(some["FIBER"]) == [3, 0]
    expect_the_same_stars(some, whole[[3, 0]])
    masked = spectra.velocities(templates, spectra.fibermap["TARGETID"] == 102)
    expect_the_same_stars(masked, whole[[1, 3]])
    without_z = spectra.velocities(templates, rows=[5], models=True)
    assert without_z["NPIX_Z"] == 0 and np.isnan(without_z["VRAD_Z"]) and np.isnan(without_z["Z_MODEL"]).all()
    np.testing.assert_allclose(without_z["VRAD"], VELOCITY, atol=10)
    none = spectra.velocities(templates, [])
    assert len(none) == 0 and none.dtype == whole.dtype and len(spectra.redshifts([])) == 0


def test_what_is_excluded_has_no_weight(spectra, spectra_files):
    templates = spexd.Templates(spectra_files / "templates.fits")
    default, nothing = (spectra.velocities(templates, exclude=exclude) for exclude in (None, []))
    assert (default["NPIX_B"] < nothing["NPIX_B"] - 80).all()
    np.testing.assert_array_equal(default["NPIX_R"], nothing["NPIX_R"])
    assert default.tobytes() == spectra.velocities(templates, exclude=[(4300, 4450)]).tobytes()


def test_products_are_of_the_arrays_as_they_are(spectra, spectra_files):
    templates = spexd.Templates(spectra_files / "templates.fits")
    before = spectra.velocities(templates)
    arm = spectra.arms["R"]
    flux = arm.flux.copy()
    arm.mask[0, 50:80] = 1  # in place
    arm.flux = 2 * flux
    after = spectra.velocities(templates)
    assert after["NPIX_R"][0] < before["NPIX_R"][0] and (after["CHISQ_R"] > before["CHISQ_R"]).all()
    arm.flux /= 2
    np.testing.assert_array_equal(arm.flux, flux)
    expect_the_same_stars(spectra.velocities(templates, [1, 2]), before[[1, 2]])


def test_an_array_keeps_its_memory(spectra, spectra_files):
    alone = spexd.read_spectra(spectra_files / "spectra.fits").arms["R"].flux
    gc.collect()
    np.testing.assert_array_equal(alone, spectra.arms["R"].flux)


def test_ctrl_c_stops_velocities_long_before_their_end(tmp_path):
    write_templates(tmp_path / "many.fits", np.array([4200.0, 5160.0]), temperatures=np.linspace(4500, 6000, 20))
    write_spectra(tmp_path / "spectra.fits", tmp_path / "many.fits", range(50))
    spectra, templates = spexd.read_spectra(tmp_path / "spectra.fits"), spexd.Templates(tmp_path / "many.fits")
    start = time.monotonic()
    spectra.velocities(templates, threads=1)
    whole = time.monotonic() - start
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, whole / 10)
        start = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            spectra.velocities(templates, threads=1)
        assert time.monotonic() - start < 0.7 * whole
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert len(spectra.redshifts(rows=[0, 1])) == 2


@pytest.fixture(scope="module")
def exposure(frames, tmp_path_factory):
    """Returns a folder with two frames of an exposure, including the sky, and the files that spex analyse made of
    them."""
    folder = tmp_path_factory.mktemp("exposure")
    for camera in ("b0", "r0"):
        path = folder / f"frame-{camera}.fits"
        shutil.copy(frames / "frame.fits", path)
        for name, value in {"CAMERA": camera, "EXPID": 7, "NIGHT": 20260101}.items():
            fits.setval(path, name, value=value)
    write_templates(folder / "templates.fits", fits.getdata(folder / "frame-b0.fits", "WAVELENGTH"))
    asked = ["--velocity", folder / "templates.fits", "--velocity-out", folder / "rv.fits", "--lines-out", folder / "z.fits"]
    run_spex("analyse", folder / "frame-b0.fits", folder / "frame-r0.fits", *asked)
    return folder


def test_frames_of_an_exposure_are_analysed_as_by_spex(exposure):
    paths = [exposure / "frame-b0.fits", exposure / "frame-r0.fits"]
    frames = [spexd.Frame.from_fits(path) for path in paths]
    spectra = spexd.Spectra([frames[1], paths[0]])
    assert set(spectra.arms) == {"B", "R"} and len(spectra) == 50
    np.testing.assert_array_equal(spectra.arms["R"].flux, frames[1].sky_subtracted().flux)
    assert_is_table(spectra.velocities(exposure / "templates.fits"), exposure / "rv.fits", "RVTAB")
    assert_is_table(spectra.redshifts(), exposure / "z.fits", "ZLINES")
    without_sky = spexd.Spectra([frame.sky_subtracted() for frame in frames])
    assert_is_table(without_sky.redshifts(), exposure / "z.fits", "ZLINES")
    as_they_are = spexd.Spectra(frames, sky_subtracted=True)
    np.testing.assert_array_equal(as_they_are.arms["B"].flux, frames[0].flux)
    frames[0].flux += 1
    assert (as_they_are.arms["B"].flux != frames[0].flux).any(), "spectra are copied"


def test_what_is_wrong_is_named(spectra, spectra_files, exposure, tmp_path):
    templates = spexd.Templates(spectra_files / "templates.fits")
    blue, red = (spexd.Frame.from_fits(exposure / f"frame-{camera}.fits").sky_subtracted() for camera in ("b0", "r0"))
    shutil.copy(exposure / "frame-r0.fits", tmp_path / "other-r0.fits")
    fits.setval(tmp_path / "other-r0.fits", "EXPID", value=8)
    other = spexd.Frame.from_fits(tmp_path / "other-r0.fits")
    with fits.open(spectra_files / "spectra.fits") as hdus:
        table = fits.BinTableHDU(np.rec.fromarrays([np.arange(6)], names=["FIBER"]), name="FIBERMAP")
        fits.HDUList([*hdus[:1], table, *hdus[2:-1]]).writeto(tmp_path / "nameless.fits")
        fits.HDUList([hdu for hdu in hdus if hdu.name != "B_RESOLUTION"]).writeto(tmp_path / "part.fits")
    nameless = spexd.read_spectra(tmp_path / "nameless.fits")
    wrong = [
        (lambda: spexd.read_spectra(tmp_path / "part.fits"), "part.fits: .*B_RESOLUTION"),
        (lambda: spexd.read_spectra(exposure / "frame-b0.fits"), "frame-b0.fits: is a frame .*spexd.Spectra takes"),
        (lambda: spexd.read_spectra(spectra_files / "templates.fits"), "templates.fits: neither a frame"),
        (lambda: spexd.Spectra(exposure / "frame-b0.fits"), "frames must be a list"),
        (lambda: spexd.Spectra([]), "frames: there are none"),
        (lambda: spexd.Spectra([blue, blue]), "frame 1: camera b was there before, in frame 0"),
        (lambda: spexd.Spectra([blue, other], sky_subtracted=True), "other-r0.fits.* not of one exposure: exposure"),
        (lambda: spexd.Spectra([blue, red], threads=-1), "threads is -1"),
        (lambda: spectra.velocities(templates, [6]), "rows has 6, the spectra have rows 0 to 5"),
        (lambda: spectra.redshifts([2, 2]), "rows has 2 twice"),
        (lambda: spectra.redshifts(np.ones(3, bool)), "rows has shape"),
        (lambda: spectra.redshifts(threads=-1), "threads is -1"),
        (lambda: spectra.redshifts(most=-1), "redshift -1"),
        (lambda: spectra.velocities(templates, degree=30), "degree"),
        (lambda: spectra.velocities(templates, exclude=(4300, 4450)), "exclude is .* pairs of wavelengths"),
        (lambda: spectra.velocities(templates, exclude=[(4450, 4300)]), "cannot leave out 4450 to 4300"),
        (lambda: spectra.velocities(templates, most=3000), "templates"),
        (lambda: nameless.redshifts(per_target=True), "TARGETID"),
    ]
    for call, message in wrong:
        with pytest.raises(spexd.InvalidArgumentError, match=message):
            call()
    with pytest.raises(ValueError, match="read-only"):
        spectra.arms["B"].wave = 0
    with pytest.raises(spexd.NotFoundError, match="nowhere"):
        spexd.read_spectra(tmp_path / "nowhere.fits")
    frame = spexd.Frame.from_fits(exposure / "frame-b0.fits")
    frame.ivar[frame.fibermap["OBJTYPE"] == b"SKY"] = 0
    with pytest.raises(spexd.FailedPreconditionError, match="frame-b0.fits: .*give sky_subtracted=True"):
        spexd.Spectra([frame])


@pytest.fixture(scope="module")
def goldens():
    beside = pathlib.Path(__file__).parents[3].parent / "shared" / "data"
    folder = pathlib.Path(os.environ.get("SPEXD_GOLDENS", beside)) / "arms"
    if not folder.is_dir() and not os.environ.get("CI"):
        pytest.skip(f"golden files: no folder {folder}")
    return folder


def test_velocities_are_those_of_the_reference(goldens):
    templates = spexd.Templates(goldens / "templates.fits")
    coadd = spexd.read_spectra(goldens / "coadd-main-dark-1.fits")
    cameras = [spexd.Frame.from_fits(goldens / f"sframe-{camera}0-00001000.fits") for camera in "zbr"]
    exposures = spexd.read_spectra(goldens / "spectra-main-dark-1.fits.gz")
    for hdu, stars in {
        "COADD": coadd.velocities(templates, exclude=[]),
        "FRAMES": spexd.Spectra(cameras).velocities(templates),
        "TARGETS": exposures.velocities(templates, per_target=True, exclude=[]),
    }.items():
        expected = fits.getdata(goldens / "expected.fits", hdu)
        np.testing.assert_array_equal(stars["NPIX_TOT"], expected["NBIN"])
        safe = (expected["DCHI2"] > 9) & expected["STABLE"]
        off = (stars["VRAD"] - expected["V"]) / expected["VERR"]
        assert (np.abs(off[safe]) < 0.02).all(), hdu
    galaxies, expected = coadd.redshifts(), fits.getdata(goldens / "expected.fits", "Z_COADD")
    np.testing.assert_allclose(galaxies["GAP"], expected["GAP"], atol=1e-6, rtol=1e-6)
