from daycount.days import add_months, days_in_month, is_leap, parse_duration


def test_is_leap():
    assert is_leap(2000) == True
    assert is_leap(1900) == False
    assert is_leap(2024) == True


def test_days_in_month():
    assert days_in_month(2023, 2) == 28
    assert days_in_month(2024, 2) == 29
    assert days_in_month(2024, 11) == 30


def test_parse_duration():
    assert parse_duration("1h30m") == 5400
    assert parse_duration("45s") == 45


def test_add_months():
    assert add_months(2023, 11, 3) == (2024, 2)
    assert add_months(2023, 1, 0) == (2023, 1)
