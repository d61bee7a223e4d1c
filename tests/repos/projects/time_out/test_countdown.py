from countdown import steps_to_one


def test_even():
    assert steps_to_one(8) == 3


def test_odd():
    assert steps_to_one(7) == 4
