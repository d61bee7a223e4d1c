"""A new project in Python: a package that `python -m` starts."""

from __future__ import annotations

from collections.abc import Mapping

from suture.core.records import ProjectKind
from suture.project.languages.layouts.layout import ProjectLayout


def _manifest(kind: ProjectKind, name: str) -> Mapping[str, str]:
    lines = [
        "[project]",
        f'name = "{name}"',
        'version = "0.1.0"',
        'readme = "README.md"',
        'requires-python = ">=3.9"',
        *([] if kind == "library" else ["", "[project.scripts]", f'{name} = "{name}.__main__:main"']),
        "",
        "[build-system]",
        'requires = ["setuptools>=61"]',
        'build-backend = "setuptools.build_meta"',
        "",
        "[tool.setuptools]",
        f'packages = ["{name}"]',
        "",
        "[tool.pytest.ini_options]",
        'pythonpath = ["."]',
        'testpaths = ["tests"]',
    ]
    package = {} if kind == "library" else {f"{name}/__init__.py": ""}
    return {"pyproject.toml": "\n".join(lines) + "\n", **package}


MAIN = "{name}/__main__.py"
PYTHON_LAYOUT = ProjectLayout(
    module="solution.py",
    entry={"web_app": MAIN, "data_pipeline": MAIN, "cli_tool": MAIN, "library": "{name}/__init__.py"},
    manifest=_manifest,
    ignored=("__pycache__/", "*.egg-info/", ".pytest_cache/", ".venv/", "*.db", "dist/"),
    build=(("python", "-m", "compileall", "-q", "{name}"),),
    start=("python", "-m", "{name}"),
    by_hand=("python", "-m", "{name}"),
    load=("python", "-c", "import sys, {name}; sys.exit(all(n[0] == '_' for n in dir({name})))"),
    tests=("python", "-m", "pytest", "-q"),
    one_test=("python", "-m", "pytest", "-q", "{entry}"),
    test_file="tests/test_{name}.py",
    tester="pytest, and hypothesis where something must hold for every input",
    style=(
        "The package is `{name}`; import its modules by it, as in `from {name}.store import load`. Use the "
        "standard library where it will do; packages that are needed stand in `requirements.txt`, one a "
        "line. The `__main__.py` of a program has a function `main()`, and calls it where "
        '`__name__ == "__main__"`.'
    ),
    adding=(
        "Packages that it needs and the project does not have yet stand in `requirements.txt`, one a line; "
        "nothing else does."
    ),
    single="",
    crash="Traceback (most recent call last)",
)
"""`main()` in `__main__.py` is what an installed command calls."""
