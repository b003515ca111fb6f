"""After a fork spexd works or raises an error; it never hangs. The time limits only end tests that fail."""

import multiprocessing
import os
import threading

import pytest

import spexd
from spexd import _processes
from spexd._processes import Process

FORK = multiprocessing.get_context("fork")
PATIENCE = 120  # seconds


def in_child(function):
    """Returns what ``function`` returns or raises in a forked process, which must then end by itself."""
    receive, send = FORK.Pipe(duplex=False)

    def run():
        try:
            send.send(function())
        except Exception as error:
            send.send(error)

    child = FORK.Process(target=run)
    child.start()
    try:
        assert receive.poll(PATIENCE), "the forked process hangs"
        answer = receive.recv()
        child.join(PATIENCE)
        assert child.exitcode == 0
        return answer
    finally:
        child.kill()
        child.join()


@pytest.fixture(autouse=True)
def no_gpu_was_used(monkeypatch):
    """Resets the use of a GPU, because other tests of this process may have used an emulated one."""
    monkeypatch.setattr(_processes.process, "_cuda", False)


def flux_of(frame):
    return frame.flux.tobytes()


@pytest.fixture
def want(image, psf, engine):
    return flux_of(engine.extract(image, psf=psf, fibre_count=2))


def test_the_default_engine_of_a_forked_process_is_its_own(image, psf, want):
    spexd.default_engine()
    assert in_child(lambda: flux_of(spexd.extract(image, psf=psf, fibre_count=2))) == want


def test_os_fork_alone_gives_a_process_that_can_extract(image, psf):
    spexd.default_engine()
    pid = os.fork()
    if pid == 0:
        try:
            spexd.extract(image, psf=psf, fibre_count=1)
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_an_engine_from_before_a_fork_is_an_error(image, psf, engine):
    error = in_child(lambda: engine.extract(image, psf=psf))
    assert isinstance(error, spexd.FailedPreconditionError) and "before a fork" in str(error)


def test_an_engine_from_before_a_fork_can_be_dropped(image, psf):
    engines = [spexd.Engine("cpu", threads=2)]
    engines[0].extract(image, psf=psf, fibre_count=1)
    assert in_child(engines.clear) is None
    assert engines[0].extract(image, psf=psf, fibre_count=1).fibres == range(1)


def test_a_client_from_before_a_fork_is_an_error(image, psf, client, want):
    assert flux_of(client.extract(image, psf=psf, fibre_count=2)) == want
    for call in (lambda: client.extract(image, psf=psf), client.jobs, lambda: client.watch("any")):
        error = in_child(call)
        assert isinstance(error, spexd.FailedPreconditionError) and "client was made before a fork" in str(error)
    assert flux_of(client.extract(image, psf=psf, fibre_count=2)) == want


def test_psfs_and_frames_from_before_a_fork_can_be_used(image, psf, engine, want):
    loaded, frame = spexd.Psf(psf), engine.extract(image, psf=psf)

    def work():
        small = spexd.Engine("cpu", threads=2).extract(image, psf=loaded, fibre_count=2)
        return flux_of(small), frame.sky(threads=2).model.tobytes()

    assert in_child(work) == (want, frame.sky().model.tobytes())


def test_the_processes_of_a_pool_extract_with_engines_of_their_own(image, psf, engine):
    spexd.default_engine()
    with FORK.Pool(2) as pool:
        parts = [pool.apply_async(extract_one, (image, psf, fibre)) for fibre in range(4)]
        fluxes = [part.get(PATIENCE) for part in parts]
    assert fluxes == [flux_of(engine.extract(image, psf=psf, first_fibre=k, fibre_count=1)) for k in range(4)]


def extract_one(image, psf, fibre):
    return flux_of(spexd.extract(image, psf=psf, first_fibre=fibre, fibre_count=1))


def test_a_fork_while_another_thread_extracts_gives_a_process_in_which_spexd_is_an_error(image, psf, engine):
    under_way, go_on = threading.Event(), threading.Event()

    def hold(done, total):
        under_way.set()
        go_on.wait(PATIENCE)

    thread = threading.Thread(target=lambda: engine.extract(image, psf=psf, progress=hold))
    thread.start()
    try:
        assert under_way.wait(PATIENCE)
        errors = [in_child(lambda: spexd.extract(image, psf=psf)), in_child(lambda: spexd.Psf(psf))]
    finally:
        go_on.set()
        thread.join()
    for error in errors:
        assert isinstance(error, spexd.FailedPreconditionError) and '"spawn" or "forkserver"' in str(error)
    assert len(engine.extract(image, psf=psf, fibre_count=1).flux) == 1  # nothing changed in this process


def test_a_process_that_was_forked_inside_of_a_call_cannot_call_and_nor_can_its_children():
    process, inside = Process(), []

    def fork():
        process.forked()
        with pytest.raises(spexd.FailedPreconditionError, match="was inside of spexd"):
            process.call(inside.append, 1)

    process.call(fork)
    process.forked()
    with pytest.raises(spexd.FailedPreconditionError, match="was inside of spexd"):
        process.call(inside.append, 2)
    assert inside == []


def test_a_process_that_was_forked_between_calls_can_call():
    process = Process()
    with pytest.raises(ZeroDivisionError):
        process.call(lambda: 1 / 0)  # even a call that failed has ended
    process.forked()
    assert process.call(divmod, 7, 2) == (3, 1)


def test_a_gpu_that_was_used_before_a_fork_is_an_error_that_says_what_to_do():
    process = Process()
    process.check_device("cuda")
    process.uses_cuda()
    process.check_device("cuda")
    process.forked()
    process.check_device("cpu")
    for device in ("cuda", "auto"):
        with pytest.raises(spexd.FailedPreconditionError, match='CUDA .* fork .* "spawn" or "forkserver"'):
            process.check_device(device)
