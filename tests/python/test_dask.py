"""A night of frames on a Dask cluster whose workers are killed."""

import hashlib
import json
import os
import signal

import pytest
from conftest import wait_for

import spexd

distributed = pytest.importorskip("distributed", reason="needs distributed")
from dask import config as dask_config  # noqa: E402

from spexd.dask import extract_night  # noqa: E402

ROWS = int(os.environ.get("SPEXD_TEST_NIGHT", "24"))
KILLS = max(2, ROWS // 100)


@pytest.fixture(scope="module")
def cluster():
    # Dask itself tries nothing again: what the tests see is tried again by extract_night.
    config = {"distributed.scheduler.allowed-failures": 0}
    size = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with dask_config.set(config), distributed.LocalCluster(**size) as cluster:
        yield cluster


@pytest.fixture
def dask(cluster):
    with distributed.Client(cluster) as client:
        client.wait_for_workers(2)
        yield client


@pytest.fixture
def table(image, psf, tmp_path):
    """Jobs that take some ten milliseconds each."""
    job = {"image": image, "psf": psf, "fibre_count": 2, "bundle_size": 10}
    return [{**job, "first_fibre": k % 40, "output": tmp_path / "night" / f"frame-{k:04}.fits"} for k in range(ROWS)]


def records(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def assert_whole(table, night, engine, manifest):
    """Every row has its file, with the bytes that this process would write, and one record; nothing else is there."""
    assert [result.output for result in night.results] == [str(row["output"]) for row in table]
    assert not night.failed, night.failed
    by_output = {record["output"]: record for record in records(manifest)}
    assert len(by_output) == len(records(manifest)) == len(table)
    folder = table[0]["output"].parent
    assert sorted(folder.iterdir()) == sorted([row["output"] for row in table] + [manifest])
    want = {}
    for row, result in zip(table, night.results, strict=True):
        first = row["first_fibre"]
        if first not in want:
            options = {key: value for key, value in row.items() if key not in ("image", "output")}
            engine.extract(row["image"], **options).to_fits(folder.parent / "want.fits")
            want[first] = (folder.parent / "want.fits").read_bytes()
        assert row["output"].read_bytes() == want[first]
        assert result.sha256 == by_output[result.output]["sha256"] == hashlib.sha256(want[first]).hexdigest()


def killable(cluster):
    """Processes of the workers that are at work: Dask gives up one that dies while it is starting."""
    names = {worker.name for worker in cluster.scheduler.workers.values()}
    nannies = [nanny for name, nanny in cluster.workers.items() if name in names and nanny.process is not None]
    return [nanny.pid for nanny in nannies if nanny.process.status.name == "running" and nanny.pid is not None]


def states(night):
    return [result.state for result in night.results]


def inodes(table):
    return [(row["output"].stat().st_ino, row["output"].stat().st_mtime_ns) for row in table]


def test_a_night_survives_workers_that_are_killed(cluster, dask, table, engine, tmp_path):
    killed = []

    def kill(done, total):
        assert total == ROWS
        alive = [pid for pid in killable(cluster) if pid not in killed]
        if alive and len(killed) < KILLS and done > (len(killed) + 0.5) * ROWS / (KILLS + 1):
            os.kill(alive[0], signal.SIGKILL)
            killed.append(alive[0])

    night = extract_night(dask, table, progress=kill, device="cpu")
    assert len(killed) == KILLS
    assert states(night) == ["written"] * ROWS
    assert str(night) == f"{ROWS} frames: {ROWS} written, 0 kept, 0 failed"
    manifest = tmp_path / "night" / "spexd-night.jsonl"
    assert_whole(table, night, engine, manifest)
    before = inodes(table)
    assert states(extract_night(dask, table, device="cpu")) == ["kept"] * ROWS
    assert inodes(table) == before
    assert_whole(table, night, engine, manifest)


def test_a_night_survives_a_server_that_is_killed(dask, table, start_server, engine, tmp_path):
    server = start_server()
    killed = []

    def kill(done, total):
        if len(killed) < KILLS and done > (len(killed) + 0.5) * ROWS / (KILLS + 1):
            server.kill_and_start_again()
            killed.append(done)

    night = extract_night(dask, table, server=server.address, attempts=KILLS + 1, progress=kill)
    assert len(killed) == KILLS
    assert states(night) == ["written"] * ROWS
    assert_whole(table, night, engine, tmp_path / "night" / "spexd-night.jsonl")
    assert states(extract_night(dask, table, server=server.address)) == ["kept"] * ROWS


class Stopped(Exception):
    pass


def test_a_night_that_was_stopped_goes_on_where_it_was(dask, table, engine, tmp_path):
    table, manifest = table[:8], tmp_path / "night" / "spexd-night.jsonl"

    def stop(done, total):
        if done == 3:
            raise Stopped

    with pytest.raises(Stopped):
        extract_night(dask, table, progress=stop)
    with open(manifest, "a", encoding="utf-8") as file:
        file.write('{"output": "torn')  # as a process leaves it that is killed
    there = [row for row in table if row["output"].exists()]
    before = inodes(there)
    assert len(there) == 3
    wait_for(lambda: not any(dask.run(lambda dask_worker: len(dask_worker.state.executing)).values()))
    night = extract_night(dask, table)
    assert sorted(states(night)) == ["kept"] * 3 + ["written"] * 5
    assert inodes(there) == before
    assert_whole(table, night, engine, manifest)


def test_a_file_that_was_noted_but_has_no_name_yet_gets_it(dask, table, engine, tmp_path, monkeypatch):
    table, manifest = table[:2], tmp_path / "night" / "spexd-night.jsonl"

    def fail(source, target):
        raise Stopped

    with monkeypatch.context() as patch:
        patch.setattr("spexd.dask._manifest.os.replace", fail)
        assert states(extract_night(dask, table)) == ["failed"] * 2
    assert len(records(manifest)) == 2 and not table[0]["output"].exists()
    partials = {os.stat(record["partial"]).st_ino for record in records(manifest)}
    night = extract_night(dask, table)
    assert states(night) == ["written"] * 2
    assert {inode for inode, _ in inodes(table)} == partials
    assert_whole(table, night, engine, manifest)


def test_a_damaged_file_and_one_of_other_options_are_made_again(dask, table, tmp_path):
    table, manifest = table[:3], tmp_path / "manifest.jsonl"
    extract_night(dask, table, manifest=str(manifest))
    table[0]["output"].write_bytes(table[0]["output"].read_bytes()[:-1])
    table[1] = {**table[1], "psferr": 0.02}
    night = extract_night(dask, table, manifest=str(manifest))
    assert states(night) == ["written", "written", "kept"]
    for row, result in zip(table, night.results, strict=True):
        assert hashlib.sha256(row["output"].read_bytes()).hexdigest() == result.sha256
    assert spexd.Frame.from_fits(table[1]["output"]).header["PSFERR"] == 0.02


def test_rows_that_fail_are_named_and_the_others_are_written(dask, table, tmp_path):
    table = table[:4]
    table[0] = {**table[0], "image": tmp_path / "missing.fits"}
    table[1] = {**table[1], "first_fibre": 99}
    table[2]["output"].parent.mkdir()
    table[2]["output"].write_text("somebody's")
    night = extract_night(dask, table)
    assert states(night) == ["failed"] * 3 + ["written"]
    for result, message in zip(night.failed, ("missing.fits", "first fibre 99", "the manifest does not"), strict=True):
        assert message in result.error
    assert table[2]["output"].read_text() == "somebody's"
    assert states(extract_night(dask, table[2:], overwrite=True)) == ["written", "kept"]


def test_what_lost_workers_left_is_removed_and_nothing_else(dask, table, tmp_path):
    folder, unique = tmp_path / "night", "0123456789abcdef" * 2
    folder.mkdir()
    for name in (f".{unique}.partial.frame-0000.fits", f"..{unique}.partial.frame-0000.fits.spexd-1dcb9ee0"):
        (folder / name).touch()
    (folder / f".{unique}.partial.other.fits").touch()
    extract_night(dask, table[:1])
    assert {path.name for path in folder.iterdir()} == {
        f".{unique}.partial.other.fits",
        "frame-0000.fits",
        "spexd-night.jsonl",
    }


def test_servers_extract_a_night_too(dask, table, server, engine, tmp_path):
    table = table[:4]
    night = extract_night(dask, table, server=server.address)
    assert states(night) == ["written"] * 4
    assert_whole(table, night, engine, tmp_path / "night" / "spexd-night.jsonl")


def test_an_astropy_table_is_a_table(dask, table, engine, tmp_path):
    astropy_table = pytest.importorskip("astropy.table")
    rows = [{key: value if isinstance(value, int) else str(value) for key, value in row.items()} for row in table[:2]]
    night = extract_night(dask, astropy_table.Table(rows))
    assert_whole(table[:2], night, engine, tmp_path / "night" / "spexd-night.jsonl")


def test_two_calls_cannot_use_one_manifest(dask, table):
    raised = []

    def second(done, total):
        with pytest.raises(spexd.FailedPreconditionError, match=r"spexd-night.jsonl is in use") as caught:
            extract_night(dask, table[:1])
        raised.append(caught)

    extract_night(dask, table[:1], progress=second)
    assert len(raised) == 1


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"image": "a", "psf": "p"}], "row 0 has no column 'output'"),
        ([{"image": "a", "psf": "p", "output": "o"}] * 2, "row 1: output .*o is that of row 0 too"),
        ([{"image": "a", "psf": "p", "output": "o", "camera": "r0"}], "row 0: 'camera' is neither"),
        ([{"image": 1, "psf": "p", "output": "o"}], "row 0: image is a int, must be a path"),
        ([{"image": "a", "psf": "p", "output": "o", "psferr": {}}], "row 0: psferr is a dict"),
        (["a"], "row 0 is a str, must be a mapping"),
        ([], "the table has no rows"),
    ],
)
def test_bad_tables_are_an_error_that_names_row_and_column(rows, message):
    with pytest.raises(spexd.InvalidArgumentError, match=message):
        extract_night(None, rows)


@pytest.mark.parametrize("content", ["buy milk\n", "buy milk"])
def test_a_file_that_is_no_manifest_is_an_error(table, tmp_path, content):
    (tmp_path / "notes.txt").write_text(content)
    with pytest.raises(spexd.InvalidArgumentError, match=r"notes.txt, line 1: not a record of a night"):
        extract_night(None, table, manifest=str(tmp_path / "notes.txt"))
    assert (tmp_path / "notes.txt").read_text() == content
