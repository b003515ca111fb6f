"""Runs the examples: the notebook from its first cell to its last, the components of the sky's residuals, and the
PSF of one's own instrument."""

import importlib.util
import pathlib

import numpy as np
import pytest
from conftest import run_spex

EXAMPLES = pathlib.Path(__file__).parents[2] / "python" / "examples"
NOTEBOOK = EXAMPLES / "first_steps.ipynb"


def test_the_example_notebook_runs(frames, server, tmp_path, monkeypatch):
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    monkeypatch.setenv("SPEXD_EXAMPLE_FOLDER", str(frames))
    monkeypatch.setenv("SPEXD_SERVER", server.address)
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = {k: cell.outputs for k, cell in enumerate(notebook.cells) if cell.cell_type == "code"}
    assert any("image/png" in output.get("data", {}) for output in outputs[4])
    assert any("spexd.Frame" in output.get("data", {}).get("text/html", "") for output in outputs[3])
    scatter = float(outputs[8][0]["data"]["text/plain"].strip("'"))
    assert 0.8 < scatter < 1.2
    assert "1 of 1 bundles" in outputs[12][0]["text"]


def load(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def in_situ():
    return load("in_situ")


def test_components_of_successive_frames_are_drawn(in_situ, tmp_path, monkeypatch, capsys):
    image = pytest.importorskip("matplotlib.image")
    monkeypatch.setattr(in_situ, "choose", lambda: (in_situ.spexd.Engine("cpu"), np))
    frames = []
    for seed in (1, 2, 3):
        folder = tmp_path / str(seed)
        run_spex("simulate", "--fibres", 30, "--rows", 200, "--seed", seed, "--out-dir", folder)
        frames.append(str(folder / "preproc-r0.fits"))
    picture = tmp_path / "components.png"
    in_situ.main([str(tmp_path / "1" / "psf-r0.fits"), *frames, "-o", str(picture)])
    assert capsys.readouterr().out.endswith("snapshots of 3 frames, by numpy\n")
    pixels = np.rint(255 * image.imread(picture)[..., :3]).astype(int).reshape(-1, 3)
    first, second = (31, 119, 180), (255, 127, 14)  # matplotlib's C0 and C1
    assert {first, second} <= set(map(tuple, pixels)), "the first two components"


def test_a_pattern_in_the_snapshots_is_the_first_component(in_situ):
    random = np.random.default_rng(8)
    wave = np.arange(300)
    pattern = np.exp(-0.5 * ((wave - 120) / 4) ** 2)
    snapshots = random.normal(size=(200, 300)) + 3 * random.normal(size=(200, 1)) * pattern
    variances, vectors = in_situ.components_of(snapshots, np)
    assert variances[0] > 2 * (1 + np.sqrt(300 / 200)) ** 2 > variances[1]
    assert vectors[0] @ pattern / np.linalg.norm(pattern) > 0.97


def test_residuals_of_a_frame_have_the_errors_that_they_are_said_to_have(in_situ, frames):
    frame = in_situ.spexd.Frame.from_fits(frames / "frame.fits")
    snapshots = in_situ.snapshots_of(frame, np)
    assert len(snapshots) == len(frame.sky().sky_fibres)
    assert 0.9 < np.std(snapshots[:, 8:-8]) < 1.1


@pytest.fixture
def own_instrument(monkeypatch):
    """Runs the example with few rays."""
    module = load("own_instrument")
    monkeypatch.setattr(module, "RAYS", 5000)
    return module


def test_an_own_instrument_has_a_psf_and_a_picture(own_instrument, tmp_path, capsys):
    image = pytest.importorskip("matplotlib.image")
    own_instrument.main([str(tmp_path / "own.fits"), "--picture", str(tmp_path / "own.png")])
    assert capsys.readouterr().out == f"<spexd.Psf {tmp_path / 'own.fits'}: 40 fibres, CCD 512 x 400>\n"
    assert len(np.unique(image.imread(tmp_path / "own.png").reshape(-1, 4), axis=0)) > 100


def test_frames_drawn_through_an_own_psf_have_their_true_spectra(own_instrument, engine, tmp_path):
    psf, image, frame, truth = (tmp_path / name for name in ("own.fits", "preproc-r0.fits", "frame.fits", "truth-r0.fits"))
    own_instrument.main([str(psf)])
    run_spex("simulate", "--psf", psf, "--out-dir", tmp_path)
    engine.extract(image, psf=psf, wavelength=(15430, 15780, 1), bundle_size=10).to_fits(frame)
    run_spex("compare", frame, "--truth", truth, "--truth-sigma-range", "0.95,1.05")
