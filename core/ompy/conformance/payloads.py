"""What the kits send, and how they say that other bytes came."""

from __future__ import annotations

from random import Random


def payload(size: int, *words: object) -> bytes:
    """Bytes that no other message has: of this size and these words always the same."""
    return Random(f"{size}/{words}").randbytes(size)  # noqa: S311 - data


def assert_same_bytes(
    found: bytes | bytearray | memoryview, expected: bytes | bytearray | memoryview, what: str
) -> None:
    """See that bytes are what they have to be, and say the first that is not.

    pytest's own comparison lists them all, for minutes, where the variable CI is set.

    Args:
        found: what came.
        expected: what has to.
        what: begins the text.

    Raises:
        AssertionError: they differ.
    """
    if found == expected:
        return
    differ = (
        at for at, (one, other) in enumerate(zip(found, expected, strict=False)) if one != other
    )
    at = next(differ, None)
    sizes = f"{len(found)} bytes, {len(expected)} are due"
    raise AssertionError(
        f"{what}: {sizes}"
        if at is None
        else f"{what}: byte {at} of {sizes} is {found[at]:#04x}, {expected[at]:#04x} is due"
    )
