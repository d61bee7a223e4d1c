SETTINGS = {"currency": "EUR", "digits": 2}


def shown(amount):
    """An amount with its currency."""
    return f"{amount:.{SETTINGS['digits']}f} {SETTINGS['currency']}"
