"""Coadds and components of sky residuals equal those of spex coadd and spex pca."""

import numpy as np
import pytest
from conftest import run_spex

import spexd

fits = pytest.importorskip("astropy.io.fits")


@pytest.fixture(scope="module")
def exposures(frames, tmp_path_factory):
    """Returns the paths of three frames of one field, each with its own noise."""
    folder = tmp_path_factory.mktemp("exposures")
    random = np.random.default_rng(6)
    paths = []
    for number in range(3):
        frame = spexd.Frame.from_fits(frames / "frame.fits")
        sigma = np.where(frame.ivar > 0, 1 / np.sqrt(np.where(frame.ivar > 0, frame.ivar, 1)), 0)
        frame.flux += random.normal(size=frame.flux.shape).astype(np.float32) * sigma
        frame.ivar /= 2
        frame.mask[3, 20 + number : 24] |= spexd.NODATA
        paths.append(folder / f"frame-{number}.fits")
        frame.to_fits(paths[-1])
        fits.setval(paths[-1], "EXPID", value=number)
    return paths


def test_a_coadd_is_that_of_spex_to_the_byte(exposures, tmp_path):
    run_spex("coadd", *exposures, "-o", tmp_path / "spex.fits")
    first, *others = exposures
    coadd = spexd.coadd([spexd.Frame.from_fits(first), *others])
    coadd.to_fits(tmp_path / "python.fits")
    assert (tmp_path / "python.fits").read_bytes() == (tmp_path / "spex.fits").read_bytes()
    with fits.open(tmp_path / "spex.fits") as hdus:
        np.testing.assert_array_equal(coadd.frame.flux, hdus["R_FLUX"].data)
        np.testing.assert_array_equal(coadd.frame.wave, hdus["R_WAVELENGTH"].data)
        np.testing.assert_array_equal(coadd.target_ids, hdus["FIBERMAP"].data["TARGETID"])
        np.testing.assert_array_equal(coadd.frame.fibermap["COADD_NUMEXP"], coadd.exposures)
        np.testing.assert_array_equal(hdus["SCORES"].data["TARGETID"], coadd.target_ids)
        good = (coadd.frame.ivar[0] > 0) & (coadd.frame.mask[0] == 0)
        snr = coadd.frame.flux[0].astype(float) * np.sqrt(coadd.frame.ivar[0].astype(float))
        assert hdus["SCORES"].data["MEDIAN_COADD_SNR_R"][0] == pytest.approx(np.median(snr[good]), rel=1e-12)
    assert (coadd.exposures == 3).all()
    assert repr(coadd) == f"<spexd.Coadd of {len(coadd.target_ids)} targets, {len(coadd.frame.wave)} bins>"


def test_frames_of_several_cameras_become_arms(exposures, tmp_path):
    blue = tmp_path / "frame-b.fits"
    blue.write_bytes(exposures[0].read_bytes())
    fits.setval(blue, "CAMERA", value="b0")
    run_spex("coadd", *exposures, blue, "-o", tmp_path / "spex.fits")
    coadd = spexd.coadd([*exposures, blue])
    coadd.to_fits(tmp_path / "python.fits")
    assert (tmp_path / "python.fits").read_bytes() == (tmp_path / "spex.fits").read_bytes()
    assert set(coadd.arms) == {"B", "R"}
    assert (coadd.exposures == 3).all()  # the two cameras of exposure 0 count once
    np.testing.assert_array_equal(coadd.arms["R"].flux, spexd.coadd(exposures).frame.flux)
    np.testing.assert_array_equal(coadd.arms["B"].flux, spexd.coadd([blue]).frame.flux)
    np.testing.assert_array_equal(coadd.exposure_map["EXPID"].reshape(-1, 3), [[0, 1, 2]] * len(coadd.target_ids))
    bins = len(coadd.arms["R"].wave)
    assert f" targets, R: {bins} bins, B: {bins} bins>" in repr(coadd)  # of one grid: in the order of the frames
    with pytest.raises(spexd.InvalidArgumentError, match="the coadd has the arms R, B; take one of Coadd.arms"):
        _ = coadd.frame
    coadd.arms["Q"] = coadd.arms.pop("B")
    with pytest.raises(spexd.InvalidArgumentError, match="arm 'Q', must be B, R or Z"):
        coadd.to_fits(tmp_path / "coadd.fits")


def test_an_exposure_is_added_once(exposures):
    with pytest.raises(spexd.InvalidArgumentError, match="frame-0.fits: exposure 0 of camera r0 is in the coadd"):
        spexd.coadd([*exposures, exposures[0]])


def test_a_coadd_of_shifted_exposures_is_that_of_spex_to_the_byte(exposures, tmp_path):
    run_spex("coadd", *exposures, "--velocities=0,17,-23", "-o", tmp_path / "spex.fits")
    spexd.coadd(exposures, velocities=[0, 17, -23], threads=1).to_fits(tmp_path / "python.fits")
    assert (tmp_path / "python.fits").read_bytes() == (tmp_path / "spex.fits").read_bytes()


def test_a_coadd_is_written_as_it_is(exposures, tmp_path):
    coadd = spexd.coadd(exposures)
    coadd.frame.flux[2, 7] = 123
    coadd.to_fits(tmp_path / "coadd.fits")
    assert fits.getdata(tmp_path / "coadd.fits", "R_FLUX")[2, 7] == 123
    coadd.target_ids = coadd.target_ids[1:]
    with pytest.raises(spexd.InvalidArgumentError, match="target_ids has"):
        coadd.to_fits(tmp_path / "coadd.fits")


def test_components_are_those_of_spex_to_the_byte(exposures, tmp_path):
    flat = np.random.default_rng(3).uniform(0.9, 1.1, spexd.Frame.from_fits(exposures[0]).flux.shape)
    fits.HDUList([fits.PrimaryHDU(), fits.ImageHDU(flat, name="FIBERFLAT")]).writeto(tmp_path / "flat.fits")
    options = ["--components", 4, "--forget", 0.9, "--clip", 8, "--fiberflat", tmp_path / "flat.fits"]
    run_spex("pca", *exposures, *options, "-o", tmp_path / "spex.fits")
    pca = spexd.pca(exposures, components=4, forget=0.9, clip=8, fiberflat=flat, threads=1)
    pca.to_fits(tmp_path / "python.fits")
    assert (tmp_path / "python.fits").read_bytes() == (tmp_path / "spex.fits").read_bytes()
    with fits.open(tmp_path / "spex.fits") as hdus:
        np.testing.assert_array_equal(pca.vectors, hdus["EIGENVECTORS"].data)
        np.testing.assert_array_equal(pca.mean, hdus["MEAN"].data)
        np.testing.assert_array_equal(pca.wave, hdus["WAVELENGTH"].data)
        np.testing.assert_array_equal(pca.amplitudes, hdus["AMPLITUDE"].data)
        np.testing.assert_array_equal(pca.variances, hdus["COMPONENTS"].data["VARIANCE"])
        np.testing.assert_array_equal(pca.spectra, hdus["FRAMES"].data["SPECTRA"])
        assert pca.noise_edge == pytest.approx(hdus["EIGENVECTORS"].header["NOISEVAR"], rel=1e-12)
    assert repr(pca).startswith("<spexd.SkyPca: 4 components of ") and " of 3 frames, " in repr(pca)


def snapshots_of(frame):
    """Returns the clipped pulls [fibre, bin] of the sky fibres; their errors are reduced by what the fit absorbed."""
    sky = frame.sky()
    rows = np.array(sky.sky_fibres)
    flux, ivar, of_model = frame.flux[rows], frame.ivar[rows].astype(float), sky.statistical_ivar[rows]
    good = (frame.mask[rows] == 0) & (ivar > 0) & (of_model > ivar) & (sky.mask[rows] == 0)
    variance = 1 / np.where(good, ivar, 1) - 1 / np.where(good, of_model, 2)
    pulls = np.where(good, (flux - sky.model[rows]) / np.sqrt(variance), 0)
    return np.clip(pulls, -5, 5)[good.mean(axis=1) > 0.8]


def test_components_are_those_of_a_full_decomposition_of_the_same_frames(exposures):
    pca = spexd.pca(exposures, components=6)
    snapshots = np.concatenate([snapshots_of(spexd.Frame.from_fits(path)) for path in exposures])
    assert len(snapshots) == pca.spectra.sum() > 10
    mean = snapshots.mean(axis=0)
    _, values, vectors = np.linalg.svd(snapshots - mean, full_matrices=False)
    np.testing.assert_allclose(pca.mean, mean, atol=1e-12)
    np.testing.assert_allclose(pca.variances, values[:6] ** 2 / len(snapshots), rtol=1e-10)
    np.testing.assert_allclose(np.abs(np.sum(pca.vectors * vectors[:6], axis=1)), 1, atol=1e-9)
    ends = np.cumsum(pca.spectra)
    amplitudes = (snapshots - mean) @ pca.vectors.T
    for frame, (first, last) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
        rms = np.sqrt(np.mean(amplitudes[first:last] ** 2, axis=0))
        np.testing.assert_allclose(pca.amplitudes[frame], rms, rtol=1e-5)  # the series is kept in float32


def test_the_full_spectrum_of_variances_is_that_of_the_decomposition(exposures):
    snapshots = np.concatenate([snapshots_of(spexd.Frame.from_fits(path)) for path in exposures])
    bins = snapshots.shape[1]
    values = np.linalg.svd(snapshots - snapshots.mean(axis=0), compute_uv=False) ** 2 / len(snapshots)
    pca = spexd.pca(exposures, components=bins)
    expected = np.concatenate([values, np.zeros(bins - len(values))])  # there are fewer spectra than wavelengths
    np.testing.assert_allclose(pca.variances, expected, atol=1e-11 * values[0])
    np.testing.assert_allclose(pca.vectors @ pca.vectors.T, np.eye(bins), atol=1e-10)
    with pytest.raises(spexd.InvalidArgumentError, match=f"components: {bins + 1}, must be 1 to {bins}"):
        spexd.pca(exposures, components=bins + 1)


def test_what_is_wrong_is_named(exposures, image, psf, engine, tmp_path):
    part = engine.extract(image, psf=psf, wavelength=(6600, 6620, 0.8))
    part.to_fits(tmp_path / "part.fits")
    for add in (spexd.coadd, spexd.pca):
        with pytest.raises(spexd.InvalidArgumentError, match=r"part\.fits: .*grid"):
            add([exposures[0], tmp_path / "part.fits"])
        with pytest.raises(spexd.InvalidArgumentError, match="frame 1: .*grid"):
            add([exposures[0], part])
        with pytest.raises(spexd.InvalidArgumentError, match="no frames|no targets"):
            add([])
        with pytest.raises(spexd.InvalidArgumentError, match="frames must be a list"):
            add(str(exposures[0]))
        with pytest.raises(spexd.InvalidArgumentError, match="threads is -1"):
            add(exposures, threads=-1)
        with pytest.raises(spexd.NotFoundError, match="nowhere"):
            add([tmp_path / "nowhere.fits"])
    with pytest.raises(spexd.InvalidArgumentError, match="velocities: there are 2 for 3 frames"):
        spexd.coadd(exposures, velocities=[0, 17])
    with pytest.raises(spexd.InvalidArgumentError, match="exclude each other"):
        spexd.coadd(exposures, velocities=[0, 17, -23], barycentric=True)
    with pytest.raises(spexd.InvalidArgumentError, match="forget is 0, must be 0.01 to 1"):
        spexd.pca(exposures, forget=0)
    with pytest.raises(spexd.InvalidArgumentError, match="clip is 0.5, must be 1 to 1e"):
        spexd.pca(exposures, clip=0.5)
    with pytest.raises(spexd.InvalidArgumentError, match="fiberflat has shape"):
        spexd.pca(exposures, fiberflat=np.ones(3))
    with pytest.raises(spexd.InvalidArgumentError, match="components"):
        spexd.pca(exposures, components=0)
