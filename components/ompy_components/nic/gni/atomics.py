"""Atomics, which the device of the memory's owner does.

question: command u8 | bytes of the word u8 | 8 handle 2 * u64 | 24 offset u64 | 32 operands 2 * u64
answer:   status u8 | 8 old value u64
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Final

from ompy.frameworks.nic.gni import AtomicCommand, MemoryHandle, PostDescriptor, ReturnCode

WORD: Final = 8  # bytes; reference gasnet.md 3: AMOs are on 64-bit words, a flag is one
QUESTION: Final = Struct("<BB6xQQQQQ")
ANSWER: Final = Struct("<B7xQ")
assert QUESTION.size == 48
assert ANSWER.size == 16

_COMMANDS: Final = tuple(AtomicCommand)
_CODES: Final = tuple(ReturnCode)
_MASK: Final = (1 << 64) - 1  # reference gasnet.md 3: the same words
_SIGNED: Final = frozenset({AtomicCommand.MIN, AtomicCommand.MAX})  # reference gasnet.md 3

_COMPUTE: Final[dict[AtomicCommand, Callable[[int, int, int], int]]] = {
    AtomicCommand.ADD: lambda old, first, _: old + first,
    AtomicCommand.AND: lambda old, first, _: old & first,
    AtomicCommand.OR: lambda old, first, _: old | first,
    AtomicCommand.XOR: lambda old, first, _: old ^ first,
    AtomicCommand.SWAP: lambda _, first, __: first,
    AtomicCommand.CSWAP: lambda old, first, second: second if old == first else old,
    AtomicCommand.MIN: lambda old, first, _: min(old, first),  # both with their sign
    AtomicCommand.MAX: lambda old, first, _: max(old, first),
}


def pack_question(post: PostDescriptor) -> bytes:
    """The question for a post."""
    assert post.command is not None
    assert post.remote_handle is not None
    return QUESTION.pack(
        _COMMANDS.index(post.command),
        post.amo_size,
        *post.remote_handle,
        post.remote_address,
        post.first_operand & _MASK,
        post.second_operand & _MASK,
    )


def answer_question(
    question: memoryview, find: Callable[[MemoryHandle], memoryview | None]
) -> bytes:
    """Do what a peer asks for in the memory that `find` says, and make the answer."""
    number, size, first_word, second_word, offset, first, second = QUESTION.unpack(question)
    memory = find(MemoryHandle(first_word, second_word))
    if memory is None or offset + size > len(memory):
        return ANSWER.pack(_CODES.index(ReturnCode.PERMISSION_ERROR), 0)
    place, command = memory[offset : offset + size], _COMMANDS[number]
    signed, mask = command in _SIGNED, (1 << 8 * size) - 1
    old = int.from_bytes(place, "little")
    operands = [_read(word & mask, size, signed=signed) for word in (old, first, second)]
    place[:] = (_COMPUTE[command](*operands) & mask).to_bytes(size, "little")
    return ANSWER.pack(_CODES.index(ReturnCode.SUCCESS), old)


def _read(word: int, size: int, *, signed: bool) -> int:
    """The number that a word of so many bytes is."""
    return word - (1 << 8 * size) if signed and word >> 8 * size - 1 else word


def read_answer(answer: memoryview) -> tuple[ReturnCode, int]:
    """Status and old value."""
    code, old = ANSWER.unpack(answer)
    return _CODES[code], old
