"""The dashboard and its queries, for tests."""

import json
import pathlib
import sys

SOURCES = pathlib.Path(__file__).resolve().parents[2]
GRAFANA = SOURCES / "deploy" / "grafana"
sys.path.insert(0, str(GRAFANA))

from ask_dashboard import DASHBOARD, filled, panels, queries  # noqa: E402

__all__ = ["GRAFANA", "SOURCES", "filled", "panels", "queries", "read"]


def read():
    return json.loads(DASHBOARD.read_text())
