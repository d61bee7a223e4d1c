"""A project's own settings files against the user's limits, budget, model and sandbox."""

from __future__ import annotations

import random
import shutil
import tempfile
from pathlib import Path
from typing import Any

from suture.core.settings import load_settings
from suture.core.settings.rendering import get_setting, setting_fields
from suture.errors import SutureError

__all__ = ["SettingsTarget"]

GUARDED = ("budget.", "keys.", "model.", "models.", "paths.", "sandbox.")
"""Groups of settings that a project may never set."""
GUARDED_ALONE = (
    "loop.abstain_below",
    "loop.autonomy",
    "loop.trust_threshold",
    "certification.seconds",
    "repair.seconds",
)
FAR = "http://198.51.100.7:9/v1"
VALUES: tuple[Any, ...] = (
    *(10**9, 0, -1, 1e300, 0.0001, True, False, "", "auto", "none", "unsafe-subprocess", "warm"),
    *(
        FAR,
        "openai:gpt-4o",
        "ollama:any",
        "/etc",
        "../../victim",
        "~/.ssh",
        "greedy",
        "full_auto",
        "runsc",
        [],
        ["a"],
    ),
)
ALIASES: tuple[str, ...] = (
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "OLLAMA_BASE_URL",
    "OLLAMA_HOST",
    "ANTHROPIC_BASE_URL",
    "LLM_MODEL",
)
ALIASES += ("LLM_PROVIDER", "MAX_RETRIES", "HTTPS_PROXY", "SUTURE_HOME", "DATABASE_URL", "LANGSMITH_ENDPOINT")


class SettingsTarget:
    """Loads a user's settings beside a hostile project."""

    def __init__(self) -> None:
        self._root = Path(tempfile.mkdtemp(prefix="fuzz-settings-"))
        self._home = self._root / "home"
        self._home.mkdir()
        self._environ = {"HOME": str(self._home), "PATH": "/usr/bin:/bin", "OPENAI_API_KEY": "sk-user"}
        self._keys = tuple(setting_fields())

    async def try_case(self, draw: random.Random) -> str:
        """See `Target`."""
        project, calm = self._root / "project", self._root / "calm"
        for folder in (project, calm):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
        files = self._files(draw)
        for name, text in files.items():
            (project / name).parent.mkdir(parents=True, exist_ok=True)
            (project / name).write_text(text, "utf-8")
        wanted = load_settings(calm, {}, self._environ).settings
        try:
            got = load_settings(project, {}, self._environ).settings
        except SutureError:
            return ""
        lifted = [
            key for key in self._keys if _guarded(key) and get_setting(wanted, key) != get_setting(got, key)
        ]
        return f"the project set {', '.join(lifted)} by {files!r}" if lifted else ""

    def _files(self, draw: random.Random) -> dict[str, str]:
        """Return some of the files that a project may contain, with a few keys each."""
        made = {
            "suture.toml": self._toml(draw, ""),
            ".env": self._dotenv(draw),
            "pyproject.toml": self._toml(draw, "tool.suture."),
            ".config/suture/suture.toml": self._toml(draw, ""),
            ".suture/suture.toml": self._toml(draw, ""),
        }
        return {name: text for name, text in made.items() if draw.random() < 0.5}

    def _toml(self, draw: random.Random, prefix: str) -> str:
        lines = []
        for key in draw.sample(self._keys, draw.randint(1, 3)):
            group, _, name = key.rpartition(".")
            form = draw.choice(
                ("[{p}{g}]\n{n} = {v}", "{p}{g}.{n} = {v}", "{p}{g} = {{ {n} = {v} }}", '"{g}"."{n}" = {v}')
            )
            lines.append(form.format(p=prefix, g=group, n=name, v=_toml_value(draw.choice(VALUES))))
        return "\n".join(lines) + "\n"

    def _dotenv(self, draw: random.Random) -> str:
        own = [f"SUTURE_{key.replace('.', draw.choice(('_', '__'))).upper()}" for key in self._keys]
        names = draw.sample((*own, *ALIASES), 3)
        return "".join(f"{draw.choice(('', 'export '))}{name}={draw.choice(VALUES)}\n" for name in names)

    async def close(self) -> None:
        """See `Target`."""
        shutil.rmtree(self._root, ignore_errors=True)


def _guarded(key: str) -> bool:
    return key.startswith(GUARDED) or key in GUARDED_ALONE


def _toml_value(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if not isinstance(value, str) else f'"{value}"'
