"""Call a single function of a language other than Python: literals as data, and the driver programs."""
