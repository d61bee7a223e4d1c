import quantlib_extras


def discount(rate, years):
    return quantlib_extras.power(1 + rate, -years)
