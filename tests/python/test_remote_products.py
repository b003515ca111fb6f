"""Products made by servers equal those of the frame's own methods."""

import asyncio
import pickle

import grpc
import numpy as np
import pytest
from test_products import write_templates

import spexd
from spexd._events import Assembler
from spexd._product_parts import _checksum
from spexd._request import RemoteJob
from spexd.v1 import extraction_pb2, extraction_pb2_grpc

fits = pytest.importorskip("astropy.io.fits")


@pytest.fixture(scope="module")
def inputs(frames):
    """Provides templates and a fiberflat where servers may read them."""
    frame = spexd.Frame.from_fits(frames / "frame.fits")
    write_templates(frames / "templates.fits", frame.wave)
    write_templates(frames / "hole.fits", frame.wave, rows=3)
    flat = np.random.default_rng(3).uniform(0.9, 1.1, frame.flux.shape)
    fits.HDUList([fits.PrimaryHDU(), fits.ImageHDU(flat, name="FIBERFLAT")]).writeto(frames / "flat.fits")
    return frames


def all_of(inputs):
    return {
        "sky": True,
        "velocities": spexd.Templates(inputs / "templates.fits"),
        "redshifts": True,
        "fiberflat": inputs / "flat.fits",
    }


def assert_made_here(frame, inputs, folder):
    """Expects the products that this process makes of the frame, as float32 in the arrays of the sky."""
    made, sky = frame.products, frame.sky(inputs / "flat.fits")
    assert not made.errors
    for name in ("model", "ivar", "statistical_ivar"):
        np.testing.assert_array_equal(getattr(made.sky, name), getattr(sky, name).astype(np.float32), err_msg=name)
    for name in ("mask", "throughput", "deconvolved", "sky_fibres", "rejected"):
        np.testing.assert_array_equal(getattr(made.sky, name), getattr(sky, name), err_msg=name)
    for values, name in [(made.sky, "there"), (sky, "here")]:
        values.to_fits(folder / f"sky-{name}.fits")
        frame.sky_subtracted(values).to_fits(folder / f"sframe-{name}.fits")
    for name in ("sky", "sframe"):
        assert (folder / f"{name}-there.fits").read_bytes() == (folder / f"{name}-here.fits").read_bytes()
    stars = frame.velocities(inputs / "templates.fits", sky, models=True)
    assert made.velocities.dtype.names == stars.dtype.names
    for name in stars.dtype.names:
        assert made.velocities[name].tobytes() == stars[name].astype(made.velocities[name].dtype).tobytes(), name
    assert made.velocities["VRAD"].dtype == np.float64
    galaxies = frame.redshifts(sky)
    assert made.redshifts.dtype == galaxies.dtype and made.redshifts.tobytes() == galaxies.tobytes()


@pytest.mark.parametrize("upload", [False, True])
def test_a_server_makes_the_products_of_the_frames_methods(inputs, image, psf, client, tmp_path, upload):
    frame = client.extract(image, psf=psf, upload=upload, **all_of(inputs))
    assert_made_here(frame, inputs, tmp_path)
    assert repr(frame.products) == "<spexd.Products: sky, velocities, redshifts>"


def test_products_of_a_detached_job_come_with_its_frame(inputs, image, psf, client, tmp_path):
    job = client.submit(image, psf=psf, **all_of(inputs))
    frame = client.watch(job.job_id)
    client.ack(frame)
    assert_made_here(frame, inputs, tmp_path)


def test_products_travel_between_processes(inputs, image, psf, client, tmp_path):
    frame = client.extract(image, psf=psf, **all_of(inputs))
    assert frame.products.sky is frame.products.sky
    assert_made_here(pickle.loads(pickle.dumps(frame)), inputs, tmp_path)


def test_the_client_for_asyncio_has_them_too(inputs, image, psf, server, tmp_path):
    async def extract():
        async with spexd.AsyncClient(server.address) as client:
            job = await client.submit(image, psf=psf, redshifts=True)
            return await client.extract(image, psf=psf, **all_of(inputs)), await client.watch(job.job_id)

    frame, detached = asyncio.run(extract())
    assert_made_here(frame, inputs, tmp_path)
    assert detached.products.sky is None and detached.products.velocities is None
    np.testing.assert_array_equal(detached.products.redshifts, detached.redshifts())


def test_a_product_that_fails_harms_neither_spectra_nor_the_others(inputs, frames, image, psf, client, tmp_path):
    frame = client.extract(image, psf=psf, velocities=inputs / "hole.fits", redshifts=True)
    frame.to_fits(tmp_path / "frame.fits")
    assert (tmp_path / "frame.fits").read_bytes() == (frames / "frame.fits").read_bytes()
    with pytest.raises(spexd.InvalidArgumentError, match="hole.fits"):
        frame.products.velocities  # noqa: B018
    assert list(frame.products.errors) == ["velocities"]
    assert repr(frame.products) == "<spexd.Products: redshifts, velocities failed>"
    assert frame.products.sky is None
    np.testing.assert_array_equal(frame.products.redshifts, frame.redshifts())


def test_templates_that_the_server_does_not_hold_fail_their_product_alone(image, psf, client):
    frame = client.extract(image, psf=psf, velocities="sha256:00", redshifts=True)
    with pytest.raises(spexd.FailedPreconditionError, match="content_hash"):
        frame.products.velocities  # noqa: B018
    np.testing.assert_array_equal(frame.products.redshifts, frame.redshifts())


def test_without_a_request_there_are_none(image, psf, client):
    assert client.extract(image, psf=psf, fibre_count=2).products is None


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"fiberflat": "flat.fits"}, spexd.InvalidArgumentError, "fiberflat: no product is asked for"),
        ({"velocities": True}, spexd.InvalidArgumentError, "velocities is a bool, must be a path"),
        ({"sky": True, "fiberflat": np.ones((3, 3))}, spexd.InvalidArgumentError, "fiberflat is a ndarray"),
        ({"velocities": "none.fits", "upload": True}, spexd.NotFoundError, "none.fits"),
    ],
)
def test_inputs_that_are_not_there_refuse_the_job(image, psf, client, options, error, message):
    with pytest.raises(error, match=message):
        client.extract(image, psf=psf, **options)


@pytest.fixture(scope="module")
def events(inputs, server):
    """Returns the events of a job with all products."""
    header = extraction_pb2.JobHeader(bundle_size=25)
    header.image.path, header.psf.path = str(inputs / "preproc-r0.fits"), str(inputs / "psf-r0.fits")
    header.products.sky = header.products.lines = True
    header.products.templates.path = str(inputs / "templates.fits")
    with grpc.insecure_channel(server.address) as channel:
        call = extraction_pb2_grpc.ExtractionStub(channel).Extract(iter([extraction_pb2.ExtractRequest(header=header)]))
        return [event for event in call if not event.HasField("progress")]


def assembled(events, spoil=None, job=None):
    assembler = Assembler()
    for event in events:
        copy = extraction_pb2.ExtractEvent.FromString(event.SerializeToString())
        if spoil is not None and copy.HasField("product"):
            kind = copy.product.WhichOneof("part")
            spoil(copy.product, getattr(copy.product, kind))
            if kind == "lines":  # with a correct checksum
                copy.product.crc32c = _checksum(copy.product.lines)
        assembler.add(copy)
    return assembler.finish(job, "here")


def test_a_part_that_comes_too_early_or_twice_is_damaged(events):
    assert assembled(events).products.errors == {}
    parts = [event for event in events if event.HasField("product")]
    with pytest.raises(spexd.DataLossError, match="a product before all bundles"):
        assembled([event for event in events if not event.HasField("bundle")])
    with pytest.raises(spexd.DataLossError, match="out of order"):
        assembled([*events[:-1], parts[0], events[-1]])


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda part, content: setattr(part, "crc32c", part.crc32c ^ 1), "checksum"),
        (lambda part, content: setattr(part, "last", False), "out of order"),
        (lambda part, content: setattr(part, "code", 99), "status 99"),
        (lambda part, content: setattr(content, "bins", 7) if hasattr(content, "bins") else None, "bins"),
        (lambda part, content: setattr(content, "rows", b"123") if part.HasField("lines") else None, "whole numbers"),
        (lambda part, content: setattr(content, "rows", b"\xff" * 8) if part.HasField("lines") else None, "rows"),
        (lambda part, content: setattr(content, "gap", b"") if part.HasField("lines") else None, "gap of 0 bytes"),
    ],
)
def test_damaged_parts_are_data_loss(events, spoil, message):
    with pytest.raises(spexd.DataLossError, match=message):
        assembled(events, spoil)


def test_a_product_that_never_came_is_data_loss(events, image):
    job = RemoteJob(extraction_pb2.JobHeader(), str(image), None)
    job.header.products.sky = job.header.products.lines = True
    without = [event for event in events if not event.product.HasField("lines")]
    with pytest.raises(spexd.DataLossError, match="without a product that was asked for"):
        assembled(without, job=job)
