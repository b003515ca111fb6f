"""Extraction in this process."""

import concurrent.futures
import dataclasses
import inspect
import pathlib
import pickle
import re
import signal
import subprocess
import threading

import numpy as np
import pytest
from astropy.io import fits
from conftest import FIBRES, ROWS

import spexd
from spexd import _native
from spexd._job import OPTIONS, Spec, arrays_of

ARRAYS = ("flux", "ivar", "mask", "resolution", "chi2pix", "wave")


def assert_same(a, b):
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)


def planes(path):
    with fits.open(path) as hdus:
        return [hdus[name].data for name in ("IMAGE", "IVAR", "MASK")], hdus["IMAGE"].header


def test_paths_give_the_files_of_spex_to_the_byte(frames, image, psf, engine, tmp_path):
    frame = spexd.extract(image, psf=psf, model=True, engine=engine)
    frame.to_fits(tmp_path / "frame.fits", model=tmp_path / "model.fits")
    assert (tmp_path / "frame.fits").read_bytes() == (frames / "frame.fits").read_bytes()
    assert (tmp_path / "model.fits").read_bytes() == (frames / "model.fits").read_bytes()


def test_arrays_give_the_same_spectra_as_their_file(image, psf, engine):
    (pixels, ivar, mask), header = planes(image)
    frame = engine.extract(pixels, ivar, mask, spexd.Psf(psf), header=header, name="in memory", model=True)
    want = engine.extract(image, psf=psf, model=True)
    assert_same(frame, want)
    np.testing.assert_array_equal(frame.model, want.model)
    assert frame.header["IN_IMG"] == "in memory"
    assert frame.header["EXPTIME"] == want.header["EXPTIME"] == 1000.0
    assert frame.fibermap is None and want.fibermap["FIBER"].tolist() == list(range(FIBRES))


def test_without_a_mask_no_pixel_is_flagged(image, psf, engine):
    (pixels, ivar, mask), _ = planes(image)
    assert_same(engine.extract(pixels, ivar, None, psf), engine.extract(pixels, ivar, np.zeros_like(mask), psf))


@pytest.mark.parametrize("mask_type", [np.int32, np.uint32])
def test_the_package_copies_no_array_that_the_engine_can_read(mask_type):
    given = [np.arange(12, dtype=kind).reshape(3, 4) for kind in (np.float32, np.float32, mask_type)]
    given[2][1, 1] = np.array(2**31, np.uint32).astype(mask_type)
    arrays = arrays_of(*given, None)
    taken = [arrays.pixels, arrays.ivar, arrays.mask]
    assert all(np.shares_memory(theirs, ours) for theirs, ours in zip(given, taken, strict=True))
    assert arrays.mask.dtype == np.int32 and arrays.mask[1, 1] == -(2**31)


def test_pixels_that_masked_arrays_hide_have_no_weight(image, psf, engine):
    (pixels, ivar, mask), _ = planes(image)
    hidden = np.zeros(pixels.shape, bool)
    hidden[100:110, 5:12] = True
    want = engine.extract(pixels, np.where(hidden, 0, ivar), mask, psf)
    assert_same(engine.extract(np.ma.array(pixels, mask=hidden), ivar, mask, psf), want)
    assert_same(engine.extract(pixels, np.ma.array(ivar, mask=hidden), mask, psf), want)
    assert_same(engine.extract(pixels, ivar, np.ma.array(mask, mask=hidden), psf), want)


@pytest.mark.parametrize("kind", [">f4", "f8", ">f8", "strided"])
def test_arrays_of_other_layouts_give_the_same_spectra(image, psf, engine, kind):
    (pixels, ivar, mask), _ = planes(image)
    want = engine.extract(pixels, ivar, mask, psf)
    if kind == "strided":
        given = [np.repeat(a, 2, axis=1)[:, ::2] for a in (pixels, ivar, mask)]
    else:
        given = [pixels.astype(kind), ivar.astype(kind), mask.astype(np.int64)]
    assert_same(engine.extract(*given, psf), want)


def test_shapes_are_those_of_the_documentation(image, psf, engine):
    frame = engine.extract(image, psf=psf, wavelength=(6600, 6640, 0.8), first_fibre=13, fibre_count=19)
    bins = len(frame.wave)
    assert bins == 51 and frame.fibres == range(13, 32)
    assert frame.flux.shape == frame.ivar.shape == frame.mask.shape == frame.chi2pix.shape == (19, bins)
    assert frame.resolution.shape == (19, 11, bins)
    assert frame.model is None
    assert [a.dtype for a in (frame.flux, frame.mask, frame.wave)] == [np.float32, np.uint32, np.float64]
    counts = {"SUM_RAW_COUNT_R", "MEDIAN_RAW_COUNT_R", "MEDIAN_RAW_SNR_R"}
    assert set(frame.scores) == counts | {"MEDIAN_CHI2PIX_R", "OUTLIERS_CHI2PIX_R"}
    assert frame.scores["MEDIAN_CHI2PIX_R"][3] == pytest.approx(np.median(frame.chi2pix[3]))
    assert frame.job.engine.startswith("cpu") and frame.job.run_seconds >= frame.job.engine_seconds > 0


def test_a_grid_means_the_same_as_text_and_as_numbers(image, psf, engine):
    cut = {"psf": psf, "first_fibre": 3, "fibre_count": 2}
    assert_same(
        engine.extract(image, wavelength="6600,6610,0.8", **cut),
        engine.extract(image, wavelength=np.array([6600, 6610, 0.8]), **cut),
    )


def test_files_go_there_and_back(image, psf, engine, tmp_path):
    frame = engine.extract(image, psf=psf)
    frame.flux[0, 0] = 4711
    frame.to_fits(tmp_path / "a.fits.gz")
    again = spexd.Frame.from_fits(tmp_path / "a.fits.gz")
    assert_same(again, frame)
    assert again.flux[0, 0] == 4711 and again.first_fibre == 0 and dict(again.header) == dict(frame.header)
    for name, values in frame.scores.items():
        np.testing.assert_array_equal(again.scores[name], values)
    np.testing.assert_array_equal(again.fibermap, frame.fibermap)
    again.to_fits(tmp_path / "b.fits.gz")
    assert (tmp_path / "a.fits.gz").read_bytes() == (tmp_path / "b.fits.gz").read_bytes()


def test_fitsverify_finds_no_fault(image, psf, engine, tmp_path):
    engine.extract(image, psf=psf).to_fits(tmp_path / "frame.fits")
    result = subprocess.run(["fitsverify", tmp_path / "frame.fits"], capture_output=True, text=True, check=False)
    assert "0 warning(s) and 0 error(s)" in result.stdout, result.stdout


def test_a_frame_that_changed_its_shape_is_not_written(image, psf, engine, tmp_path):
    frame = engine.extract(image, psf=psf)
    frame.flux = frame.flux[:, 1:]
    with pytest.raises(spexd.InvalidArgumentError, match=r"flux has shape \(50, 252\)"):
        frame.to_fits(tmp_path / "frame.fits")
    assert not list(tmp_path.iterdir())


def test_the_resolution_matrix_is_the_band_that_the_array_holds(image, psf, engine):
    pytest.importorskip("scipy.sparse")
    frame = engine.extract(image, psf=psf)
    matrix = frame.resolution_matrix(2).toarray()
    assert matrix[103, 100] == frame.resolution[2, 3 + 5, 100]
    assert matrix[98, 100] == frame.resolution[2, -2 + 5, 100]
    assert np.allclose(matrix[:, 20:-20].sum(axis=0), 1, atol=0.2)


def test_pictures_and_summaries_name_what_they_show(image, psf, engine):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    frame = engine.extract(image, psf=psf)
    axes = frame.plot([13, 14])
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["fibre 13", "fibre 14"]
    assert "fibres 0 to 49" in repr(frame)
    assert "<td>0 to 49</td>" in frame._repr_html_()
    with pytest.raises(spexd.InvalidArgumentError, match="fibre 50: the frame has fibres 0 to 49"):
        frame.plot([50])


def test_options_and_their_defaults_are_those_of_the_table():
    defaults = _native.Spec()
    table = {option.name: getattr(defaults, option.name) for option in OPTIONS}
    assert {field.name: field.default for field in dataclasses.fields(Spec)} == table
    parameters = inspect.signature(spexd.Engine.extract).parameters
    for option in OPTIONS:
        assert option.for_server_only or parameters[option.name].default == table[option.name]
        assert option.for_server_only or f"{option.name}: " in spexd.extract.__doc__


def test_none_is_the_default_of_every_option():
    spec = Spec(**{option.name: None for option in OPTIONS}).native()
    for option in OPTIONS:
        assert getattr(spec, option.name) == getattr(Spec().native(), option.name), option.name


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"psferr": -1}, spexd.InvalidArgumentError, "psferr is -1, must be 0 to 1000"),
        ({"wavelength": "1,2"}, spexd.InvalidArgumentError, 'wavelength grid "1,2"'),
        ({"wavelength": (1, 2)}, spexd.InvalidArgumentError, "wavelength has 2 values"),
        ({"first_fibre": 99}, spexd.InvalidArgumentError, "first fibre 99"),
        ({"fibre_count": 2**40}, spexd.InvalidArgumentError, "fibre_count is 1099511627776, must be 1 to 20000"),
        ({"first_fibre": 3.5}, spexd.InvalidArgumentError, "first_fibre is 3.5, must be a whole number"),
        ({"psferr": "small"}, spexd.InvalidArgumentError, "psferr is 'small', must be a number"),
        ({"wavelength": ("a", 2, 3)}, spexd.InvalidArgumentError, "wavelength is .* must be"),
        ({"timeout": -1}, spexd.InvalidArgumentError, "timeout is -1"),
        ({"timeout": 1e-6}, spexd.DeadlineExceededError, "timeout of 1e-06 s"),
        ({"psf": "missing.fits"}, spexd.NotFoundError, "missing.fits"),
        ({"psf": None}, spexd.InvalidArgumentError, "psf is missing"),
        ({"fibermap": "missing.fits"}, spexd.NotFoundError, "missing.fits"),
        ({"mask": np.zeros((2, 2))}, spexd.InvalidArgumentError, "image is a path"),
    ],
)
def test_bad_input_is_an_error_that_names_it(image, psf, engine, options, error, message):
    with pytest.raises(error, match=message) as caught:
        engine.extract(image, **{"psf": psf, **options})
    assert isinstance(caught.value, spexd.SpexdError)
    assert caught.value.code == error.code


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ivar": None}, "ivar is missing"),
        ({"ivar": np.ones((3, 3), np.float32)}, r"ivar has shape \(3, 3\), the image has"),
        ({"image": np.ones(3)}, r"image has shape \(3,\), must be \[row, column\]"),
        ({"image": np.full((ROWS, 20), "x")}, "image has type <U1"),
        ({"mask": np.ones((ROWS, 20))}, "mask has type float64"),
        ({"mask": np.full((ROWS, 20), 2**32)}, "mask has bits beyond the 32 of int32"),
        ({"header": {"TOOLONGAKEY": 1}}, "header keyword 'TOOLONGAKEY'"),
        ({}, "image array has 400 x 20 pixels"),
    ],
)
def test_bad_arrays_are_an_error_that_names_them(psf, engine, change, message):
    arrays = {"image": np.ones((ROWS, 20), np.float32), "ivar": np.ones((ROWS, 20), np.float32)}
    with pytest.raises(spexd.InvalidArgumentError, match=message):
        engine.extract(**{**arrays, **change}, psf=psf)


def test_an_engine_that_is_not_to_be_had_says_why(monkeypatch):
    monkeypatch.setenv("SPEXD_CUDA_MODULE", "/nowhere/libspexd_cuda.so")
    with pytest.raises(spexd.FailedPreconditionError, match="/nowhere/libspexd_cuda.so"):
        spexd.Engine("cuda")
    assert "/nowhere" in spexd.Engine("auto", threads=1).note
    with pytest.raises(spexd.InvalidArgumentError, match="tpu"):
        spexd.Engine("tpu")


def test_the_cuda_engine_is_looked_for_beside_the_package(monkeypatch):
    monkeypatch.delenv("SPEXD_CUDA_MODULE", raising=False)
    package = pathlib.Path(spexd.__file__).resolve().parent
    if list(package.parent.rglob("libspexd_cuda.so")):
        pytest.skip("it is installed")
    with pytest.raises(spexd.FailedPreconditionError, match=re.escape(str(package))) as refused:
        spexd.Engine("cuda")
    assert "install spexd-cuda" in str(refused.value)


def test_threads_share_an_engine(image, psf, engine):
    want = engine.extract(image, psf=psf)
    shared = spexd.Psf(psf)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for frame in pool.map(lambda _: engine.extract(image, psf=shared), range(8)):
            assert_same(frame, want)


def test_python_goes_on_while_a_job_runs(image, psf, engine):
    """The job waits for another thread, which can run only if the job does not hold the GIL."""
    under_way, gone_on = threading.Event(), threading.Event()

    def other():
        under_way.wait(60)
        gone_on.set()

    thread = threading.Thread(target=other)
    thread.start()
    waited = []
    engine.extract(image, psf=psf, progress=lambda done, total: (under_way.set(), waited.append(gone_on.wait(60))))
    thread.join()
    assert all(waited)


def test_ctrl_c_stops_a_job(image, psf, engine):
    seen, bundles = threading.Event(), []

    def handler(number, frame):
        seen.set()
        raise KeyboardInterrupt

    def on_bundle(done, total):
        bundles.append((done, total))
        if done == 1:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
            seen.wait(60)

    before = signal.signal(signal.SIGINT, handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            engine.extract(image, psf=psf, bundle_size=1, progress=on_bundle)
    finally:
        signal.signal(signal.SIGINT, before)
    assert bundles[-1][0] < bundles[-1][1] == FIBRES
    assert len(engine.extract(image, psf=psf).flux) == FIBRES  # the engine still works


def test_what_a_progress_function_raises_ends_the_job(image, psf, engine):
    def refuse(done, total):
        raise RuntimeError(f"no more than {done} of {total}")

    with pytest.raises(RuntimeError, match="no more than 1 of 2"):
        engine.extract(image, psf=psf, progress=refuse)


def test_a_bar_shows_bundles(image, psf, engine, capsys):
    pytest.importorskip("tqdm")
    engine.extract(image, psf=psf, progress=True)
    assert "2/2" in capsys.readouterr().err


def test_the_default_engine_is_made_once():
    assert spexd.default_engine() is spexd.default_engine()


def test_arrays_outlive_their_frame(image, psf, engine):
    flux = engine.extract(image, psf=psf).flux
    assert np.isfinite(flux).all()


def test_a_frame_goes_through_pickle_without_loss(image, psf, engine, tmp_path):
    frame = pickle.loads(pickle.dumps(engine.extract(image, psf=psf, model=True)))
    frame.to_fits(tmp_path / "frame.fits", model=tmp_path / "model.fits")
    engine.extract(image, psf=psf, model=True).to_fits(tmp_path / "a.fits", model=tmp_path / "m.fits")
    assert (tmp_path / "frame.fits").read_bytes() == (tmp_path / "a.fits").read_bytes()
    assert (tmp_path / "model.fits").read_bytes() == (tmp_path / "m.fits").read_bytes()
    with pytest.raises(TypeError):
        frame.header["EXPTIME"] = 0


def test_warnings_about_the_inputs_come_with_the_frame(image, psf, engine):
    (pixels, ivar, mask), _ = planes(image)
    ivar = ivar.copy()
    ivar[200, 100:103] = -1
    frame = engine.extract(pixels, ivar, mask, psf, name="in memory")
    assert [warning.split(" pixels")[0] for warning in frame.warnings] == ["in memory: 3"]
    assert engine.extract(image, psf=psf).warnings == ()


def cards_of_file(path):
    """Returns the keywords and values of HDU FLUX as astropy reads them."""
    with fits.open(path) as hdus:
        header = hdus["FLUX"].header
    cards = {key: header[key] for key in header if key not in ("", "CHECKSUM", "DATASUM", "COMMENT", "HISTORY")}
    return {**cards, **{key: tuple(header[key]) for key in ("COMMENT", "HISTORY") if key in header}}


def test_the_header_has_all_cards_of_the_file(image, psf, engine, tmp_path):
    long = "a long name, isn't it? " * 9
    header = fits.Header({"EXPTIME": 900.5, "LONGTEXT": long.strip(), "FLAG": True, "EMPTY": None, "CAMERA": "r0"})
    header["HISTORY"] = "first line"
    header["HISTORY"] = "second line"
    (pixels, ivar, mask), _ = planes(image)
    frame = engine.extract(pixels, ivar, mask, psf, header=header, first_fibre=13, fibre_count=4)
    frame.to_fits(tmp_path / "frame.fits")
    want = cards_of_file(tmp_path / "frame.fits")
    assert want["LONGTEXT"] == long.strip() and want["HISTORY"] == ("first line", "second line")
    assert want["NSPEC"] == 4 and want["SPECMIN"] == 13 and want["BUNIT"] == "electron/Angstrom"
    assert {key: None if value == fits.card.UNDEFINED else value for key, value in want.items()} == frame.header
    assert dict(spexd.Frame.from_fits(tmp_path / "frame.fits").header) == frame.header
    assert fits.Header.fromstring("".join(frame.cards)).comments["NSPEC"] == "number of spectra"


def test_a_header_can_be_given_to_the_next_job(image, psf, engine, tmp_path):
    (pixels, ivar, mask), _ = planes(image)
    texts = {"LONGTEXT": "it's " * 40 + "long", "HISTORY": ("one", "two"), "EMPTY": None, "QUOTES": "'" * 67}
    cut = {"psf": psf, "fibre_count": 3, "name": "in memory"}
    first = engine.extract(pixels, ivar, mask, header=texts, **cut)
    again = engine.extract(pixels, ivar, mask, header=first.header, **cut)
    assert {key: first.header[key] for key in texts} == texts
    assert dict(again.header) == dict(first.header)


@pytest.mark.parametrize(
    ("card", "message"),
    [
        ({"A": "x" * 1001}, "header keyword A is 'xxx.* at most 1000 characters"),
        ({"COMMENT": ("x" * 73,)}, "header keyword COMMENT is 'xxx.* at most 72 characters"),
        ({"A": "tab\t"}, "printable ASCII"),
        ({"A": [1]}, "header keyword A is a list"),
        ({"A": float("nan")}, "header keyword A is nan"),
    ],
)
def test_a_header_that_fits_cannot_hold_is_an_error(image, psf, engine, card, message):
    (pixels, ivar, mask), _ = planes(image)
    with pytest.raises(spexd.InvalidArgumentError, match=message):
        engine.extract(pixels, ivar, mask, psf, header=card)
