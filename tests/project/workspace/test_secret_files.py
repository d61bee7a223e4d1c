"""Which files of a project count as secrets of the user."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from suture.project.workspace import take_snapshot
from suture.project.workspace.secret_detection import has_secret_name


@pytest.mark.parametrize(
    "name",
    [
        ".git-credentials",
        "prod.env",
        "service-account.json",
        ".vault-token",
        "terraform.tfstate",
        "release.jks",
        "token.json",
        ".ENV",
        "ID_RSA",
        "deploy_ed25519",
        "secrets.yaml",
        "secret.toml",
        "local.settings.json",
        "api/local.settings.json",
        "appsettings.Development.json",
        ".dev.vars",
        "appsettings.local.json",
        ".runtimeconfig.json",
        ".secrets.toml",
        ".secrets",
        "db-secret.yaml",
        "dbt/profiles.yml",
        "airflow.cfg",
        "pip.ini",
        ".condarc",
        "android/local.properties",
        ".mcp.json",
        "config/database.yml",
        "OAI_CONFIG_LIST",
        "OAI_CONFIG_LIST.json",
        ".cache/huggingface/token",
        ".vscode/sftp.json",
        "app.secrets.json",
        "local.settings.json~",
        ".kamal/secrets-common",
        "a/b/.docker/config.json",
        ".cargo/credentials.toml",
        "aws_credentials.json",
        "my-credentials.yml",
        ".env~",
        "prod.env.bak",
        "secrets.yaml.orig",
        "deploy.pem.old",
        "x/serviceAccountKey.json",
        "shop-firebase-adminsdk-x1.json",
        "prod.tfvars",
        ".bash_history",
        "passwords.csv",
        "kubeconfig",
        "store.kdbx",
        "site.ovpn",
        "terraform.tfstate.backup",
        "secrets.enc.json.key",
    ],
)
def test_names_of_secret_files_are_recognised(name: str) -> None:
    assert has_secret_name(name, is_folder=False)


@pytest.mark.parametrize(
    "name", [".aws", "pkg/.ssh", ".gnupg", ".kube", "a/.config/gcloud", ".secrets", ".oci"]
)
def test_names_of_secret_folders_are_recognised(name: str) -> None:
    assert has_secret_name(name, is_folder=True)


@pytest.mark.parametrize(
    "name",
    [
        "secrets.py",
        "token.py",
        "credentials.go",
        "secrets.ts",
        "tokens.js",
        ".env.example",
        "a.env.sample",
        "keys.json",
        "settings.json",
        "settings.xml",
        "appsettings.json",
        "gradle.properties",
        "local_test.json",
        "tokenizer.json",
        "token_counts.csv",
        "password_rules.md",
        "id_card.png",
        "config.json",
        "environment.yml",
        "history.txt",
        "credentials_test.go",
        "prod.env.template",
        "id_rsa.pub",
        "secrets.py~",
        "token.py.bak",
        "a.env.sample.orig",
        "history.txt~",
    ],
)
def test_similar_names_are_not_secret(name: str) -> None:
    assert not has_secret_name(name, is_folder=False)


def test_a_secret_file_is_left_out_and_reported(tmp_path: Path) -> None:
    for name in ("a.py", "prod.env", "conf/token.json", ".aws/config"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    snapshot = take_snapshot(tmp_path)
    assert set(snapshot.files) == {"a.py"}
    assert snapshot.secrets == (".aws/", "conf/token.json", "prod.env")


@pytest.mark.parametrize(
    "content",
    [
        "-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n",
        "\n  -----BEGIN RSA PRIVATE KEY-----\nabc\n",
        "\ufeff-----BEGIN EC PRIVATE KEY-----\nabc\n",
        "PuTTY-User-Key-File-3: ssh-ed25519\n",
        '{\n "type": "service_account",\n "private_key": "x"}',
    ],
)
def test_a_key_is_recognised_by_its_content(tmp_path: Path, content: str) -> None:
    (tmp_path / "a.py").write_text('KEY = """-----BEGIN RSA PRIVATE KEY-----"""\n')
    (tmp_path / "notes").write_text(content)
    snapshot = take_snapshot(tmp_path)
    assert (set(snapshot.files), snapshot.secrets) == ({"a.py"}, ("notes",))


def test_the_user_may_allow_secret_files(tmp_path: Path) -> None:
    for name in ("a.py", "prod.env", ".kube/config", "deploy"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("-----BEGIN PRIVATE KEY-----")
    snapshot = take_snapshot(tmp_path, secrets=("prod.env", ".kube/", "deploy"))
    assert set(snapshot.files) == {"prod.env", ".kube/config", "deploy"}
    assert snapshot.secrets == ("a.py",)


def test_a_secret_file_that_is_the_project_is_read(tmp_path: Path) -> None:
    (tmp_path / "prod.env").write_text("x")
    assert set(take_snapshot(tmp_path / "prod.env").files) == {"prod.env"}


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@pytest.mark.parametrize("form", ["sha1", "sha256"])
def test_committed_fixtures_are_no_secrets_until_changed(tmp_path: Path, form: str) -> None:
    root = tmp_path / "repo" / "part"
    for name in ("tests/data/token.json", "tests/key.pem", "token.json", "tests/staged.env"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x")
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    for command in (
        ("init", "-q", f"--object-format={form}"),
        ("add", "."),
        (*identity, "commit", "-qm", "x"),
    ):
        subprocess.run(["git", *command], cwd=root.parent, env=environ, check=True)
    (root / "tests/key.pem").write_text("my own")
    (root / "tests/mine.pem").write_text("y")
    (root / "tests/staged.env").write_text("z")
    subprocess.run(["git", "add", "."], cwd=root.parent, env=environ, check=True)

    snapshot = take_snapshot(root)

    assert set(snapshot.files) == {"tests/data/token.json"}
    assert snapshot.secrets == ("tests/key.pem", "tests/mine.pem", "tests/staged.env", "token.json")
