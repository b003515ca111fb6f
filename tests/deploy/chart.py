"""Renders the chart with Helm. As a program it writes the plain manifests, deploy/kubernetes.yaml."""

import pathlib
import re
import subprocess
import sys

import yaml
from dashboard import SOURCES

CHART = SOURCES / "deploy" / "chart"
PLAIN = SOURCES / "deploy" / "kubernetes.yaml"
HEAD = """# The chart in deploy/chart with its own values, for `kubectl apply -f` without Helm. Made by tests/deploy/chart.py.
"""


class HelmError(Exception):
    """Helm's message about a chart or values that it refuses."""


def helm(*arguments, values=None):
    """Returns the output of Helm, which is in the environment that runs this."""
    command = [pathlib.Path(sys.prefix) / "bin" / "helm", *arguments, "--values", "-"]
    done = subprocess.run(command, input=yaml.safe_dump(values or {}), capture_output=True, text=True)
    if done.returncode != 0:
        raise HelmError(done.stdout + done.stderr)
    return done.stdout


def render(values=None):
    """Returns all manifests as one text."""
    made = helm("template", "spexd", CHART, "--namespace", "spectra", values=values)
    return HEAD + re.sub(r"^# Source: .*\n", "", made, flags=re.MULTILINE)


if __name__ == "__main__":
    PLAIN.write_text(render())
