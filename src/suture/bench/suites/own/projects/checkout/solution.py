from prices import line_total, percent_off

FREE_FROM = 5000
SHIPPING = 490


def checkout(basket, catalogue, coupon=None):
    total = sum(line_total(catalogue[article], quantity) for article, quantity in basket.items())
    if not any(basket.values()):
        return 0
    if coupon is not None:
        total = percent_off(total, coupon)
    return total if total >= FREE_FROM else total + SHIPPING
