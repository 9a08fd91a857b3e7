"""How the job key is told to a guest over a connection that has a MAC and no encryption."""

from __future__ import annotations

import hmac
from typing import Final

_PURPOSE: Final = b"ompy job key for a guest"


def hide_key(key: bytes, shared: bytes, name: str) -> bytes:
    """The exclusive or of the job key with what only both ends can compute; and back again.

    Args:
        key: 32 bytes: the job key, or what this made of it.
        shared: what both ends have proven that they know.
        name: of the guest; used once, so that no two keys are hidden by the same bytes.
    """
    mask = hmac.digest(shared, _PURPOSE + name.encode(), "sha256")
    assert len(mask) == len(key), "all of it is hidden"
    return bytes(left ^ right for left, right in zip(mask, key, strict=True))
