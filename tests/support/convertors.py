"""Convertors of one piece of memory, of both kinds."""

from __future__ import annotations

from ompy.data.convertor import ContiguousConvertor, Convertor, lent


def contiguous(memory: memoryview) -> Convertor:
    """By a view of it."""
    return ContiguousConvertor(memory)


def borrowed(memory: memoryview) -> Convertor:
    """As a user's buffer is taken."""
    made = lent(memory, writable=True)
    assert made is not None
    return made
