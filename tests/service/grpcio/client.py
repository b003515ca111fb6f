"""An independent client of spexd that uses grpcio, the messages of the contract, and nothing else of this project.

    client.py SCENARIO ADDRESS FOLDER

Exit code 0 if the server behaved as the scenario says. Lines on stdout tell the test when to change the server; the test
answers with SIGUSR1.
"""
import hashlib
import signal
import sys
import threading

import grpc
from google.protobuf import descriptor_pb2

import health_pb2
import reflection_pb2
from spexd.v1 import extraction_pb2, jobs_pb2, registry_pb2, rpc_details_pb2

EXTRACT = "/spexd.v1.Extraction/Extract"
SERVICES = {"spexd.v1.Extraction", "spexd.v1.Analysis", "spexd.v1.PsfRegistry", "spexd.v1.Jobs"}
PATIENCE = 60
QUEUED_BYTES = 4 << 20  # limit of the server in `jobs`; more than its inputs have


def wait_for_test():
    signal.sigwait({signal.SIGUSR1})


def call_extract(channel, requests, **options):
    """Returns the events of a call, and the error that ended it (None: OK)."""
    call = channel.stream_stream(
        EXTRACT,
        request_serializer=extraction_pb2.ExtractRequest.SerializeToString,
        response_deserializer=extraction_pb2.ExtractEvent.FromString,
    )(iter(requests), timeout=options.pop("timeout", PATIENCE), **options)
    events = []
    try:
        for event in call:
            events.append(event)
    except grpc.RpcError as error:
        return events, error
    return events, None


def submit(channel, request_id, job):
    return channel.stream_unary(
        "/spexd.v1.Jobs/Submit",
        request_serializer=jobs_pb2.SubmitRequest.SerializeToString,
        response_deserializer=jobs_pb2.SubmitReply.FromString,
    )(iter([jobs_pb2.SubmitRequest(header=jobs_pb2.SubmitHeader(request_id=request_id, job=job.header))]),
      timeout=PATIENCE)


def watch(channel, job_id, after=0):
    return list(channel.unary_stream(
        "/spexd.v1.Jobs/Watch",
        request_serializer=jobs_pb2.WatchRequest.SerializeToString,
        response_deserializer=jobs_pb2.WatchEvent.FromString,
    )(jobs_pb2.WatchRequest(job_id=job_id, after=after), timeout=PATIENCE))


def unary(channel, path, request, answer, **options):
    return channel.unary_unary(
        path, request_serializer=type(request).SerializeToString, response_deserializer=answer.FromString
    )(request, timeout=PATIENCE, **options)


def header(folder, **changes):
    made = extraction_pb2.JobHeader(bundle_size=4)
    made.image.path = folder + "/preproc.fits"
    made.psf.path = folder + "/psf.fits"
    for field, value in changes.items():
        if field == "image_path":
            made.image.path = value
        elif field == "psf_hash":
            made.psf.psf_hash = value
        elif field == "upload":
            made.image.upload.name, made.image.upload.bytes = "sent.fits", len(value)
        else:
            setattr(made, field, value)
    return extraction_pb2.ExtractRequest(header=made)


def chunk(payload):
    return extraction_pb2.ExtractRequest(
        chunk=extraction_pb2.InputChunk(input=extraction_pb2.INPUT_IMAGE, payload=payload)
    )


def end(sha256=""):
    return extraction_pb2.ExtractRequest(end=extraction_pb2.InputEnd(input=extraction_pb2.INPUT_IMAGE, sha256=sha256))


def expect(error, code, *words):
    assert error is not None, f"OK instead of {code}"
    assert error.code() == code, f"{error.code()} ({error.details()}) instead of {code}"
    for word in words:
        assert word in error.details(), f'"{error.details()}" lacks "{word}"'


def ends(status, words, call):
    """Checks that the call ends with this status."""
    try:
        call()
    except grpc.RpcError as error:
        expect(error, status, words)
    else:
        raise AssertionError(f"OK instead of {status}")


def expect_delay(error):
    """Checks that the error has a delay in RetryInfo, and the same in grpc-retry-pushback-ms."""
    trailers = dict(error.trailing_metadata())
    status = rpc_details_pb2.RpcStatus.FromString(trailers["grpc-status-details-bin"])
    assert status.code == error.code().value[0] and status.message == error.details()
    delays = [any for any in status.details if any.type_url == "type.googleapis.com/google.rpc.RetryInfo"]
    info = rpc_details_pb2.RetryInfo.FromString(delays[0].value)
    seconds = info.retry_delay.seconds + 1e-9 * info.retry_delay.nanos
    assert seconds > 0 and abs(1000 * seconds - float(trailers["grpc-retry-pushback-ms"])) <= 1


def jobs(channel, folder):
    """Checks the ends of clients' jobs on a server that works."""
    code = grpc.StatusCode
    events, error = call_extract(channel, [header(folder)])
    assert error is None, error
    fibres = sum(event.bundle.fibre_count for event in events if event.HasField("bundle"))
    assert fibres == 10 and events[-1].summary.last
    image = open(folder + "/preproc.fits", "rb").read()
    sha256 = hashlib.sha256(image).hexdigest()
    events, error = call_extract(channel, [header(folder, upload=image), chunk(image), end(sha256)])
    assert error is None, error

    wrong = [
        (code.INVALID_ARGUMENT, "psferr", [header(folder, psferr=-1)]),
        (code.INVALID_ARGUMENT, "the first message must be the header", [chunk(b"x")]),
        (code.INVALID_ARGUMENT, "without a header", []),
        (code.NOT_FOUND, "nothing.fits", [header(folder, image_path=folder + "/nothing.fits")]),
        (code.PERMISSION_DENIED, "/etc/hostname", [header(folder, image_path="/etc/hostname")]),
        (code.FAILED_PRECONDITION, "names no PSF that is loaded", [header(folder, psf_hash="sha256:" + "0" * 64)]),
        (code.DATA_LOSS, "", [header(folder, upload=image), chunk(image[:-1])]),
        (code.DATA_LOSS, "", [header(folder, upload=image), chunk(image), end("0" * 64)]),
    ]
    for status, words, requests in wrong:
        expect(call_extract(channel, requests)[1], status, words)

    expect(call_extract(channel, [header(folder)], compression=grpc.Compression.Gzip)[1], code.UNIMPLEMENTED)
    for path in ("/spexd.v1.Extraction/NoSuchCall", "/spexd.v2.Extraction/Extract"):
        ends(code.UNIMPLEMENTED, "", lambda: unary(
            channel, path, extraction_pb2.GetCapabilitiesRequest(), extraction_pb2.Capabilities))
    # The job alone exceeds a limit, so no delay would help.
    error = call_extract(channel, [header(folder, upload=bytes(2 * QUEUED_BYTES))])[1]
    expect(error, code.RESOURCE_EXHAUSTED, "--max-queued-bytes")
    assert not {"grpc-retry-pushback-ms", "grpc-status-details-bin"} & dict(error.trailing_metadata()).keys()
    ends(code.FAILED_PRECONDITION, "--jobs-dir", lambda: watch(channel, "night 7"))
    ends(code.NOT_FOUND, "", lambda: unary(
        channel, "/spexd.v1.PsfRegistry/UnloadPsf", registry_pb2.UnloadPsfRequest(hash="0" * 64),
        registry_pb2.UnloadPsfResponse))
    psfs = unary(channel, "/spexd.v1.PsfRegistry/ListPsfs", registry_pb2.ListPsfsRequest(), registry_pb2.ListPsfsResponse)
    assert psfs.total == 1 and psfs.psfs[0].fibres == 10
    status = unary(channel, "/spexd.v1.Extraction/GetCapabilities", extraction_pb2.GetCapabilitiesRequest(),
                   extraction_pb2.Capabilities)
    assert status.version and status.engines[0].runnable


def detached(channel, folder):
    """Checks the ends of calls for detached jobs."""
    code = grpc.StatusCode
    first = submit(channel, "night 7", header(folder))
    assert not first.existed
    again = submit(channel, "night 7", header(folder))
    assert again.existed and again.job_id == first.job_id
    ends(code.ALREADY_EXISTS, first.job_id, lambda: submit(channel, "night 7", header(folder, bundle_size=5)))

    last = max(event.sequence for event in watch(channel, first.job_id))
    ack, record = "/spexd.v1.Jobs/Ack", jobs_pb2.JobRecord
    upto = lambda sequence: unary(channel, ack, jobs_pb2.AckRequest(job_id=first.job_id, upto=sequence), record)
    ends(code.OUT_OF_RANGE, f"upto is {last + 1}", lambda: upto(last + 1))
    ends(code.OUT_OF_RANGE, f"after is {last + 1}", lambda: watch(channel, first.job_id, last + 1))
    assert upto(2).acknowledged == 2
    ends(code.OUT_OF_RANGE, "events up to 2 were acknowledged", lambda: watch(channel, first.job_id, 1))
    ends(code.NOT_FOUND, "no such job", lambda: unary(channel, ack, jobs_pb2.AckRequest(job_id="no such job"), record))



def cancelled(channel, folder):
    """Checks a detached job that is cancelled while it waits: its Watch ends with the server's own CANCELLED."""
    job = submit(channel, "night 7", header(folder))
    unary(channel, "/spexd.v1.Jobs/CancelJob", jobs_pb2.CancelJobRequest(job_id=job.job_id), jobs_pb2.JobRecord)
    ends(grpc.StatusCode.CANCELLED, "", lambda: watch(channel, job.job_id))


def limits(channel, folder):
    """Checks a full queue, a limit of time, a deadline and cancellation, on a server that takes one job."""
    code, released = grpc.StatusCode, threading.Event()
    extract = channel.stream_stream(
        EXTRACT,
        request_serializer=extraction_pb2.ExtractRequest.SerializeToString,
        response_deserializer=extraction_pb2.ExtractEvent.FromString,
    )

    def unfinished(first):
        yield from first
        released.wait()

    holding = extract(unfinished([header(folder, upload=b"1234")]), timeout=PATIENCE)
    assert next(holding).HasField("accepted")
    error = call_extract(channel, [header(folder)])[1]
    expect(error, code.RESOURCE_EXHAUSTED, "queue")
    expect_delay(error)
    holding.cancel()
    assert holding.code() == code.CANCELLED
    print("cancelled", flush=True)
    wait_for_test()

    expect(call_extract(channel, unfinished([header(folder, upload=b"1234")]), timeout=0.1)[1], code.DEADLINE_EXCEEDED)
    expect(call_extract(channel, unfinished([]))[1], code.DEADLINE_EXCEEDED, "--header-seconds")
    released.set()


def internal(channel, folder):
    """Checks an engine that fails for an internal reason, then one whose device fails."""
    expect(call_extract(channel, [header(folder)])[1], grpc.StatusCode.INTERNAL, "broken")
    print("failed", flush=True)
    wait_for_test()
    error = call_extract(channel, [header(folder)])[1]
    expect(error, grpc.StatusCode.UNAVAILABLE, "device 0 failed")
    expect_delay(error)


def access(channel, folder):
    """Checks callers that are unknown, and callers that may only read."""
    code = grpc.StatusCode
    ask = ("/spexd.v1.Extraction/GetCapabilities", extraction_pb2.GetCapabilitiesRequest(), extraction_pb2.Capabilities)
    for metadata in (None, [("authorization", "Bearer nobody-knows-it")]):
        ends(code.UNAUTHENTICATED, "", lambda: unary(channel, *ask, metadata=metadata))
        expect(call_extract(channel, [header(folder)], metadata=metadata)[1], code.UNAUTHENTICATED)
    viewer = [("authorization", "Bearer viewer-token")]
    assert unary(channel, *ask, metadata=viewer).version
    expect(call_extract(channel, [header(folder)], metadata=viewer)[1], code.PERMISSION_DENIED, "submit")


def health(channel, folder):
    """Checks Check and Watch while the server begins to drain, and that jobs are then refused."""
    check = "/grpc.health.v1.Health/Check"
    serving = health_pb2.HealthCheckResponse.ServingStatus
    for service in ("", *SERVICES):
        answer = unary(channel, check, health_pb2.HealthCheckRequest(service=service), health_pb2.HealthCheckResponse)
        assert answer.status == serving.Value("SERVING"), service
    ends(grpc.StatusCode.NOT_FOUND, "", lambda: unary(
        channel, check, health_pb2.HealthCheckRequest(service="no.such.Service"), health_pb2.HealthCheckResponse))
    watch_health = channel.unary_stream(
        "/grpc.health.v1.Health/Watch",
        request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
        response_deserializer=health_pb2.HealthCheckResponse.FromString,
    )
    states = watch_health(health_pb2.HealthCheckRequest(service="spexd.v1.Extraction"), timeout=PATIENCE)
    unknown = watch_health(health_pb2.HealthCheckRequest(service="no.such.Service"), timeout=PATIENCE)
    assert next(unknown).status == serving.Value("SERVICE_UNKNOWN")
    unknown.cancel()
    assert next(states).status == serving.Value("SERVING")
    print("serving", flush=True)
    assert next(states).status == serving.Value("NOT_SERVING")
    expect(call_extract(channel, [header(folder)])[1], grpc.StatusCode.UNAVAILABLE, "draining")
    print("drains", flush=True)


def reflection(channel, folder):
    """Checks that the server describes its own services well enough to build the contract's messages from nothing."""
    ask = channel.stream_stream(
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
        request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
        response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
    )
    request = reflection_pb2.ServerReflectionRequest
    symbols = [
        "spexd.v1.Extraction",
        "spexd.v1.Analysis.Analyse",
        "spexd.v1.PsfRegistry.LoadPsf",
        "spexd.v1.Jobs",
        "spexd.v1.NoSuchThing",
    ]
    answers = ask(
        iter([request(list_services="*"), *(request(file_containing_symbol=name) for name in symbols)]),
        timeout=PATIENCE,
    )
    services = {service.name for service in next(answers).list_services_response.service}
    assert {*SERVICES, "grpc.health.v1.Health"} <= services, services
    methods = {}
    for _, answer in zip(SERVICES, answers):
        for binary in answer.file_descriptor_response.file_descriptor_proto:
            described = descriptor_pb2.FileDescriptorProto.FromString(binary)
            for service in described.service:
                methods[service.name] = {method.name for method in service.method}
    assert methods["Extraction"] == {"Extract", "GetCapabilities"}, methods
    assert methods["Analysis"] == {"Analyse"}, methods
    assert methods["PsfRegistry"] == {"LoadPsf", "ListPsfs", "UnloadPsf"}, methods
    assert methods["Jobs"] == {"Submit", "Watch", "GetJob", "ListJobs", "CancelJob", "Ack"}, methods
    assert next(answers).error_response.error_code == grpc.StatusCode.NOT_FOUND.value[0]


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    scenario, address, folder = sys.argv[1:]
    with grpc.insecure_channel(address, options=[("grpc.enable_http_proxy", 0)]) as channel:
        globals()[scenario](channel, folder)
    print("good", flush=True)
