"""What active messages look like on the wire.

A message begins with a word of 32 bits:

    command 4 | misc 15 | number of arguments 5 | handler 8          from the lowest bit on

`misc` is the bytes of a MEDIUM's payload, 1 for a LONG that brings its bytes along, the code in a
SHUTDOWN. Then come the arguments, 32 bits each; in a LONG before them the length and the address:

    SHORT, MEDIUM   word | arguments
    LONG            word | length 4 | offset in the receiver's segment 8 | arguments

A head ends at a multiple of 8 bytes, where the payload begins. Least significant byte first.

Source: reference gasnet.md 5.1, 5.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from struct import Struct, error
from typing import Final, NamedTuple

from ompy.frameworks.conduit import MAX_ARGS

WORD: Final = Struct("<I")
LONG_HEAD: Final = Struct("<IIQ")
assert LONG_HEAD.size == 16  # reference gasnet.md 5.1: the arguments of a LONG

# reference gasnet.md 5.1: the fields of the first word
COMMAND_BITS: Final = 4
MISC_BITS: Final = 15
ARGUMENTS_BITS: Final = 5
HANDLER_BITS: Final = 8
MISC_AT: Final = COMMAND_BITS
ARGUMENTS_AT: Final = MISC_AT + MISC_BITS
HANDLER_AT: Final = ARGUMENTS_AT + ARGUMENTS_BITS
assert HANDLER_AT + HANDLER_BITS == 32

ALIGNMENT: Final = 8  # reference gasnet.md 5.1: of a payload
HEAD_MAX: Final = 72  # reference gasnet.md 5.1: of a SHORT or MEDIUM with 16 arguments
MISC_MASK: Final = (1 << MISC_BITS) - 1
MASK: Final = (1 << 32) - 1

_ARGUMENTS: Final = [Struct(f"<{count}I") for count in range(MAX_ARGS + 1)]
_SIGN: Final = 1 << 31  # reference gasnet.md 1: arguments have 32 bits


class Command(IntEnum):
    """What a message is. Requests are odd (reference gasnet.md 5.1)."""

    NULL = 0
    SHORT_REQUEST = 1
    SHORT_REPLY = 2
    MEDIUM_REQUEST = 3
    MEDIUM_REPLY = 4
    LONG_REQUEST = 5
    LONG_REPLY = 6
    CREDIT = 7  # the hidden message that returns one
    SHUTDOWN = 8


class HeaderError(Exception):
    """A message that is none."""


class Message(NamedTuple):
    """A message that was read.

    Attributes:
        command: what it is.
        misc: as it stands there.
        handler: index of who handles it; in a SHUTDOWN the round.
        arguments: as the sender gave them, with their sign.
        offset: in the receiver's segment, of a LONG.
        length: bytes of payload, wherever they are.
        payload: what the message brought along.
    """

    command: int
    misc: int
    handler: int
    arguments: Sequence[int]
    offset: int
    length: int
    payload: memoryview


def aligned(size: int) -> int:
    """Up to a multiple of `ALIGNMENT`."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def first_word(command: int, misc: int, arguments: int, handler: int) -> int:
    """The first word of a message."""
    return command | misc << MISC_AT | arguments << ARGUMENTS_AT | handler << HANDLER_AT


def short_or_medium(
    command: int, handler: int, arguments: Sequence[int], payload: memoryview
) -> bytearray:
    """A SHORT, or a MEDIUM with its payload."""
    count, size = len(arguments), len(payload)
    head = aligned(WORD.size + 4 * count)
    made = bytearray(head + size)
    WORD.pack_into(made, 0, first_word(command, size, count, handler))
    _put_arguments(made, WORD.size, arguments)
    if size:
        made[head:] = payload
    return made


def long_head_size(arguments: int) -> int:
    """Bytes of a LONG's head."""
    return aligned(LONG_HEAD.size + 4 * arguments)


def long(
    command: int,
    handler: int,
    arguments: Sequence[int],
    offset: int,
    length: int,
    packed: memoryview | None,
) -> bytearray:
    """A LONG; `packed` is its payload where that goes along."""
    count = len(arguments)
    head = long_head_size(count)
    made = bytearray(head + (len(packed) if packed is not None else 0))
    first = first_word(command, int(packed is not None), count, handler)
    LONG_HEAD.pack_into(made, 0, first, length, offset)
    _put_arguments(made, LONG_HEAD.size, arguments)
    if packed is not None:
        made[head:] = packed
    return made


def credit_message() -> bytearray:
    """The hidden message that returns a credit."""
    return bytearray(WORD.pack(first_word(Command.CREDIT, 0, 0, 0)))


def shutdown(shift: int, code: int) -> bytearray:
    """What is told in round `shift` of the exit: the largest code that is known."""
    return bytearray(WORD.pack(first_word(Command.SHUTDOWN, code, 0, shift)))


def _put_arguments(made: bytearray, at: int, arguments: Sequence[int]) -> None:
    if not arguments:
        return
    struct = _ARGUMENTS[len(arguments)]
    try:
        struct.pack_into(made, at, *arguments)
    except error:  # some are negative
        struct.pack_into(made, at, *[argument & MASK for argument in arguments])


def parse_message(message: memoryview) -> Message:
    """Take a message apart.

    Raises:
        HeaderError: it is none.
    """
    if len(message) < WORD.size:
        raise HeaderError(f"a message of {len(message)} bytes")
    first = WORD.unpack_from(message)[0]
    command = first & ((1 << COMMAND_BITS) - 1)
    misc = first >> MISC_AT & MISC_MASK
    count = first >> ARGUMENTS_AT & ((1 << ARGUMENTS_BITS) - 1)
    handler = first >> HANDLER_AT
    offset = length = 0
    at = WORD.size
    if command in (Command.LONG_REQUEST, Command.LONG_REPLY):
        at = LONG_HEAD.size
        if len(message) >= at:
            _, length, offset = LONG_HEAD.unpack_from(message)
    plain = command < Command.CREDIT
    head = aligned(at + 4 * count) if plain else at
    most = MAX_ARGS if plain else 0
    if not Command.NULL < command <= Command.SHUTDOWN or count > most or len(message) < head:
        raise HeaderError(f"a message of {len(message)} bytes begins with {first:#010x}")
    payload = message[head:]
    expected = 0
    if command in (Command.MEDIUM_REQUEST, Command.MEDIUM_REPLY):
        expected = length = misc
    elif misc and at == LONG_HEAD.size:
        expected = length
    if len(payload) != expected:
        raise HeaderError(f"{len(payload)} bytes of payload where there should be {expected}")
    return Message(command, misc, handler, _arguments(message, at, count), offset, length, payload)


def message_size(message: memoryview, first: int) -> int:
    """Bytes of the message at the beginning of a longer piece of memory.

    Args:
        message: that memory.
        first: the message's first word, as it should be.
    """
    command, misc = first & ((1 << COMMAND_BITS) - 1), first >> MISC_AT & MISC_MASK
    count = first >> ARGUMENTS_AT & ((1 << ARGUMENTS_BITS) - 1)
    if command in (Command.LONG_REQUEST, Command.LONG_REPLY):
        length = LONG_HEAD.unpack_from(message)[1] if misc else 0
        return long_head_size(count) + int(length)
    return aligned(WORD.size + 4 * count) + misc


def _arguments(message: memoryview, at: int, count: int) -> Sequence[int]:
    if not count:
        return ()
    found = _ARGUMENTS[count].unpack_from(message, at)
    return [value - 2 * _SIGN if value & _SIGN else value for value in found]
