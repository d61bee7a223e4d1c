from datetime import date

from shipping.dates import add_working_days

MONDAY = date(2026, 11, 30)


def test_a_friday_leads_to_monday():
    assert add_working_days(date(2026, 11, 27), 1) == MONDAY


def test_a_weekend_leads_to_monday():
    assert [add_working_days(date(2026, 11, day), 1) for day in (28, 29)] == [MONDAY, MONDAY]


def test_two_weekends_are_skipped():
    assert add_working_days(date(2026, 11, 26), 7) == date(2026, 12, 7)
