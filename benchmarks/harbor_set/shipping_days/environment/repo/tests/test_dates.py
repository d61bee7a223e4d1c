from datetime import date

from shipping.dates import add_working_days, count_weekends


def test_days_within_a_week():
    assert add_working_days(date(2026, 11, 23), 3) == date(2026, 11, 26)


def test_weekends_are_counted():
    assert count_weekends(date(2026, 11, 1), date(2026, 12, 1)) == 4
