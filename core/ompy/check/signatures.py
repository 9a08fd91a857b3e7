"""Which basic types a message is made of, in order: what must agree at both ends.

A signature is (runs, times): runs of equal basic types, each (letter and bytes, how many), and how
often all of it comes. It is None where it is not known, OBJECT for a message of objects.
"""

# ruff: noqa: SLF001 - states are private to users, not to this package

from __future__ import annotations

from array import array
from collections.abc import Iterator
from string import ascii_letters
from typing import Any, Final

from ompy.mpi.buffers.common_forms import says_in_place
from ompy.mpi.buffers.spec import message
from ompy.mpi.datatypes.datatype import Datatype
from ompy.mpi.datatypes.typestate import TypeState
from ompy.mpi.windows.window_messages import target_elements

Signature = tuple[tuple[tuple[str, int], ...], int]
OBJECT: Final[Signature] = ((("object", 1),), 1)
STEPS: Final = 10_000  # of a comparison; arbitrary: what is alike for so long is alike
_LETTERS: Final = {
    **dict.fromkeys("bhilqnp", "i"),
    **dict.fromkeys("BHILQNP", "u"),
    **dict.fromkeys("efdg", "f"),
    **dict.fromkeys("FDG", "c"),
    "?": "b",
    "c": "u",
    "S": "u",
    "U": "u",
}
_OF_ARRAYS: Final = {code: f"{_LETTERS[code]}{array(code).itemsize}" for code in "bBhHiIlLqQfd"}
_WORDS: Final = {"i": "int", "u": "uint", "f": "float", "c": "complex", "b": "bool"}


def of_message(spec: Any) -> Signature | None:
    """The signature of what a user gave as a message; None where that is wrong, or not known."""
    kind = type(spec)
    if kind is bytearray or kind is bytes:
        return (("u1", len(spec)),), 1
    if kind is array:
        letter = _OF_ARRAYS.get(spec.typecode)
        if letter is not None:
            return ((letter, len(spec)),), 1
    dtype = getattr(spec, "dtype", None)
    if dtype is not None and not isinstance(spec, (list, tuple)):
        basic = getattr(dtype, "kind", "V")
        if basic in "iufcb":
            return ((f"{basic}{dtype.itemsize}", int(spec.size)),), 1
    if says_in_place(spec):
        return None
    try:
        typed = message(spec, writable=False)
    except Exception:
        return None  # the call itself says what is wrong
    return of_elements(typed.datatype, typed.message.count)


def of_elements(datatype: Datatype, count: int) -> Signature | None:
    """The signature of elements of a datatype."""
    state = datatype._inner
    if state is None:
        return None
    runs, times = of_type(state)
    return repeated(runs, times * count)


def of_type(state: TypeState) -> Signature:
    """The signature of one element."""
    if state.combiner == "STRUCT":
        return _of_struct(state)
    if state.base is None:
        return _named(state), 1
    runs, times = of_type(state.base)
    inner = state.base.layout.size
    return repeated(runs, times * (state.layout.size // inner if inner else 0))


def _of_struct(state: TypeState) -> Signature:
    lengths, _, types = state.arguments
    every: list[tuple[str, int]] = []
    for number, part in zip(lengths, types, strict=True):
        runs, times = of_type(part)
        folded, periods = repeated(runs, times * number)
        every += folded * min(periods, STEPS)
    return tuple(every), 1


def repeated(runs: tuple[tuple[str, int], ...], times: int) -> Signature:
    """Runs that come several times; one run becomes a longer one."""
    if len(runs) == 1:
        letter, number = runs[0]
        return ((letter, number * times),), 1
    return runs, times


def _named(state: TypeState) -> tuple[tuple[str, int], ...]:
    size = state.layout.size
    if not size:
        return ()
    if state.symbol in {"BYTE", "PACKED"}:
        return ((f"{state.symbol}{size}", 1),)
    form = state.layout.format
    if len(form) == 2:  # a pair of a value and an index
        return (_LETTERS.get(form[0], "V") + str(size - 4), 1), ("i4", 1)
    return ((_letter(state.code) + str(size), 1),)


def _letter(code: str) -> str:
    """The kind of a basic type: its code is a letter, or says the size too, as `i4` of INT32_T."""
    if code[:1] in _WORDS and code[1:].isdigit():
        return code[0]
    return _LETTERS.get(code, "V")


def elements(signature: Signature) -> int:
    """How many basic elements there are."""
    runs, times = signature
    return sum(number for _, number in runs) * times


def surplus(sent: Signature, received: Signature) -> int:
    """How many more basic elements are sent than received, or bytes where one side is packed."""
    if any(letter == "PACKED1" for runs, _ in (sent, received) for letter, _ in runs):
        return _bytes(sent) - _bytes(received)
    return elements(sent) - elements(received)


def _bytes(signature: Signature) -> int:
    """How long it is."""
    runs, times = signature
    sizes = ((letter.lstrip(ascii_letters), number) for letter, number in runs)
    return times * sum(int(size or 1) * number for size, number in sizes)


def _every_run(signature: Signature) -> Iterator[tuple[str, int]]:
    runs, times = signature
    for _ in range(times):
        yield from (run for run in runs if run[1])


def alike(one: str, other: str) -> bool:
    """Whether two basic types may meet; single bytes of any kind may."""
    if one == other or "PACKED1" in {one, other}:
        return True
    return all(each[-1] == "1" and each[-2:-1].isalpha() for each in (one, other))


def first_difference(sent: Signature, received: Signature) -> tuple[int, str, str] | None:
    """Where the types differ: the place, what is sent, and as what it is received; or None."""
    if OBJECT in {sent, received} and sent != received:
        other = received if sent == OBJECT else sent
        # pickled objects are bytes: who receives them as such knows what they are
        if not other[0] or all(alike(letter, "BYTE1") for letter, _ in other[0]):
            return None
        return 0, sent[0][0][0], received[0][0][0] if received[0] else "nothing"
    ours, theirs = _every_run(sent), _every_run(received)
    place, left, right = 0, ("", 0), ("", 0)
    for _ in range(STEPS):
        if not left[1]:
            left = next(ours, ("", 0))
        if not right[1]:
            right = next(theirs, ("", 0))
        if not left[1] or not right[1]:
            return None
        if not alike(left[0], right[0]):
            return place, left[0], right[0]
        step = min(left[1], right[1])
        place += step
        left, right = (left[0], left[1] - step), (right[0], right[1] - step)
    return None


def basic_text(letter: str) -> str:
    """A basic type as NumPy's users call it."""
    name, size = letter.rstrip("0123456789"), letter.lstrip("BYTEPACKDiufcbV")
    if name in _WORDS and size.isdigit():
        return "bool" if name == "b" else f"{_WORDS[name]}{8 * int(size)}"
    return {"BYTE": "MPI.BYTE", "PACKED": "MPI.PACKED", "object": "an object"}.get(name, name)


def text(signature: Signature | None) -> str:
    """A signature in few words."""
    if signature is None:
        return "nothing"
    if signature == OBJECT:
        return "an object"
    runs, times = signature
    shown = " + ".join(f"{number} {basic_text(letter)}" for letter, number in runs[:4])
    more = " + ..." if len(runs) > 4 else ""
    return f"{times} x ({shown}{more})" if times != 1 else shown + more


def differing_sides(origin: Any, target: Any) -> str:
    """What both sides of an access to a window are, if their basic types differ; or nothing.

    Args:
        origin: the access's buffer.
        target: where to, as the program says it; its own datatype is in a tuple or a list.

    Raises:
        ValueError: `target` is no place.
    """
    if not isinstance(target, (list, tuple)) or len(target) < 3:
        return ""  # the origin's type is the target's
    here = of_message(origin)
    count, datatype = target_elements(origin, target)
    there = of_elements(datatype, count)
    if here is None or there is None or first_difference(here, there) is None:
        return ""
    return f"{text(here)} at the origin, {text(there)} at the target"
