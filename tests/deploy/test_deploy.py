"""The files for servers: compose, Containerfile, systemd unit, Kubernetes manifest and variables."""

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


def run_command(*command: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=60, check=False)


def find_tool(name: str, require: Require) -> str:
    """Return the path of a program that is installed beside this Python."""
    path = shutil.which(name, path=str(Path(sys.executable).parent))
    require("deploy-tools", path is not None, f"no program {name!r}; .ci/run installs it")
    return str(path)


def test_the_variables_example_is_current_and_complete() -> None:
    text = (ROOT / ".env.example").read_text()

    assert text == environment_example(), "run `python tests/write_pages.py`"
    documented = set(re.findall(r"^# ([A-Z][A-Z0-9_]*)=", text, re.MULTILINE))
    assert documented >= {setting.variable for setting in describe_settings()}
    assert documented >= {alias.name for alias in VARIABLES}
    # Every line is a comment, so the file sets nothing.
    assert not re.search(r"^[^#\n]", text, re.MULTILINE)


def test_every_variable_of_compose_is_in_the_example() -> None:
    used = set(re.findall(r"\$\{([A-Z_]+)", (ROOT / "compose.yaml").read_text()))
    documented = set(re.findall(r"^# ([A-Z0-9_]+)=", (ROOT / ".env.example").read_text(), re.MULTILINE))
    assert used <= documented


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_a_service_is_checked_bounded_and_unprivileged(name: str) -> None:
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


def test_git_ignores_the_secrets_of_the_services() -> None:
    ignored = (ROOT / ".gitignore").read_text().splitlines()
    for secret in COMPOSE["secrets"].values():
        assert f"{Path(secret['file']).parts[0]}/" in ignored


def test_no_service_has_a_secret_in_a_variable() -> None:
    for name, service in SERVICES.items():
        for variable in service.get("environment", {}):
            assert not re.search(r"KEY|TOKEN|PASSWORD$|URL$(?<!BASE_URL)", variable), (name, variable)
    assert all(set(secret) == {"file"} for secret in COMPOSE["secrets"].values())


def test_podman_compose_accepts_the_file(require: Require, tmp_path: Path) -> None:
    compose = find_tool("podman-compose", require)
    for name in ("compose.yaml", "Containerfile"):
        shutil.copy(ROOT / name, tmp_path)
    completed = run_command(compose, "--profile", "ollama", "--profile", "mlflow", "config", cwd=tmp_path)
    assert completed.returncode == 0, completed.stderr
    assert set(yaml.safe_load(completed.stdout)["services"]) == set(SERVICES)


def test_kubernetes_accepts_the_manifest(require: Require, tmp_path: Path) -> None:
    validate = find_tool("kubernetes-validate", require)
    completed = run_command(validate, "--strict", str(ROOT / "deploy" / "kubernetes.yaml"))
    assert completed.returncode == 0, completed.stdout + completed.stderr
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(json.dumps(MANIFESTS[1] | {"spec": {"replicas": "one"}}))
    assert run_command(validate, "--strict", str(wrong)).returncode != 0


def test_the_manifest_grants_only_what_the_sandbox_needs() -> None:
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


def test_systemd_accepts_the_unit(require: Require, tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    require("systemd", analyze is not None, "no program 'systemd-analyze'")
    unit = tmp_path / "suture.service"
    # systemd-analyze also looks for the programs, and this machine has no /opt/suture.
    unit.write_text(UNIT.replace("/opt/suture/bin/suture", "/bin/true"))
    completed = run_command(str(analyze), "verify", str(unit))

    assert (completed.returncode, completed.stderr) == (0, "")
    unit.write_text(
        UNIT.replace("/opt/suture/bin/suture", "/bin/true").replace("MemoryMax=6G", "MemoryMax=lots")
    )
    assert "Invalid memory limit" in run_command(str(analyze), "verify", str(unit)).stderr


def test_the_unit_allows_the_sandbox() -> None:
    assert not re.search(r"^(RestrictNamespaces|ProtectKernelTunables|ProtectProc)=", UNIT, re.MULTILINE)
    assert re.search(r"^NoNewPrivileges=yes$", UNIT, re.MULTILINE)
