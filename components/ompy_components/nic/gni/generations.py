"""What differs between Gemini and Aries.

Source: reference gasnet.md 3, 6.3, 13.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ompy.frameworks.nic.gni import AtomicCommand


class Generation(NamedTuple):
    """One kind of NIC.

    Attributes:
        name: of it.
        local_get_aligned: a get needs an aligned local address.
        fma_put_is_local: an FMA put has let go of the local memory when the post returns.
        commands: what its atomics compute.
        words: on words of how many bytes.
    """

    name: str
    local_get_aligned: bool
    fma_put_is_local: bool
    commands: frozenset[AtomicCommand]
    words: tuple[int, ...]


_BOTH: Final = frozenset(
    {
        AtomicCommand.ADD,
        AtomicCommand.AND,
        AtomicCommand.OR,
        AtomicCommand.XOR,
        AtomicCommand.CSWAP,
    }
)

GEMINI: Final = Generation("gemini", True, True, _BOTH, (8,))
ARIES: Final = Generation("aries", False, False, frozenset(AtomicCommand), (4, 8))
GENERATIONS: Final = (GEMINI, ARIES)
