"""A script of npm is started without npm if npm would do nothing else."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from suture.project.languages import bypass_npm

SCRIPTS = {"test": "mocha spec", "pretest": "lint", "test:unit": "tape 'test/*.js'", "lint": "eslint ."}


@pytest.mark.parametrize(
    ("command", "scripts", "expected"),
    [
        (("npx", "tape", "test/*.js"), {}, ("tape", "test/*.js")),
        (("npx", "--yes", "tape"), {}, None),
        (("npx", "tape@5"), {}, None),
        (("npm", "test"), {"test": "mocha spec"}, ("/bin/sh", "-c", "mocha spec")),
        (("npm", "test"), SCRIPTS, None),
        (("npm", "test", "--", "-g", "x"), {"test": "mocha spec"}, None),
        (("npm", "run", "test:unit"), SCRIPTS, ("/bin/sh", "-c", "tape 'test/*.js'")),
        (("npm", "run", "none"), SCRIPTS, None),
        (("npm", "ci"), SCRIPTS, None),
        (("node", "test.js"), SCRIPTS, None),
        ((), {}, None),
    ],
)
def test_npm_is_bypassed_only_for_a_command_that_starts_one_script(
    command: Sequence[str], scripts: dict[str, str], expected: Sequence[str] | None
) -> None:
    files = {"package.json": json.dumps({"scripts": scripts}).encode()}
    assert bypass_npm(command, files) == expected
