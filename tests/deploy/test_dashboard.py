"""The dashboard as a file. test_prometheus.py sends its queries to a Prometheus."""

import re
import subprocess

import dashboard

METRIC = re.compile(r"\b(?:spexd|process)_[a-z_]+")
SUFFIX = re.compile(r"_(bucket|sum|count)$")


def test_the_committed_file_is_what_the_script_makes():
    made = subprocess.run([dashboard.GRAFANA / "make_dashboard.py", "--check"], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr


def test_every_metric_that_is_asked_for_is_documented():
    rows = (dashboard.SOURCES / "docs" / "spexd.md").read_text().splitlines()
    documented = {name for row in rows if row.startswith("| `") for name in METRIC.findall(row.split("|")[1])}
    queries = dashboard.queries(dashboard.read())
    asked = {name for _, query in queries for name in METRIC.findall(query)}
    assert len(asked) > 30
    assert {name for name in asked if not {name, SUFFIX.sub("", name)} & documented} == set()


def test_panels_are_numbered_and_do_not_overlap():
    made = dashboard.read()
    found = list(dashboard.panels(made))
    assert [panel["id"] for panel in found] == list(range(1, len(found) + 1))
    taken = set()
    for panel in found:
        at = panel["gridPos"]
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert at["x"] + at["w"] <= 24 and not cells & taken, panel["title"]
        taken |= cells


def test_queries_about_gpus_are_in_a_folded_row_for_each_gpu():
    made = dashboard.read()
    rows = [panel for panel in made["panels"] if panel.get("repeat")]
    assert [(row["repeat"], row["collapsed"]) for row in rows] == [("device", True)]
    inside = dashboard.queries(rows[0])
    assert inside == [item for item in dashboard.queries(made) if "spexd_device_" in item[1]]
