def perimeter(width, height):
    """The way around a rectangle.

    >>> perimeter(2, 3)
    10
    >>> perimeter(1, 1)
    4
    """
    return 2 * (width + height)
