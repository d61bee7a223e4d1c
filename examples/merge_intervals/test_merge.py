from solution import merge_intervals


def test_overlapping_intervals_become_one():
    assert merge_intervals([[1, 3], [2, 6], [8, 10]]) == [[1, 6], [8, 10]]


def test_touching_intervals_become_one():
    assert merge_intervals([[1, 2], [2, 3]]) == [[1, 3]]


def test_an_inner_interval_disappears():
    assert merge_intervals([[1, 10], [2, 3]]) == [[1, 10]]


def test_the_order_does_not_matter():
    assert merge_intervals([[8, 9], [1, 2]]) == [[1, 2], [8, 9]]


def test_nothing_stays_nothing():
    assert merge_intervals([]) == []
