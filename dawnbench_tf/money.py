"""US dollars as text."""


def dollars(usd: float) -> str:
    """Formats US dollars: to the cent, below a cent to two digits, never with an exponent.

    >>> dollars(1112.6402), dollars(0.00123), dollars(9.459e-05)
    ('$1,112.64', '$0.0012', '$0.000095')
    """
    return f"${usd:,.2f}" if usd >= 0.01 or usd == 0 else f"${float(f'{usd:.2g}'):.12f}".rstrip("0")
