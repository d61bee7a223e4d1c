"""`suture judge --watch`, as a program beside an agent that changes files."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from interfaces.web.real_server import make_environ
from judgement.conftest import RIGHT, TESTS
from judgement.test_judge_command import run_judge

pytestmark = [pytest.mark.timeout(300), pytest.mark.usefixtures("sandbox")]
MAX_WAIT_S = 120
WRONG_TEST = TESTS.replace("4090", "1690")


@pytest.mark.heavy
def test_each_state_of_the_files_is_judged_until_ctrl_c(shop: Path, tmp_path: Path) -> None:
    (shop / "test_cart.py").write_text(WRONG_TEST)
    stdout, stderr = tmp_path / "stdout", tmp_path / "stderr"
    with stdout.open("wb") as out, stderr.open("wb") as err:
        process = subprocess.Popen(
            [sys.executable, "-m", "suture.interfaces.cli", "judge", str(shop), "--watch"],
            env=make_environ(tmp_path),
            cwd=tmp_path,
            stdout=out,
            stderr=err,
        )
    try:
        wait_until(lambda: "Waiting for changes." in stderr.read_text(), process, stderr)
        assert stdout.read_text().startswith("Rejected: ")
        (shop / "test_cart.py").write_text(TESTS)
        (shop / "cart.py").write_text(RIGHT)
        wait_until(lambda: "Accepted." in stdout.read_text(), process, stderr)
    finally:
        process.send_signal(signal.SIGINT)
        exit_code = process.wait(MAX_WAIT_S)
    assert exit_code == 130, stderr.read_text()
    assert "Traceback" not in stderr.read_text()


def wait_until(condition: Callable[[], bool], process: subprocess.Popen[bytes], log: Path) -> None:
    deadline_s = time.monotonic() + MAX_WAIT_S
    while not condition():
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < deadline_s, log.read_text()
        time.sleep(0.1)


@pytest.mark.parametrize("option", ["--json", "--markdown", "--staged", "--hook", "--sarif=x"])
def test_options_for_a_single_judgement_exclude_watching(shop: Path, option: str) -> None:
    result = run_judge(shop, "--watch", option)
    assert result.exit_code == (1 if option == "--hook" else 2)  # 2 would hold the agent of a hook up
    assert "exclude each other" in result.stderr


def test_a_project_that_cannot_be_judged_ends_the_watch_with_the_reason(shop: Path) -> None:
    result = run_judge(shop, "--watch", "--base", "nowhere")
    assert result.exit_code == 2
    assert "there is no commit 'nowhere'" in result.stderr
