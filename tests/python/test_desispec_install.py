"""spexd instead of the pipeline's extraction: in a module that replaces the pipeline's, and as a program."""

import os
import shutil
import subprocess
import sys
import types

import pytest

import spexd
from spexd import desispec

NAMES = ("parse", "main", "main_mpi", "main_gpu_specter")
OF_TRACES = ("parse", "main")
MODULES = ("desispec", "desispec.scripts", "desispec.scripts.extract", "desispec.scripts.trace_shifts")


@pytest.fixture
def pipeline(monkeypatch):
    """Provides a module desispec.scripts.extract with functions that must not be called, and one that spexd does not
    have."""
    modules = {name: types.ModuleType(name) for name in MODULES}
    for name, module in modules.items():
        module.__path__ = []
        monkeypatch.setitem(sys.modules, name, module)
    extract, traces = modules["desispec.scripts.extract"], modules["desispec.scripts.trace_shifts"]
    for module, names in (extract, (*NAMES, "gpu_specter_check_input_options")), (traces, OF_TRACES):
        for name in names:
            setattr(module, name, lambda *args, name=name, **options: pytest.fail(f"the pipeline's own {name} was called"))
    monkeypatch.delitem(sys.modules, "spexd.desispec.in_place", raising=False)
    return extract


def functions(module, names=NAMES):
    return {name: vars(module).get(name) for name in names}


def test_the_pipelines_module_gets_the_functions_of_spexd_until_that_is_undone(pipeline):
    own = dict(vars(pipeline))
    installed = desispec.install()
    assert functions(pipeline) == functions(desispec)
    assert pipeline.gpu_specter_check_input_options is own["gpu_specter_check_input_options"]
    installed.undo()
    assert dict(vars(pipeline)) == own
    pipeline.main = "something else"
    installed.undo()
    assert pipeline.main == "something else"


def test_so_does_the_module_of_trace_shifts(pipeline):
    traces = sys.modules["desispec.scripts.trace_shifts"]
    own = dict(vars(traces))
    with desispec.install():
        assert functions(traces, OF_TRACES) == functions(desispec.trace_shifts, OF_TRACES)
    assert dict(vars(traces)) == own


def test_the_functions_go_with_the_end_of_a_block_whatever_ends_it(pipeline):
    own = functions(pipeline)
    with pytest.raises(RuntimeError), desispec.install():
        assert pipeline.main_mpi is desispec.main_mpi
        raise RuntimeError
    assert functions(pipeline) == own


def test_a_second_installation_is_undone_first(pipeline):
    own = functions(pipeline)
    with desispec.install():
        with desispec.install():
            pass
        assert functions(pipeline) == functions(desispec)
    assert functions(pipeline) == own


def test_a_module_that_lacks_a_function_lacks_it_again(pipeline):
    other = types.ModuleType("other")
    with desispec.install(other):
        assert functions(other) == functions(desispec)
    assert functions(other) == dict.fromkeys(NAMES)
    assert functions(pipeline) != functions(desispec)


def test_importing_in_place_installs_for_good(pipeline):
    import spexd.desispec.in_place  # noqa: F401

    assert functions(pipeline) == functions(desispec)


def test_without_desispec_its_absence_is_the_error(monkeypatch):
    monkeypatch.setitem(sys.modules, "desispec", None)
    with pytest.raises(ImportError, match="desispec"):
        desispec.install()


def test_a_caller_of_the_pipelines_functions_gets_spexds_frame(pipeline, image, psf, engine, tmp_path):
    with desispec.install():
        args = pipeline.parse(f"-i {image} -p {psf} -o {tmp_path}/a.fits -n 2 --no-gpu --use-specter".split())
        with pytest.raises(spexd.InvalidArgumentError, match="--use-specter"):
            pipeline.main_mpi(args)
        args.use_specter = False
        pipeline.main_gpu_specter(args)
    engine.extract(image, psf=psf, fibre_count=2).to_fits(tmp_path / "b.fits")
    assert (tmp_path / "a.fits").read_bytes() == (tmp_path / "b.fits").read_bytes()


def test_the_program_is_found_by_the_pipelines_name_and_writes_the_frame(image, psf, engine, tmp_path):
    folder = tmp_path / "a folder"
    folder.mkdir()
    assert desispec.install_script(folder) == folder / "desi_extract_spectra"
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    assert shutil.which("desi_extract_spectra", path=path) == str(folder / "desi_extract_spectra")
    command = f"desi_extract_spectra -i {image} -p {psf} -o {tmp_path}/a.fits -n 2 --no-gpu"
    subprocess.run(command, shell=True, check=True, env={**os.environ, "PATH": path})  # as desi_proc does without MPI
    engine.extract(image, psf=psf, fibre_count=2).to_fits(tmp_path / "b.fits")
    assert (tmp_path / "a.fits").read_bytes() == (tmp_path / "b.fits").read_bytes()


def test_the_program_can_be_installed_again_but_replaces_no_other(tmp_path):
    path = desispec.install_script(tmp_path)
    assert desispec.install_script(tmp_path) == path
    path.write_text("#!/bin/sh\n")
    with pytest.raises(spexd.AlreadyExistsError, match="desi_extract_spectra exists"):
        desispec.install_script(tmp_path)
    assert path.read_text() == "#!/bin/sh\n"
    with pytest.raises(spexd.NotFoundError, match="missing is not a folder"):
        desispec.install_script(tmp_path / "missing")
