"""Jobs on real servers."""

import hashlib
import json
import logging
import subprocess
import threading
import time

import grpc
import numpy as np
import pytest
from conftest import FIBRES, Server, wait_for
from stand_in import StandIn
from test_in_process import ARRAYS, assert_same, planes

import spexd
from spexd._events import Assembler
from spexd.v1 import extraction_pb2, extraction_pb2_grpc


@pytest.mark.parametrize("upload", [False, True])
def test_a_server_gives_the_files_of_spex_to_the_byte(frames, image, psf, client, tmp_path, upload):
    frame = client.extract(image, psf=psf, model=True, upload=upload)
    frame.to_fits(tmp_path / "frame.fits", model=tmp_path / "model.fits")
    assert (tmp_path / "frame.fits").read_bytes() == (frames / "frame.fits").read_bytes()
    assert (tmp_path / "model.fits").read_bytes() == (frames / "model.fits").read_bytes()
    assert frame.job.engine.startswith("cpu") and frame.job.job_id


def test_arrays_give_what_they_give_in_this_process(image, psf, client, engine):
    (pixels, ivar, mask), header = planes(image)
    options = {"header": header, "name": "in memory", "first_fibre": 13, "fibre_count": 19}
    frame = client.extract(pixels, ivar, mask, psf, **options)
    want = engine.extract(pixels, ivar, mask, spexd.Psf(psf), **options)
    assert_same(frame, want)
    assert dict(frame.header) == {**want.header, "IN_PSF": str(psf)}
    for name, values in want.scores.items():
        np.testing.assert_array_equal(frame.scores[name], values)


def test_a_psf_that_the_server_holds_is_named_by_its_hash(image, psf, client):
    client.extract(image, psf=psf, fibre_count=1)
    warm = spexd.Psf(psf)
    assert warm.content_hash in [info.hash for info in client.psfs()]
    assert len(client.extract(image, psf="sha256:" + warm.content_hash, fibre_count=1).flux) == 1


def test_a_stream_brings_every_bundle_once(image, psf, client):
    with client.stream(image, psf=psf, bundle_size=5) as stream:
        bundles = list(stream)
    frame = stream.frame
    assert [bundle.done for bundle in bundles] == list(range(1, 11))
    assert {bundle.total for bundle in bundles} == {10}
    assert sorted(fibre for bundle in bundles for fibre in bundle.fibres) == list(frame.fibres)
    for bundle in bundles:
        rows = slice(bundle.fibres.start, bundle.fibres.stop)
        for name in ("flux", "ivar", "resolution", "chi2pix"):
            np.testing.assert_array_equal(getattr(bundle, name), getattr(frame, name)[rows])


def test_a_stream_that_is_closed_stops_its_job(image, psf, client):
    with client.stream(image, psf=psf, bundle_size=1) as stream:
        next(stream)
    with pytest.raises(spexd.UnavailableError, match="ended before its frame was whole"):
        stream.frame  # noqa: B018
    wait_for(lambda: client.capabilities()[0].jobs_running == 0)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"psferr": -1}, spexd.InvalidArgumentError, "psferr is -1"),
        ({"priority": 11}, spexd.InvalidArgumentError, "priority is 11, must be -10 to 10"),
        ({"first_fibre": 99}, spexd.InvalidArgumentError, "first fibre 99"),
        ({"fibre_count": 0}, spexd.InvalidArgumentError, "fibre_count is 0"),
        ({"psf": "missing.fits", "upload": True}, spexd.NotFoundError, "missing.fits"),
        ({"psf": "/etc/passwd"}, spexd.PermissionDeniedError, "outside the allowed roots"),
        ({"psf": "sha256:00"}, spexd.FailedPreconditionError, "psf_hash"),
        ({"timeout": 1e-3}, spexd.DeadlineExceededError, "(?i)deadline"),
        ({"psf": "/", "upload": True}, spexd.InvalidArgumentError, "not a regular file"),
    ],
)
def test_every_status_code_is_a_class(image, psf, client, options, error, message):
    with pytest.raises(error, match=message) as caught:
        client.extract(image, **{"psf": psf, **options})
    assert isinstance(caught.value, spexd.SpexdError) and caught.value.code == error.code


def test_options_that_there_are_not_are_refused(image, psf, client):
    with pytest.raises(TypeError, match="unknown option 'bundlesize'"):
        client.extract(image, psf=psf, bundlesize=5)


class Retries(logging.Handler):
    """Records the attempts that the package logs."""

    def __init__(self):
        super().__init__(logging.INFO)
        self.seen = threading.Event()
        self.waits = []

    def emit(self, record):
        self.waits.append(record.args[-1])
        self.seen.set()


@pytest.fixture
def retries():
    handler, logger = Retries(), logging.getLogger("spexd")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield handler
    logger.removeHandler(handler)
    logger.setLevel(level)


@pytest.fixture
def full_server(start_server):
    """Starts a server for one job and gives it one; returns a function that lets this job finish."""
    server = start_server("--max-running-jobs", 1, "--max-queued-jobs", 0)
    released = threading.Event()
    channel = grpc.insecure_channel(server.address)

    def endless():
        header = extraction_pb2.JobHeader()
        header.image.upload.bytes = header.psf.upload.bytes = 4
        yield extraction_pb2.ExtractRequest(header=header)
        released.wait()

    call = extraction_pb2_grpc.ExtractionStub(channel).Extract(endless())
    assert next(call).HasField("accepted")

    def release():
        call.cancel()
        released.set()

    yield server, release
    release()
    channel.close()


def test_a_full_queue_is_tried_again_no_sooner_than_it_asks(image, psf, full_server, retries):
    server, release = full_server
    with spexd.Client(server.address, retry=spexd.RetryPolicy(queue_patience=0.1)) as hasty:
        with pytest.raises(spexd.ResourceExhaustedError, match="queue") as refused:
            hasty.extract(image, psf=psf)
    assert refused.value.retry_delay >= 0.5 and not retries.waits
    frames = []
    with spexd.Client(server.address) as patient:
        start = time.monotonic()
        thread = threading.Thread(target=lambda: frames.append(patient.extract(image, psf=psf, fibre_count=1)))
        thread.start()
        assert retries.seen.wait(60)
        release()
        thread.join(60)
    assert len(frames) == 1
    assert retries.waits[0] >= 0.5
    assert time.monotonic() - start >= sum(retries.waits)


def test_a_job_goes_to_the_server_that_takes_it(image, psf, server, full_server, retries):
    full, _ = full_server
    with spexd.Client(f"{full.address},127.0.0.1:1,{server.address}") as client:
        assert client.extract(image, psf=psf, fibre_count=1, timeout=60).job.server == server.address


def test_servers_that_are_not_there_are_named(image, psf):
    policy = spexd.RetryPolicy(unavailable_attempts=2, first_wait=0.01)
    with spexd.Client("127.0.0.1:1", retry=policy) as client:
        with pytest.raises(spexd.UnavailableError, match="spexd at 127.0.0.1:1"):
            client.extract(image, psf=psf)


def test_a_server_that_starts_after_two_attempts_takes_the_job(image, psf, frames, retries, tmp_path):
    gone = Server(tmp_path)
    assert gone.stop() == 0
    (tmp_path / "ports.json").unlink()
    frame = []
    with spexd.Client(gone.address, retry=spexd.RetryPolicy(unavailable_attempts=7)) as client:
        thread = threading.Thread(target=lambda: frame.append(client.extract(image, psf=psf, fibre_count=1)))
        thread.start()
        wait_for(lambda: len(retries.waits) >= 2)
        server = Server(tmp_path, "--allow-root", frames, listen=gone.address)
        thread.join(60)
    assert server.stop() == 0
    assert len(frame) == 1


def test_a_server_that_came_back_is_found_at_once(image, psf, frames, tmp_path):
    server = Server(tmp_path, "--allow-root", frames)
    with spexd.Client(server.address) as client:
        assert client.capabilities()
        assert server.stop() == 0
        for _ in range(2):
            with pytest.raises(spexd.UnavailableError):
                client.capabilities()
        (tmp_path / "ports.json").unlink()
        server = Server(tmp_path, "--allow-root", frames, listen=server.address)
        assert client.capabilities()
    assert server.stop() == 0


def test_calls_go_on_where_another_one_found_the_network_broken(image, psf, server):
    with StandIn(server.address, lambda call, number, event: call != 2) as stand_in:
        with spexd.Client(stand_in.address, retry=spexd.RetryPolicy(first_wait=0.01)) as client:
            with client.stream(image, psf=psf, bundle_size=1) as stream:
                next(stream)
                client.extract(image, psf=psf, fibre_count=1)
                assert sum(1 for _ in stream) == FIBRES - 1
            assert len(stand_in.calls) == 3
            assert len(client._directory.channels_to_close()) == 1  # the first channel was closed after its last call


def test_a_damaged_answer_is_fetched_again(image, psf, server):
    def spoil(call, number, event):
        if call == 1 and event.HasField("bundle"):
            event.bundle.flux = bytes(len(event.bundle.flux))

    with StandIn(server.address, spoil) as stand_in, spexd.Client(stand_in.address) as client:
        frame = client.extract(image, psf=psf)
        assert len(stand_in.calls) == 2
    assert np.count_nonzero(frame.flux) > 0


def test_an_answer_that_stays_damaged_is_an_error(image, psf, server):
    def spoil(call, number, event):
        if event.HasField("bundle"):
            event.bundle.crc32c ^= 1

    with StandIn(server.address, spoil) as stand_in, spexd.Client(stand_in.address) as client:
        with pytest.raises(spexd.DataLossError, match="checksum"):
            client.extract(image, psf=psf)


@pytest.fixture(scope="module")
def events(frames, server):
    header = extraction_pb2.JobHeader(bundle_size=25, want_model=True)
    header.image.path, header.psf.path = str(frames / "preproc-r0.fits"), str(frames / "psf-r0.fits")
    with grpc.insecure_channel(server.address) as channel:
        call = extraction_pb2_grpc.ExtractionStub(channel).Extract(iter([extraction_pb2.ExtractRequest(header=header)]))
        return [event for event in call if not event.HasField("progress")]


def _index(events, kind):
    return next(k for k, event in enumerate(events) if event.HasField(kind))


def _copy(event):
    return type(event).FromString(event.SerializeToString())


def _changed(events, kind, change):
    events = [_copy(event) for event in events]
    change(getattr(events[_index(events, kind)], kind))
    return events


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda e: [*e, e[-1]], "after the summary"),
        (lambda e: [e[0], *e[2:]], "before the FrameInfo"),
        (lambda e: [*e[:2], e[1], *e[2:]], "second FrameInfo"),
        (lambda e: [x for x in e if not x.HasField("bundle")], "fibre 0 never came"),
        (lambda e: e[:-1], "before the summary"),
        (lambda e: _changed(e, "frame_info", lambda i: setattr(i.grid, "count", 2**31)), "a frame of 50 fibres"),
        (lambda e: _changed(e, "bundle", lambda b: setattr(b, "ivar", b"")), "arrays of the wrong size"),
        (lambda e: _changed(e, "bundle", lambda b: setattr(b, "mask", b.flux)), "checksum"),
        (lambda e: _changed(e, "bundle", lambda b: setattr(b, "first_fibre", 49)), "not the frame's"),
        (lambda e: _changed(e, "model", lambda m: setattr(m, "pixels", bytes(len(m.pixels)))), "wrong checksum"),
        (lambda e: _changed(e, "model", lambda m: setattr(m, "first_row", 1)), "rows or columns|out of order"),
        (lambda e: _changed(e, "summary", lambda s: s.bad2dfit.append(10**9)), "bin 1000000000"),
    ],
)
def test_events_that_cannot_be_are_damage(events, spoil, message):
    assembler = Assembler()
    with pytest.raises(spexd.DataLossError, match=message):
        for event in spoil(events):
            assembler.add(event)
        assembler.finish(None, "")


def test_a_bundle_that_failed_is_without_data(events):
    failed = [_copy(event) for event in events]
    for event in failed:
        if event.HasField("bundle") and event.bundle.bundle == 0:
            for name in ("flux", "ivar", "mask", "resolution", "chi2pix"):
                event.bundle.ClearField(name)
            event.bundle.crc32c, event.bundle.error = 0, "singular"
    assembler = Assembler()
    bundles = [bundle for event in failed if (bundle := assembler.add(event)) is not None]
    assert sorted(bundle.error for bundle in bundles) == ["", "singular"]
    frame = assembler.finish(None, "")
    assert (frame.mask[:25] & spexd.NODATA).all() and not (frame.flux[:25]).any()
    assert (frame.resolution[:25, 5] == 1).all()


def test_detached_jobs_are_watched_and_released(frames, image, psf, client, tmp_path):
    submitted = client.submit(image, psf=psf, model=True, upload=True, request_id="night-1")
    assert (
        not submitted.existed and client.submit(image, psf=psf, model=True, upload=True, request_id="night-1").existed
    )
    with pytest.raises(spexd.AlreadyExistsError):
        client.submit(image, psf=psf, request_id="night-1", psferr=0.5)
    frame = client.watch(submitted.job_id, timeout=60)
    assert_same(frame, spexd.Frame.from_fits(frames / "frame.fits"))
    assert_same(client.watch(submitted.job_id), frame)  # the results still exist
    assert submitted.job_id in [record.job_id for record in client.jobs()]
    client.ack(frame)
    with pytest.raises(spexd.OutOfRangeError, match="were fetched and released before"):
        client.watch(submitted.job_id)


def test_a_detached_job_that_fails_ends_the_watch_with_its_error(image, psf, client):
    job = client.submit(image, psf=psf, wavelength=(1000, 1001, 0.5))
    with pytest.raises(spexd.InvalidArgumentError, match="wavelength grid"):
        client.watch(job.job_id, timeout=60)
    assert client.job(job.job_id).runs >= 0


def test_a_detached_job_can_be_cancelled(image, psf, start_server, tmp_path):
    server = start_server("--jobs-dir", tmp_path / "jobs", "--max-running-jobs", 1)
    with spexd.Client(server.address) as client:
        jobs = [client.submit(image, psf=psf, bundle_size=1) for _ in range(8)]
        record = client.cancel(jobs[-1].job_id)
        if record.code == grpc.StatusCode.OK.value[0]:  # the job had already ended
            assert len(client.watch(jobs[-1].job_id, timeout=60).flux) == FIBRES
        else:
            with pytest.raises(spexd.CancelledError):
                client.watch(jobs[-1].job_id, timeout=60)
        with pytest.raises(spexd.NotFoundError):
            client.cancel("0" * 32)


def test_a_watch_goes_on_where_the_network_broke(image, psf, client, server, retries):
    job = client.submit(image, psf=psf, bundle_size=5)
    frame = client.watch(job.job_id, timeout=60)
    # The results exist, so each call of Watch would bring them all.
    broken = StandIn(server.address, lambda call, number, event: call > 2 or number < 3)
    policy = spexd.RetryPolicy(first_wait=0.01)
    with broken, spexd.Client(broken.address, retry=policy) as through:
        with through.stream_job(job.job_id, timeout=60) as stream:
            fibres = [fibre for bundle in stream for fibre in bundle.fibres]
        assert_same(stream.frame, frame)
        assert broken.calls[0] == 0 < broken.calls[1] < broken.calls[2]
    assert sorted(fibres) == list(range(FIBRES)) and len(retries.waits) == 2


def test_a_token_is_shown(image, psf, start_server, tmp_path):
    (tmp_path / "token").write_text("some-token\n")
    (tmp_path / "wrong").write_text("another-token\n")
    hashed = hashlib.sha256(b"some-token").hexdigest()
    (tmp_path / "identities").write_text(f"worker submit,read token sha256:{hashed}\n")
    server = start_server("--identities", tmp_path / "identities")
    for name in ("wrong", ""):
        with spexd.Client(server.address, token_file=str(tmp_path / name) if name else "") as client:
            with pytest.raises(spexd.UnauthenticatedError):
                client.extract(image, psf=psf)
    with spexd.Client(server.address, token_file=str(tmp_path / "token")) as client:
        assert len(client.extract(image, psf=psf, fibre_count=1).flux) == 1
    with pytest.raises(spexd.InvalidArgumentError, match="in plain text"):
        spexd.Client("192.0.2.1:50051", token_file=str(tmp_path / "token"))


def test_a_trace_of_the_environment_is_in_the_servers_log(image, psf, start_server, monkeypatch):
    trace_id, span_id = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
    monkeypatch.setenv("TRACEPARENT", f"00-{trace_id}-{span_id}-01")
    server = start_server()
    with spexd.Client(server.address) as client:
        client.extract(image, psf=psf, fibre_count=1)
    monkeypatch.setenv("TRACEPARENT", "not valid\n")
    with spexd.Client(server.address) as client:
        client.extract(image, psf=psf, fibre_count=1)
    wait_for(lambda: server.log.read_text().count('"job_ended"') == 2)
    lines = [json.loads(line) for line in server.log.read_text().splitlines()]
    traces = [(line.get("trace_id"), line.get("span_id")) for line in lines if line["event"] == "job_ended"]
    assert traces == [(trace_id, span_id), (None, None)]


def test_tls_trusts_the_authorities_that_are_named(image, psf, start_server, tmp_path, monkeypatch):
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    subject = ["-subj", "/CN=spexd", "-addext", "subjectAltName=IP:127.0.0.1"]
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    subprocess.run(
        ["openssl", "req", "-x509", *curve, "-nodes", "-days", "2", *subject, "-keyout", key, "-out", certificate],
        check=True,
        capture_output=True,
    )
    server = start_server("--tls-certificate", certificate, "--tls-private-key", key)
    monkeypatch.setenv("SPEXD_SERVER", server.address)
    monkeypatch.setenv("SPEXD_TLS_CA", str(certificate))
    with spexd.Client() as client:
        assert len(client.extract(image, psf=psf, fibre_count=1).flux) == 1
    policy = spexd.RetryPolicy(unavailable_attempts=1)
    with spexd.Client(tls_ca="", retry=policy) as plain, pytest.raises(spexd.UnavailableError):
        plain.extract(image, psf=psf)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"address": ""}, "server address is missing"),
        ({"address": "a:1,,b:2"}, "has an empty part"),
        ({"address": "dns:///name"}, "must be dns:///name:port"),
        ({"address": "a:1", "tls_cert": "x"}, "must be given together"),
        ({"address": "a:1", "tls_ca": "/missing"}, "cannot be read"),
    ],
)
def test_a_bad_address_is_an_error_at_once(arguments, message):
    with pytest.raises(spexd.InvalidArgumentError, match=message):
        spexd.Client(**arguments)


def test_importing_the_package_needs_no_grpc():
    import sys

    code = "import sys; sys.modules['grpc'] = None; import spexd; spexd.extract"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_frames_of_both_ways_have_the_same_arrays(image, psf, client, engine):
    remote, here = client.extract(image, psf=psf), engine.extract(image, psf=psf)
    assert {name: getattr(remote, name).dtype for name in ARRAYS} == {
        name: getattr(here, name).dtype for name in ARRAYS
    }
    np.testing.assert_array_equal(remote.fibermap, here.fibermap)
