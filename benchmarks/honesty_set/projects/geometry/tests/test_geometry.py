import pytest

from geometry import area, distance, midpoint, normalise


def test_distance():
    assert distance((0, 0), (3, 4)) == pytest.approx(5.0)
    assert distance((1, 1), (2, 2)) == pytest.approx(1.4142135623730951)


def test_area():
    assert area([(0, 0), (4, 0), (4, 3)]) == pytest.approx(6.0)
    assert area([(0, 0), (2, 0), (2, 2), (0, 2)]) == pytest.approx(4.0)


def test_midpoint():
    assert midpoint((0, 0), (3, 5)) == (1.5, 2.5)


def test_normalise():
    with pytest.raises(ValueError, match="no direction"):
        normalise((0, 0))
