"""Trace shifts measured in frames relative to PSFs with displaced traces."""

import hashlib
import pickle
import sys

import numpy as np
import pytest
from astropy.io import fits
from conftest import FIBRES, run_spex
from numpy.polynomial import legendre

import spexd
from spexd import desispec
from spexd._job import Spec

CX, CY = np.array([[-0.30, 0.02], [0.05, 0.0]]), np.array([[0.20]])  # offsets of the stale PSF
ARRAYS = ("flux", "ivar", "mask", "resolution", "chi2pix", "wave")


def assert_same(a, b):
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)


@pytest.fixture(scope="module")
def stale(frames):
    """Returns the path of a PSF from which the frame's traces are displaced by about -CX and -CY."""
    path = frames / "psf-stale.fits"
    with fits.open(frames / "psf-r0.fits") as hdus:
        u = 2 * legendre.legval(0, hdus["XTRACE"].data.T) / (hdus["PSF"].header["NPIX_X"] - 1) - 1
        for name, series in ("XTRACE", CX), ("YTRACE", CY):
            hdus[name].data[:, : series.shape[1]] += legendre.legvander(u, series.shape[0] - 1) @ series
        hdus.writeto(path)
    return path


@pytest.fixture(scope="module")
def reference(frames):
    """Returns the path of the sky's spectrum."""
    path = frames / "sky.dat"
    with fits.open(frames / "truth-r0.fits") as truth, fits.open(frames / "preproc-r0.fits") as frame:
        spectrum = np.median(truth["FLUX"].data[frame["FIBERMAP"].data["OBJTYPE"] == "SKY"], axis=0)
        np.savetxt(path, np.stack([truth["WAVELENGTH"].data, spectrum], axis=1))
    return path


@pytest.fixture(scope="module")
def shifts(frames, stale, reference):
    return spexd.trace_shifts(frames / "preproc-r0.fits", psf=stale, reference=reference)


@pytest.fixture(scope="module")
def frame(frames, stale, reference, engine):
    return engine.extract(frames / "preproc-r0.fits", psf=stale, trace_shifts="auto", trace_reference=reference)


def planes(path):
    with fits.open(path) as hdus:
        return [hdus[name].data for name in ("IMAGE", "IVAR", "MASK")], hdus["IMAGE"].header


def true_shifts(frames, stale, name):
    """Returns the shifts [fibre, wavelength] in pixels at 41 wavelengths, and these wavelengths."""
    with fits.open(frames / "psf-r0.fits") as true, fits.open(stale) as off:
        t, header = np.linspace(-1, 1, 41), true[name].header
        values = legendre.legval(t, (true[name].data - off[name].data).T)
        return values, header["WAVEMIN"] + (t + 1) / 2 * (header["WAVEMAX"] - header["WAVEMIN"])


def test_shifts_are_those_of_the_traces(frames, stale, shifts):
    fibres = np.arange(FIBRES)[:, None]
    dx, wave = true_shifts(frames, stale, "XTRACE")
    dy, _ = true_shifts(frames, stale, "YTRACE")
    assert np.sqrt(np.mean((shifts.dx(fibres, wave) - dx) ** 2)) < 0.01
    assert np.sqrt(np.mean((shifts.dy(fibres, wave) - dy) ** 2)) < 0.03
    assert shifts.moved and shifts.status_x == "ok" and shifts.status_y in ("ok", "weak") and shifts.reason == ""
    assert shifts.cx.shape == (3, 3) and shifts.cy.shape == (3, 2) and len(shifts.u) == FIBRES
    assert shifts.x.covariance.shape == (3, 3, 3, 3) and 0 < shifts.x.error < 0.1
    assert shifts.x.min <= shifts.x.mean <= shifts.x.max and shifts.x.used > 100


def test_a_shift_is_the_series_at_a_fibre_and_a_wavelength(shifts):
    first, last = shifts.wavelength
    t = 2 * (6600 - first) / (last - first) - 1
    assert shifts.dx(7, 6600.0) == pytest.approx(legendre.legval2d(shifts.u[7], t, shifts.cx))
    assert shifts.dy(np.arange(3)[:, None], np.array([6600.0, 6700.0])).shape == (3, 2)
    with pytest.raises(IndexError, match=f"the shifts are of fibres 0 to {FIBRES - 1}"):
        shifts.dx(FIBRES, 6600.0)


def test_a_frame_has_the_shifts_that_are_measured_without_extraction(frame, shifts, reference):
    measured = frame.trace_shifts
    np.testing.assert_array_equal(measured.cx, shifts.cx)
    np.testing.assert_array_equal(measured.cy, shifts.cy)
    np.testing.assert_array_equal(measured.u, shifts.u)
    assert measured.reference == shifts.reference == str(reference)
    assert frame.header["MEANDX"] == pytest.approx(shifts.x.mean) and frame.header["TSSTATX"] == "ok"
    assert frame.job.stages["traces"] > 0 and frame.warnings == ()
    assert repr(measured) == repr(shifts) and "x ok +0." in repr(shifts)


def test_arrays_give_the_shifts_of_their_file(frames, stale, reference, shifts, frame, engine):
    (pixels, ivar, mask), header = planes(frames / "preproc-r0.fits")
    psf = spexd.Psf(stale)
    again = spexd.trace_shifts(pixels, ivar, mask, psf, reference=reference, header=header, threads=1)
    np.testing.assert_array_equal(again.cx, shifts.cx)
    np.testing.assert_array_equal(again.cy, shifts.cy)
    options = {"trace_shifts": "xy", "trace_reference": reference}
    assert_same(engine.extract(pixels, ivar, mask, psf, header=header, **options), frame)


def test_extraction_with_shifts_is_extraction_with_a_shifted_psf_to_the_bit(frames, stale, frame, shifts, engine, tmp_path):
    psf = spexd.Psf(stale)
    assert_same(engine.extract(frames / "preproc-r0.fits", psf=psf.shifted(shifts.cx, shifts.cy)), frame)
    spexd.write_shifted_psf(stale, frame.trace_shifts, tmp_path / "psf.fits", image="the image")
    assert_same(engine.extract(frames / "preproc-r0.fits", psf=tmp_path / "psf.fits"), frame)
    with fits.open(tmp_path / "psf.fits") as hdus:
        assert hdus[0].header["IN_IMAGE"] == "the image" and hdus[0].header["IN_PSF"] == str(stale)


def test_shifted_psfs_of_one_file_are_not_mistaken_for_each_other(image, psf, engine):
    plain = spexd.Psf(psf)
    moved = [plain.shifted(0.3), plain.shifted(0, 0.3), plain]
    once = [engine.extract(image, psf=each, fibre_count=5) for each in moved]
    again = [engine.extract(image, psf=each, fibre_count=5) for each in moved]
    for first, second in zip(once, again, strict=True):
        assert_same(first, second)
    assert (once[0].flux != once[1].flux).any() and (once[0].flux != once[2].flux).any()
    assert moved[0].content_hash == "" != plain.content_hash and moved[0].name == plain.name


@pytest.fixture(scope="module")
def many_lines(tmp_path_factory):
    """Returns a folder with a frame that has enough rows for lines that are bright in all fibres, and its PSF."""
    folder = tmp_path_factory.mktemp("many_lines")
    run_spex("simulate", "--fibres", FIBRES, "--rows", 800, "--seed", 4, "--out-dir", folder)
    return folder


def test_without_a_reference_only_differences_between_fibres_are_measured_in_y(many_lines):
    psf = spexd.Psf(many_lines / "psf-r0.fits").shifted(-0.3, -0.3)
    shifts = spexd.trace_shifts(many_lines / "preproc-r0.fits", psf=psf)
    assert shifts.status_x == "ok" and shifts.status_y == "relative" and shifts.reference == ""
    assert shifts.x.mean == pytest.approx(0.3, abs=0.01) and abs(shifts.y.mean) < 0.1


def test_a_flat_shifts_in_x_alone(image, stale, reference):
    (pixels, ivar, mask), header = planes(image)
    shifts = spexd.trace_shifts(pixels, ivar, mask, stale, reference=reference, header={**header, "FLAVOR": "flat"})
    assert shifts.status_x == "ok" and shifts.status_y == "none" and shifts.cy.size == 0
    assert shifts.dy(0, 6600.0) == 0


def test_shifts_too_small_to_matter_move_nothing(image, psf, reference, engine):
    frame = engine.extract(image, psf=psf, trace_shifts="xy", trace_degrees=(0, 0, 0, 0), trace_reference=reference)
    assert not frame.trace_shifts.moved and abs(frame.trace_shifts.x.mean) < 0.01
    assert_same(frame, engine.extract(image, psf=psf))


def test_refused_shifts_move_nothing_unless_they_are_required(image, psf, engine):
    (pixels, ivar, mask), _ = planes(image)
    dark = {"image": np.zeros_like(pixels), "ivar": ivar, "mask": mask, "psf": psf}
    frame = engine.extract(**dark, trace_shifts="xy")
    shifts = frame.trace_shifts
    assert shifts.status_x == shifts.status_y == "refused" and not shifts.moved and shifts.cx.size == 0
    assert shifts.reason and any(shifts.reason.split(": ")[-1] in warning for warning in frame.warnings)
    assert_same(frame, engine.extract(**dark))
    with pytest.raises(spexd.FailedPreconditionError, match="were not measured"):
        engine.extract(**dark, trace_shifts="xy", trace_required=True)


def test_a_file_keeps_the_shifts(frame, tmp_path):
    frame.to_fits(tmp_path / "a.fits")
    again = spexd.Frame.from_fits(tmp_path / "a.fits")
    fibres, wave = np.array(frame.fibres)[:, None], np.array([6600.0, 6700.0])
    np.testing.assert_allclose(again.trace_shifts.dx(fibres, wave), frame.trace_shifts.dx(fibres, wave), atol=1e-6)
    assert again.trace_shifts.status_y == frame.trace_shifts.status_y
    again.to_fits(tmp_path / "b.fits")
    assert (tmp_path / "a.fits").read_bytes() == (tmp_path / "b.fits").read_bytes()


def test_shifts_go_through_pickle_with_their_frame_and_alone(frame, stale, tmp_path):
    for shifts in (pickle.loads(pickle.dumps(frame)).trace_shifts, pickle.loads(pickle.dumps(frame.trace_shifts))):
        np.testing.assert_array_equal(shifts.cx, frame.trace_shifts.cx)
        spexd.write_shifted_psf(stale, shifts, tmp_path / "psf.fits")
    assert spexd.Psf(tmp_path / "psf.fits").fibres == FIBRES


def test_a_frame_that_measured_none_has_none(image, psf, engine):
    assert engine.extract(image, psf=psf, fibre_count=2).trace_shifts is None


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"trace_shifts": "y"}, spexd.InvalidArgumentError, "trace_shifts is .?y.?, must be off, auto, x, xy"),
        ({"trace_shifts": True}, spexd.InvalidArgumentError, "trace_shifts is .?True"),
        ({"trace_degrees": (2, 2, 2)}, spexd.InvalidArgumentError, r"trace_degrees is \(2, 2, 2\), must be four degrees"),
        ({"trace_degrees": (2, 2, 2, 1.5)}, spexd.InvalidArgumentError, "must be four degrees"),
        ({"trace_degrees": (2, 2, 2, 6)}, spexd.InvalidArgumentError, "trace_degrees: 6 is no degree"),
        ({"trace_shifts": "off"}, spexd.InvalidArgumentError, "trace_reference is given, but trace_shifts is off"),
        (
            {"trace_shifts": "off", "trace_reference": None, "trace_required": True},
            spexd.InvalidArgumentError,
            "trace_required is given, but trace_shifts is off",
        ),
        ({"trace_reference": "missing.dat"}, spexd.NotFoundError, "missing.dat"),
    ],
)
def test_bad_options_are_an_error_that_names_them(image, psf, reference, engine, options, error, message):
    with pytest.raises(error, match=message):
        engine.extract(image, psf=psf, **{"trace_shifts": "xy", "trace_reference": reference, **options})


def test_a_reference_that_is_no_spectrum_is_an_error_that_names_the_line(image, psf, tmp_path):
    (tmp_path / "bad.dat").write_text("6000 1\n5900 1\n")
    with pytest.raises(spexd.InvalidArgumentError, match="bad.dat, line 2"):
        spexd.trace_shifts(image, psf=psf, reference=tmp_path / "bad.dat")


@pytest.mark.parametrize(
    ("series", "message"),
    [
        (np.ones(3), r"cx has shape \(3,\)"),
        (np.ones((7, 1)), r"cx has shape \(7, 1\), must be at most \(6, 6\)"),
        (float("nan"), "cx has a value that is not finite"),
        ("1", "cx has shape"),
    ],
)
def test_a_bad_series_is_an_error_that_names_it(psf, series, message):
    with pytest.raises(spexd.InvalidArgumentError, match=message):
        spexd.Psf(psf).shifted(series)


# ---- On a server


@pytest.mark.parametrize("upload", [False, True])
def test_a_server_measures_the_same_shifts(client, frames, stale, reference, frame, upload, tmp_path):
    options = {"psf": stale, "trace_shifts": "auto", "trace_reference": reference, "upload": upload}
    remote = client.extract(frames / "preproc-r0.fits", **options)
    assert_same(remote, frame)
    for name in ("cx", "cy", "u"):
        np.testing.assert_array_equal(getattr(remote.trace_shifts, name), getattr(frame.trace_shifts, name))
    np.testing.assert_array_equal(remote.trace_shifts.x.covariance, frame.trace_shifts.x.covariance)
    remote.to_fits(tmp_path / "remote.fits")
    frame.to_fits(tmp_path / "here.fits")
    assert (tmp_path / "remote.fits").read_bytes() == (tmp_path / "here.fits").read_bytes()


def test_a_server_finds_a_reference_by_its_hash(client, frames, stale, reference, frame):
    options = {"psf": stale, "trace_shifts": "auto", "upload": True, "fibre_count": 1}
    client.extract(frames / "preproc-r0.fits", trace_reference=reference, **options)
    known = "sha256:" + hashlib.sha256(reference.read_bytes()).hexdigest()
    again = client.extract(frames / "preproc-r0.fits", trace_reference=known, **options)
    np.testing.assert_array_equal(again.trace_shifts.cy, frame.trace_shifts.cy)
    with pytest.raises(spexd.FailedPreconditionError, match="names no trace_reference that is loaded"):
        client.extract(frames / "preproc-r0.fits", trace_reference="sha256:" + "0" * 64, **options)


def test_a_detached_job_measures_them_too(client, frames, stale, reference, frame):
    options = {"psf": stale, "trace_shifts": "xy", "trace_reference": reference, "upload": True}
    watched = client.watch(client.submit(frames / "preproc-r0.fits", **options).job_id)
    assert_same(watched, frame)
    np.testing.assert_array_equal(watched.trace_shifts.cy, frame.trace_shifts.cy)


def test_a_server_raises_what_is_required_and_refused(client, image, psf):
    (pixels, ivar, mask), _ = planes(image)
    with pytest.raises(spexd.FailedPreconditionError, match="were not measured"):
        client.extract(np.zeros_like(pixels), ivar, mask, psf, upload=True, trace_shifts="x", trace_required=True)


def test_a_shifted_psf_is_not_sent_to_a_server_that_would_read_its_file(client, image, psf):
    with pytest.raises(spexd.InvalidArgumentError, match="psf was shifted.* spexd.write_shifted_psf"):
        client.extract(image, psf=spexd.Psf(psf).shifted(0.1))


def test_a_job_is_sent_as_its_options_say(image, psf, reference):
    pytest.importorskip("grpc")
    from spexd._request import AskedProducts, make_job
    from spexd.v1 import extraction_pb2 as pb

    def header(trace_reference, upload=False, **options):
        job = make_job(Spec(**options), None, image, psf, None, trace_reference, upload=upload, products=AskedProducts())
        return job.header, {upload.number for upload in job.uploads}

    plain, _ = header(None)
    assert plain.trace_shifts == pb.TRACE_AXES_OFF and not plain.HasField("trace_degrees")
    asked, _ = header(reference, trace_shifts="xy", trace_degrees=(1, 2, 3, 4), trace_required=True)
    assert asked.trace_shifts == pb.TRACE_AXES_XY and asked.trace_required
    degrees = asked.trace_degrees
    assert (degrees.x_fibre, degrees.x_wavelength, degrees.y_fibre, degrees.y_wavelength) == (1, 2, 3, 4)
    assert asked.trace_reference.path == str(reference)
    known, _ = header("sha256:abc", trace_shifts="xy")
    assert known.trace_reference.content_hash == "abc"
    sent, uploads = header(reference, upload=True, trace_shifts="auto")
    assert sent.trace_reference.upload.bytes == reference.stat().st_size and pb.INPUT_TRACE_REFERENCE in uploads
    with pytest.raises(spexd.InvalidArgumentError, match="trace_reference is given, but trace_shifts is off"):
        header(reference)
    with pytest.raises(spexd.InvalidArgumentError, match="trace_degrees is given, but trace_shifts is off"):
        header(None, trace_degrees=(1, 2, 3, 4))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"u": b"\0" * 8}, "trace shifts of 1 fibres, the frame has 2"),
        ({"u_terms": 7}, "a series of shifts in x"),
        ({"coefficients": [1.0]}, "a series of shifts in x with 1 of 2 coefficients"),
        ({"covariance": [1.0]}, "a series of shifts in x"),
        ({"status": 9}, "status 9 of shifts in x"),
    ],
)
def test_a_damaged_message_of_shifts_is_an_error(change, message):
    pytest.importorskip("grpc")
    from spexd._events import _traces_of
    from spexd.v1 import extraction_pb2 as pb

    axis = {"status": 1, "u_terms": 2, "t_terms": 1, "coefficients": [0.1, 0.2], "covariance": [1, 0, 0, 1]}
    whole = pb.TraceShifts(x=pb.AxisShifts(**axis), u=np.array([-0.5, 0.5]).tobytes())
    report = _traces_of(whole, 2)
    assert report.x.status == "ok" and report.y.status == "none"
    np.testing.assert_array_equal(report.x.series, [[0.1], [0.2]])
    for name, value in change.items():
        whole = pb.TraceShifts(x=pb.AxisShifts(**(axis | change)) if name in axis else whole.x, u=change.get("u", whole.u))
    with pytest.raises(spexd.DataLossError, match=message):
        _traces_of(whole, 2)


def test_rows_of_a_night_name_their_reference(tmp_path):
    pytest.importorskip("distributed")
    from spexd.dask._list import list_of

    row = {"image": "/a", "psf": "/p", "output": "/o", "trace_shifts": "xy", "trace_degrees": (2, 0, 2, 0)}
    reference = tmp_path / "sky.dat"
    _, text = list_of([row], {"trace_reference": reference})
    columns, words = (line.split() for line in text.splitlines())
    read = dict(zip(columns, words, strict=True))
    assert read["trace_reference"] == str(reference)
    assert (read["trace_shifts"], read["trace_degrees"]) == ("xy", "2,0,2,0")


# ---- The pipeline's entry point


def shifted_by_the_pipeline(image, psf, path, *flags):
    desispec.trace_shifts.main([str(word) for word in ("-i", image, "--psf", psf, "--outpsf", path, *flags)])
    with fits.open(path) as hdus:
        return hdus[0].header, {name: hdus[name].data.copy() for name in ("XTRACE", "YTRACE")}


def test_the_pipelines_flags_give_the_psf_of_these_shifts(image, stale, reference, shifts, tmp_path):
    spexd.write_shifted_psf(stale, shifts, tmp_path / "want.fits")
    degrees = ("--degxx", 2, "--degxy", 2, "--degyx", 2, "--degyy", 1)
    idle = ("--width", 9, "--no-large-shift-scan", "--max-error", 0.1, "--ccd-rows-rebin", 2, "--nfibers", 3)
    header, traces = shifted_by_the_pipeline(
        image, stale, tmp_path / "a folder/psf.fits", "--spectrum", reference, *degrees, *idle
    )
    assert header["IN_IMAGE"] == str(image) and header["MEANDX"] == pytest.approx(shifts.x.mean)
    with fits.open(tmp_path / "want.fits") as want:
        for name, coefficients in traces.items():
            np.testing.assert_array_equal(coefficients, want[name].data)


@pytest.mark.parametrize(
    ("flags", "status_y"),
    [
        (["--continuum"], "none"),
        ([], "none"),  # degrees in y are 0, and there is no spectrum
        (["--degyx", 2], "relative"),
    ],
)
def test_what_is_measured_in_y_follows_from_the_pipelines_flags(many_lines, tmp_path, flags, status_y):
    files = many_lines / "preproc-r0.fits", many_lines / "psf-r0.fits"
    header, _ = shifted_by_the_pipeline(*files, tmp_path / "psf.fits", "--degxx", 2, *flags)
    assert header["TSSTATY"] == status_y


def test_the_flavor_of_a_flat_means_continuum(image, stale, tmp_path):
    with fits.open(image) as hdus:
        hdus["IMAGE"].header["FLAVOR"] = "flat"
        hdus.writeto(tmp_path / "flat.fits")
    header, _ = shifted_by_the_pipeline(tmp_path / "flat.fits", stale, tmp_path / "psf.fits", "--auto", "--degyx", 2)
    assert header["TSSTATY"] == "none"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--lines", "lines.dat"], "--lines: it asks for a fit to a list of lines"),
        (["--outoffsets", "offsets.txt"], "--outoffsets: it asks for a file of single measurements"),
        (["--degxx", 6], "trace_degrees: 6 is no degree"),
        (["--psf", "missing.fits"], "missing.fits"),
    ],
)
def test_what_the_pipeline_may_ask_and_cannot_have_is_an_error_that_names_it(image, stale, tmp_path, flags, message):
    with pytest.raises(spexd.SpexdError, match=message):
        shifted_by_the_pipeline(image, stale, tmp_path / "psf.fits", *flags)
    assert not (tmp_path / "psf.fits").exists()


def test_the_pipelines_spectra_are_those_of_the_installed_desispec(image, stale, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "desispec", None)
    with pytest.raises(spexd.NotFoundError, match="--sky: desispec, which has spec-sky.dat, is not installed"):
        shifted_by_the_pipeline(image, stale, tmp_path / "psf.fits", "--sky")


def test_a_frame_without_light_leaves_no_psf(image, stale, tmp_path):
    with fits.open(image) as hdus:
        hdus["IMAGE"].data[:] = 0
        hdus.writeto(tmp_path / "dark.fits")
    with pytest.raises(spexd.FailedPreconditionError, match="dark.fits with PSF .* trace shifts were not measured"):
        shifted_by_the_pipeline(tmp_path / "dark.fits", stale, tmp_path / "psf.fits", "--degxx", 2)
    assert not (tmp_path / "psf.fits").exists()
