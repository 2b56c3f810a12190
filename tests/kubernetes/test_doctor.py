"""``scriptmode doctor --platform kubernetes`` with a cluster."""

import json
import os
import re
import subprocess
import sys

import pytest
from kubernetes.configuration import MACHINE_IMAGE

pytestmark = [pytest.mark.kubernetes, pytest.mark.slow, pytest.mark.timeout(1800)]


def examine(cluster, folder, kubeconfig=None, **settings):
    """Return the checks of the cluster by their names."""
    variables = {
        "KUBECONFIG": str(kubeconfig or cluster.kubeconfig),
        "PATH": cluster.path,
        "SCRIPTMODE_DATA_DIR": str(folder / "data"),
        "SCRIPTMODE_KUBERNETES": json.dumps({"address": cluster.address, **settings}),
    }
    command = [sys.executable, "-m", "scriptmode", "doctor", "--platform", "kubernetes", "--json"]
    done = subprocess.run(command, env={**os.environ, **variables}, stdout=subprocess.PIPE, text=True, check=False)
    return {each["name"]: each for each in json.loads(done.stdout)}


def test_it_runs_a_job_in_a_pod(idle_cluster, tmp_path):
    found = examine(idle_cluster, tmp_path, image=MACHINE_IMAGE)
    assert [found[name]["outcome"] for name in ("cluster", "trial pod")] == ["ok"] * 2, found
    assert found["cluster"]["found"].startswith("Kubernetes v")


def test_missing_rights_are_a_problem(cluster, tmp_path):
    # A node may list pods, and create none for others.
    found = examine(cluster, tmp_path, cluster.folder / "kube-proxy.kubeconfig")
    for name in ("cluster", "trial pod"):
        assert found[name]["outcome"] == "problem"
        assert "it may not create pods" in found[name]["found"]
        assert found[name]["advice"] == "give it the Role of: scriptmode serve manifests"


def test_a_missing_image_is_a_problem(cluster, tmp_path):
    found = examine(cluster, tmp_path)
    assert (found["cluster"]["outcome"], found["trial pod"]["outcome"]) == ("ok", "problem")
    assert "image_uri is missing" in found["trial pod"]["found"]


def test_a_cluster_that_does_not_answer_is_a_problem(cluster, tmp_path):
    path = tmp_path / "kubeconfig"
    path.write_text(re.sub("https://[0-9.:]+", "https://127.0.0.1:9", cluster.kubeconfig.read_text()))
    found = examine(cluster, tmp_path, path, image=MACHINE_IMAGE)
    assert {found[name]["outcome"] for name in ("cluster", "trial pod")} == {"problem"}
    assert "does not answer" in found["cluster"]["found"]
