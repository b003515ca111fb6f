"""The pipeline subtracts the sky of a frame with a real PSF equally whether spex or gpu_specter extracted it. Needs the
golden files ($SPEXD_GOLDENS; tests/parity/README.md); skipped without them, except if CI is set."""

import os
import pathlib

os.environ.setdefault("DESI_LOGLEVEL", "WARNING")

import numpy as np  # noqa: E402
import pytest  # noqa: E402
from astropy.io import fits  # noqa: E402
from desispec import io, sky  # noqa: E402
from desispec.frame import Frame  # noqa: E402
from test_pipeline_steps import spex  # noqa: E402

EXPOSURE = "r0-00051060"
BUNDLE, FIBRES = 10, 25


@pytest.fixture(scope="module")
def goldens():
    beside = pathlib.Path(__file__).parents[3].parent / "shared" / "data"
    folder = pathlib.Path(os.environ.get("SPEXD_GOLDENS", beside))
    if not folder.is_dir() and not os.environ.get("CI"):
        pytest.skip(f"golden files: no folder {folder}")
    return folder


@pytest.fixture(scope="module")
def ours(goldens, tmp_path_factory):
    """The bundle that spex extracts, as the pipeline reads it."""
    path = tmp_path_factory.mktemp("ours") / "frame.fits"
    inputs = ["-i", goldens / f"preproc-{EXPOSURE}.fits", "-p", goldens / f"psf-{EXPOSURE}.fits"]
    spex(*inputs, "-s", BUNDLE * FIBRES, "-n", FIBRES, "-w", "5760,7620,0.8", "-o", path)
    frame = io.read_frame(str(path))
    if "FIBERSTATUS" not in frame.fibermap.colnames:  # the image of the golden files lacks this column
        frame.fibermap["FIBERSTATUS"] = np.zeros(FIBRES, np.int32)
    return frame


@pytest.fixture(scope="module")
def peers(goldens, ours):
    """The same bundle extracted by gpu_specter."""
    with fits.open(goldens / f"peer-{EXPOSURE}-bundle{BUNDLE}.fits") as hdus:
        wave, flux, ivar, resolution, chi2pix, pixmask = (
            hdus[name].data.astype(np.float64)
            for name in ("WAVELENGTH", "FLUX", "IVAR", "RESOLUTION", "CHI2PIX", "PIXMASK")
        )
    np.testing.assert_allclose(wave, ours.wave, rtol=1e-12)
    mask = (pixmask > 0.5).astype(np.uint32)
    return Frame(wave, flux, ivar, mask, resolution, fibermap=ours.fibermap, meta=ours.meta, chi2pix=chi2pix)


def test_sky_subtraction_of_both_gives_the_same_spectra(ours, peers):
    good = (ours.mask == 0) & (peers.mask == 0) & (ours.ivar > 0) & (peers.ivar > 0)
    assert good.mean() > 0.99
    for frame in (ours, peers):
        model = sky.compute_sky(frame)
        assert np.isfinite(model.flux).all()
        sky.subtract_sky(frame, model)
    pulls = np.abs(ours.flux - peers.flux)[good] * np.sqrt(peers.ivar[good])
    assert np.percentile(pulls, 99) < 0.01 and np.percentile(pulls, 99.9) < 0.05
    of_sky = good & (ours.fibermap["OBJTYPE"] == "SKY")[:, None]
    residuals = (ours.flux * np.sqrt(ours.ivar))[of_sky]
    assert abs(residuals.mean()) < 0.1 and 0.5 < residuals.std() < 1.2  # the model is made from three fibres
