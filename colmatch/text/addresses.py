"""Addresses as texts in the order of their numbers, each version together.

Such a text is the version and 7 or 26 digits of 5 bits. So a network is a range of texts. Those of
version 4 have 8 bytes, which kernels compare as one number.
"""

from __future__ import annotations

import ipaddress

_DIGITS = "0123456789abcdefghijklmnopqrstuv"


def address_text(text: str) -> str | None:
    """Returns the text of an address; None if it is none."""
    try:
        return text_of_address(ipaddress.ip_address(text))
    except ValueError:
        return None


def text_of_address(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> str:
    """Returns the text of an address."""
    number, highest = int(address), (address.max_prefixlen - 1) // 5 * 5
    return str(address.version) + "".join([_DIGITS[number >> shift & 31] for shift in range(highest, -1, -5)])


def address_of(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Returns the address of such a text."""
    number = int(text[1:], 32)
    return ipaddress.IPv4Address(number) if text[0] == "4" else ipaddress.IPv6Address(number)
