import time


def waited(start_s):
    """Whole milliseconds since a start."""
    return int((time.time() - start_s) * 1000)
