"""Damaged input, drawn by a seed: bytes of a sound example with something done to them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from random import Random
from typing import Final

# what is put in the place of a number: at the edges of what C and Python have, and no number at all
NUMBERS: Final = (
    *("0", "-1", "1", "007", "2147483648", "-2147483649", "9223372036854775807", "1e9", "0x10"),
    *("9223372036854775808", "18446744073709551616", "1e999", "-0.0", "1.5", "NaN", "Infinity"),
    *("9" * 30, "9" * 5000, "null", "true", '"7"', "[]", "{}", '""', "\\ud800", "٣", ""),
)
# what is put anywhere
PIECES: Final = (
    *(b"\0", b"\xff", b"\xed\xa0\x80", b"\n", b"\r", b"\x85", b"\x1b[2J", b"'", b'"', b"\\", b"/*"),
    *(
        b"[" * 3000,
        b"{" * 3000,
        b'"\\ud800"',
        b"," * 50,
        b"=" * 50,
        b":" * 50,
        b"a" * 100_000,
        b"*",
    ),
    *(b"[[fault]]\n", b"%s%n", b"../" * 50, b"~", b"#", b"\xe2\x80\xae", b" " * 5000, b"-", b"+"),
)
_NUMBER: Final = re.compile(rb"-?\d+(?:\.\d+)?")
_WORD: Final = re.compile(rb"[A-Za-z_]\w*")

Mutator = Callable[[Random, bytes], bytes]


def _flip(random: Random, data: bytes) -> bytes:
    found = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 8))):
        if found:
            found[random.randrange(len(found))] ^= 1 << random.randrange(8)
    return bytes(found)


def _cut(random: Random, data: bytes) -> bytes:
    begin = random.randrange(len(data) + 1)
    return data[:begin]


def _drop(random: Random, data: bytes) -> bytes:
    begin = random.randrange(len(data) + 1)
    return data[:begin] + data[begin + random.choice((1, 2, 9, 200)) :]


def _insert(random: Random, data: bytes) -> bytes:
    at = random.randrange(len(data) + 1)
    return data[:at] + random.choice(PIECES) + data[at:]


def _replace(pattern: re.Pattern[bytes]) -> Mutator:
    """Something else in the place of one match."""

    def act(random: Random, data: bytes) -> bytes:
        places = list(pattern.finditer(data))
        if not places:
            return _insert(random, data)
        place = random.choice(places)
        other = random.choice((*NUMBERS, random.choice(places)[0].decode())).encode(
            errors="surrogatepass"
        )
        return data[: place.start()] + other + data[place.end() :]

    return act


def _lines(random: Random, data: bytes) -> bytes:
    """A line twice, gone, or in another's place."""
    lines = data.splitlines(keepends=True)
    if not lines:
        return data
    one, other = random.randrange(len(lines)), random.randrange(len(lines))
    match random.randrange(3):
        case 0:
            lines[one:one] = [lines[other]] * random.choice((1, 2, 30))
        case 1:
            del lines[one]
        case _:
            lines[one], lines[other] = lines[other], lines[one]
    return b"".join(lines)


MUTATORS: Final[tuple[Mutator, ...]] = (
    _flip,
    _cut,
    _drop,
    _insert,
    _replace(_NUMBER),
    _replace(_NUMBER),
    _replace(_WORD),
    _lines,
)


def mutant(seed: int, examples: list[bytes]) -> bytes:
    """The mutant of a seed: one of the examples, changed once or a few times."""
    random = Random(seed)
    data = random.choice(examples)
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        data = random.choice(MUTATORS)(random, data)
    return data


def words_of(seed: int, count: int) -> Iterator[str]:
    """Words for a command line, as the values of options: what a shell can give."""
    random = Random(seed)
    for _ in range(count):
        raw = random.choice((*(text.encode(errors="ignore") for text in NUMBERS), *PIECES))
        yield raw.replace(b"\0", b"?").decode(errors="surrogateescape")
