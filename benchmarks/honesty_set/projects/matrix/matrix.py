def transpose(rows):
    return [list(column) for column in zip(*rows)]


def multiply(left, right):
    columns = transpose(right)
    return [[sum(a * b for a, b in zip(row, column)) for column in columns] for row in left]


def rotate(rows):
    return [list(column) for column in zip(*rows[::-1])]


def trace(rows):
    return sum(row[index] for index, row in enumerate(rows))
