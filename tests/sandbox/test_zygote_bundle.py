"""The zygote is sent into the sandbox as source text: its bundle must contain everything that it imports."""

from __future__ import annotations

import ast
from importlib import resources

import pytest

from suture.sandbox.zygote.zygote_transport import PACKAGES, PARTS


@pytest.mark.parametrize("part", PARTS)
def test_the_bundle_contains_every_imported_module(part: str) -> None:
    package, _, stem = part.rpartition(".")
    tree = ast.parse(resources.files(package).joinpath(f"{stem}.py").read_text("utf-8"))
    imported = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    own_modules = {module for module in imported if module.startswith("suture")}
    assert own_modules <= {*PARTS, *PACKAGES}


@pytest.mark.parametrize("part", PARTS)
def test_the_bundle_contains_every_parent_package(part: str) -> None:
    assert {part.rsplit(".", depth)[0] for depth in range(1, part.count(".") + 1)} <= set(PACKAGES)
