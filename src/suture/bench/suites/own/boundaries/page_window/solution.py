def page_window(page, pages, width):
    first = page - width // 2
    first = max(1, min(first, pages - width + 1))
    return list(range(first, min(first + width, pages + 1)))
