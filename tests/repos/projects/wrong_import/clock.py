from datetimes import timedelta


def minutes(seconds):
    """Whole minutes in so many seconds."""
    return timedelta(seconds=seconds) // timedelta(minutes=1)
