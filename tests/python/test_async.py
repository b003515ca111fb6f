"""Jobs on real servers, run from an event loop."""

import asyncio
import logging

import pytest
from conftest import FIBRES, Server, wait_for
from stand_in import StandIn
from test_in_process import assert_same
from test_remote import Retries

import spexd


def run(server, body, **options):
    """Runs ``body(client)`` in its own event loop."""

    async def main():
        async with spexd.AsyncClient(server.address, **options) as client:
            return await body(client)

    return asyncio.run(asyncio.wait_for(main(), 120))


@pytest.mark.parametrize("upload", [False, True])
def test_a_frame_is_the_same_as_in_this_process(image, psf, server, engine, upload):
    frame = run(server, lambda client: client.extract(image, psf=psf, model=True, upload=upload))
    want = engine.extract(image, psf=psf, model=True)
    assert_same(frame, want)
    assert (frame.model == want.model).all()


def test_jobs_run_side_by_side(image, psf, server, engine):
    async def body(client):
        cuts = [client.extract(image, psf=psf, first_fibre=first, fibre_count=5) for first in range(0, FIBRES, 5)]
        return await asyncio.gather(*cuts)

    want = engine.extract(image, psf=psf, scores=False)
    for k, frame in enumerate(run(server, body)):
        assert frame.first_fibre == 5 * k and (frame.flux == want.flux[5 * k : 5 * k + 5]).all()


def test_a_stream_brings_every_bundle_once(image, psf, server):
    async def body(client):
        async with client.stream(image, psf=psf, bundle_size=5) as stream:
            bundles = [bundle async for bundle in stream]
        return bundles, await stream.frame()

    bundles, frame = run(server, body)
    assert [bundle.done for bundle in bundles] == list(range(1, 11))
    assert sorted(fibre for bundle in bundles for fibre in bundle.fibres) == list(frame.fibres)


def test_a_task_that_is_cancelled_stops_its_job(image, psf, server, client):
    async def body(aclient):
        begun = asyncio.Event()

        async def job():
            async with aclient.stream(image, psf=psf, bundle_size=1) as stream:
                async for _ in stream:
                    begun.set()
                    await asyncio.sleep(3600)

        task = asyncio.create_task(job())
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(server, body)
    wait_for(lambda: client.capabilities()[0].jobs_running == 0)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"first_fibre": 99}, spexd.InvalidArgumentError, "first fibre 99"),
        ({"psf": "missing.fits", "upload": True}, spexd.NotFoundError, "missing.fits"),
        ({"psf": "/etc/passwd"}, spexd.PermissionDeniedError, "outside the allowed roots"),
        ({"timeout": 1e-3}, spexd.DeadlineExceededError, "(?i)deadline"),
    ],
)
def test_every_status_code_is_a_class(image, psf, server, options, error, message):
    with pytest.raises(error, match=message):
        run(server, lambda client: client.extract(image, **{"psf": psf, **options}))


def test_a_file_that_vanishes_under_an_upload_is_named(image, psf, server, tmp_path):
    copy = tmp_path / "copy.fits"
    copy.write_bytes(image.read_bytes())

    async def body(client):
        stream = client.stream(copy, psf=psf, upload=True)
        copy.unlink()
        await stream.frame()

    with pytest.raises(spexd.NotFoundError, match="copy.fits"):
        run(server, body)


def test_refused_jobs_are_tried_again(image, psf, server):
    handler, logger = Retries(), logging.getLogger("spexd")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        with StandIn(server.address, lambda call, number, event: call > 2) as stand_in:
            policy = spexd.RetryPolicy(first_wait=0.01)
            frame = run(stand_in, lambda client: client.extract(image, psf=psf, fibre_count=1), retry=policy)
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
    assert len(frame.flux) == 1 and len(handler.waits) == 2


def test_a_server_that_came_back_is_found_at_once(frames, tmp_path):
    first = Server(tmp_path, "--allow-root", frames)

    async def body(client):
        assert await client.capabilities()
        assert first.stop() == 0
        for _ in range(2):
            with pytest.raises(spexd.UnavailableError):
                await client.capabilities()
        (tmp_path / "ports.json").unlink()
        second = Server(tmp_path, "--allow-root", frames, listen=first.address)
        assert await client.capabilities()
        return second

    assert run(first, body).stop() == 0


def test_calls_go_on_where_another_one_found_the_network_broken(image, psf, server):
    async def body(client):
        async with client.stream(image, psf=psf, bundle_size=1) as stream:
            await stream.__anext__()
            await client.extract(image, psf=psf, fibre_count=1)
            return [bundle async for bundle in stream]

    with StandIn(server.address, lambda call, number, event: call != 2) as stand_in:
        assert len(run(stand_in, body, retry=spexd.RetryPolicy(first_wait=0.01))) == FIBRES - 1
        assert len(stand_in.calls) == 3


def test_detached_jobs_are_watched_over_broken_connections_and_released(image, psf, server, engine):
    async def body(client):
        job = await client.submit(image, psf=psf, bundle_size=5)
        frame = await client.watch(job.job_id, timeout=60)
        assert (await client.job(job.job_id)).bundles_done == 10
        assert job.job_id in [record.job_id for record in await client.jobs()]
        broken = StandIn(server.address, lambda call, number, event: call > 2 or number < 3)
        with broken:
            async with spexd.AsyncClient(broken.address, retry=spexd.RetryPolicy(first_wait=0.01)) as through:
                assert_same(await through.watch(job.job_id, timeout=60), frame)
            assert broken.calls[0] == 0 < broken.calls[1] < broken.calls[2]
        await client.ack(frame)
        with pytest.raises(spexd.OutOfRangeError):
            await client.watch(job.job_id)
        assert (await client.cancel(job.job_id)).job_id == job.job_id
        assert (await client.capabilities())[0].version and await client.psfs()
        return frame

    assert_same(run(server, body), engine.extract(image, psf=psf, bundle_size=5))
