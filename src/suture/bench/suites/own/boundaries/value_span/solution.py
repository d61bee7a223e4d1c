def value_span(values, target):
    def first(beyond):
        low, high = 0, len(values)
        while low < high:
            middle = (low + high) // 2
            if values[middle] < target or (beyond and values[middle] == target):
                low = middle + 1
            else:
                high = middle
        return low

    return first(False), first(True)
