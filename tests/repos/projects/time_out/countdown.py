def steps_to_one(number):
    """Halve even numbers, take one from odd ones; how many steps until one."""
    steps = 0
    while number != 1:
        if number % 2 == 0:
            number = number // 2
        else:
            number = number
        steps += 1
    return steps
