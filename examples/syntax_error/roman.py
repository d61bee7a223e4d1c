"""Roman numerals."""

NUMERALS = [
    (1000, "M"), (900, "CM"), (500, "D"), (400, "CD"),
    (100, "C"), (90, "XC"), (50, "L"), (40, "XL"),
    (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I"),
]


def to_roman(number):
    """Write a number from 1 to 3999 in Roman numerals.

    Raises:
        ValueError: The number has no Roman numeral.
    """
    if not 1 <= number <= 3999
        raise ValueError(f"{number} has no Roman numeral")
    letters = []
    for value, numeral in NUMERALS:
        count, number = divmod(number, value)
        letters.append(numeral * count)
    return "".join(letters)
