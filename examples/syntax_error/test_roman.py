import pytest

from roman import to_roman


@pytest.mark.parametrize(
    "number, numeral",
    [(1, "I"), (4, "IV"), (9, "IX"), (14, "XIV"), (40, "XL"), (1994, "MCMXCIV"), (3999, "MMMCMXCIX")],
)
def test_numerals(number, numeral):
    assert to_roman(number) == numeral


@pytest.mark.parametrize("number", [0, -1, 4000])
def test_numbers_without_a_numeral(number):
    with pytest.raises(ValueError):
        to_roman(number)
