"""Working days, which are Monday to Friday."""

from datetime import date, timedelta

SATURDAY = 5


def add_working_days(start: date, days: int) -> date:
    """Return the date that is a number of working days after a start."""
    current = start
    for _ in range(days):
        current += timedelta(days=1)
        if current.weekday() == SATURDAY:
            current += timedelta(days=1)
    return current


def count_weekends(start: date, end: date) -> int:
    """Return how many Saturdays are between two dates, the first included."""
    days = (end - start).days
    return sum((start + timedelta(days=number)).weekday() == SATURDAY for number in range(days))
