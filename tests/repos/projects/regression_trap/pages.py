def page_count(items, size):
    """Pages needed for so many items; an empty list still has one page."""
    return items // size + 1


def page_of(index, size):
    """The page, from 1, on which an item stands, counted from 0."""
    return index // size + 1
