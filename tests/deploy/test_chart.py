"""The chart: checked and rendered by Helm, compared with Kubernetes' schemas, and its flags checked by spexd itself."""

import os
import pathlib
import shutil
import subprocess
import tempfile

import chart
import kubernetes_validate
import pytest
import yaml

FULL = {
    "tlsSecret": "tls", "clientAuthoritySecret": "authority", "identitiesSecret": "identities", "dataClaim": "frames",
    "podMonitor": {"enabled": True}, "prometheusRule": {"enabled": True, "labels": {"release": "watch"}}, "autoscaling": {"enabled": True}, "graceSeconds": 600,
    "pools": {"gpu": {"replicas": 3, "nodeSelector": {"gpu": "h100"}}},
}
JOBS = {"storage": "100Gi", "diskBytes": "90GiB"}
KEEPS_JOBS = {"pools": {"cpu": {"jobs": {**JOBS, "storageClass": "local"}}}, "autoscaling": {"enabled": True}}
CUSTOM = {"PodMonitor", "PrometheusRule", "ScaledObject"}  # kinds of operators, for which Kubernetes has no schema


def manifests(values=None):
    return [made for made in yaml.safe_load_all(chart.render(values)) if made]


def of_kind(kind, values=None):
    return {made["metadata"]["name"]: made for made in manifests(values) if made["kind"] == kind}


def container(deployment):
    (made,) = deployment["spec"]["template"]["spec"]["containers"]
    return made


SETS = [{}, FULL, KEEPS_JOBS, {"networkPolicy": {"enabled": False}}]


@pytest.mark.parametrize("values", SETS)
def test_helm_finds_nothing_to_mend(values):
    said = chart.helm("lint", "--strict", chart.CHART, values=values)
    assert "1 chart(s) linted, 0 chart(s) failed" in said


def test_helm_finds_a_template_that_is_no_manifest(tmp_path):
    broken = shutil.copytree(chart.CHART, tmp_path / "spexd")
    (broken / "templates" / "broken.yaml").write_text("kind: {{ .Values.graceSeconds }\n")
    with pytest.raises(chart.HelmError, match="broken.yaml"):
        chart.helm("lint", "--strict", broken)


@pytest.mark.parametrize("values", SETS)
@pytest.mark.parametrize("version", ["1.25", "1.31"])
def test_manifests_follow_kubernetes_schemas(values, version):
    made = manifests(values)
    assert len(made) >= 5
    for manifest in made:
        if manifest["kind"] not in CUSTOM:
            kubernetes_validate.validate(manifest, version, strict=True)


def test_the_plain_manifests_are_the_chart_with_its_own_values():
    assert chart.PLAIN.read_text() == chart.render()


def test_every_kind_is_there_with_the_parts_that_are_switched_on():
    kinds = {made["kind"] for made in manifests()}
    assert kinds == {"Deployment", "Service", "PodDisruptionBudget", "NetworkPolicy"}
    assert {made["kind"] for made in manifests(FULL)} == kinds | CUSTOM


@pytest.mark.parametrize("values", [{}, FULL])
def test_servers_have_time_to_drain_and_few_rights(values):
    deployments = of_kind("Deployment", values)
    assert set(deployments) == {"spexd-cpu", "spexd-gpu"}
    for deployment in deployments.values():
        pod, server = deployment["spec"]["template"]["spec"], container(deployment)
        (grace,) = [int(flag.split("=")[1]) for flag in server["args"] if flag.startswith("--grace-seconds=")]
        pause = int(server["lifecycle"]["preStop"]["exec"]["command"][1])
        assert pod["terminationGracePeriodSeconds"] > grace + pause
        assert pod["securityContext"]["runAsNonRoot"] and pod["securityContext"]["runAsUser"] == 10001
        assert server["securityContext"]["readOnlyRootFilesystem"]
        assert server["readinessProbe"]["httpGet"]["path"] == "/readyz"
        assert server["livenessProbe"]["httpGet"]["path"] == "/livez"


def test_only_the_pool_for_gpus_asks_for_gpus_and_leaves_before_it_is_replaced():
    deployments = of_kind("Deployment", FULL)
    limits = {name: container(made)["resources"]["limits"] for name, made in deployments.items()}
    assert "nvidia.com/gpu" not in limits["spexd-cpu"] and limits["spexd-gpu"]["nvidia.com/gpu"] == 1
    update = deployments["spexd-gpu"]["spec"]["strategy"]["rollingUpdate"]
    assert update == {"maxSurge": 0, "maxUnavailable": 1}


def test_service_budget_policy_and_monitor_choose_the_servers():
    made = manifests(FULL)
    labels = [pod["spec"]["template"]["metadata"]["labels"] for pod in made if pod["kind"] == "Deployment"]
    selectors = {
        "Service": lambda spec: spec["selector"],
        "PodDisruptionBudget": lambda spec: spec["selector"]["matchLabels"],
        "NetworkPolicy": lambda spec: spec["podSelector"]["matchLabels"],
        "PodMonitor": lambda spec: spec["selector"]["matchLabels"],
    }
    for manifest in made:
        if manifest["kind"] not in selectors:
            continue
        selector = selectors[manifest["kind"]](manifest["spec"])
        chosen = [pod for pod in labels if selector.items() <= pod.items()]
        one_pool = manifest["kind"] in ("PodDisruptionBudget", "Service")
        assert len(chosen) == (1 if one_pool else 2), manifest["metadata"]


@pytest.mark.parametrize("values", [{}, FULL, KEEPS_JOBS])
def test_each_name_has_the_servers_of_one_pool(values):
    pools = {**of_kind("Deployment", values), **of_kind("StatefulSet", values)}
    services = of_kind("Service", values)
    assert set(services) == set(pools) == {"spexd-cpu", "spexd-gpu"}
    for name, service in services.items():
        assert service["spec"]["clusterIP"] == "None" and service["spec"]["publishNotReadyAddresses"] is False
        selector = service["spec"]["selector"].items()
        chosen = {
            pool for pool, made in pools.items() if selector <= made["spec"]["template"]["metadata"]["labels"].items()
        }
        assert chosen == {name}


def test_pools_grow_with_the_work_that_waits():
    scaled = of_kind("ScaledObject", FULL)["spexd-gpu"]["spec"]
    assert scaled["scaleTargetRef"]["name"] == "spexd-gpu" and scaled["minReplicaCount"] == 3
    (trigger,) = scaled["triggers"]
    assert 'spexd_queue_device_seconds{namespace="spectra",pod=~"spexd-gpu-.+"}' in trigger["metadata"]["query"]
    assert "replicas" not in of_kind("Deployment", FULL)["spexd-gpu"]["spec"]


def test_servers_that_keep_jobs_have_a_volume_each_and_are_not_scaled():
    (pool,) = of_kind("StatefulSet", KEEPS_JOBS).values()
    spec, pod, server = pool["spec"], pool["spec"]["template"]["spec"], container(pool)
    assert pool["metadata"]["name"] == "spexd-cpu" and spec["replicas"] == 2
    assert spec["serviceName"] == pool["metadata"]["name"]
    (claim,) = spec["volumeClaimTemplates"]
    assert claim["spec"]["accessModes"] == ["ReadWriteOnce"] and claim["spec"]["storageClassName"] == "local"
    assert claim["spec"]["resources"]["requests"]["storage"] == "100Gi"
    (mount,) = server["volumeMounts"]
    assert mount["name"] == claim["metadata"]["name"] and not mount.get("readOnly")
    assert f"--jobs-dir={mount['mountPath']}/jobs" in server["args"] and "--jobs-disk-bytes=90GiB" in server["args"]
    assert pod["securityContext"]["fsGroup"] == pod["securityContext"]["runAsGroup"]
    assert set(of_kind("Deployment", KEEPS_JOBS)) == set(of_kind("ScaledObject", KEEPS_JOBS)) == {"spexd-gpu"}


def test_the_rules_of_prometheus_are_those_of_the_alerts_file():
    (rule,) = of_kind("PrometheusRule", FULL).values()
    assert rule["spec"] == yaml.safe_load((chart.SOURCES / "deploy" / "alerts.yml").read_text())
    assert rule["metadata"]["labels"]["release"] == "watch"


@pytest.mark.parametrize("values", [
    {"pools": {"cpu": {"jobs": {"storage": "100Gi"}}}}, {"pools": {"cpu": {"jobs": {**JOBS, "diskBytes": "all"}}}},
    {"prometheusRule": {"labels": {"release": 1}}}, {"graceSeconds": 0}, {"graceSecond": 60}, {"pools": {"Bad_Name": {}}}, {"pools": {"cpu": {"gpus": -1}}},
    {"networkPolicy": {"clients": []}}, {"autoscaling": {"prometheus": "prometheus:9090"}}, {"user": 0},
])
def test_values_that_make_no_sense_are_refused(values):
    with pytest.raises(chart.HelmError):
        chart.render(values)


@pytest.mark.parametrize("kind, values", [("Deployment", {}), ("StatefulSet", KEEPS_JOBS)])
def test_spexd_takes_the_flags_of_the_processor_pool(kind, values):
    with tempfile.TemporaryDirectory() as folder:
        flags = container(of_kind(kind, {**values, "dataClaim": "frames"})["spexd-cpu"])["args"]
        flags = [flag.replace("/data", folder).replace("/var/lib/spexd", folder) for flag in flags]
        spexd = pathlib.Path(os.environ["SPEXD_BIN"]) / "spexd"
        checked = subprocess.run([spexd, *flags, "--check-config"], capture_output=True, text=True)
        assert checked.returncode == 0, checked.stderr
