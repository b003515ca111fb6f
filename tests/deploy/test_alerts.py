"""Alerts and recorded series: each has a test and an explanation, and is in the chart. promtool runs the tests."""

import re

import yaml
from dashboard import SOURCES

DEPLOY = SOURCES / "deploy"


def rules(kind):
    groups = yaml.safe_load((DEPLOY / "alerts.yml").read_text())["groups"]
    return {rule[kind]: rule for group in groups for rule in group["rules"] if kind in rule}


def cases(kind, name, expected):
    """For each name in alerts_test.yml, the set of whether something was expected."""
    found = {}
    for test in yaml.safe_load((DEPLOY / "alerts_test.yml").read_text())["tests"]:
        for case in test.get(kind, []):
            found.setdefault(case[name], set()).add(bool(case.get(expected)))
    return found


def test_each_alert_has_a_case_that_fires_and_one_that_does_not():
    assert cases("alert_rule_test", "alertname", "exp_alerts") == {name: {True, False} for name in rules("alert")}


def test_each_recorded_series_has_a_case_with_values_and_one_without():
    assert cases("promql_expr_test", "expr", "exp_samples") == {name: {True, False} for name in rules("record")}


def test_each_alert_has_a_paragraph_of_the_runbook():
    sections = re.split(r"^## ", (SOURCES / "docs" / "runbook.md").read_text(), flags=re.MULTILINE)[1:]
    titles = {section.split("\n", 1)[0]: len(section) for section in sections}
    alerts = rules("alert")
    assert list(titles) == list(alerts)  # in the same order
    assert min(titles.values()) > 200
    for name, alert in alerts.items():
        assert alert["annotations"]["runbook"] == "docs/runbook.md#" + name.lower()
        assert alert["labels"]["severity"] in ("page", "ticket")


def test_the_chart_has_the_alerts():
    # It is a link to them. If it became a file that holds the path, Helm would install a PrometheusRule without rules.
    assert (DEPLOY / "chart" / "alerts.yml").read_text() == (DEPLOY / "alerts.yml").read_text()
