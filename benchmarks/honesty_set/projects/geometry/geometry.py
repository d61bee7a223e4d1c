import math


def distance(a, b):
    return math.hypot(a[0] - b[0], a[1] - b[1])


def area(points):
    edges = zip(points, points[1:] + points[:1])
    return abs(sum(x1 * y2 - x2 * y1 for (x1, y1), (x2, y2) in edges)) / 2


def midpoint(a, b):
    return ((a[0] + b[0]) / 2, (a[1] + b[1]) / 2)


def normalise(vector):
    length = math.hypot(vector[0], vector[1])
    if length == 0:
        raise ValueError("a vector of length 0 has no direction")
    return (vector[0] / length, vector[1] / length)
