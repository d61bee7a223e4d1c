from signals import clamp, dedupe


def test_empty():
    assert clamp([], 0, 1) == []
    assert dedupe([]) == []
