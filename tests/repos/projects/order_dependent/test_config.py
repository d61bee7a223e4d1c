import config
from config import shown


def test_other_currency():
    config.SETTINGS["currency"] = "CHF"
    assert shown(1) == "1.00 CHF"


def test_rounding():
    assert shown(2.345) in ("2.35 EUR", "2.34 EUR")


def test_whole():
    assert shown(3) == "3.00 EUR"
