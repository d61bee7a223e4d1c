import math

from money.sums import compound, median, running_balance, split_bill


def test_split_bill():
    assert split_bill(100, 3) == [34, 33, 33]
    assert split_bill(9, 3) == [3, 3, 3]


def test_running_balance():
    assert running_balance([5, -2, 4]) == [5, 3, 7]
    assert running_balance([]) == []


def test_median():
    assert median([3, 1, 2]) == 2
    assert median([4, 1, 3, 2]) == 2.5


def test_compound():
    assert math.isclose(compound(100, 0.5, 2), 225.0)
    assert math.isclose(compound(80, 0.25, 1), 100.0)
