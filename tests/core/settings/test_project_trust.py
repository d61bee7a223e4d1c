"""What a project's own files may set without trust, and how trust is granted and ends."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from suture.core.settings import (
    Settings,
    compute_project_digest,
    find_requested_settings,
    is_trusted,
    load_settings,
    project_prompts,
    revoke_trust,
    trust_project,
    trusted_projects,
)
from suture.core.settings.rendering import get_setting, setting_fields
from suture.core.settings.schema import USER_ONLY_SETTINGS
from suture.core.settings.setting_sources import variable_name
from suture.core.settings.trust import HARMLESS
from suture.errors import StorageError, UsageError
from trusting import load_trusted

UNTRUSTED_VALUES = {
    "budget.tokens": "9999999",
    "budget.money": "1000.0",
    "sandbox.memory_mb": "65536",
    "sandbox.total_memory_mb": "65536",
    "sandbox.processes": "100000",
    "sandbox.disk_mb": "65536",
    "sandbox.test_timeout_s": "86400.0",
    "loop.trust_threshold": "0.0",
    "loop.abstain_below": "0.0",
    "loop.autonomy": "full_auto",
    "loop.recipe": "./evil.toml",
    "model.name": "ollama:any",
    "model.base_url": "http://elsewhere.test",
    "model.fallbacks": "ollama:any",
    "models.coder": "scripted:own.json",
    "keys.openai": "sk-theirs",
    "paths.prompts": "/tmp",
    "certification.seconds": "0.0",
    "certification.mutants": "0",
    "repair.candidates": "1000000",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path / "home")}


def write_setting(project: Path, file: str, key: str, value: str) -> None:
    group, _, field = key.rpartition(".")
    toml_value = value if value.replace(".", "").isdigit() else f'"{value}"'
    lines = {
        "suture.toml": f"[{group}]\n{field} = {toml_value}\n",
        ".env": f"{variable_name(key)}={value}\n",
    }
    (project / file).write_text(lines[file])


def get_value(settings: Settings, key: str) -> object:
    return get_setting(settings, key)


@pytest.mark.parametrize("file", ["suture.toml", ".env"])
@pytest.mark.parametrize("key", UNTRUSTED_VALUES)
def test_an_untrusted_project_cannot_raise_limits(
    project: Path, environ: dict[str, str], file: str, key: str
) -> None:
    if key == "loop.autonomy":
        environ["SUTURE_LOOP_ABSTAIN_BELOW"] = "0.3"  # a value that the user set is no reason to refuse
    write_setting(project, file, key, UNTRUSTED_VALUES[key])

    with pytest.raises(UsageError, match=key) as caught:
        load_settings(project, None, environ)
    assert f"suture trust {project}" in caught.value.remedy
    default = get_value(load_settings(project.parent, None, environ).settings, key)
    for options in ({"read_only": True}, {"flags": {"project.untrusted": "ignore"}}):
        loaded = load_settings(project, environ=environ, **options)
        assert get_value(loaded.settings, key) == default
        assert key in loaded.notes[-1]
        assert str(project) not in loaded.origins[key]
    assert str(project) in load_trusted(project, None, environ).origins[key]


def test_every_other_setting_is_harmless_or_needs_trust(project: Path, environ: dict[str, str]) -> None:
    for key, field in setting_fields().items():
        value = "http://x" if key.endswith("url") else str(field.default)
        write_setting(project, ".env", key, "1" if value in ("None", "()", "PydanticUndefined") else value)
        if key in HARMLESS:
            assert load_settings(project, None, environ)
        else:
            with pytest.raises(UsageError):
                load_settings(project, None, environ)


def test_harmless_settings_apply_within_the_users_bounds(project: Path, environ: dict[str, str]) -> None:
    (project / "suture.toml").write_text(
        "[loop]\nsamples = 7\nrecipe = 'critic'\n[repair]\ncandidates = 10\n[certification]\nmutants = 20\n"
    )
    settings = load_settings(project, None, environ).settings

    assert (settings.loop.samples, settings.loop.recipe) == (7, "critic")
    assert (settings.repair.candidates, settings.certification.mutants) == (10, 20)
    write_user_file(environ, "[repair]\ncandidates = 5\n[certification]\nmutants = 30\n")
    with pytest.raises(UsageError, match=r"repair\.candidates, certification\.mutants"):
        load_settings(project, None, environ)


def write_user_file(environ: dict[str, str], text: str) -> bool:
    folder = Path(environ["HOME"]) / ".config" / "suture"
    folder.mkdir(parents=True, exist_ok=True)
    return bool((folder / "suture.toml").write_text(text))


@pytest.mark.parametrize(
    "line",
    [
        "OPENAI_BASE_URL=http://e",
        "LLM_MODEL=openai:x",
        "OPENAI_API_KEY=k",
        "MAX_RETRIES=999",
        "OLLAMA_MODEL=m",
    ],
)
def test_an_ancestors_variable_in_dotenv_needs_trust(
    project: Path, environ: dict[str, str], line: str
) -> None:
    (project / ".env").write_text(line)
    if line.startswith("OPENAI_BASE_URL"):
        environ["SUTURE_MODEL"] = "openai:x"
    with pytest.raises(UsageError, match="trust"):
        load_settings(project, None, environ)


def test_the_users_value_applies_if_the_projects_is_ignored(project: Path, environ: dict[str, str]) -> None:
    write_user_file(environ, '[sandbox]\nminimum_level = "vm"\nmemory_mb = 100\n')
    (project / "suture.toml").write_text('[sandbox]\nminimum_level = "none"\nmemory_mb = 99999\n')
    sandbox = load_settings(project, None, environ, read_only=True).settings.sandbox
    assert (sandbox.minimum_level, sandbox.memory_mb) == ("vm", 100)


def test_a_project_cannot_make_itself_trusted(project: Path, environ: dict[str, str]) -> None:
    (project / "trusted.json").write_text(
        json.dumps({"projects": {str(project): compute_project_digest(project)}})
    )
    for key in ("paths.home", "project.untrusted"):
        assert key in USER_ONLY_SETTINGS
    (project / "suture.toml").write_text(f'[paths]\nhome = "{project}"\n[budget]\ntokens = 9999999\n')
    for is_read_only in (True, False):
        if is_read_only:
            assert load_settings(project, None, environ, read_only=True).settings.budget.tokens == 60_000
        else:
            with pytest.raises(UsageError, match="no say in this"):
                load_settings(project, None, environ)

    with pytest.raises(UsageError, match="no say in this"):
        find_requested_settings(project, environ)


@pytest.mark.parametrize("change", ["suture.toml", ".env", ".suture/prompts/coder.yaml", "elsewhere"])
def test_trust_covers_one_folder_and_one_content(project: Path, tmp_path: Path, change: str) -> None:
    home = tmp_path / "state"
    (project / ".suture" / "prompts").mkdir(parents=True)
    for name in ("suture.toml", ".env", ".suture/prompts/coder.yaml"):
        (project / name).write_text("# SUTURE\n")
    (project / "target").write_text("x")
    (project / ".suture/prompts/critic.yaml").symlink_to(project / "target")

    assert not is_trusted(home, project)
    trust_project(home, project, compute_project_digest(project))
    assert is_trusted(home, project)
    assert project_prompts(home, project) == project / ".suture/prompts"
    if change == "elsewhere":
        project.rename(tmp_path / "moved")
        assert not is_trusted(home, tmp_path / "moved")
        assert revoke_trust(home, project)
    else:
        (project / change).write_text("# SUTURE\nSUTURE_MODEL=a:b\n")
        assert not is_trusted(home, project)
        assert project_prompts(home, project) is None
        assert revoke_trust(home, project)
    assert not revoke_trust(home, project)
    assert trusted_projects(home) == {}


def test_the_target_of_a_prompt_link_is_part_of_the_digest(project: Path) -> None:
    (project / ".suture" / "prompts").mkdir(parents=True)
    (project / "target").write_text("x")
    (project / ".suture/prompts/critic.yaml").symlink_to(project / "target")
    before = compute_project_digest(project)
    (project / "target").write_text("y")
    assert compute_project_digest(project) != before


def test_other_programs_variables_do_not_end_trust(project: Path) -> None:
    (project / ".env").write_text("SUTURE_MODEL=a:b\nDATABASE_URL=x\n")
    before = compute_project_digest(project)
    (project / ".env").write_text("# new\nDATABASE_URL=y\nSUTURE_MODEL=a:b\n")
    assert compute_project_digest(project) == before


def test_prompts_of_a_project_need_trust(project: Path, environ: dict[str, str]) -> None:
    (project / ".suture" / "prompts").mkdir(parents=True)
    assert load_settings(project, None, environ)
    (project / ".suture" / "prompts" / "coder.yaml").write_text("x")
    with pytest.raises(UsageError, match=r"would set \.suture/prompts"):
        load_settings(project, None, environ)
    assert load_trusted(project, None, environ)


@pytest.mark.parametrize("content", ["", "[]", '{"projects": {"a": 1}}', "[" * 100_000, "\xff"])
def test_a_damaged_list_of_trusted_projects_is_reported(
    project: Path, environ: dict[str, str], content: str
) -> None:
    store = Path(environ["HOME"]) / ".local/state/suture/trusted.json"
    store.parent.mkdir(parents=True)
    store.write_bytes(content.encode("latin-1"))

    assert load_settings(project, None, environ)
    write_setting(project, "suture.toml", "budget.tokens", "9999999")
    with pytest.raises(StorageError, match=r"trusted\.json' is damaged") as caught:
        load_settings(project, None, environ)
    assert "remove it" in caught.value.remedy


@pytest.mark.parametrize("name", ["suture.toml", ".env", ".suture/prompts/coder.yaml"])
def test_pipes_devices_and_huge_files_do_not_block(project: Path, environ: dict[str, str], name: str) -> None:
    (project / name).parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(project / name)

    assert load_settings(project, None, environ)
    (project / name).unlink()
    (project / name).symlink_to("/dev/zero")
    assert load_settings(project, None, environ)
    (project / name).unlink()
    with (project / name).open("wb") as file:
        file.truncate(2**33)
    with pytest.raises(UsageError, match=r"KiB|too large"):
        load_settings(project, None, environ)


@pytest.mark.parametrize("text", ["a = " + "[" * 30_000, "[" + ".".join(["a"] * 30_000) + "]\n"])
def test_a_deeply_nested_file_is_a_usage_error(project: Path, environ: dict[str, str], text: str) -> None:
    (project / "suture.toml").write_text(text)
    with pytest.raises(UsageError):
        load_settings(project, None, environ)
