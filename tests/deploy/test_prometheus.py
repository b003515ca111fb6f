"""A real Prometheus with deploy/prometheus.yml and deploy/alerts.yml that watches a real spexd."""

import json
import math
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

import dashboard
import pytest
import yaml

BIN = pathlib.Path(os.environ["SPEXD_BIN"])
DEPLOY = dashboard.SOURCES / "deploy"

pytestmark = pytest.mark.skipif(shutil.which("prometheus") is None, reason="Prometheus is not installed")


def wait_for(condition, what, seconds=60):
    """Waits until `condition` returns something true, and returns that."""
    end = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < end, what() if callable(what) else what
        time.sleep(0.02)


def spex(*arguments, **options):
    done = subprocess.run([BIN / "spex", *map(str, arguments)], capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


class Spexd:
    """A server with detached jobs. Prometheus finds it through targets.json as the instance node7."""

    def __init__(self, folder):
        self.folder = folder
        self.process = None

    def start(self):
        ports = self.folder / "ports.json"
        ports.unlink(missing_ok=True)
        command = [BIN / "spexd", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--port-file", ports]
        command += ["--device", "cpu", "--threads", "1", "--allow-root", self.folder]
        command += ["--jobs-dir", self.folder / "jobs"]
        with open(self.folder / "spexd.log", "ab") as log:
            self.process = subprocess.Popen(list(map(str, command)), stdout=log, stderr=log)
        wait_for(lambda: ports.exists() or self.process.poll() is not None, "spexd does not start")
        assert ports.exists(), (self.folder / "spexd.log").read_text()
        told = json.loads(ports.read_text())
        self.address = told["grpc"]
        target = {"targets": [f"127.0.0.1:{told['http_port']}"], "labels": {"instance": "node7"}}
        made = self.folder / "targets.new"
        made.write_text(json.dumps([target]))
        made.rename(self.folder / "targets.json")

    def inputs(self):
        """Returns the arguments of a job on this server, with a frame that has too few lines to measure shifts in y."""
        preproc, psf = self.folder / "preproc-r0.fits", self.folder / "psf-r0.fits"
        if not preproc.exists():
            spex("simulate", "--fibres", 10, "--rows", 60, "--seed", 1, "--out-dir", self.folder)
        return ["-i", preproc, "-p", psf, "--server", self.address]

    def extract(self, *flags):
        spex(*self.inputs(), *flags, "-q", "-o", self.folder / "frame.fits")

    def end(self, number):
        self.process.send_signal(number)
        return self.process.wait(60)


class Prometheus:
    """Prometheus with the project's files, which scrapes and evaluates five times a second; alerts wait for 1 s."""

    def __init__(self, folder, targets):
        rules, replaced = re.subn(r"\bfor: \d+m\b", "for: 1s", (DEPLOY / "alerts.yml").read_text())
        assert replaced > 5
        (folder / "alerts.yml").write_text(rules)
        config = yaml.safe_load((DEPLOY / "prometheus.yml").read_text())
        config["global"] = {"scrape_interval": "200ms", "scrape_timeout": "200ms", "evaluation_interval": "200ms"}
        (scrape,) = config["scrape_configs"]
        del scrape["static_configs"]
        scrape["file_sd_configs"] = [{"files": [str(targets)], "refresh_interval": "1s"}]
        (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
        self.log = folder / "prometheus.log"
        command = ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [*command, "--web.listen-address=127.0.0.1:0"], stdout=log, stderr=log, cwd=folder
            )
        self.url = "http://" + wait_for(self._address, self.log.read_text)
        wait_for(self._is_ready, self.log.read_text)

    def _address(self):
        assert self.process.poll() is None, self.log.read_text()
        found = re.search(r'msg="Listening on" address=(\S+)', self.log.read_text())
        return found and found[1]

    def _is_ready(self):
        try:
            return urllib.request.urlopen(self.url + "/-/ready", timeout=10).status == 200
        except urllib.error.URLError:
            return False

    def get(self, path, **parameters):
        """Returns the data of an answer of Prometheus's HTTP interface."""
        url = f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=60) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{parameters}: {error.read().decode()}") from error

    def values(self, query):
        """Returns the values of a query's result, without NaN."""
        found = [float(sample["value"][1]) for sample in self.get("query", query=query)["result"]]
        return [value for value in found if not math.isnan(value)]

    def alerts(self):
        return {alert["labels"]["alertname"]: alert for alert in self.get("alerts")["alerts"]}

    def fires(self, name):
        return self.alerts().get(name, {}).get("state") == "firing"


@pytest.fixture(scope="module")
def spexd(tmp_path_factory):
    server = Spexd(tmp_path_factory.mktemp("spexd"))
    server.start()
    yield server
    assert server.end(signal.SIGTERM) == 0


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory, spexd):
    made = Prometheus(tmp_path_factory.mktemp("prometheus"), spexd.folder / "targets.json")
    yield made
    made.process.terminate()
    assert made.process.wait(60) == 0


@pytest.fixture(scope="module")
def jobs(prometheus, spexd):
    """Runs jobs of each kind after the first scrape, and waits until Prometheus has seen them."""
    wait_for(lambda: prometheus.values('up{job="spexd"} == 1'), "spexd is not scraped")
    wait_for(lambda: prometheus.values("spexd_spectra_total"), "spexd has no metrics")
    for flags in ([], ["--upload"], ["--trace-shifts", "x"]):
        spexd.extract(*flags)
    job = spex("submit", *spexd.inputs())
    spex("watch", job, "--server", spexd.address, "-q", "-o", spexd.folder / "watched.fits")
    wait_for(lambda: prometheus.values('increase(spexd_jobs_total{outcome="ok"}[5m])') != [0], "no job is seen")


def filled(query):
    made = dashboard.filled(query)
    assert "$" not in made
    return made


def test_every_rule_is_loaded_and_evaluated(prometheus):
    def states():
        return [rule["health"] for group in prometheus.get("rules")["groups"] for rule in group["rules"]]

    wait_for(lambda: set(states()) == {"ok"}, states)
    assert len(states()) == len(re.findall(r"- (?:alert|record):", (DEPLOY / "alerts.yml").read_text()))


@pytest.mark.parametrize("title, query", dashboard.queries(dashboard.read()))
def test_every_query_of_the_dashboard_is_answered(prometheus, jobs, title, query):
    if "spexd_device_" in query:
        assert prometheus.values(filled(query)) == []  # valid, but there is no GPU
    else:
        wait_for(lambda: prometheus.values(filled(query)), f"{title}: no data for {query}")


def test_the_script_for_operators_asks_every_query(prometheus, jobs):
    script = [dashboard.GRAFANA / "ask_dashboard.py", prometheus.url]
    asked = subprocess.run([*script, "--wait", "10"], capture_output=True, text=True)
    assert asked.returncode == 0, asked.stderr
    assert len(asked.stdout.splitlines()) == len(dashboard.queries(dashboard.read()))
    nobody = subprocess.run([script[0], "http://127.0.0.1:9"], capture_output=True, text=True)
    assert nobody.returncode == 1 and "no server answers" in nobody.stderr


def test_the_dashboards_variables_find_servers_and_no_gpus(prometheus, jobs):
    variables = dashboard.read()["templating"]["list"]
    asked = {made["name"]: made["query"]["query"] for made in variables if made["type"] == "query"}
    found = {}
    for name, query in asked.items():
        metric, label = re.fullmatch(r"label_values\((.+), (\w+)\)", query).groups()
        found[name] = {series[label] for series in prometheus.get("series", **{"match[]": filled(metric)})}
    assert found == {"instance": {"node7"}, "device": set()}


def test_recorded_series_have_values(prometheus, jobs):
    recorded = re.findall(r"- record: (\S+)", (DEPLOY / "alerts.yml").read_text())
    assert recorded
    for name in recorded:
        wait_for(lambda name=name: prometheus.values(name), f"{name} has no value")


def test_alerts_fire_on_faults_and_are_resolved(prometheus, spexd, jobs):
    firing = next(query for title, query in dashboard.queries(dashboard.read()) if title == "Alerts")
    assert not prometheus.fires("SpexdDown")
    assert spexd.end(signal.SIGKILL) == -signal.SIGKILL
    wait_for(lambda: prometheus.fires("SpexdDown"), prometheus.alerts)
    wait_for(lambda: prometheus.values(filled(firing)) == [1], prometheus.alerts)

    spexd.start()
    wait_for(lambda: "SpexdDown" not in prometheus.alerts(), prometheus.alerts)

    wait_for(lambda: prometheus.values('spexd_trace_shifts_total{axis="y",status="refused"} == 0'), "no metrics yet")
    spexd.extract("--trace-shifts", "auto")
    wait_for(lambda: prometheus.fires("SpexdTraceShiftsRefused"), prometheus.alerts)

    assert spexd.end(signal.SIGTERM) == 0
    (spexd.folder / "jobs" / "jobs" / "stranger").write_bytes(b"no job")
    spexd.start()
    wait_for(lambda: prometheus.fires("SpexdJobsQuarantined"), prometheus.alerts)
    assert spexd.end(signal.SIGTERM) == 0
    spexd.start()
    wait_for(lambda: "SpexdJobsQuarantined" not in prometheus.alerts(), prometheus.alerts)
