"""Simulated frames, the programs that the package is compared with, and servers."""

import json
import os
import pathlib
import subprocess
import time

import pytest

import spexd

BIN = pathlib.Path(os.environ["SPEXD_BIN"]).resolve()
FIBRES, ROWS = 50, 400


def run_spex(*arguments, folder=None):
    subprocess.run([BIN / "spex", *map(str, arguments)], check=True, cwd=folder, stdout=subprocess.DEVNULL)


@pytest.fixture(scope="session")
def frames(tmp_path_factory):
    """Returns a folder with preproc-r0.fits and psf-r0.fits, and with frame.fits and model.fits that spex made of
    them."""
    folder = tmp_path_factory.mktemp("frames")
    run_spex("simulate", "--fibres", FIBRES, "--rows", ROWS, "--seed", 4, "--out-dir", folder)
    inputs = ["-i", folder / "preproc-r0.fits", "-p", folder / "psf-r0.fits"]
    run_spex(*inputs, "-o", folder / "frame.fits", "-m", folder / "model.fits", "--device", "cpu", "-q")
    return folder


@pytest.fixture
def image(frames):
    return frames / "preproc-r0.fits"


@pytest.fixture
def psf(frames):
    return frames / "psf-r0.fits"


@pytest.fixture(scope="session")
def engine():
    return spexd.Engine("cpu")


class Server:
    """A spexd on ports chosen by the kernel, stopped at the end of its test."""

    def __init__(self, folder, *flags, listen="127.0.0.1:0"):
        self._ports = folder / "ports.json"
        self.log = folder / "spexd.log"
        self._log = open(self.log, "wb")
        self._command = [BIN / "spexd", "--http", "127.0.0.1:0", "--device", "cpu", "--port-file", self._ports]
        self._command += map(str, flags)
        self._start(listen)

    def _start(self, listen):
        self._ports.unlink(missing_ok=True)
        command = [*self._command, "--listen", listen]
        self._process = subprocess.Popen(command, stdout=self._log, stderr=self._log)
        wait_for(lambda: self._ports.exists() or self._process.poll() is not None)
        assert self._ports.exists(), self.log.read_text()
        self.address = json.loads(self._ports.read_text())["grpc"]

    def kill_and_start_again(self):
        """Starts a new server at the address of the old one."""
        self._process.kill()
        self._process.wait()
        self._start(self.address)

    def stop(self):
        self._process.terminate()
        code = self._process.wait(60)
        self._log.close()
        return code


def wait_for(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "the condition did not come true"
        time.sleep(0.01)


@pytest.fixture
def start_server(frames, tmp_path_factory):
    """Returns start_server(FLAG...), which starts a spexd that may read the frames."""
    servers = []

    def start(*flags):
        servers.append(Server(tmp_path_factory.mktemp("server"), "--allow-root", frames, *flags))
        return servers[-1]

    yield start
    assert [server.stop() for server in servers] == [0] * len(servers)


@pytest.fixture(scope="session")
def server(frames, tmp_path_factory):
    """Starts the server shared by all tests that need no other; it keeps detached jobs."""
    folder = tmp_path_factory.mktemp("server")
    server = Server(folder, "--allow-root", frames, "--jobs-dir", folder / "jobs")
    yield server
    assert server.stop() == 0


@pytest.fixture
def client(server):
    with spexd.Client(server.address) as client:
        yield client
