"""Servers fit the same to existing spectra as this process, and their files are those of spex analyse."""

import asyncio
import io
import pickle
import shutil

import numpy as np
import pytest
from conftest import run_spex
from stand_in import StandIn
from test_in_process import planes
from test_products import write_templates
from test_spectra import write_spectra

import spexd

pytest.importorskip("grpc")
from spexd import _native
from spexd._calls import analysis_of
from spexd._events import AnalysisAssembler
from spexd.v1 import extraction_pb2 as pb

fits = pytest.importorskip("astropy.io.fits")

TARGETS = [39627000000100001, 102, 101, 102, 900, 103]


@pytest.fixture(scope="module")
def inputs(frames):
    """Returns a folder that servers may read, with a file of spectra, the frames of an exposure and templates for
    each."""
    folder = frames / "analysis"
    folder.mkdir()
    write_templates(folder / "templates.fits", np.array([4200.0, 5160.0]))
    write_templates(folder / "short.fits", np.array([4700.0, 4900.0]))
    exposures = np.array([1, 1, 1, 2, 2, 2], np.int32)
    write_spectra(folder / "spectra.fits", folder / "templates.fits", TARGETS, EXPID=exposures)
    for camera in ("b0", "r0"):
        path = folder / f"frame-{camera}.fits"
        shutil.copy(frames / "frame.fits", path)
        fits.setval(path, "CAMERA", value=camera)
    with fits.open(folder / "frame-b0.fits", mode="update") as hdus:
        wave = hdus["WAVELENGTH"].data
        write_templates(folder / "red.fits", np.array([wave[0] - 160, wave[-1]]))
        hdus["WAVELENGTH"].data = wave - 160
    flat = np.random.default_rng(3).uniform(0.9, 1.1, (50, len(wave)))
    fits.HDUList([fits.PrimaryHDU(), fits.ImageHDU(flat, name="FIBERFLAT")]).writeto(folder / "flat.fits")
    return folder


@pytest.fixture
def spectra(inputs):
    return inputs / "spectra.fits"


@pytest.fixture
def templates(inputs):
    return inputs / "templates.fits"


def assert_same(there, here):
    """Expects tables equal to the bit. Images are float32 in files."""
    assert there.dtype.names == here.dtype.names
    for name in here.dtype.names:
        expected = here[name].astype(np.float32) if name.endswith("CHI2") and here[name].ndim == 2 else here[name]
        assert there[name].dtype == expected.dtype and there[name].shape == expected.shape, name
        assert there[name].tobytes() == expected.tobytes(), name


@pytest.mark.parametrize("upload", [False, True])
def test_a_server_fits_what_this_process_fits(spectra, templates, client, upload):
    analysis = client.analyse(spectra, templates, redshifts=True, models=True, upload=upload)
    here = spexd.read_spectra(spectra)
    assert_same(analysis.velocities, here.velocities(templates, models=True))
    assert_same(analysis.redshifts, here.redshifts())
    assert analysis.velocities["SUCCESS"].dtype == bool and list(analysis.velocities["REF_CAT"][:2]) == [b"G3", b""]
    assert analysis.velocities is analysis.velocities and not analysis.errors
    assert analysis.job.job_id and analysis.job.server and analysis.job.run_seconds > 0
    assert repr(analysis) == "<spexd.Analysis: redshifts, velocities, models>"


def test_the_files_are_those_of_spex_to_the_byte(spectra, templates, client, tmp_path):
    run_spex("analyse", spectra, "--velocity", templates, "--lines", "--device", "cpu", "--output-dir", tmp_path)
    analysis = client.analyse(spectra, templates, redshifts=True, models=True)
    names = {"velocities": "rvtab", "models": "rvmod", "redshifts": "zlines"}
    assert set(analysis.files) == set(names)
    for name, stem in names.items():
        assert analysis.files[name] == (tmp_path / f"{stem}_spectra.fits").read_bytes(), name


def test_what_is_not_asked_for_is_none(spectra, templates, client):
    stars = client.analyse(spectra, spexd.Templates(templates))
    assert stars.redshifts is None and list(stars.files) == ["velocities"]
    assert_same(stars.velocities, spexd.read_spectra(spectra).velocities(templates))
    assert client.analyse(str(spectra), redshifts=True).velocities is None


def test_options_are_those_of_the_spectra(spectra, templates, client):
    here = spexd.read_spectra(spectra)
    options = {"per_target": True, "exclude": [(4200, 4210), (4380, 4390)], "degree": 3}
    there = client.analyse(spectra, templates, redshifts=True, **options)
    assert_same(there.velocities, here.velocities(templates, **options))
    assert_same(there.redshifts, here.redshifts(per_target=True))
    nothing = client.analyse(spectra, templates, exclude=[])
    assert_same(nothing.velocities, here.velocities(templates, exclude=[]))


def test_rows_and_arms_are_those_that_are_asked_for(spectra, templates, client):
    here = spexd.read_spectra(spectra)
    for selection, rows in [
        ({"targetids": [102]}, [1, 3]),
        ({"targetids": np.array([101, TARGETS[0]])}, [0, 2]),
        ({"min_exposure": 1}, [3]),
        ({"max_exposure": 1}, [0, 1, 2]),
        ({"min_snr": 1.0}, [0, 1, 2, 3]),
        ({"min_snr": 1e6}, []),
        ({"targetids": []}, []),
    ]:
        there = client.analyse(spectra, templates, redshifts=True, models=True, **selection)
        assert_same(there.velocities, here.velocities(templates, rows, models=True))
        assert_same(there.redshifts, here.redshifts(rows))
    blue = client.analyse(spectra, templates, arms="B").velocities
    assert "NPIX_B" in blue.dtype.names and "NPIX_R" not in blue.dtype.names


def test_frames_of_an_exposure_are_analysed_together(inputs, client):
    paths = [inputs / "frame-r0.fits", inputs / "frame-b0.fits"]
    here = spexd.Spectra(paths)
    for upload in (False, True):
        there = client.analyse(paths, inputs / "red.fits", redshifts=True, upload=upload)
        assert_same(there.velocities, here.velocities(inputs / "red.fits"))
        assert_same(there.redshifts, here.redshifts())
    as_they_are = client.analyse(paths, redshifts=True, sky_subtracted=True)
    assert_same(as_they_are.redshifts, spexd.Spectra(paths, sky_subtracted=True).redshifts())


@pytest.mark.parametrize("upload", [False, True])
def test_each_frame_is_divided_by_its_fiberflat(inputs, client, upload):
    paths, flat = [inputs / "frame-b0.fits", inputs / "frame-r0.fits"], inputs / "flat.fits"
    blue, red = (spexd.Frame.from_fits(path) for path in paths)
    there = client.analyse(paths, redshifts=True, fiberflats=[flat, None], upload=upload)
    assert_same(there.redshifts, spexd.Spectra([blue.sky_subtracted(fiberflat=flat), red]).redshifts())
    there = client.analyse(paths, redshifts=True, fiberflats=flat, upload=upload)
    both = [frame.sky_subtracted(fiberflat=flat) for frame in (blue, red)]
    assert_same(there.redshifts, spexd.Spectra(both).redshifts())


def test_the_frame_of_a_detached_job_need_not_be_fetched(inputs, image, psf, client):
    job = client.submit(image, psf=psf)
    frame = client.watch(job.job_id)
    here = spexd.Spectra([frame])
    for spectra in (job, f"job:{job.job_id}", [job]):
        there = client.analyse(spectra, inputs / "red.fits", redshifts=True)
        assert_same(there.velocities, here.velocities(inputs / "red.fits"))
        assert_same(there.redshifts, here.redshifts())
    beside = client.analyse([inputs / "frame-b0.fits", job], redshifts=True, upload=True)
    assert_same(beside.redshifts, spexd.Spectra([inputs / "frame-b0.fits", frame]).redshifts())
    client.ack(frame)
    with pytest.raises((spexd.FailedPreconditionError, spexd.NotFoundError), match="job"):
        client.analyse(job, redshifts=True)


def test_a_job_that_failed_has_no_frame_to_analyse(image, psf, client):
    (pixels, ivar, mask), _ = planes(image)
    job = client.submit(np.zeros_like(pixels), ivar, mask, psf, trace_shifts="x", trace_required=True)
    with pytest.raises(spexd.FailedPreconditionError):
        client.watch(job.job_id)
    with pytest.raises(spexd.FailedPreconditionError, match="job"):
        client.analyse(job, redshifts=True)


def test_the_sky_that_a_job_made_is_subtracted(image, psf, client):
    job = client.submit(image, psf=psf, sky=True)
    frame = client.watch(job.job_id)
    here = spexd.Spectra([frame.sky_subtracted(frame.products.sky)])
    assert_same(client.analyse(job, redshifts=True).redshifts, here.redshifts())
    client.ack(frame)


def test_jobs_are_found_on_whichever_server_has_them(image, psf, server, start_server, tmp_path):
    other = start_server("--jobs-dir", tmp_path / "jobs")
    with spexd.Client(server.address) as here, spexd.Client(other.address) as there:
        jobs = [client.submit(image, psf=psf) for client in (here, there)]
        for client, job in zip((here, there), jobs, strict=True):
            client.watch(job.job_id)
    with spexd.Client(f"{server.address},{other.address}") as both:
        for job in jobs:
            analysis = both.analyse(job, redshifts=True)
            assert analysis.job.server == job.server and len(analysis.redshifts) > 0
        with pytest.raises(spexd.FailedPreconditionError, match="on several servers"):
            both.analyse(jobs, redshifts=True)
        with pytest.raises(spexd.NotFoundError, match="nothing-of-that-name"):
            both.analyse("job:nothing-of-that-name", redshifts=True)


def test_the_client_for_asyncio_does_the_same(spectra, templates, server):
    async def analyse():
        async with spexd.AsyncClient(server.address) as client:
            both = client.analyse(spectra, templates, upload=True), client.analyse(spectra, redshifts=True)
            return await asyncio.gather(*both)

    stars, galaxies = asyncio.run(analyse())
    here = spexd.read_spectra(spectra)
    assert_same(stars.velocities, here.velocities(templates))
    assert_same(galaxies.redshifts, here.redshifts())


def test_a_file_that_cannot_be_made_harms_no_other(spectra, inputs, client):
    analysis = client.analyse(spectra, inputs / "short.fits", redshifts=True)
    with pytest.raises(spexd.InvalidArgumentError, match="short.fits|templates"):
        analysis.velocities  # noqa: B018
    assert list(analysis.errors) == ["velocities"] and list(analysis.files) == ["redshifts"]
    assert_same(analysis.redshifts, spexd.read_spectra(spectra).redshifts())
    assert repr(analysis) == "<spexd.Analysis: redshifts, velocities failed>"


def test_what_is_wrong_with_a_file_is_named(spectra, inputs, client):
    (inputs / "damaged.fits").write_bytes(spectra.read_bytes()[:20000])
    with fits.open(spectra) as hdus:
        table = fits.BinTableHDU(np.rec.fromarrays([np.arange(6)], names=["FIBER"]), name="FIBERMAP")
        fits.HDUList([*hdus[:1], table, *hdus[2:-1]]).writeto(inputs / "nameless.fits")
    for upload in (False, True):
        with pytest.raises(spexd.InvalidArgumentError, match="damaged.fits"):
            client.analyse(inputs / "damaged.fits", redshifts=True, upload=upload)
        for options in ({"targetids": [102]}, {"per_target": True}):
            with pytest.raises(spexd.InvalidArgumentError, match="TARGETID"):
                client.analyse(inputs / "nameless.fits", redshifts=True, upload=upload, **options)
        with pytest.raises(spexd.NotFoundError, match="nowhere.fits"):
            client.analyse(inputs / "nowhere.fits", redshifts=True, upload=upload)
    with pytest.raises(spexd.InvalidArgumentError, match="arm"):
        client.analyse(spectra, redshifts=True, arms="X")
    with pytest.raises(spexd.FailedPreconditionError, match="content_hash"):
        client.analyse(spectra, "sha256:" + 64 * "0").velocities  # noqa: B018


def test_an_answer_that_arrives_damaged_is_asked_for_again(spectra, server):
    def spoil(call, number, event):
        if call == 1 and event.HasField("file"):
            event.file.payload = event.file.payload[:-1] + b"?"

    with StandIn(server.address, spoil) as between, spexd.Client(between.address) as client:
        analysis = client.analyse(spectra, redshifts=True, upload=True)
        assert_same(analysis.redshifts, spexd.read_spectra(spectra).redshifts())
        assert len(between.calls) == 2
    with StandIn(server.address, lambda call, number, event: spoil(1, number, event)) as between:
        with spexd.Client(between.address) as client, pytest.raises(spexd.DataLossError, match="redshifts: checksum"):
            client.analyse(spectra, redshifts=True)


# Tests without a server.


@pytest.mark.parametrize(
    ("spectra", "options", "message"),
    [
        ("a.fits", {}, "nothing is asked for"),
        ("a.fits", {"redshifts": True, "models": True}, "models is True, but without templates"),
        ([], {"redshifts": True}, "spectra: there are none"),
        ([3], {"redshifts": True}, "spectra is a int, must be a path or 'job:ID'"),
        ("a.fits", {"templates": 3}, "templates is a int, must be a path or 'sha256:HASH'"),
        ("a.fits", {"redshifts": True, "degree": 21}, "degree is 21, must be 0 to 20"),
        ("a.fits", {"templates": "t.fits", "exclude": (4300, 4450)}, "exclude is .* pairs of wavelengths"),
        ("a.fits", {"redshifts": True, "fiberflats": ["b.fits", None]}, "fiberflats has 2 files, .* of the 1 frames"),
        ("a.fits", {"redshifts": True, "targetids": [1.5]}, "targetids has shape .* type float64"),
        ("a.fits", {"redshifts": True, "targetids": np.uint64([2**63])}, "whole numbers of 64 bits"),
        ("a.fits", {"redshifts": True, "targetids": np.full(500000, 2**62)}, "targetids has 500000 numbers, more than"),
    ],
)
def test_options_that_cannot_be_are_refused_before_the_call(spectra, options, message):
    with pytest.raises(spexd.InvalidArgumentError, match=message):
        analysis_of(spectra, options.pop("templates", None), options)


def test_an_option_that_is_none_is_a_type_error():
    with pytest.raises(TypeError, match="redshift"):
        analysis_of("a.fits", None, {"redshift": True})


def test_an_analysis_is_sent_as_its_options_say(tmp_path):
    plain = analysis_of(["a.fits", "job:7"], None, {"redshifts": True}).header
    assert plain.spectra[0].path.endswith("/a.fits") and plain.spectra[1].job_id == "7"
    assert not any(plain.HasField(name) for name in ("templates", "exclude")) and plain.coefficients == 7
    assert not plain.rows.HasField("target_ids") and plain.lines and not plain.models
    for name in ("a.fits", "b.fits", "flat.fits"):
        (tmp_path / name).write_bytes(b"\1\2\3")
    submitted = spexd.Submitted("8", "", "", False)
    given = [tmp_path / "a.fits", submitted, tmp_path / "b.fits"]
    options = {"exclude": [], "arms": "BR", "objtypes": "STD_", "min_snr": 2, "targetids": [5]}
    flats = ["sha256:ab", None, tmp_path / "flat.fits"]
    job = analysis_of(given, "sha256:cd", {**options, "fiberflats": flats, "upload": True})
    header = job.header
    assert [source.WhichOneof("source") for source in header.spectra] == ["upload", "job_id", "upload"]
    assert header.templates.content_hash == "cd" and header.spectra[0].fiberflat.content_hash == "ab"
    assert not header.spectra[1].HasField("fiberflat") and header.spectra[2].fiberflat.upload.bytes == 3
    assert header.HasField("exclude") and not header.exclude.first
    assert header.arms == ["B", "R"] and header.rows.object_types == ["STD_"] and header.rows.target_ids.ids == [5]
    uploads = [(upload.number, upload.index) for upload in job.uploads]
    assert uploads == [(pb.INPUT_SPECTRA, 0), (pb.INPUT_SPECTRA, 2), (pb.INPUT_FIBERFLAT, 2)]


def answer():
    """Returns the events of an analysis: velocities in two parts, an error in place of models, redshifts in one
    part."""
    accepted, summary = pb.ExtractEvent(), pb.ExtractEvent()
    accepted.accepted.job_id = "7"
    summary.summary.last, summary.summary.engine = True, "cpu"
    velocities, redshifts = table_file("RVTAB"), table_file("ZLINES")
    events = [part(1, velocities, 0, 2880), part(1, velocities, 2880, len(velocities))]
    events.append(pb.ExtractEvent(file=pb.FilePart(file=2, code=3, error="no models", last=True)))
    events.append(part(3, redshifts, 0, len(redshifts)))
    return [accepted, pb.ExtractEvent(progress=pb.Progress(state="analysing")), *events, summary]


def part(number, content, first, end):
    facts = {"bytes": len(content), "offset": first, "last": end == len(content), "targets": 3, "good": 2}
    payload = content[first:end]
    return pb.ExtractEvent(file=pb.FilePart(file=number, payload=payload, crc32c=_native.crc32c(payload), **facts))


def table_file(hdu):
    """Returns a FITS file with columns of all kinds that occur in the files."""
    values = [np.arange(3), np.array([1.5, np.nan, -2]), np.array(["G3", "", "a b"]), np.array([True, False, True])]
    values.append(np.array([1, 2, 40000], np.uint16))
    table = fits.BinTableHDU(np.rec.fromarrays(values, names="K,D,A,L,U"), name=hdu)
    image = fits.ImageHDU(np.arange(6, dtype=np.float32).reshape(3, 2), name="CHI2")
    written = io.BytesIO()
    fits.HDUList([fits.PrimaryHDU(), table, image]).writeto(written)
    return written.getvalue()


def assembled(events):
    job = analysis_of("a.fits", "t.fits", {"models": True, "redshifts": True})
    assembler = AnalysisAssembler(job)
    for event in events:
        assembler.add(event)
    return assembler.finish("here")


def test_parts_make_files_and_files_tables():
    analysis = assembled(answer())
    assert analysis.files == {"velocities": table_file("RVTAB"), "redshifts": table_file("ZLINES")}
    assert (analysis.job.job_id, analysis.job.server, analysis.job.engine) == ("7", "here", "cpu")
    assert isinstance(analysis.errors["models"], spexd.InvalidArgumentError)
    for looked_at in (analysis, pickle.loads(pickle.dumps(analysis))):
        table = looked_at.redshifts
        assert [table[name].dtype.str for name in "KDAL"] == ["<i8", "<f8", "|S3", "|b1"]
        assert list(table["A"]) == [b"G3", b"", b"a b"] and list(table["L"]) == [True, False, True]
        assert list(table["U"]) == [1, 2, 40000] and table["D"][0] == 1.5 and np.isnan(table["D"][1])
        np.testing.assert_array_equal(looked_at.velocities["CHI2"], [[0, 1], [2, 3], [4, 5]])
        assert "CHI2" not in table.dtype.names
    assert repr(analysis) == "<spexd.Analysis: velocities, redshifts, models failed>"


def changed(position, **fields):
    events = answer()
    for name, value in fields.items():
        setattr(events[position].file, name, value)
    return events


@pytest.mark.parametrize(
    ("events", "message"),
    [
        (lambda e: changed(2, crc32c=1), "velocities: checksum"),
        (lambda e: changed(3, offset=2881), "velocities: bytes 2881 to"),
        (lambda e: changed(3, payload=b""), "velocities: bytes 2880 to 2880"),
        (lambda e: changed(2, bytes=5), "velocities: bytes 0 to 2880, expected from 0 to at most 5"),
        (lambda e: changed(3, bytes=10**12), "a part of the file of velocities out of order"),
        (lambda e: changed(2, bytes=2**33), "velocities: 8589934592 bytes, of which 4294967296 are allowed"),
        (lambda e: changed(3, good=1), "out of order"),
        (lambda e: changed(5, good=4), "4 of 3 targets"),
        (lambda e: changed(3, last=False), "last is False after"),
        (lambda e: changed(2, last=True), "last is True after 2880 of"),
        (lambda e: changed(4, code=99), "models: status 99"),
        (lambda e: changed(3, code=3), "velocities: status 3 after"),
        (lambda e: changed(4, file=7), "the file of 7, which was not asked for"),
        (lambda e: changed(4, file=1), "velocities, which was not asked for or came before"),
        (lambda e: [*e[:3], *e[4:]], "a part of the file of models out of order"),
        (lambda e: [*e[:4], *e[5:]], "it ended without the file of models, which was asked for"),
        (lambda e: [*e[:3], e[-1]], "it ended after 2880 of .* bytes of the file of velocities"),
        (lambda e: e[1:], "a file before the job was accepted"),
        (lambda e: e[:-1], "it ended before the summary"),
        (lambda e: [*e, e[1]], "an event after the summary"),
        (lambda e: [*e[:2], pb.ExtractEvent(bundle=pb.BundlePart()), *e[2:]], "a bundle of an analysis"),
    ],
)
def test_a_damaged_answer_is_data_loss(events, message):
    with pytest.raises(spexd.DataLossError, match="the server's answer is damaged: .*" + message):
        assembled(events(answer()))
