"""Packages whose public names are loaded when they are used."""

from __future__ import annotations

import pkgutil
import subprocess
import sys
from importlib import import_module

import pytest

PACKAGES = ("suture", "suture.api", "suture.judge", "suture.loop")


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_found_and_none_is_that_of_a_module(package: str) -> None:
    module = import_module(package)
    submodules = {found.name for found in pkgutil.iter_modules(module.__path__)}
    # Importing the module would put it in the place of the name.
    assert not submodules & set(module.__all__)
    assert all(hasattr(module, name) for name in module.__all__)
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'nothing'"):
        _ = module.nothing


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_imports_none_of_its_modules_at_once(package: str) -> None:
    code = f"import sys, {package}; print(*(name for name in sys.modules if name.startswith('{package}.')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not done.stdout.split()
