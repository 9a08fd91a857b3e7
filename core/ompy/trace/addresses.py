"""IP addresses of what was sent: the real ones, or for rails of virtual worlds ones made up.

An interface of a virtual world is called `rail0/3`: there it is 10.1.0.3, rail 0 being the network
10.1.0.0/16. What has neither form gets a place in 198.18.0.0/15, which is for tests (RFC 2544).
"""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import Final
from zlib import crc32

_VIRTUAL: Final = re.compile(r"([^/]*?)(\d{0,3})/(\d{1,5})")
# reference RFC 1918: networks of 10.0.0.0/8 with 16 bits, without the first
_RAILS_MAX: Final = 255
_BENCHMARKING: Final = 0xC612_0000  # reference RFC 2544: 198.18.0.0/15


def packed_address(host: str) -> bytes:
    """Four bytes of an IPv4 address, or 16 of an IPv6 one.

    Args:
        host: as the network names it.
    """
    try:
        return ip_address(host).packed
    except ValueError:
        pass
    found = _VIRTUAL.fullmatch(host)
    if found is not None and int(found[2] or 0) < _RAILS_MAX and int(found[3]) < 1 << 16:
        return bytes([10, int(found[2] or 0) + 1, *int(found[3]).to_bytes(2, "big")])
    return (_BENCHMARKING | crc32(host.encode()) & 0x1FFFF).to_bytes(4, "big")
