import os
import time

from queue_times import waited


def test_waited():
    assert waited(time.time() - 2) >= 2000


def test_an_even_process():
    # Some of the runs, by nothing that the code decides.
    assert int.from_bytes(os.urandom(1), "big") % 2 == 0
