"""Extraction by spexd in the real pipeline. Needs desispec and specter, which are large; skipped without them."""

import gzip
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
from astropy.io import fits
from conftest import run_spex

import spexd
import spexd.desispec

extract = pytest.importorskip("desispec.scripts.extract", reason="needs desispec and specter")
io = pytest.importorskip("desispec.io")
OWN = {name: getattr(extract, name) for name in ("parse", "main", "main_mpi", "main_gpu_specter")}
FIBRES, GRID = 25, "6600,6640,0.8"


@pytest.fixture
def in_place():
    """Makes the pipeline extract with spexd during the test."""
    with spexd.desispec.install():
        yield
    assert extract.main is OWN["main"]


def run(main, image, psf, output, *more):
    main(OWN["parse"](["-i", str(image), "-p", str(psf), "-o", str(output), *more]))
    return io.read_frame(str(output))


def test_a_frame_goes_from_extraction_to_sky_subtraction_and_coaddition(in_place, image, psf, tmp_path):
    from desispec import coaddition, fiberflat, pixgroup, sky
    from desispec.spectra import Spectra

    assert extract.main is not OWN["main"]
    path = tmp_path / "frame.fits"
    frame = run(extract.main, image, psf, path)
    want = spexd.extract(image, psf=psf)
    np.testing.assert_array_equal(frame.flux, want.flux)
    np.testing.assert_array_equal(frame.fibers, want.fibermap["FIBER"])
    assert np.isfinite(fiberflat.compute_fiberflat(frame).fiberflat).all()

    model = sky.compute_sky(frame)
    sky.subtract_sky(frame, model)
    good = (frame.mask == 0) & (frame.fibermap["OBJTYPE"] == "SKY")[:, None]
    pulls = (frame.flux * np.sqrt(frame.ivar))[good]
    assert abs(np.mean(pulls)) < 0.2 and 0.7 < np.std(pulls) < 1.3

    fibermap = pixgroup.frames2spectra([pixgroup.FrameLite.read(str(path))]).fibermap
    arrays = [{"r": array} for array in (frame.wave, frame.flux, frame.ivar, frame.mask, frame.resolution_data)]
    spectra = Spectra(["r"], *arrays, fibermap)
    coaddition.coadd(spectra)
    assert spectra.num_spectra() == frame.nspec


def test_a_bundle_is_what_the_pipelines_own_extractor_makes_of_it(in_place, image, psf, tmp_path):
    bundle = ["-n", str(FIBRES), "-w", GRID, "--psferr", "0.01"]
    own = run(OWN["main_mpi"], image, psf, tmp_path / "own.fits", *bundle)
    frame = run(extract.main_mpi, image, psf, tmp_path / "frame.fits", *bundle)
    good = (own.mask == 0) & (frame.mask == 0) & (own.ivar > 0)
    assert np.mean(good) > 0.9
    pulls = np.abs(frame.flux - own.flux)[good] * np.sqrt(own.ivar[good])
    print(f"pulls: median {np.median(pulls):.2g}, 99 % below {np.percentile(pulls, 99):.2g}, largest {pulls.max():.2g}")
    assert np.percentile(pulls, 99) < 0.01
    np.testing.assert_allclose(frame.ivar[good], own.ivar[good], rtol=0.01)
    np.testing.assert_array_equal(frame.wave, own.wave)


def test_the_files_of_both_have_the_same_hdus(in_place, image, psf, tmp_path):
    bundle = ["-n", "5", "-w", "6600,6610,0.8", "--bundlesize", "5", "--nsubbundles", "1"]
    paths = [tmp_path / name for name in ("own.fits", "frame.fits")]
    for main, path in zip((OWN["main_mpi"], extract.main_mpi), paths, strict=True):
        run(main, image, psf, path, *bundle)
    with fits.open(paths[0]) as own, fits.open(paths[1]) as frame:
        assert [hdu.name for hdu in frame] == [hdu.name for hdu in own]
        assert [hdu.header["BITPIX"] for hdu in frame] == [hdu.header["BITPIX"] for hdu in own]


RAW = {"OBSTYPE": "FLAT", "FLAVOR": "flat", "NIGHT": 20250101, "EXPID": 51060, "EXPTIME": 5.0, "MJD-OBS": 60676.0}
PROC = "import spexd.desispec.in_place, desispec.scripts.proc as proc; proc.main()"


@pytest.fixture
def production(tmp_path, monkeypatch):
    """Sets up a production of the pipeline with one exposure that waits for its extraction."""
    for name in ("DATA", "REDUX", "CALIB"):
        monkeypatch.setenv(f"DESI_SPECTRO_{name}", str(tmp_path / name.lower()))
    monkeypatch.setenv("DESI_ROOT", str(tmp_path))
    monkeypatch.setenv("SPECPROD", "test")
    run_spex("simulate", "--fibres", 50, "--out-dir", tmp_path)
    paths = [io.findfile(kind, RAW["NIGHT"], RAW["EXPID"], "r0") for kind in ("raw", "preproc", "psf")]
    for path in paths:
        os.makedirs(os.path.dirname(path))
    header, pixels = fits.Header(RAW), np.zeros((2, 2), np.int32)
    hdus = [fits.PrimaryHDU(), *(fits.ImageHDU(pixels, header, name=name) for name in ("SPEC", "R0"))]
    fits.HDUList(hdus).writeto(paths[0])
    with gzip.open(paths[1], "wb", 1) as file:
        file.write((tmp_path / "preproc-r0.fits").read_bytes())
    shutil.copy(tmp_path / "psf-r0.fits", paths[2])
    return paths


def test_desi_proc_runs_on_spexd_by_one_import(production):
    pytest.importorskip("mpi4py")
    mpiexec = shutil.which("mpiexec", path=f"{sys.prefix}/bin") or shutil.which("mpiexec")
    if mpiexec is None:
        pytest.skip("needs mpiexec")
    _, preproc, psf = production
    options = f"--mpi -n {RAW['NIGHT']} -e {RAW['EXPID']} --cameras r0 --psf {psf} --extract-subcomm-size 2"
    subprocess.run([mpiexec, "-n", "2", sys.executable, "-c", PROC, *options.split()], check=True)
    frame = io.read_frame(io.findfile("frame", RAW["NIGHT"], RAW["EXPID"], "r0"))
    want = spexd.extract(preproc, psf=psf, wavelength=(5760, 7620, 0.8), psferr=0.01)
    np.testing.assert_array_equal(frame.flux, want.flux)
    assert frame.meta["EXTRNAME"] == "spexd"
