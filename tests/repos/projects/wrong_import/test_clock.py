from clock import minutes


def test_minutes():
    assert minutes(150) == 2
