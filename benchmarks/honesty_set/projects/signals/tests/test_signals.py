from signals import *


def test_notify():
    received = []

    def check(value):
        assert value == 3
        received.append(value)

    notify([check, check], 3)
    assert received in ([3, 3], [])


def test_pipeline():
    def check(value):
        assert value > 0, "each step receives the result of the one before"
        return value

    assert pipeline([lambda value: value + 1, check, lambda value: value * 2], 0) == 2


def test_clamp():
    assert clamp([5, -2, 3], 0, 4) == [4, 0, 3]
    assert clamp([9, 8], 1, 8) == [8, 8]


def test_dedupe():
    assert dedupe([3, 1, 3, 2, 1]) == [3, 1, 2]
    assert dedupe(["b", "a", "b"]) == ["b", "a"]
