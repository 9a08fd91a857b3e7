"""BLAKE2b under a key, 16 bytes of it: what packets are proven with, one after another.

The key takes a block of the hash for itself. Here that is done once for all packets of a receiver.

Interpreted, this module is used. In a compiled module the functions of the same names in
`keyed.pxd` take their place.

Source: RFC 7693.
"""

from __future__ import annotations

from hashlib import blake2b

SIZE = 16  # bytes of a digest; arbitrary: as `seal.py` has it


def begin_hash(key: bytes, salt: bytes) -> blake2b:
    """A hash that has taken the key.

    Args:
        key: 64 bytes at most.
        salt: 16 bytes at most.
    """
    return blake2b(key=key, salt=salt, digest_size=SIZE)


def digest(begun: blake2b, data: bytes | memoryview, at: int) -> bytes:
    """The digest of `data` from byte `at` on, by a hash that has begun and stays as it is."""
    made = begun.copy()
    made.update(memoryview(data)[at:])
    return made.digest()
