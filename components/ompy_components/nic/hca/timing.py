"""The codes in which verbs count time.

Source: InfiniBand specification 1, 9.7.5.2.8 (RNR NAK timer field) and 12.7.34 (ACK timeout).
"""

from __future__ import annotations

from typing import Final

from ompy.frameworks.nic.base import NicError
from ompy.frameworks.nic.verbs import Timing

US: Final = 1_000  # ns; arbitrary: the engine counts in ns
UNIT: Final = 4_096  # ns; reference openmpi.md 5.6: a timeout is 4.096 us * 2^code
CODE_MAX: Final = 31  # reference openmpi.md 5: codes have 5 bits
RETRY_MAX: Final = 7  # reference openmpi.md 5.6: counts have 3 bits
FOR_EVER: Final = 7  # reference openmpi.md 5.6: as an RNR retry count

# hundredths of a millisecond, by code 0 to 31
_RNR: Final = (
    *(65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192),
    *(256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288),
    *(16384, 24576, 32768, 49152),
)
assert len(_RNR) == CODE_MAX + 1


def timeout_ns(code: int) -> int:
    """How long to wait for an ACK; 0: for ever."""
    return UNIT << code if code else 0


def rnr_ns(code: int) -> int:
    """How long a sender waits whose peer was not ready."""
    return _RNR[code] * 10 * US


def check(timing: Timing) -> None:
    """See that all codes are in range.

    Raises:
        NicError: one is not.
    """
    for name, value, most in (
        ("timeout", timing.timeout, CODE_MAX),
        ("retry_count", timing.retry_count, RETRY_MAX),
        ("rnr_retry", timing.rnr_retry, RETRY_MAX),
        ("rnr_timer", timing.rnr_timer, CODE_MAX),
    ):
        if not 0 <= value <= most:
            raise NicError(f"{name} is {value}; it has 0 to {most}")
