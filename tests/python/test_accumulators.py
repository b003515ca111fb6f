"""Sums that a server keeps of the frames of many jobs."""

import asyncio
import pickle

import pytest
from conftest import run_spex
from stand_in import StandIn
from test_in_process import assert_same

import spexd
from spexd._product_parts import AccumulatorFile
from spexd.v1 import accumulators_pb2


@pytest.fixture
def create(client):
    """create(NAME, KIND) makes an accumulator, which is dropped at the end."""
    made = []

    def make(name, kind, **options):
        made.append(name)
        return client.create_accumulator(name, kind, **options)

    yield make
    for name in made:
        client.drop_accumulator(name)
    assert client.accumulators() == []


@pytest.fixture(scope="module")
def files(frames, tmp_path_factory):
    """The files that spex makes of the frame: pca.fits and coadd.fits."""
    folder = tmp_path_factory.mktemp("sums")
    named = folder / "preproc-r0.fits"  # as a server names the frame of this image
    named.write_bytes((frames / "frame.fits").read_bytes())
    for kind in ("pca", "coadd"):
        run_spex(kind, named, "-o", folder / f"{kind}.fits")
    return folder


def test_accumulators_hold_what_spex_makes_of_the_same_frames(image, psf, client, create, files):
    assert create("residuals", "pca", clip=5).clip == 5
    assert create("targets", "coadd", with_sky=True).with_sky
    frame = client.extract(image, psf=psf, accumulators=["residuals", "targets"])
    assert frame.additions == (spexd.Addition("residuals"), spexd.Addition("targets"))
    assert all(addition.error is None for addition in frame.additions)
    assert frame.products is None
    assert [(record.name, record.frames) for record in client.accumulators()] == [("residuals", 1), ("targets", 1)]
    assert client.read_accumulator("residuals") == (files / "pca.fits").read_bytes()
    assert client.read_accumulator("targets", timeout=60) == (files / "coadd.fits").read_bytes()
    assert len(client.read_accumulator("residuals", components=1)) < len((files / "pca.fits").read_bytes())


def test_a_frame_counts_once(image, psf, client, create):
    create("residuals", "pca")
    options = {"psf": psf, "accumulators": ["residuals"]}
    assert not client.extract(image, **options).additions[0].existed
    frame = client.watch(client.submit(image, **options).job_id, timeout=60)
    assert frame.additions[0].existed and frame.additions[0].error is None
    assert client.accumulators()[0].frames == 1


def test_an_addition_that_fails_harms_nothing_else(image, psf, client, create, engine):
    create("residuals", "pca")
    frame = client.extract(image, psf=psf, accumulators=["missing", "residuals"])
    missing, residuals = pickle.loads(pickle.dumps(frame)).additions
    assert isinstance(missing.error, spexd.NotFoundError) and "missing" in str(missing.error)
    assert residuals.error is None
    assert_same(frame, engine.extract(image, psf=psf))


def test_the_client_for_asyncio_has_them_too(image, psf, server, files):
    async def body():
        async with spexd.AsyncClient(server.address) as client:
            await client.create_accumulator("residuals", "pca")
            frame = await client.extract(image, psf=psf, accumulators=["residuals"])
            assert [record.name for record in await client.accumulators()] == ["residuals"]
            content = await client.read_accumulator("residuals")
            await client.drop_accumulator("residuals")
            with pytest.raises(spexd.NotFoundError):
                await client.read_accumulator("residuals")
            return frame, content

    frame, content = asyncio.run(body())
    assert frame.additions == (spexd.Addition("residuals"),)
    assert content == (files / "pca.fits").read_bytes()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda c: c.create_accumulator("name", "sum"), spexd.InvalidArgumentError, "kind is 'sum'"),
        (lambda c: c.create_accumulator("a name", "pca"), spexd.InvalidArgumentError, "name"),
        (lambda c: c.create_accumulator("name", "pca", clip=0), spexd.InvalidArgumentError, "clip"),
        (lambda c: c.read_accumulator("name", components=-1), spexd.InvalidArgumentError, "components is -1"),
        (lambda c: c.read_accumulator("name"), spexd.NotFoundError, "name"),
        (lambda c: c.drop_accumulator("name"), spexd.NotFoundError, "name"),
    ],
)
def test_what_is_wrong_is_named(client, call, error, message):
    with pytest.raises(error, match=message):
        call(client)


@pytest.mark.parametrize("names", ["residuals", [7]])
def test_accumulators_of_a_job_are_a_list_of_names(image, psf, client, names):
    with pytest.raises(spexd.InvalidArgumentError, match="accumulators is .*, must be a list of names"):
        client.extract(image, psf=psf, accumulators=names)


def test_an_accumulator_of_several_servers_is_refused(server):
    with spexd.Client(f"{server.address},127.0.0.1:1") as client:
        with pytest.raises(spexd.InvalidArgumentError, match="belong to one server"):
            client.create_accumulator("name", "pca")


def test_a_damaged_file_is_data_loss():
    def part(payload, crc, last=False):
        return accumulators_pb2.AccumulatorPart(payload=payload, crc32c=crc, last=last)

    whole = part(b"123456789", 0xE3069283, last=True)
    file = AccumulatorFile("night")
    with pytest.raises(spexd.DataLossError, match='accumulator "night" came incomplete'):
        file.finish()
    file.add(whole)
    assert file.finish() == b"123456789"
    for wrong in (part(b"", 0xE3069283), part(b"1", 0)):  # after the end, with a wrong checksum
        with pytest.raises(spexd.DataLossError, match="damaged"):
            file.add(wrong)


def test_a_server_older_than_accumulators_adds_to_none(image, psf, server):
    def as_older(call, number, event):
        if event.HasField("summary"):
            event.summary.ClearField("additions")

    with StandIn(server.address, as_older) as older, spexd.Client(older.address) as client:
        (addition,) = client.extract(image, psf=psf, accumulators=["residuals"]).additions
    assert addition.accumulator == "residuals" and isinstance(addition.error, spexd.UnimplementedError)


def test_an_addition_without_a_status_code_is_damage(image, psf, server):
    def spoil(call, number, event):
        for addition in event.summary.additions:
            addition.code = 99

    with StandIn(server.address, spoil) as stand_in, spexd.Client(stand_in.address) as client:
        with pytest.raises(spexd.DataLossError, match="no status code"):
            client.extract(image, psf=psf, accumulators=["residuals"])
