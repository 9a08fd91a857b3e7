"""Words for numbers: what a parameter may be called instead of, or besides, its number.

Reference: openmpi.md 1.6.4, 1.6.5 and 1.8.3. Words are case-sensitive, but for those of true and
false (README of this folder, 16).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

INTEGER_FORM: Final = (
    "a whole number (decimal, 0x hexadecimal or 0 octal, with k, m or g for 1024, 1024^2 or 1024^3)"
)
FACTORS: Final = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}  # reference openmpi.md 1.8.1
DIGITS: Final = "0123456789abcdef"
TRUE: Final = frozenset({"true", "t", "enabled", "yes", "y"})  # reference openmpi.md 1.8.3
FALSE: Final = frozenset({"false", "f", "disabled", "no", "n"})


def integer(raw: str) -> int:
    """A whole number: decimal, 0x hexadecimal or 0 octal, then an optional k, m or g.

    Raises:
        ValueError: it is none.
    """
    text = raw.strip().lower()
    factor = FACTORS.get(text[-1:], 1)
    digits = text[:-1] if factor > 1 else text
    negative = digits.startswith("-")
    digits = digits[1:] if digits.startswith(("-", "+")) else digits
    base = 10
    if digits.startswith("0x"):
        base, digits = 16, digits[2:]
    elif digits.startswith("0") and len(digits) > 1:
        base, digits = 8, digits[1:]
    if not digits or not set(digits) <= set(DIGITS[:base]):
        raise ValueError(f"not {INTEGER_FORM}")
    value = int(digits, base) * factor
    return -value if negative else value


class Enumerator:
    """A number that has to be one of those that have a name.

    Attributes:
        words: the names with their numbers, in the order they are listed.
    """

    def __init__(self, words: Mapping[str, int]) -> None:
        self.words = dict(words)

    def number(self, raw: str) -> int:
        """The number a name or a number stands for.

        Raises:
            ValueError: it is neither; the text lists the names.
        """
        word = raw.strip()
        if word in self.words:
            return self.words[word]
        try:
            value = integer(raw)
        except ValueError:
            raise ValueError(f"not one of {self.valid()}") from None
        return self.accept(value)

    def accept(self, value: int) -> int:
        """The number to use for a number that was given.

        Raises:
            ValueError: there is no name for it.
        """
        if value not in self.words.values():
            raise ValueError(f"not one of {self.valid()}")
        return value

    def text(self, value: int) -> str:
        """The name of a number, or the number where it has none."""
        for word, number in self.words.items():
            if number == value:
                return word
        return str(value)

    def valid(self) -> str:
        """What may be given, for people (reference openmpi.md 2.2.4)."""
        return ", ".join(f'{number}:"{word}"' for word, number in self.words.items())


class RangedEnumerator(Enumerator):
    """Names for some numbers of a range; others of the range may be given as well.

    Attributes:
        least: a smaller number is taken for this one.
        largest: a larger number is taken for this one.
    """

    def __init__(self, words: Mapping[str, int], least: int, largest: int) -> None:
        super().__init__(words)
        self.least = least
        self.largest = largest

    def accept(self, value: int) -> int:
        """The number itself, moved into the range."""
        return min(max(value, self.least), self.largest)

    def valid(self) -> str:
        """The names, and the range."""
        return f"{super().valid()}, {self.least} - {self.largest}"


class BooleanEnumerator(Enumerator):
    """Many words for true and false, and `auto` if there is a third state.

    A number other than zero is true.
    """

    def __init__(self, *, automatic: bool = False) -> None:
        words = {"false": 0, "true": 1}
        super().__init__({"auto": -1, **words} if automatic else words)

    def number(self, raw: str) -> int:
        """1, 0 or, for `auto`, -1.

        Raises:
            ValueError: it is none of the words.
        """
        word = raw.strip().lower()
        if word in TRUE or word in FALSE:
            return int(word in TRUE)
        if word in self.words:
            return self.words[word]
        try:
            return self.accept(int(word))
        except ValueError:
            automatic = ", or auto" if "auto" in self.words else ""
            text = f"not true or false (also yes and no, or a number{automatic})"
            raise ValueError(text) from None

    def accept(self, value: int) -> int:
        """0 or 1; -1 stays where it means auto."""
        return value if value in self.words.values() else int(value != 0)


class FlagEnumerator(Enumerator):
    """Names of bits: any of them may be given, separated by commas, or the number they make.

    Attributes:
        conflicts: pairs of names that exclude each other.
    """

    def __init__(
        self, words: Mapping[str, int], conflicts: tuple[tuple[str, str], ...] = ()
    ) -> None:
        super().__init__(words)
        assert all(self.words[a] and self.words[b] for a, b in conflicts), "unknown flag"
        self.conflicts = conflicts

    def number(self, raw: str) -> int:
        """All bits named.

        Raises:
            ValueError: a name is unknown, a bit has no name, or two exclude each other.
        """
        try:
            value = integer(raw)
        except ValueError:
            value = 0
            for word in filter(None, (part.strip() for part in raw.split(","))):
                value |= super().number(word)
        return self.accept(value)

    def accept(self, value: int) -> int:
        """The number itself, if all its bits have names that go together."""
        known = 0
        for number in self.words.values():
            known |= number
        if value & ~known:
            raise ValueError(f"{value & ~known:#x} are no flags; there are {self.valid()}")
        for one, other in self.conflicts:
            if value & self.words[one] and value & self.words[other]:
                raise ValueError(f"{one} and {other} exclude each other")
        return value

    def text(self, value: int) -> str:
        """The names of the bits that are set, separated by commas."""
        names = [word for word, number in self.words.items() if number and value & number == number]
        return ",".join(names) or super().text(value)

    def valid(self) -> str:
        """The names with their bits, any of which may be given."""
        names = ", ".join(f'{number:#x}:"{word}"' for word, number in self.words.items())
        return f"any of {names}"


VERBOSITY: Final = {
    "none": -1,
    "error": 0,
    "component": 10,
    "warn": 20,
    "info": 40,
    "trace": 60,
    "debug": 80,
    "max": 100,
}  # reference openmpi.md 1.6.5
VERBOSITY_WORDS: Final = RangedEnumerator(VERBOSITY, VERBOSITY["none"], VERBOSITY["max"])
BOOLEAN: Final = BooleanEnumerator()
AUTO_BOOLEAN: Final = BooleanEnumerator(automatic=True)
