"""How many of an article should be there at least."""

LEAST = {"milk": 24, "salt": 3}


def least_of(article):
    """Ten, where nothing else is said of an article."""
    return LEAST.get(article, 10)
