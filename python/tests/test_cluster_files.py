"""The Dockerfile and the manifest of Kubernetes, as their linters see them. See engines-requirements.txt."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from datasets import CHECKOUT

pytestmark = pytest.mark.long


def test_the_dockerfile_passes_hadolint():
    hadolint = shutil.which("hadolint") or shutil.which("hadolint", path=str(Path(sys.executable).parent))
    if hadolint is None:
        pytest.skip("hadolint is missing")
    done = subprocess.run([hadolint, CHECKOUT / "Dockerfile"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_manifest_fits_the_schema_and_its_count_is_the_same_everywhere():
    validate, yaml = pytest.importorskip("kubernetes_validate"), pytest.importorskip("yaml")
    job = yaml.safe_load((CHECKOUT / "examples/cluster/indexed-job.yaml").read_text())
    validate.validate(job, "1.37", strict=True)
    spec = job["spec"]
    (container,) = spec["template"]["spec"]["containers"]
    variables = {variable["name"]: variable["value"] for variable in container["env"]}
    assert variables["JOB_COMPLETIONS"] == str(spec["completions"]) == str(spec["parallelism"])
    (exits,) = [rule["onExitCodes"] for rule in spec["podFailurePolicy"]["rules"] if "onExitCodes" in rule]
    assert exits["values"] == [2] and exits["containerName"] == container["name"]
    assert variables["TMPDIR"] in [mount["mountPath"] for mount in container["volumeMounts"]]
