def is_leap(year):
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def days_in_month(year, month):
    if month == 2:
        return 29 if is_leap(year) else 28
    return 30 if month in (4, 6, 9, 11) else 31


def parse_duration(text):
    units = {"s": 1, "m": 60, "h": 3600}
    total, number = 0, ""
    for letter in text:
        if letter.isdigit():
            number += letter
        else:
            total += int(number) * units[letter]
            number = ""
    return total


def add_months(year, month, count):
    index = year * 12 + month - 1 + count
    return index // 12, index % 12 + 1
