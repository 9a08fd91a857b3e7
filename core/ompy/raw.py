"""Words and bytes in memory: the few operations that are written twice.

Interpreted, this module is used. In a compiled module the functions of the same names in
`raw.pxd` take their place, in C: a slice of a `memoryview` is an object there, and a word an
integer object. Views are of format B, contiguous and alive; places are bytes and lie inside:
nothing is checked in C.
"""

from __future__ import annotations

import sys
from _thread import get_ident
from os import sched_yield
from struct import Struct
from time import monotonic_ns, sleep
from types import FrameType
from typing import Any, Final, TypeVar

_WORD: Final = Struct("<Q")
_WORDS: Final = Struct("<QQ")
_THREE_WORDS: Final = Struct("<QQQ")
_FOUR_WORDS: Final = Struct("<QQQQ")
_FIVE_WORDS: Final = Struct("<QQQQQ")
_SIGNED: Final = Struct("<q")
_REAL: Final = Struct("<d")
_HEADED_REAL: Final = Struct("<Qd")
_load = _WORD.unpack_from

NATIVE: Final = frozenset("cbB?hHiIlLqQnNfdP")  # formats that memoryview.cast takes as its source

Made = TypeVar("Made")

BEYOND: Final = 1 << 40  # arbitrary: more than any rank or tag, and it fits a C integer

clock = monotonic_ns
# grows evenly with time; compiled, an x86 processor's counter, read in less than half the time
ticks = monotonic_ns
_OURS: Final = frozenset({"ompy", "ompy_components", "mpi4py"})
_frame = sys._getframe  # noqa: SLF001 - its only name
give_way = sched_yield
thread = get_ident
one_word = _WORD.pack
two_words = _WORDS.pack
four_words = _FOUR_WORDS.pack
six_words = Struct("<QQQQQq").pack  # the last has a sign
seven_words = Struct("<QQQQQQQ").pack


def word(view: memoryview | bytes, at: int) -> int:
    """The 64 bits at byte `at`, little-endian."""
    value: int = _load(view, at)[0]
    return value


def three_words(first: int, second: int, third: int) -> bytes:
    """Three words; a negative number becomes its two's complement, as in C."""
    ones = (1 << 64) - 1
    return _THREE_WORDS.pack(first & ones, second & ones, third & ones)


def five_words(first: int, second: int, third: int, fourth: int, fifth: int) -> bytes:
    """Five words, as `three_words` makes them."""
    ones = (1 << 64) - 1
    return _FIVE_WORDS.pack(first & ones, second & ones, third & ones, fourth & ones, fifth & ones)


def signed_word(view: memoryview | bytes, at: int) -> int:
    """The same 64 bits as a number with a sign."""
    value: int = _SIGNED.unpack_from(view, at)[0]
    return value


def headed_bytes(head: int, rest: bytes) -> bytes:
    """A word, then bytes."""
    return one_word(head) + rest


def headed_text(head: int, text: str) -> bytes:
    """A word, then a text in UTF-8.

    Raises:
        UnicodeEncodeError: there is half a surrogate pair in it.
    """
    return one_word(head) + text.encode()


def headed_real(head: int, value: float) -> bytes:
    """A word, then a number of 64 bits."""
    return _HEADED_REAL.pack(head, value)


def text(view: Any, at: int, count: int) -> str:
    """The text that `count` bytes from byte `at` on are the UTF-8 of."""
    return str(memoryview(view)[at : at + count], "utf-8")


def real(view: Any, at: int) -> float:
    """The 64 bits at byte `at` as a number."""
    value: float = _REAL.unpack_from(view, at)[0]
    return value


def part(view: memoryview, at: int, count: int) -> bytes:
    """A copy of `count` bytes from byte `at` on."""
    return bytes(view[at : at + count])


def copy(target: memoryview, at: int, source: memoryview | bytes, start: int, count: int) -> None:
    """Copy `count` bytes of `source` from byte `start` on to byte `at` of `target`."""
    target[at : at + count] = source[start : start + count]


def stream(target: memoryview, at: int, source: memoryview | bytes, start: int, count: int) -> None:
    """Copy as `copy` does, past this core's cache where this is compiled: another reads it next."""
    target[at : at + count] = source[start : start + count]


def moved(
    view: memoryview,  # noqa: ARG001 - for the compiled form
    memory: memoryview,
    at: int,
    count: int,
) -> memoryview:
    """A view of `count` bytes of `memory`, a byte view, from byte `at` on.

    Compiled, that is `view` itself, an earlier one of the same memory, if only the attribute that
    it was read from refers to it.
    """
    return memory[at : at + count]


def look_at_buffer(buffer: Any) -> memoryview:
    """A view of a buffer. Compiled, an array of numbers that lie together has one dimension.

    Raises:
        TypeError, ValueError, BufferError: it is none that can be looked at.
    """
    return memoryview(buffer)


def numbers(buffer: Any) -> memoryview | None:
    """The bytes of a contiguous buffer of numbers, or None for whatever else it may be.

    Compiled, numbers of one dimension may be complex, halves and long doubles.
    """
    try:
        view = memoryview(buffer)
    except (TypeError, ValueError):
        return None
    if view.c_contiguous:
        if view.format == "B" and view.ndim == 1:
            return view
        if view.format in NATIVE and view.nbytes:
            return view.cast("B")
    return None


def any_bytes(buffer: Any) -> memoryview | None:
    """The bytes of a contiguous buffer whose datatype is given apart, or None.

    Compiled, it may have anything in one dimension but Python's objects: records, text. Interpreted
    it is what `numbers` takes.
    """
    return numbers(buffer)


def shaped(buffer: Any) -> memoryview | None:
    """A view of a contiguous buffer of numbers as it is, or None for whatever else it may be.

    Compiled, numbers may be what `numbers` takes there, and an array has one dimension.
    """
    try:
        view = memoryview(buffer)
    except (TypeError, ValueError):
        return None
    if view.c_contiguous and ((view.format == "B" and view.ndim == 1) or view.nbytes):
        return view if view.format in NATIVE else None
    return None


def bare(view: memoryview) -> memoryview:
    """The bytes of what `shaped` gave, for `copy`, `part`, `size` and loops. Compiled, the same."""
    return flat(view)


def overlaps(one: memoryview, other: memoryview) -> bool:
    """Whether two views may have bytes in common. Interpreted that is not known: they may."""
    return bool(size(one) and size(other))


def first(memory: Any) -> int:
    """The first byte of a `bytearray`, of `bytes` or of a byte view; there is one."""
    byte: int = memory[0]
    return byte


def kind(view: memoryview) -> str:
    """The format of a contiguous view of one or more numbers, a character; empty for any other.

    Compiled, complex numbers in one dimension have NumPy's characters F, D and G.
    """
    form = view.format
    return form if form in NATIVE and view.c_contiguous and view.ndim and view.nbytes else ""


def code(view: memoryview) -> int:
    """The number of the character that `kind` gives; 0 for any other view."""
    form = kind(view)
    return ord(form) if form else 0


def as_bytes(view: memoryview) -> memoryview:
    """What `flat` gives, of a contiguous view that nobody else has. Compiled it is changed."""
    return flat(view)


def flat(view: memoryview) -> memoryview:
    """The view, or one of format B and a single dimension of the same bytes."""
    return view if view.format == "B" and view.ndim == 1 else view.cast("B")


def room(length: int) -> bytearray:
    """Memory to be written to; compiled, there is anything in it."""
    return bytearray(length)


def size(view: memoryview) -> int:
    """Bytes of a view."""
    return len(view)


def pause(times: int) -> None:
    """Let the processor's other thread have its units for a moment. Interpreted it has them."""


def fetch_ahead(view: memoryview, at: int, size: int) -> None:
    """Have a processor fetch bytes `at` to `at + size` into its cache. Interpreted it is late."""


def instance(base: type, kind: type[Made]) -> Made:
    """What `base.__new__` makes for a class derived from it."""
    made: Made = base.__new__(kind)  # type: ignore[call-overload]
    return made


def fence() -> None:
    """What is stored before can be seen by all before anything is read after.

    Interpreted there is so much between two lines that it can, as good as always.
    """


def load_fence() -> None:
    """What is loaded after is no older than what was loaded before: nothing, interpreted."""


def has_atomics() -> bool:
    """Whether `swap_if` is one step to other processes. Interpreted it is one to its own only."""
    return False


def swap_if(view: memoryview, at: int, expected: int, new: int) -> bool:
    """Store a word at byte `at` if another one is there; whether it was. A fence in any case."""
    if word(view, at) != expected:
        return False
    put_word(view, at, new)
    return True


def put_word(view: memoryview, at: int, value: int) -> None:
    """Store a word at byte `at`, after all that was stored before."""
    _WORD.pack_into(view, at, value)


def is_at(code: Any, at: int) -> bool:
    """Whether the function of Python that calls runs this code, at this instruction.

    Compiled functions do not count; interpreted, no function of ompy does.
    """
    frame: FrameType | None = _frame()
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _OURS:
        frame = frame.f_back
    return frame is not None and frame.f_code is code and frame.f_lasti == at


def nap() -> None:
    """Sleep for a moment, as short as the kernel makes it: 50 us more or less."""
    sleep(0.000_001)


def is_writable(view: memoryview) -> bool:
    """Whether what is under a view may be changed."""
    return not view.readonly


def plain_text(value: object) -> bool:
    """Whether it is a `str` of ASCII characters, none of them NUL."""
    return value.__class__ is str and value.isascii() and "\0" not in value


def address(memory: object) -> int:  # noqa: ARG001 - for the compiled form
    """Where the bytes of a contiguous buffer begin; -1 interpreted, where that is not to be seen.

    Raises:
        BufferError: it is not contiguous.
        TypeError: it has no buffer.
    """
    return -1


def memory_at(address: int, count: int, readonly: bool) -> memoryview | None:  # noqa: ARG001
    """The bytes at an address, which the caller keeps alive; None interpreted."""
    return None


def small(number: object) -> int:
    """An int that is no further from 0 than `BEYOND`; `BEYOND` for whatever else it may be."""
    if number.__class__ is int and -BEYOND < number < BEYOND:
        return number
    return BEYOND
