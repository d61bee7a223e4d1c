from rates import discount


def test_discount():
    assert round(discount(0.1, 1), 4) == 0.9091
