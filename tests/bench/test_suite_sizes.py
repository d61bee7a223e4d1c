"""The benchmark of large suites leaves nothing behind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from requirements import Require

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SCRIPT = """from suite_sizes import CpuMeter
with CpuMeter() as meter:
    sum(range(1_000_000))
    seconds, usage = meter.read_s(), meter._usage
print(seconds > 0, usage is not None and usage[0].parent.exists())
"""


def test_the_control_group_of_a_measurement_is_removed(require: Require) -> None:
    command = [sys.executable, "-c", SCRIPT]
    output = subprocess.run(command, cwd=BENCHMARKS, capture_output=True, text=True, check=True).stdout
    has_group, group_exists = output.split()
    require("cgroup1", has_group == "True", "this process may not create one")
    assert group_exists == "False"
