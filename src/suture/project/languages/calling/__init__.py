"""How a function of another language than Python is called from outside: literals as data, and the driver."""
