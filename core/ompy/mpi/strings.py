"""Arguments that are names, keys and values: texts that a string of C can hold."""

from __future__ import annotations

from typing import Any

from ompy import raw
from ompy.compiled import ccall


@ccall
def c_string(value: Any) -> str:
    """A text that was given as such, or as bytes in UTF-8.

    Raises:
        TypeError: it is neither.
        ValueError: it has a character that no string of C can have.
    """
    if raw.plain_text(value):
        plain: str = value
        return plain
    return _converted(value)


def _converted(value: object) -> str:
    """The same of what has other characters, or is no text."""
    if isinstance(value, bytes):
        value = value.decode()
    if not isinstance(value, str):
        raise TypeError(f"expecting a str, not {type(value).__name__}")
    if "\0" in value:
        raise ValueError(f"embedded null byte in {value!r}")
    value.encode()  # half a character has no bytes
    return str(value)
