"""What is shipped for servers: compose, Containerfile, systemd's unit, Kubernetes' manifest, variables."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from pages.setting_texts import describe_settings
from requirements import Require
from suture.core.settings.aliases import VARIABLES
from write_pages import environment_example

ROOT = Path(__file__).parents[2]
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
MANIFESTS = list(yaml.safe_load_all((ROOT / "deploy" / "kubernetes.yaml").read_text()))
UNIT = (ROOT / "deploy" / "suture.service").read_text()


def run(*command: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=60, check=False)


def tool(name: str, require: Require) -> str:
    """A program beside this Python."""
    path = shutil.which(name, path=str(Path(sys.executable).parent))
    require("deploy-tools", path is not None, f"no program {name!r}; .ci/run installs it")
    return str(path)


def test_the_example_of_variables_is_fresh_and_whole() -> None:
    text = (ROOT / ".env.example").read_text()
    assert text == environment_example(), "run `python tests/write_pages.py`"
    named = set(re.findall(r"^# ([A-Z][A-Z0-9_]*)=", text, re.MULTILINE))
    assert named >= {setting.variable for setting in describe_settings()}
    assert named >= {alias.name for alias in VARIABLES}
    # As it stands it sets nothing.
    assert not re.search(r"^[^#\n]", text, re.MULTILINE)


def test_each_variable_that_compose_reads_is_in_the_example() -> None:
    read = set(re.findall(r"\$\{([A-Z_]+)", (ROOT / "compose.yaml").read_text()))
    named = set(re.findall(r"^# ([A-Z0-9_]+)=", (ROOT / ".env.example").read_text(), re.MULTILINE))
    assert read <= named


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_a_service_is_healthy_bounded_and_nobodys_root(name: str) -> None:
    service = SERVICES[name]
    assert service["healthcheck"]["test"]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in service["security_opt"]
    assert {"mem_limit", "cpus", "pids_limit"} <= set(service)
    assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))
    target = service.get("build", {}).get("target")
    if target is None:
        assert service["user"] not in ("root", "0", "0:0")
    else:
        stage = re.split(r"^FROM .*$", (ROOT / "Containerfile").read_text(), flags=re.MULTILINE)
        names = re.findall(r"^FROM \S+ AS (\w+)$", (ROOT / "Containerfile").read_text(), re.MULTILINE)
        assert "USER 10001:10001" in stage[names.index(target) + 1]


def test_git_ignores_the_files_that_hold_the_services_secrets() -> None:
    ignored = (ROOT / ".gitignore").read_text().splitlines()
    for secret in COMPOSE["secrets"].values():
        assert f"{Path(secret['file']).parts[0]}/" in ignored


def test_no_secret_is_a_variable_of_a_service() -> None:
    for name, service in SERVICES.items():
        for variable in service.get("environment", {}):
            assert not re.search(r"KEY|TOKEN|PASSWORD$|URL$(?<!BASE_URL)", variable), (name, variable)
    assert all(set(secret) == {"file"} for secret in COMPOSE["secrets"].values())


def test_podman_compose_reads_it(require: Require, tmp_path: Path) -> None:
    compose = tool("podman-compose", require)
    for name in ("compose.yaml", "Containerfile"):
        shutil.copy(ROOT / name, tmp_path)
    done = run(compose, "--profile", "ollama", "--profile", "mlflow", "config", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert set(yaml.safe_load(done.stdout)["services"]) == set(SERVICES)


def test_kubernetes_takes_the_manifest(require: Require, tmp_path: Path) -> None:
    validate = tool("kubernetes-validate", require)
    done = run(validate, "--strict", str(ROOT / "deploy" / "kubernetes.yaml"))
    assert done.returncode == 0, done.stdout + done.stderr
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(json.dumps(MANIFESTS[1] | {"spec": {"replicas": "one"}}))
    assert run(validate, "--strict", str(wrong)).returncode != 0


def test_the_manifest_says_what_the_sandbox_needs_and_no_more() -> None:
    kinds = {manifest["kind"]: manifest for manifest in MANIFESTS}
    assert {"Deployment", "NetworkPolicy"} <= set(kinds)
    pod = kinds["Deployment"]["spec"]["template"]["spec"]
    assert pod["hostUsers"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    (container,) = pod["containers"]
    security = container["securityContext"]
    assert security["procMount"] == "Unmasked"
    assert security["capabilities"] == {"drop": ["ALL"]}
    assert not security["allowPrivilegeEscalation"]
    assert set(kinds["NetworkPolicy"]["spec"]["policyTypes"]) == {"Ingress", "Egress"}


def test_systemd_takes_the_unit(require: Require, tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    require("systemd", analyze is not None, "no program 'systemd-analyze'")
    unit = tmp_path / "suture.service"
    # It looks for the programs too, and /opt/suture is not this machine's.
    unit.write_text(UNIT.replace("/opt/suture/bin/suture", "/bin/true"))
    done = run(str(analyze), "verify", str(unit))
    assert (done.returncode, done.stderr) == (0, "")
    unit.write_text(
        UNIT.replace("/opt/suture/bin/suture", "/bin/true").replace("MemoryMax=6G", "MemoryMax=lots")
    )
    assert "Invalid memory limit" in run(str(analyze), "verify", str(unit)).stderr


def test_the_wall_is_not_forbidden_by_the_unit() -> None:
    assert not re.search(r"^(RestrictNamespaces|ProtectKernelTunables|ProtectProc)=", UNIT, re.MULTILINE)
    assert re.search(r"^NoNewPrivileges=yes$", UNIT, re.MULTILINE)
