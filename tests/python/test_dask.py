"""A night of frames on a Dask cluster whose workers and servers are killed."""

import hashlib
import json
import os
import pathlib
import signal
import subprocess
import sys

import pytest
from conftest import run_spex, wait_for

import spexd

distributed = pytest.importorskip("distributed", reason="needs distributed")
from dask import config as dask_config  # noqa: E402

from spexd.dask import extract_night  # noqa: E402

ROWS = int(os.environ.get("SPEXD_TEST_NIGHT", "24"))
KILLS = max(2, ROWS // 100)


@pytest.fixture(scope="module")
def cluster():
    # By default the cluster gives up a worker that still restarts 15 s after a kill.
    patient = {"distributed.deploy.lost-worker-timeout": "1 hour"}
    size = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with dask_config.set(patient), distributed.LocalCluster(**size) as cluster:
        yield cluster


@pytest.fixture
def dask(cluster):
    with distributed.Client(cluster) as client:
        client.wait_for_workers(2)
        yield client


@pytest.fixture
def night_of(image, psf, tmp_path):
    """Returns night_of(count), which makes a table of frames that take some ten milliseconds each."""
    job = {"image": image, "psf": psf, "fibre_count": 2, "bundle_size": 10}

    def make(rows):
        folder = tmp_path / "night"
        return [{**job, "first_fibre": k % 40, "output": folder / f"frame-{k:04}.fits"} for k in range(rows)]

    return make


@pytest.fixture
def table(night_of):
    return night_of(8)


def records(table):
    text = (table[0]["output"].parent / "spex-night.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines() if line.endswith("}")]


def assert_whole(table, night, engine):
    """Expects for each row one record and a file with the bytes that this process would write, and nothing else."""
    assert [result.output for result in night.results] == [str(row["output"]) for row in table]
    assert not night.failed, night.failed
    names = [row["output"].name for row in table]
    assert sorted(record["output"] for record in records(table)) == names
    folder = table[0]["output"].parent
    others = sorted(path.name for path in folder.iterdir() if path.name not in names)
    assert len(others) == 2 and others[0].startswith("spex-night-") and others[1] == "spex-night.jsonl"
    want = {}
    for row, result in zip(table, night.results, strict=True):
        first = row["first_fibre"]
        if first not in want:
            options = {key: value for key, value in row.items() if key not in ("image", "output")}
            engine.extract(row["image"], **options).to_fits(folder.parent / "want.fits")
            want[first] = (folder.parent / "want.fits").read_bytes()
        assert row["output"].read_bytes() == want[first]
        assert result.sha256 == hashlib.sha256(want[first]).hexdigest()


def killable(cluster):
    """Returns the processes of running workers. Dask gives up a worker that dies while it starts."""
    names = {worker.name for worker in cluster.scheduler.workers.values()}
    nannies = [nanny for name, nanny in cluster.workers.items() if name in names and nanny.process is not None]
    return [nanny.pid for nanny in nannies if nanny.process.status.name == "running" and nanny.pid is not None]


def runs_of(folder):
    """Returns the processes of spex whose list is in a folder, and their parents."""
    found = {}
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
            parent = int((process / "stat").read_text().rsplit(")")[-1].split()[1])
        except OSError:
            continue  # the process has ended
        if len(words) > 2 and words[1] == b"night" and words[2].startswith(os.fsencode(folder)):
            found[int(process.name)] = parent
    return found


def states(night):
    return [result.state for result in night.results]


def inodes(table):
    return [(row["output"].stat().st_ino, row["output"].stat().st_mtime_ns) for row in table]


class Stopped(Exception):
    pass


def test_a_night_survives_workers_that_are_killed(cluster, dask, night_of, engine):
    table, killed = night_of(ROWS), []

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
    assert_whole(table, night, engine)
    before = inodes(table)
    assert states(extract_night(dask, table, device="cpu")) == ["kept"] * ROWS
    assert inodes(table) == before
    assert_whole(table, night, engine)


def test_a_night_survives_a_server_that_is_killed(dask, night_of, start_server, engine):
    table, server, killed = night_of(ROWS), start_server(), []

    def kill(done, total):
        if len(killed) < KILLS and done > (len(killed) + 0.5) * ROWS / (KILLS + 1):
            server.kill_and_start_again()
            killed.append(done)

    night = extract_night(dask, table, server=server.address, progress=kill)
    assert len(killed) == KILLS
    assert states(night) == ["written"] * ROWS
    assert_whole(table, night, engine)
    assert states(extract_night(dask, table, server=server.address)) == ["kept"] * ROWS


def test_a_killed_worker_leaves_no_spex(dask, table):
    folder, killed = table[0]["output"].parent, []

    def kill(done, total):
        if killed:
            return
        wait_for(lambda: len(runs_of(folder)) == 2)
        run, worker = next(iter(runs_of(folder).items()))
        os.kill(worker, signal.SIGKILL)
        wait_for(lambda: run not in runs_of(folder))
        killed.append(run)
        assert not all(row["output"].exists() for row in table)  # the kill left work to do

    slow = [{**row, "first_fibre": 0, "fibre_count": 50} for row in table]
    assert states(extract_night(dask, slow, progress=kill)) == ["written"] * 8
    assert len(killed) == 1 and len(records(table)) == 8


CALLER = """import sys, distributed, spexd.dask
with distributed.Client(sys.argv[1]) as client:
    spexd.dask.extract_night(client, sys.argv[2])
"""


def test_a_killed_caller_leaves_no_spex(cluster, dask, image, psf, tmp_path):
    listed = tmp_path / "night.txt"
    rows = [f"{image} {psf} {tmp_path / 'night' / f'frame-{k}.fits'}" for k in range(100)]
    listed.write_text("\n".join(["image psf output", *rows]))
    caller = subprocess.Popen([sys.executable, "-c", CALLER, cluster.scheduler_address, listed])
    wait_for(lambda: len(runs_of(tmp_path)) == 2)
    caller.kill()
    caller.wait()
    wait_for(lambda: not runs_of(tmp_path))
    assert len(list((tmp_path / "night").glob("*.fits"))) < 100


def test_a_night_that_was_stopped_goes_on_where_it_was(dask, table, engine):
    folder = table[0]["output"].parent

    def stop(done, total):
        if done >= 1:
            raise Stopped

    with pytest.raises(Stopped):
        extract_night(dask, table, progress=stop)
    wait_for(lambda: not runs_of(folder))
    there = [row for row in table if row["output"].exists()]
    before = inodes(there)
    night = extract_night(dask, table)
    assert states(night).count("kept") == len(there) > 0
    assert inodes(there) == before
    assert_whole(table, night, engine)


def test_a_damaged_file_and_one_of_other_options_are_made_again(dask, table):
    extract_night(dask, table[:3])
    table[0]["output"].write_bytes(table[0]["output"].read_bytes()[:-1])
    table[1] = {**table[1], "psferr": 0.02}
    night = extract_night(dask, table[:3])
    assert states(night) == ["written", "written", "kept"]
    for row, result in zip(table, night.results, strict=False):
        assert hashlib.sha256(row["output"].read_bytes()).hexdigest() == result.sha256
    assert spexd.Frame.from_fits(table[1]["output"]).header["PSFERR"] == 0.02


def test_rows_that_fail_are_named_and_the_others_are_written(dask, table, tmp_path):
    table[0] = {**table[0], "image": tmp_path / "missing.fits"}
    table[1] = {**table[1], "first_fibre": 99}
    night = extract_night(dask, table)
    assert states(night) == ["failed"] * 2 + ["written"] * 6
    for result, message in zip(night.failed, ("missing.fits", "first fibre 99"), strict=True):
        assert message in result.error


def test_rows_have_results_of_their_own(dask, table):
    table[0] = {**table[0], "model": table[0]["output"].with_name("model.fits"), "expid": "first", "scores": False}
    night = extract_night(dask, table[:2], threads=2, flags=("--in-flight", "1"))
    first, second = night.results
    assert first.record["label"] == "first" and "label" not in second.record
    assert set(first.record["files"]) == {"frame", "model"} and table[0]["model"].exists()
    assert first.engine.startswith("cpu") and "2 threads" in first.engine and first.seconds > 0
    assert first.failed_bundles == first.warnings == [] and first.products == {}


def test_products_are_made(dask, tmp_path):
    rows = []
    for camera in ("b0", "r0"):
        folder = tmp_path / camera
        run_spex("simulate", "--fibres", 20, "--rows", 300, "--camera", camera[0], "--out-dir", folder)
        names = {"image": folder / f"preproc-{camera}.fits", "psf": folder / f"psf-{camera}.fits"}
        rows.append({**names, "output": tmp_path / "night" / f"frame-{camera}-51060.fits"})
    products = ("sky", "sframe", "redshifts", "exposure-redshifts")
    night = extract_night(dask, rows, products=products)
    assert states(night) == ["written"] * 2 and not night.failed
    for result, camera in zip(night.results, ("b0", "r0"), strict=True):
        assert set(result.products) == {"sky", "sframe", "redshifts"}
        assert set(result.record["files"]) == {"frame", "sky", "sframe", "redshifts"}
        assert (tmp_path / "night" / f"sframe-{camera}-51060.fits").exists()
    (exposure,) = night.exposures
    assert exposure.state == "written" and pathlib.Path(exposure.output).exists()
    assert extract_night(dask, rows, products=products).exposures[0].state == "kept"


def test_a_list_is_a_table(dask, table, tmp_path, monkeypatch):
    extract_night(dask, table[:2])
    (path,) = tmp_path.glob("night/spex-night-*.txt")
    assert states(extract_night(dask, path)) == ["kept"] * 2
    # Names in a list are relative to the current folder.
    monkeypatch.chdir(tmp_path)
    own = tmp_path / "own.txt"
    own.write_text(f"# mine\noutput image psf\nown.fits {table[0]['image']} {table[0]['psf']}\n")
    (result,) = extract_night(dask, "own.txt").results
    assert (result.output, result.state) == (str(tmp_path / "own.fits"), "written")
    own.write_text("output image\nown.fits a\n")
    with pytest.raises(spexd.InvalidArgumentError, match=r"own.txt: line 1: the column psf is missing"):
        extract_night(dask, own)


def test_spex_continues_the_list(dask, table, tmp_path):
    night = extract_night(dask, table, list_folder=tmp_path)
    before = inodes(table)
    (path,) = tmp_path.glob("spex-night-*.txt")
    run_spex("night", path, "--device", "cpu", "--server", "")
    assert inodes(table) == before and states(night) == ["written"] * 8


def test_servers_extract_a_night_too(dask, table, server, engine):
    night = extract_night(dask, table, server=server.address, upload=True)
    assert states(night) == ["written"] * 8
    assert_whole(table, night, engine)


def test_without_a_server_rows_fail(dask, table):
    night = extract_night(dask, table, server="127.0.0.1:9", attempts=1)
    assert states(night) == ["failed"] * 8
    assert "127.0.0.1:9" in night.results[0].error


def test_an_astropy_table_is_a_table(dask, table, engine):
    astropy_table = pytest.importorskip("astropy.table")
    rows = [{key: value if isinstance(value, int) else str(value) for key, value in row.items()} for row in table[:2]]
    night = extract_night(dask, astropy_table.Table(rows))
    assert_whole(table[:2], night, engine)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"image": "a", "psf": "p"}], "row 0 has no column 'output'"),
        ([{"image": "a", "psf": "p", "output": "o"}] * 2, "row 1: output .*o is that of row 0 too"),
        ([{"image": "a", "psf": "p", "output": "o", "camera": "r0"}], "row 0: no column is called 'camera'"),
        ([{"image": 1, "psf": "p", "output": "o"}], "row 0: image is a int, must be a path"),
        ([{"image": "a b", "psf": "p", "output": "o"}], "row 0: image is '.*/a b'; a list can have no blanks"),
        ([{"image": "a", "psf": "p#", "output": "o"}], "row 0: psf is '.*/p#'; a list can have no blanks"),
        ([{"image": "a", "psf": "p", "output": "o", "expid": ""}], "row 0: expid is ''"),
        ([{"image": "a", "psf": "p", "output": "o", "psferr": {}}], "row 0: psferr is {}, must be a number"),
        ([{"image": "a", "psf": "p", "output": "o", "psferr": -1}], "row 0: psferr is -1, must be 0 to 1000"),
        (["a"], "row 0 is a str, must be a mapping"),
        ([], "the table has no rows"),
    ],
)
def test_bad_tables_are_an_error_that_names_row_and_column(rows, message):
    with pytest.raises(spexd.InvalidArgumentError, match=message):
        extract_night(None, rows)


def test_bad_calls_are_errors(dask, table, tmp_path):
    with pytest.raises(spexd.InvalidArgumentError, match="products.*moons"):
        extract_night(dask, table, products=("moons",))
    with pytest.raises(spexd.InvalidArgumentError, match="velocities need templates"):
        extract_night(dask, table, products=("velocities",))
    with pytest.raises(spexd.NotFoundError, match="none.txt"):
        extract_night(dask, tmp_path / "none.txt")
    (tmp_path / "notes.txt").write_text("buy milk\n")
    with pytest.raises(spexd.InvalidArgumentError, match="notes.txt: the first line must name the columns"):
        extract_night(dask, tmp_path / "notes.txt")
    with pytest.raises(spexd.InvalidArgumentError, match="psferr: a list has its own options"):
        extract_night(dask, tmp_path / "notes.txt", psferr=0.02)
