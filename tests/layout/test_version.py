"""The version is set in CMakeLists.txt. Files that repeat it without being generated must agree."""

import re

import pytest
import yaml
from sources import ROOT

VERSION = re.search(r"^project\(spexd VERSION ([0-9.]+) ", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE)[1]


def read(name):
    return yaml.safe_load((ROOT / name).read_text())


def test_a_citation_names_it():
    assert read("CITATION.cff")["version"] == VERSION


def test_the_chart_and_its_images_have_it():
    chart, pools = read("deploy/chart/Chart.yaml"), read("deploy/chart/values.yaml")["pools"]
    assert {chart["version"], chart["appVersion"]} == {VERSION}
    assert {name: pool["image"] for name, pool in pools.items()} == {
        "cpu": f"spexd:{VERSION}", "gpu": f"spexd:{VERSION}-cuda"
    }


def test_the_newest_changes_are_of_it():
    assert re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[1] == VERSION


@pytest.mark.parametrize("name", ["docs/install.md", "tests/install/consumer/CMakeLists.txt"])
def test_projects_ask_for_its_minor_version(name):
    minor = VERSION.rsplit(".", 1)[0]
    assert re.findall(r"find_package\(spexd ([0-9.]+)", (ROOT / name).read_text()) == [minor]
