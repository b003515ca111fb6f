#!/usr/bin/env python3
"""Writes the dashboard spexd.json beside this file; a test compares the two.

deploy/grafana/make_dashboard.py          to be run after a change of this file
deploy/grafana/make_dashboard.py --check  exit code 1 if spexd.json differs from what this makes
"""

import json
import pathlib
import sys

OUTPUT = pathlib.Path(__file__).resolve().parent / "spexd.json"
PROMETHEUS = {"type": "prometheus", "uid": "${datasource}"}
WIDTH = 24  # of the page, in Grafana's units
HEIGHTS = {"row": 1, "stat": 4, "timeseries": 8}
WIDTHS = {"row": WIDTH, "stat": 4, "timeseries": 12}


def series(metric, more=""):
    """Returns the series of the selected servers."""
    return f'{metric}{{instance=~"$instance"{more}}}'


def rate(metric, more=""):
    return f"rate({series(metric, more)}[$__rate_interval])"


def total_rate(metric, by=""):
    return f"sum{f' by ({by})' if by else ''} ({rate(metric)})"


def mean(histogram, by):
    return f"{total_rate(histogram + '_sum', by)} / {total_rate(histogram + '_count', by)}"


def quantiles(histogram, *shares):
    """Returns queries and legends."""
    rates = total_rate(histogram + "_bucket", "le")
    return [(f"histogram_quantile({share}, {rates})", f"{share:.0%} of jobs") for share in shares]


def row(title, panels=(), repeat=None):
    """Returns a heading. With `panels` it is a row that is folded until it is opened, and makes no queries before."""
    folded = {"collapsed": True, "panels": list(panels)} if panels else {"collapsed": False, "panels": []}
    return {"type": "row", "title": title, **folded, **({"repeat": repeat} if repeat else {})}


def panel(kind, title, unit, queries, description="", **defaults):
    return {
        "type": kind,
        "title": title,
        "description": description,
        "datasource": PROMETHEUS,
        "fieldConfig": {"defaults": {"unit": unit, "min": 0, **defaults}, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + k), "datasource": PROMETHEUS, "expr": expr, "legendFormat": legend}
            for k, (expr, legend) in enumerate(queries)
        ],
    }


def stat(title, query, description="", unit="short"):
    made = panel("stat", title, unit, [(query, "")], description)
    return {**made, "options": {"reduceOptions": {"calcs": ["lastNotNull"]}, "colorMode": "none"}}


def graph(title, unit, queries, description="", stacked=False, **defaults):
    style = {"fillOpacity": 20 if stacked else 0, "stacking": {"mode": "normal" if stacked else "none"}}
    made = panel("timeseries", title, unit, queries, description, custom=style, **defaults)
    legend = {"displayMode": "list", "placement": "bottom"}
    return {**made, "options": {"legend": legend, "tooltip": {"mode": "multi"}}}


def now():
    alerts = series("ALERTS", ',alertname=~"Spexd.+",alertstate="firing"')
    return [
        stat("Spectra per second", total_rate("spexd_spectra_total"), "Fibres extracted, over all servers chosen"),
        stat("Jobs running", f"sum({series('spexd_jobs_in_flight')})"),
        stat("Jobs waiting", f"sum({series('spexd_queue_jobs')})", "Admitted, without a slot"),
        stat("Work waiting", f"sum({series('spexd_queue_device_seconds')})", "Estimated seconds of a device", "s"),
        stat("Servers draining", f"sum({series('spexd_draining')})"),
        stat("Alerts", f"sum({alerts}) or vector(0)", "That fire, by the rules of deploy/alerts.yml"),
    ]


def jobs():
    return [
        row("Jobs"),
        graph("Jobs ended, by status code", "ops", [(total_rate("spexd_jobs_total", "outcome"), "{{outcome}}")],
              stacked=True),
        graph("Jobs running and waiting", "short", [
            (series("spexd_jobs_in_flight"), "{{instance}}: running"),
            (series("spexd_queue_jobs"), "{{instance}}: waiting"),
        ]),
        graph("Work that waits", "s", [
            (series("spexd_queue_device_seconds"), "{{instance}}: device-seconds, estimated"),
            (series("spexd_queue_oldest_seconds"), "{{instance}}: the first in the queue has waited"),
        ]),
        graph("Time to the first bundle", "s", quantiles("spexd_time_to_first_bundle_seconds", 0.5, 0.9, 0.99),
              "From a job's header to its first finished bundle"),
        graph("Seconds per job in each stage", "s", [(mean("spexd_stage_duration_seconds", "stage"), "{{stage}}")],
              "Mean; the engine's stages (spots to model) are summed over its threads", stacked=True),
        graph("Seconds from a job's begin to its end", "s", quantiles("spexd_job_duration_seconds", 0.5, 0.9, 0.99)),
        graph("Jobs refused and cancelled", "ops", [
            (total_rate("spexd_rejections_total", "reason"), "refused: {{reason}}"),
            (total_rate("spexd_cancellations_total", "stage"), "cancelled: {{stage}}"),
        ], "Refused: decided before any work, clients try again. Cancelled: by a client or its deadline, by stage"),
        graph("Time taken, of the estimate", "percentunit", quantiles("spexd_job_estimate_ratio", 0.5, 0.9),
              "Device-seconds that a job took in its slot over those estimated when it was admitted"),
        graph("chi2pix of jobs", "short", quantiles("spexd_chi2pix", 0.5, 0.9, 0.99),
              "Median of a job's bins, about 0.8 in a good frame: above 1, image and PSF do not fit each other"),
        graph("Trace shifts of jobs", "short",
              [(f"histogram_quantile({share}, {total_rate('spexd_trace_shift_pixels_bucket', 'axis, le')})",
                f"{share:.0%} in {{{{axis}}}}") for share in (0.5, 0.9)],
              "Absolute mean shift of a frame's traces against its PSF, in pixels"),
        graph("Trace shifts measured, by status", "ops",
              [(total_rate("spexd_trace_shifts_total", "axis, status"), "{{axis}}: {{status}}")],
              "Refused: the frame was extracted with the PSF's own traces", stacked=True),
        graph("Flux residual of jobs", "sci", quantiles("spexd_flux_residual", 0.5, 0.9, 0.99),
              "Largest |b - A f| / |b| of a job's bundles: fluxes are refined to 1e-11, a bundle above 1e-8 fails"),
        graph("Root error of jobs", "sci", quantiles("spexd_root_error", 0.5, 0.9, 0.99),
              "Largest error of |Q v|^2 = v^T P v of a job's bundles, for the square roots Q: a bundle above 1e-6 fails"),
        graph("Calls judged by who made them", "ops", [(total_rate("spexd_access_total", "decision"), "{{decision}}")]),
    ]


def resources():
    hits = total_rate("spexd_psf_cache_hits_total", "kind")
    misses = total_rate("spexd_psf_cache_misses_total", "kind")
    return [
        row("Servers"),
        graph("Servers by engine", "short",
              [(f"sum by (kind, device) ({series('spexd_engine_info')})", "{{kind}}: {{device}}")]),
        graph("Servers by version", "short", [(f"sum by (version) ({series('spexd_build_info')})", "{{version}}")]),
        graph("Memory", "bytes", [
            (series("process_resident_memory_bytes"), "{{instance}}: process"),
            (series("spexd_psf_cache_bytes"), "{{instance}}: warm PSFs"),
        ]),
        graph("Processor cores in use", "short", [(rate("process_cpu_seconds_total"), "{{instance}}")]),
        graph("Bytes in and out", "Bps", [
            (total_rate("spexd_received_bytes_total"), "received"),
            (total_rate("spexd_sent_bytes_total"), "sent"),
        ], "Uploads received and results sent; files opened by path are not counted"),
        graph("PSF cache: share of hits", "percentunit", [(f"{hits} / ({hits} + {misses})", "{{kind}}")],
              "Of PSFs and of prepared grids; a new PSF with every frame makes misses normal"),
        graph("Connections and calls", "short", [
            (series("spexd_connections"), "{{instance}}: connections"),
            (series("spexd_streams"), "{{instance}}: calls that are open"),
        ]),
        graph("File descriptors, of their limit", "percentunit",
              [(f"{series('process_open_fds')} / {series('process_max_fds')}", "{{instance}}")]),
        graph("Validity of the certificate", "s",
              [(f"clamp_min({series('spexd_certificate_expiry_seconds')} - time(), 0)", "{{instance}}")],
              "Until it expires; 0: it has expired, or the server has no TLS"),
    ]


def detached():
    limit = series("spexd_detached_disk_limit_bytes")
    return [
        row("Detached jobs"),
        graph("Detached jobs on disk, by state", "short",
              [(f"sum by (state) ({series('spexd_detached_jobs')})", "{{state}}")],
              "Those that have ended stay until their time to live passes", stacked=True),
        graph("Detached jobs ended, by status code", "ops",
              [(total_rate("spexd_detached_jobs_ended_total", "outcome"), "{{outcome}}")], stacked=True),
        graph("Disk used, of its limit", "percentunit",
              [(f"{series('spexd_detached_disk_bytes')} / ({limit} > 0)", "{{instance}}")],
              "Of --jobs-disk-bytes; nothing for servers without detached jobs", max=1),
        graph("Failures of the disk", "short", [
            (f"increase({series('spexd_detached_disk_errors_total')}[$__rate_interval])", "{{instance}}: errors"),
            (series("spexd_detached_disk_full"), "{{instance}}: full"),
            (series("spexd_detached_quarantined_total"), "{{instance}}: damaged jobs"),
        ], "Full: the disk has no room for results"),
    ]


def devices():
    def of(metric):
        return series(metric, ',device=~"$device"')

    resident, workspace = of("spexd_device_resident_bytes"), of("spexd_device_workspace_bytes")
    memory = of("spexd_device_memory_bytes")
    panels = [
        graph("Jobs that compute", "short", [(of("spexd_device_running_jobs"), "{{instance}}")]),
        graph("Share of the time in which it computed", "percentunit",
              [(of("spexd_device_utilization_ratio"), "{{instance}}")], "By the driver, for all programs", max=1),
        graph("Share of memory in use", "percentunit", [
            (f"({resident} + {workspace}) / {memory}", "{{instance}}: PSFs and workspaces"),
            (f"{resident} / {memory}", "{{instance}}: PSFs"),
        ], "Prepared PSFs and workspaces of what the engine may use", max=1),
        graph("Healthy", "short", [(of("spexd_device_healthy"), "{{instance}}: {{name}}")],
              "1: takes jobs; 0: failed", max=1),
    ]
    return [row("GPU $device", panels, repeat="device")]


def place(panels, top=0):
    """Lays panels out from left to right, including those in folded rows."""
    x = height = 0
    placed = []
    for made in panels:
        kind = made["type"]
        if x + WIDTHS[kind] > WIDTH:
            top, x = top + height, 0
        height = HEIGHTS[kind]
        placed.append({**made, "gridPos": {"x": x, "y": top, "w": WIDTHS[kind], "h": height}})
        x += WIDTHS[kind]
        if made.get("panels"):
            placed[-1]["panels"] = place(made["panels"], top + height)
    return placed


def number(panels, first=1):
    """Gives each panel an id; returns the next free one."""
    for made in panels:
        made["id"] = first
        first = number(made.get("panels", []), first + 1)
    return first


def variable(name, label, query):
    return {
        "name": name, "label": label, "type": "query", "datasource": PROMETHEUS,
        "query": {"query": query, "refId": name}, "includeAll": True, "multi": True, "allValue": ".*",
        "refresh": 2, "current": {"text": "All", "value": "$__all"},
    }


def dashboard():
    panels = place(now() + jobs() + resources() + detached() + devices())
    number(panels)
    return {
        "title": "spexd", "uid": "spexd", "tags": ["spexd"], "schemaVersion": 38, "version": 1, "editable": True,
        "refresh": "30s", "timezone": "", "time": {"from": "now-3h", "to": "now"},
        "templating": {"list": [
            {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus"},
            variable("instance", "Server", "label_values(spexd_build_info, instance)"),
            # Each GPU has its own row; for servers without GPUs there is one folded row, or none.
            variable("device", "GPU", 'label_values(spexd_device_healthy{instance=~"$instance"}, device)'),
        ]},
        "panels": panels,
    }


def main(arguments):
    text = json.dumps(dashboard(), indent=1) + "\n"
    if arguments == ["--check"]:
        if OUTPUT.read_text() == text:
            return 0
        print(f"{OUTPUT} is not what {__file__} makes; run it", file=sys.stderr)
        return 1
    OUTPUT.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
