"""Renders the chart with Helm's own library; as a program it writes the plain manifests, deploy/kubernetes.yaml."""

import sys

import helm_python
from dashboard import SOURCES

CHART = SOURCES / "deploy" / "chart"
PLAIN = SOURCES / "deploy" / "kubernetes.yaml"
HEAD = """# The chart in deploy/chart with its own values, for `kubectl apply -f` without Helm. Made by tests/deploy/chart.py.
"""


def render(values=None):
    """All manifests, one text."""
    with helm_python.Chart.load(str(CHART)) as chart:
        made = chart.render(values or {}, name="spexd", namespace="spectra")
    texts = [made[name].strip().removeprefix("---\n") for name in sorted(made) if not name.endswith(".tpl")]
    return HEAD + "".join(f"---\n{text}\n" for text in texts if text)


if __name__ == "__main__":
    PLAIN.write_text(render())
    sys.exit(0)
