"""scripts/run_tests.py: its report names every test that failed, was repeated or was skipped, and the reason."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts"
sys.path.insert(0, str(SCRIPTS))
import run_tests  # noqa: E402

GOOGLETEST = """[ RUN      ] Solver.Converges
[       OK ] Solver.Converges (3 ms)
[ RUN      ] Solver.UsesTheDevice
/src/tests/solver_test.cc:31: Skipped
no CUDA device
[  SKIPPED ] Solver.UsesTheDevice (0 ms)
[ RUN      ] Solver.FreesTheDevice
/src/tests/solver_test.cc:40: Skipped
no CUDA device
second line of the reason
[  SKIPPED ] Solver.FreesTheDevice (12 ms)
[ RUN      ] Solver/Sizes.AreRight/3
/src/tests/solver_test.cc:52: Skipped

[  SKIPPED ] Solver/Sizes.AreRight/3, where GetParam() = 7 (0 ms)
[==========] 4 tests from 2 test suites ran. (15 ms total)
[  PASSED  ] 1 test.
[  SKIPPED ] 3 tests, listed below:
[  SKIPPED ] Solver.UsesTheDevice
[  SKIPPED ] Solver.FreesTheDevice
[  SKIPPED ] Solver/Sizes.AreRight/3, where GetParam() = 7
"""
PYTEST = """..s.s                                                    [100%]
SKIPPED [2] tests/test_peers.py:16: needs desispec: not installed
3 passed, 2 skipped in 0.10s
"""


def test_skipped_cases_are_counted_by_reason():
    assert run_tests.skips(GOOGLETEST, False) == ["2 of its cases: no CUDA device", "1 of its cases: no reason given"]
    assert run_tests.skips(PYTEST, False) == ["2 of its cases: needs desispec: not installed"]
    assert run_tests.skips("[       OK ] Solver.Converges (3 ms)\n", False) == []


def test_a_test_that_skips_itself_as_a_whole_gives_its_last_line_as_the_reason():
    assert run_tests.skips("looking\nskipped: PyPI cannot be reached\n", True) == ["skipped: PyPI cannot be reached"]
    assert run_tests.skips("", True) == ["?"]
    assert run_tests.skips(GOOGLETEST, True) == run_tests.skips(GOOGLETEST, False)


def result(seconds=1.0, failed=False, skipped=False, output=""):
    return seconds, failed, skipped, output


def test_the_report_counts_tests_and_shows_the_end_of_each_failure():
    first = {
        "good": result(2.5),
        "busy": result(failed=True, output="refused"),
        "wrong": result(failed=True, output="first run"),
        "plain": result(failed=True, output="\n".join(f"line {number}" for number in range(100))),
        "absent": result(skipped=True, output="no daemon"),
    }
    second = {"busy": result(), "wrong": result(failed=True, output="second run")}
    lasting, text = run_tests.report(first, second)
    lines = text.splitlines()
    assert lasting == ["plain", "wrong"]
    assert lines[:3] == [
        "passed in its second run only: busy", "skipped: absent: no daemon",
        "2 of 5 tests passed, 1 were skipped, 2 failed",
    ]  # fmt: skip
    assert lines[lines.index("FAILED: wrong") + 1] == "  second run"
    assert "  line 60" in lines and "  line 59" not in lines and "  line 99" in lines
    assert lines[lines.index("slowest tests:") + 1].split() == ["2.5", "s", "good"]


# A test of ctest: its name, output, exit code and properties.
TESTS = [
    ("long_test", "." * 5000 + "\n" + GOOGLETEST + "." * 5000 + "\n", 0, ""),
    ("skipped_test", "no daemon\n", 77, "SKIP_RETURN_CODE 77"),
    ("failed_test", "".join(f"{number}:{'.' * 1000}\n" for number in range(400)), 1, ""),
]


@pytest.fixture
def project(tmp_path):
    """Returns a build folder with tests but without programs."""
    build = tmp_path / "build" / "dev"
    build.mkdir(parents=True)
    (tmp_path / "CMakePresets.json").write_text(json.dumps({
        "version": 6,
        "configurePresets": [{"name": "dev", "generator": "Ninja", "binaryDir": "${sourceDir}/build/dev"}],
        "testPresets": [{"name": "dev", "configurePreset": "dev", "execution": {"noTestsAction": "error"}}],
    }))
    lines = []
    for name, output, code, properties in TESTS:
        (build / name).write_text(output)
        lines.append(f'add_test({name} /bin/sh -c "cat {name}; exit {code}")')
        if properties:
            lines.append(f"set_tests_properties({name} PROPERTIES {properties})")
    (build / "CTestTestfile.cmake").write_text("\n".join(lines) + "\n")
    return tmp_path


def run(project, *arguments):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CTEST_")}
    command = [sys.executable, str(SCRIPTS / "run_tests.py"), "dev", *arguments]
    ran = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)
    return ran.returncode, ran.stdout


def test_the_report_has_the_skipped_cases_of_a_passed_test_that_prints_a_lot(project):
    code, printed = run(project)
    text = (project / "build" / "dev" / "test-report.txt").read_text()
    assert code == 1 and printed.endswith(text)
    assert [line for line in text.splitlines() if line and not line.startswith("  ")] == [
        "tests of dev:", "skipped: long_test: 2 of its cases: no CUDA device",
        "skipped: long_test: 1 of its cases: no reason given", "skipped: skipped_test: no daemon",
        "1 of 3 tests passed, 1 were skipped, 1 failed", "FAILED: failed_test", "slowest tests:",
    ]  # fmt: skip
    assert f"\n  399:{'.' * 1000}\n" in text


def test_the_exit_code_tells_of_success_and_of_no_tests(project):
    assert run(project, "-R", "long")[0] == 0
    assert run(project, "-R", "no_such_test")[0] == 2
