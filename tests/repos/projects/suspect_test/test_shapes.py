from shapes import perimeter


def test_square():
    assert perimeter(1, 1) == 4


def test_rectangle():
    assert perimeter(2, 3) == 6
