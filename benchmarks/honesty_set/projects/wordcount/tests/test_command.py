import subprocess
import sys
from pathlib import Path

import wordcount


def test_summarise():
    text = Path("sample.txt").read_text()
    assert wordcount.summarise(text) == Path("expected.txt").read_text()


def test_summarise_as_a_command():
    command = [sys.executable, "wordcount.py", "sample.txt"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == Path("expected.txt").read_text()
