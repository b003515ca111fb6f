"""Servers that are replaced by others at other addresses, while clients use their name."""

import asyncio
import threading

import pytest
from conftest import FIBRES
from stand_in import StandIn

import spexd
from spexd import _servers

ADDRESS = "dns:///spexd.example:50051"
DEAD = "unix:/nowhere/spexd.sock"


@pytest.fixture
def name(monkeypatch):
    """Provides the list of the name's addresses. Once ``name.later`` is set, the next look-up changes the list to
    it."""

    class Name(list):
        later = None

    addresses = Name()

    def look_up(host_and_port):
        assert host_and_port == "spexd.example:50051"
        now = list(addresses)
        if addresses.later is not None:
            addresses[:], addresses.later = addresses.later, None
        if not now:
            raise spexd.UnavailableError("no such name")
        return [_servers.Endpoint(address, "spexd.example") for address in now]

    monkeypatch.setattr(_servers, "_look_up", look_up)
    return addresses


def test_each_call_goes_to_the_servers_that_the_name_has_then(image, psf, start_server, name):
    first, second = start_server(), start_server()
    name[:] = [first.address]
    with spexd.Client(ADDRESS) as client:
        assert client.extract(image, psf=psf, fibre_count=1).job.server == first.address
        name[:] = [second.address]
        assert client.extract(image, psf=psf, fibre_count=1).job.server == second.address
        name[:] = []  # the last known servers are used
        assert client.extract(image, psf=psf, fibre_count=1).job.server == second.address


def test_servers_share_the_jobs_of_a_client_equally(image, psf, start_server, name, tmp_path):
    name[:] = [start_server("--jobs-dir", tmp_path / jobs).address for jobs in ("first", "second")]
    with spexd.Client(ADDRESS, retry=spexd.RetryPolicy(health_patience=60.0)) as client:
        extracted = [client.extract(image, psf=psf, fibre_count=1).job.server for _ in range(6)]
        submitted = [client.submit(image, psf=psf, fibre_count=1).server for _ in range(6)]
    assert sorted(extracted) == sorted(submitted) == sorted(3 * list(name))


def test_a_name_without_an_address_is_an_error_at_once(name):
    with pytest.raises(spexd.UnavailableError, match="no such name"):
        spexd.Client(ADDRESS)


def test_a_job_that_all_servers_refused_goes_to_those_that_replaced_them(image, psf, server, name):
    patient = spexd.RetryPolicy(first_wait=3600, longest_wait=3600)  # the wait if there were no other server
    name[:] = [DEAD]
    with spexd.Client(ADDRESS, retry=patient) as client:
        name.later = [server.address]
        assert len(client.extract(image, psf=psf, fibre_count=1, timeout=1000).flux) == 1
        name[:] = [DEAD]
        name.later = [server.address]
        assert client.submit(image, psf=psf, fibre_count=1).server == server.address


def test_calls_go_on_at_a_server_that_left_the_name_and_then_its_channel_is_closed(image, psf, start_server, name):
    first, second = start_server(), start_server()
    name[:] = [first.address]
    with spexd.Client(ADDRESS) as client:
        with client.stream(image, psf=psf, bundle_size=1) as stream:
            next(stream)
            name[:] = [second.address]
            assert client.extract(image, psf=psf, fibre_count=1).job.server == second.address
            assert sum(1 for _ in stream) == FIBRES - 1
        assert stream.frame.job.server == first.address
        assert len(client._directory.channels_to_close()) == 1


def test_an_event_loop_finds_them_too(image, psf, start_server, name):
    first, second = start_server(), start_server()

    async def body():
        name[:] = [first.address]
        async with spexd.AsyncClient(ADDRESS) as client:
            before = await client.extract(image, psf=psf, fibre_count=1)
            name[:] = [second.address]
            return before, await client.extract(image, psf=psf, fibre_count=1)

    assert [frame.job.server for frame in asyncio.run(body())] == [first.address, second.address]


@pytest.mark.parametrize("known_before", [False, True])
def test_a_watch_goes_on_where_the_jobs_server_is_started_again(image, psf, server, client, name, known_before):
    frame = client.extract(image, psf=psf, bundle_size=5)
    job = client.submit(image, psf=psf, bundle_size=5)
    left = threading.Event()

    def hold(call, number, event):
        return number < 5 or not left.wait(100)

    with StandIn(server.address, hold) as first, StandIn(server.address, lambda *event: True) as second:
        name[:] = [first.address, second.address] if known_before else [first.address]
        with spexd.Client(ADDRESS, retry=spexd.RetryPolicy(first_wait=0.01)) as through:
            with through.stream_job(job.job_id, timeout=100) as stream:
                bundles = [next(stream).index]
                name[:] = [second.address]
                first.leave(release=left.set)
                bundles += [bundle.index for bundle in stream]
            assert sorted(bundles) == list(range(10))
            assert (stream.frame.flux == frame.flux).all()
            assert stream.frame.job.server == second.address
            assert second.calls[0] > 0  # the results before that came from the first server


def test_no_token_goes_in_plain_text_to_a_server_that_is_found_later(image, psf, server, name, tmp_path):
    (tmp_path / "token").write_text("some-token\n")
    name[:] = [server.address]
    with spexd.Client(ADDRESS, token_file=str(tmp_path / "token")) as client:
        name[:] = ["192.0.2.1:50051", server.address]  # left out while there are others
        assert client.extract(image, psf=psf, fibre_count=1).job.server == server.address
        name[:] = ["192.0.2.1:50051"]
        with pytest.raises(spexd.InvalidArgumentError, match=r"192\.0\.2\.1:50051 in plain text"):
            client.extract(image, psf=psf)
