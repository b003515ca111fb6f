"""The DESI pipeline's code reads what spex simulates, extracts and computes. $SPEXD_BIN is the folder of spex."""

import os
import pathlib
import subprocess

os.environ.setdefault("DESI_LOGLEVEL", "WARNING")

import numpy as np  # noqa: E402
import pytest  # noqa: E402
from astropy.io import fits  # noqa: E402
from desispec import coaddition, fiberflat, io, pixgroup, sky  # noqa: E402
from desispec.spectra import Spectra  # noqa: E402

FIBRES, SKY_FIBRES, ROWS, GRID = 30, 6, 160, "6620,6670,0.8"


def spex(*arguments):
    command = [pathlib.Path(os.environ["SPEXD_BIN"]) / "spex", *(str(argument) for argument in arguments)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


def simulate(folder, *arguments):
    spex("simulate", "--fibres", FIBRES, "--rows", ROWS, "--seed", 4, "--out-dir", folder, *arguments)


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """The plain scene: preproc-r0.fits, psf-r0.fits and, extracted from these, frame.fits."""
    folder = tmp_path_factory.mktemp("plain")
    simulate(folder)
    spex("-i", folder / "preproc-r0.fits", "-p", folder / "psf-r0.fits", "-o", folder / "frame.fits")
    return folder


@pytest.fixture(scope="module")
def field(tmp_path_factory):
    """Galaxies in two exposures: fiberflat-r0.fits; frame-N.fits, sky-N.fits and sframe-N.fits of each; coadd.fits."""
    folder = tmp_path_factory.mktemp("field")
    simulate(folder, "--sky-fibres", SKY_FIBRES, "--exposures", 2, "-w", GRID, "--rice")
    for number, image in enumerate(sorted(folder.glob("preproc-r0-*.fits"))):
        frame = folder / f"frame-{number}.fits"
        spex("-i", image, "-p", folder / "psf-r0.fits", "-w", GRID, "-o", frame)
        spex("analyse", frame, "--fiberflat", folder / "fiberflat-r0.fits", "--sky", folder / f"sky-{number}.fits",
             "--sframe", folder / f"sframe-{number}.fits")  # fmt: skip
    spex("coadd", folder / "sframe-0.fits", folder / "sframe-1.fits", "-o", folder / "coadd.fits")
    return folder


def read_frame(path):
    """Returns the frame as the pipeline reads it, and checks the keywords and columns that its steps need."""
    frame = io.read_frame(str(path))
    assert np.all(frame.fibermap["FIBERSTATUS"] == 0)
    assert frame.meta["FIBERMIN"] == frame.fibermap["FIBER"][0]
    assert all(frame.scores_comments.values()), frame.scores_comments
    return frame


@pytest.mark.parametrize("kind", ["plain", "field"])
def test_a_simulated_image_is_read(kind, request):
    paths = sorted(request.getfixturevalue(kind).glob("preproc-r0*.fits"))
    assert len(paths) == {"plain": 1, "field": 2}[kind]
    for path in paths:
        image = io.read_image(str(path))
        assert image.camera == "r0" and image.pix.shape == image.ivar.shape == image.mask.shape
        good = (image.mask == 0) & (image.ivar > 0)
        assert good.mean() > 0.9 and np.all(np.isfinite(image.pix[good])) and np.all(np.isfinite(image.ivar))
        assert len(io.read_fibermap(str(path))) == FIBRES


def test_a_frame_passes_from_fiberflat_to_coaddition(plain):
    frame = read_frame(plain / "frame.fits")
    flat = fiberflat.compute_fiberflat(frame)
    assert flat.fiberflat.shape == frame.flux.shape and np.all(np.isfinite(flat.fiberflat))

    model = sky.compute_sky(frame)
    assert np.all(np.isfinite(model.flux))
    sky.subtract_sky(frame, model)

    band = frame.meta["CAMERA"][0]
    fibermap = pixgroup.frames2spectra([pixgroup.FrameLite.read(str(plain / "frame.fits"))]).fibermap
    arrays = (frame.wave, frame.flux, frame.ivar, frame.mask, frame.resolution_data)
    spectra = Spectra([band], *({band: array} for array in arrays), fibermap)
    coaddition.coadd(spectra)
    assert spectra.num_spectra() == frame.nspec == FIBRES


def test_our_fiberflat_and_sky_give_our_spectra_in_the_pipeline(field):
    frame, ours = read_frame(field / "frame-0.fits"), io.read_frame(str(field / "sframe-0.fits"))
    model = io.read_sky(str(field / "sky-0.fits"))
    fiberflat.apply_fiberflat(frame, io.read_fiberflat(str(field / "fiberflat-r0.fits")))
    sky.subtract_sky(frame, model)
    good = (frame.mask == 0) & (ours.mask == 0) & (ours.ivar > 0)
    assert good.mean() > 0.9
    # Both correct the throughput only in sky lines: the pipeline in those of its list, spex in those that it finds.
    correction = np.abs(model.throughput_corrections - 1)[:, None] * np.abs(model.flux)
    limit = correction[good] + 1e-3 / np.sqrt(ours.ivar[good])
    assert np.all(np.abs(frame.flux - ours.flux)[good] <= limit)


def test_a_coadd_is_the_pipelines(field):
    paths = [str(field / f"sframe-{number}.fits") for number in (0, 1)]
    theirs = pixgroup.frames2spectra([pixgroup.FrameLite.read(path) for path in paths])
    coaddition.coadd(theirs, cosmics_nsig=0)
    ours = io.read_spectra(str(field / "coadd.fits"))
    order = {target: row for row, target in enumerate(theirs.fibermap["TARGETID"])}
    rows = [order[target] for target in ours.fibermap["TARGETID"]]  # ours has no sky fibres
    assert len(rows) == FIBRES - SKY_FIBRES
    nodata = np.where(theirs.ivar["r"][rows] == 0, 256, 0)  # only ours sets this bit
    np.testing.assert_array_equal(ours.mask["r"], theirs.mask["r"][rows] | nodata)
    np.testing.assert_allclose(ours.flux["r"], theirs.flux["r"][rows], rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(ours.ivar["r"], theirs.ivar["r"][rows], rtol=1e-6)


def test_a_coadd_of_several_cameras_is_read_by_the_pipeline(field, tmp_path):
    red, blue, coadd = field / "sframe-0.fits", tmp_path / "sframe-b0.fits", tmp_path / "coadd.fits"
    with fits.open(red) as hdus:  # the same exposure as another camera would have seen it
        hdus[0].header["CAMERA"] = "b0"
        hdus["WAVELENGTH"].data = hdus["WAVELENGTH"].data - 2000
        hdus.writeto(blue, checksum=True)
    spex("coadd", red, blue, "-o", coadd)
    spectra = io.read_spectra(str(coadd))
    assert spectra.bands == ["b", "r"]
    np.testing.assert_array_equal(spectra.flux["b"], spectra.flux["r"])
    np.testing.assert_array_equal(spectra.fibermap["COADD_NUMEXP"], 1)
    np.testing.assert_array_equal(spectra.exp_fibermap["TARGETID"], spectra.fibermap["TARGETID"])
    for column in ("MEDIAN_COADD_SNR_B", "MEDIAN_COADD_SNR_R", "MEDIAN_COADD_FLUX_B", "MEDIAN_COADD_FLUX_R"):
        assert np.all(np.isfinite(spectra.scores[column]))
    some = spectra.select(targets=spectra.fibermap["TARGETID"][:3])
    assert some.num_spectra() == len(some.scores["TARGETID"]) == len(some.exp_fibermap) == 3


def test_specter_evaluates_a_simulated_psf(plain):
    reader = pytest.importorskip("specter.psf", reason="needs DESI's specter, which is not on PyPI")
    psf = reader.load_psf(str(plain / "psf-r0.fits"))
    for fibre in range(psf.nspec):
        for wave in np.linspace(psf.wmin, psf.wmax, 7)[1:-1]:  # at the ends a part of the spot is outside of the image
            _, _, spot = psf.xypix(fibre, wave)
            assert np.all(np.isfinite(spot)) and abs(spot.sum() - 1) < 1e-3, (fibre, wave, spot.sum())
