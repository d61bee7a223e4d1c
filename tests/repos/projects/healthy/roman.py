SIGNS = ((10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I"))


def roman(number):
    """A number from 1 to 39 in Roman numerals."""
    text = ""
    for value, sign in SIGNS:
        while number >= value:
            text += sign
            number -= value
    return text
