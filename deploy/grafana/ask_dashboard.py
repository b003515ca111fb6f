#!/usr/bin/env python3
"""Asks a Prometheus every query of the dashboard spexd.json, and prints how many series answer each.

deploy/grafana/ask_dashboard.py http://127.0.0.1:9090            exit code 1 if a query is refused
deploy/grafana/ask_dashboard.py http://127.0.0.1:9090 --wait 60  up to 60 s, until Prometheus has seen a server
"""

import argparse
import json
import pathlib
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

DASHBOARD = pathlib.Path(__file__).resolve().parent / "spexd.json"
VARIABLES = {"$instance": ".*", "$device": ".*", "$__rate_interval": "5m"}


def panels(within):
    """Yields all panels, including those of folded rows."""
    for panel in within["panels"]:
        yield panel
        if panel["type"] == "row":
            yield from panels(panel)


def queries(within):
    """Returns title and query of each panel."""
    return [(panel["title"], target["expr"]) for panel in panels(within) for target in panel.get("targets", [])]


def filled(query):
    """Returns the query for all servers and devices."""
    for name, value in VARIABLES.items():
        query = query.replace(name, value)
    return query


def ask(url, query):
    """Returns the samples that answer a query. ValueError, with Prometheus's message, if it is refused."""
    parameters = urllib.parse.urlencode({"query": query})
    try:
        with urllib.request.urlopen(f"{url}/api/v1/query?{parameters}", timeout=60) as answer:
            return json.load(answer)["data"]["result"]
    except urllib.error.HTTPError as error:
        raise ValueError(json.load(error)["error"]) from error


def wait_for_server(url, seconds):
    """Returns whether a server was seen in time."""
    end = time.monotonic() + seconds
    while True:
        try:
            if ask(url, 'up{job="spexd"} == 1'):
                return True
        except urllib.error.URLError:  # Prometheus does not answer yet
            pass
        if time.monotonic() >= end:
            return False
        time.sleep(1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("url", help="address of Prometheus")
    parser.add_argument("--wait", type=float, default=0, metavar="SECONDS", help="maximum wait for a server (default: 0)")
    arguments = parser.parse_args()
    if not wait_for_server(arguments.url, arguments.wait):
        print(f'{arguments.url}: no server answers: up{{job="spexd"}} is not 1', file=sys.stderr)
        return 1
    refused = 0
    for title, query in queries(json.loads(DASHBOARD.read_text())):
        try:
            print(f"{len(ask(arguments.url, filled(query))):4} series  {title}")
        except ValueError as error:
            refused += 1
            print(f"refused      {title}: {error}", file=sys.stderr)
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
