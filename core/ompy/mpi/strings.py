"""Arguments that are names, keys and values: texts that a string of C can hold."""

from __future__ import annotations


def c_string(value: object) -> str:
    """A text that was given as such, or as bytes in UTF-8.

    Raises:
        TypeError: it is neither.
        ValueError: it has a character that no string of C can have.
    """
    if type(value) is str and value.isascii() and "\0" not in value:
        return value
    if isinstance(value, bytes):
        value = value.decode()
    if not isinstance(value, str):
        raise TypeError(f"expecting a str, not {type(value).__name__}")
    if "\0" in value:
        raise ValueError(f"embedded null byte in {value!r}")
    value.encode()  # half a character has no bytes
    return str(value)
