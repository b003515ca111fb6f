"""The pipeline's extraction entry point on spexd, with one rank and with several."""

import argparse
import logging
import pathlib
import shutil
import subprocess
import sys
import threading

import pytest
from astropy.io import fits
from conftest import BIN

import spexd
from spexd import _native, desispec
from spexd._job import OPTIONS


class Rank:
    """One rank of a communicator whose ranks are threads: the part of mpi4py's interface that is used."""

    def __init__(self, world, rank):
        self._world, self.rank, self.size = world, rank, world.size

    def gather(self, value, root=0):
        values = self._world.exchange(self.rank, value)
        return values if self.rank == root else None

    def bcast(self, value, root=0):
        return self._world.exchange(self.rank, value)[root]

    def barrier(self):
        self._world.exchange(self.rank, None)


class World:
    def __init__(self, size):
        self.size = size
        self._values = [None] * size
        self._barrier = threading.Barrier(size, timeout=120)

    def exchange(self, rank, value):
        self._values[rank] = value
        self._barrier.wait()
        values = list(self._values)
        self._barrier.wait()
        return values

    def run(self, function):
        """Calls function(comm) on every rank; returns what each raised, or None."""
        raised = [None] * self.size

        def call(rank):
            try:
                function(Rank(self, rank))
            except Exception as error:
                raised[rank] = error

        threads = [threading.Thread(target=call, args=(rank,)) for rank in range(self.size)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return raised


@pytest.fixture(scope="module")
def struck(frames):
    """Returns the image with a hit by a cosmic ray, so that the frame has BAD2DFIT."""
    path = frames / "struck-r0.fits"
    with fits.open(frames / "preproc-r0.fits") as hdus:
        hdus["IMAGE"].data[200, 150] += 1e5
        hdus.writeto(path)
    return path


@pytest.fixture
def arguments(struck, psf, tmp_path):
    """Returns a command line that writes frame.fits and model.fits."""
    text = f"-i {struck} -p {psf} -o {tmp_path}/out/frame.fits -m {tmp_path}/out/model.fits --no-gpu"
    return [*text.split(), "--psferr", "0.02", "--bundlesize", "10"]


@pytest.fixture
def want(struck, psf, engine, tmp_path):
    """Returns the bytes of the files of the same job in one piece."""
    (tmp_path / "want").mkdir()
    frame = engine.extract(struck, psf=psf, model=True, psferr=0.02, bundle_size=10)
    assert (frame.mask & spexd.BAD2DFIT).any()
    frame.to_fits(tmp_path / "want" / "frame.fits", model=tmp_path / "want" / "model.fits")
    return files(tmp_path / "want")


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_arguments_as_a_list_and_as_a_namespace_write_the_files_of_extract(arguments, want, tmp_path):
    desispec.main(arguments)
    assert files(tmp_path / "out") == want
    (tmp_path / "out" / "frame.fits").unlink()
    timing = {}
    desispec.main_gpu_specter(desispec.parse(arguments), timing=timing)
    assert files(tmp_path / "out") == want
    assert timing["frame-start"] <= timing["frame-setup"] <= timing["frame-extract"] <= timing["frame-write"]


def test_a_namespace_of_another_version_of_the_pipeline_gets_the_defaults(image, psf, engine, tmp_path):
    args = argparse.Namespace(input=str(image), psf=str(psf), output=str(tmp_path / "a.fits"), nspec=1, gpu=False)
    desispec.main_mpi(args)
    engine.extract(image, psf=psf, fibre_count=1).to_fits(tmp_path / "b.fits")
    assert (tmp_path / "a.fits").read_bytes() == (tmp_path / "b.fits").read_bytes()


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_ranks_together_write_the_same_bytes_as_one(arguments, want, tmp_path, size):
    assert World(size).run(lambda comm: desispec.main(arguments, comm=comm)) == [None] * size
    assert files(tmp_path / "out") == want


def test_a_coordinator_brings_its_communicator(arguments, want, tmp_path):
    def run(comm):
        desispec.main_gpu_specter(desispec.parse(arguments), coordinator=argparse.Namespace(comm=comm))

    assert World(2).run(run) == [None, None]
    assert files(tmp_path / "out") == want


def test_some_fibres_that_cut_bundles_are_divided_too(image, psf, engine, tmp_path):
    arguments = f"-i {image} -p {psf} -o {tmp_path}/a.fits -s 13 -n 21 --bundlesize 10 -w 6600,6640,0.8".split()
    assert World(3).run(lambda comm: desispec.main(arguments, comm=comm)) == [None] * 3
    cut = {"first_fibre": 13, "fibre_count": 21, "bundle_size": 10, "wavelength": (6600, 6640, 0.8)}
    engine.extract(image, psf=psf, **cut).to_fits(tmp_path / "b.fits")
    assert (tmp_path / "a.fits").read_bytes() == (tmp_path / "b.fits").read_bytes()


def test_an_error_of_one_rank_is_raised_on_all_and_nothing_is_written(arguments, tmp_path, monkeypatch):
    extract = spexd.Engine.extract

    def refuse(self, *args, first_fibre=0, **options):
        if first_fibre > 0:
            raise spexd.UnavailableError("the device is gone")
        return extract(self, *args, first_fibre=first_fibre, **options)

    monkeypatch.setattr(spexd.Engine, "extract", refuse)
    errors = World(3).run(lambda comm: desispec.main(arguments, comm=comm))
    assert [type(error) for error in errors] == [spexd.UnavailableError] * 3
    assert [str(error) for error in errors] == ["rank 1: the device is gone"] + ["the device is gone"] * 2
    assert not (tmp_path / "out").exists()


def test_an_error_in_writing_is_raised_on_all(arguments, tmp_path):
    (tmp_path / "out" / "frame.fits").mkdir(parents=True)
    errors = World(2).run(lambda comm: desispec.main(arguments, comm=comm))
    assert [type(error) for error in errors] == [spexd.InvalidArgumentError] * 2
    assert "it is a folder" in str(errors[1])


def test_bundles_that_fail_fail_the_frame(arguments, tmp_path, monkeypatch):
    extract = spexd.Engine.extract

    def fail(self, *args, **options):
        frame = extract(self, *args, **options)
        frame.failed_bundles = ("bundle 3 (fibres 30-39): not positive definite",)
        return frame

    monkeypatch.setattr(spexd.Engine, "extract", fail)
    with pytest.raises(spexd.InternalError, match=r"struck-r0.fits: bundle 3 \(fibres 30-39\)"):
        desispec.main(arguments)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--use-specter"], "--use-specter: it asks for the algorithm of specter"),
        (["--decorrelate-fibers"], "--decorrelate-fibers: it asks to decorrelate fibres"),
        (["--gpu"], "--gpu: not together with --no-gpu"),
        (["--loglevel", "loud"], '--loglevel is "loud"'),
        (["-n", "51"], "--specmin 0 --nspec 51: .* has fibres 0 to 49"),
        (["-s", "-1"], "first_fibre is -1, must be 0 to"),
        (["--bundlesize", "0"], "bundle_size is 0, must be 1 to"),
        (["-w", "1,2"], 'wavelength grid "1,2"'),
    ],
)
def test_bad_arguments_are_an_error_that_names_them(arguments, more, message):
    with pytest.raises(spexd.InvalidArgumentError, match=message):
        desispec.main([*arguments, *more])


def test_flags_have_the_defaults_of_spex():
    defaults, ours = vars(desispec.parse(["-i", "a", "-p", "b", "-o", "c"])), _native.Spec()
    for option in OPTIONS:
        if (name := option.flag[2:].replace("-", "_")) in defaults:
            assert defaults[name] == (not getattr(ours, option.name) if option.negated else getattr(ours, option.name))


@pytest.mark.parametrize("flag", ["--use-specter", "--decorrelate-fibers"])
def test_flags_are_refused_with_the_reason_that_spex_gives(flag, arguments):
    spex = subprocess.run([BIN / "spex", *arguments, flag], capture_output=True, text=True, check=False)
    assert spex.returncode == 2
    with pytest.raises(spexd.InvalidArgumentError) as refused:
        desispec.main([*arguments, flag])
    assert spex.stderr.startswith(f"spex: {refused.value}\n")


def test_specter_asked_for_by_the_pipeline_is_refused_on_every_rank(arguments, tmp_path):
    args = argparse.Namespace(**{**vars(desispec.parse(arguments)), "use_specter": True})
    errors = World(2).run(lambda comm: desispec.main_mpi(args, comm=comm))
    assert [type(error) for error in errors] == [spexd.InvalidArgumentError] * 2
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("flags", "idle"),
    [
        ("--no-gpu", ""),
        ("--mpi", ""),
        ("-v", ""),
        ("--verbose", ""),
        ("--loglevel INFO", ""),
        ("--nsubbundles 6", "--nsubbundles"),
        ("--nwavestep 30", "--nwavestep"),
        ("--pixpad-frac 0.7", "--pixpad-frac"),
        ("--wavepad-frac 0.3", "--wavepad-frac"),
        ("--wavepad 12", "--wavepad"),
        ("--ranks-per-bundle 2", "--ranks-per-bundle"),
        ("--async-io", "--async-io"),
    ],
)
def test_flags_of_the_pipelines_extractors_are_taken(flags, idle, image, psf, tmp_path, monkeypatch, caplog):
    monkeypatch.setitem(sys.modules, "desiutil.log", None)  # its logger does not propagate
    one_rank = argparse.Namespace(COMM_WORLD=Rank(World(1), 0))
    monkeypatch.setitem(sys.modules, "mpi4py", argparse.Namespace(MPI=one_rank))
    files = f"-i {image} -p {psf} -n 1 -w 6600,6610,0.8"
    desispec.main(f"{files} -o {tmp_path}/plain.fits".split())
    desispec.main(f"--loglevel info {files} -o {tmp_path}/frame.fits {flags}".split())
    assert (tmp_path / "frame.fits").read_bytes() == (tmp_path / "plain.fits").read_bytes()
    told = [record.getMessage() for record in caplog.records if "without effect" in record.getMessage()]
    assert told == ([f"extract: without effect: {idle}"] if idle else [])


@pytest.mark.parametrize("flag", ["--gpu", "--use-gpu"])
def test_a_gpu_that_is_asked_for_and_cannot_be_had_is_an_error(flag, arguments, monkeypatch):
    monkeypatch.setenv("SPEXD_CUDA_MODULE", "/nowhere/libspexd_cuda.so")
    arguments.remove("--no-gpu")
    with pytest.raises(spexd.SpexdError, match="/nowhere/libspexd_cuda.so, which is not there"):
        desispec.main([*arguments, flag])


def test_the_level_of_messages_is_that_of_the_call_and_ends_with_it(image, psf, tmp_path, monkeypatch, caplog):
    monkeypatch.setitem(sys.modules, "desiutil.log", None)
    with fits.open(image) as hdus:
        hdus["IVAR"].data[200, 100] = -1
        hdus.writeto(tmp_path / "negative.fits")
    files = f"-i {tmp_path}/negative.fits -p {psf} -n 1 -w 6600,6610,0.8 -o {tmp_path}/frame.fits"
    for level, logged in (("error", []), ("warn", ["WARNING"]), ("info", ["INFO", "WARNING", "INFO"])):
        caplog.clear()
        desispec.main(f"{files} --loglevel {level}".split())
        assert [record.levelname for record in caplog.records if record.name == "spexd"] == logged
    assert logging.getLogger("spexd").level == logging.NOTSET


def test_warnings_about_the_inputs_are_logged(arguments, image, tmp_path, monkeypatch, caplog):
    with fits.open(image) as hdus:
        hdus["IVAR"].data[200, 100] = -1
        hdus.writeto(tmp_path / "negative.fits")
    monkeypatch.setitem(sys.modules, "desiutil.log", None)  # its logger does not propagate
    desispec.main([*arguments, "-i", str(tmp_path / "negative.fits")])
    assert "1 pixels that MASK does not flag have IVAR < 0" in caplog.text


def test_a_server_extracts_where_one_is_set(arguments, want, server, tmp_path, monkeypatch):
    monkeypatch.setenv("SPEXD_SERVER", server.address)
    monkeypatch.setattr(spexd.Engine, "__init__", None)  # no engine can be made
    assert World(2).run(lambda comm: desispec.main(arguments, comm=comm)) == [None, None]
    assert files(tmp_path / "out") == want


def test_the_module_is_a_program(arguments, want, tmp_path):
    command = [sys.executable, "-m", "spexd.desispec"]
    subprocess.run([*command, *arguments], check=True)
    assert files(tmp_path / "out") == want
    bad = subprocess.run([*command, *arguments, "-n", "51"], capture_output=True, text=True, check=False)
    assert bad.returncode == 1 and "spexd.desispec: --specmin 0 --nspec 51" in bad.stderr


def test_the_package_installs_the_program_under_a_name_that_desispec_does_not_have(arguments, want, tmp_path):
    program = pathlib.Path(sys.executable).parent / "spexd-extract-spectra"
    assert program.exists() and not program.with_name("desi_extract_spectra").exists()
    subprocess.run([program, *arguments], check=True)
    assert files(tmp_path / "out") == want


def test_real_ranks_of_mpi_write_the_same_bytes(arguments, want, tmp_path):
    pytest.importorskip("mpi4py", reason="needs mpi4py and an MPI library")
    mpiexec = shutil.which("mpiexec", path=f"{sys.prefix}/bin") or shutil.which("mpiexec")
    if mpiexec is None:
        pytest.skip("needs mpiexec")
    program = "from mpi4py import MPI; assert MPI.COMM_WORLD.size == 3; from spexd.desispec import main; main()"
    subprocess.run([mpiexec, "-n", "3", sys.executable, "-c", program, *arguments, "--mpi"], check=True)
    assert files(tmp_path / "out") == want
