"""What a resource manager has given this shell: hosts and how many ranks each is meant for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

JOB_VARIABLE: Final = "SLURM_JOB_ID"
_HOSTS: Final = "SLURM_JOB_NODELIST"
_TASKS: Final = "SLURM_TASKS_PER_NODE"
_WORD: Final = re.compile(r"(?:[^,\[]|\[[^\]]*\])+")  # a name, with lists in brackets
_LIST: Final = re.compile(r"\[([^\]]*)\]")
_TIMES: Final = re.compile(r"(\d+)(?:\(x(\d+)\))?")


def allocated_hosts(environment: Mapping[str, str]) -> list[tuple[str, int]] | None:
    """Hosts and slots of the Slurm allocation we are in; None if we are in none.

    Raises:
        ValueError: the variables are not written as Slurm writes them.
    """
    if JOB_VARIABLE not in environment or not environment.get(_HOSTS):
        return None
    hosts = expand(environment[_HOSTS])
    slots = repeat(environment.get(_TASKS) or f"1(x{len(hosts)})")
    if len(hosts) != len(slots):
        raise ValueError(
            f"{_HOSTS}={environment[_HOSTS]} and {_TASKS}={environment[_TASKS]} are of different "
            "lengths"
        )
    return list(zip(hosts, slots, strict=True))


def expand(text: str) -> list[str]:
    """The names of `n[1-3,07],m`: n1, n2, n3, n07, m.

    Raises:
        ValueError: it is not written like that.
    """
    words = _WORD.findall(text)
    if ",".join(words) != text:
        raise ValueError(f"{text} is no list of hosts")
    return [name for word in words for name in _expand_word(word)]


def _expand_word(word: str) -> list[str]:
    brackets = _LIST.search(word)
    if brackets is None:
        if "[" in word or "]" in word:
            raise ValueError(f"{word} is no list of hosts")
        return [word]
    before, after = word[: brackets.start()], word[brackets.end() :]
    numbers: list[str] = []
    for part in brackets.group(1).split(","):
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise ValueError(f"{word} is no list of hosts")
        end = int(last) if dash else int(first)
        numbers += [str(n).zfill(len(first)) for n in range(int(first), end + 1)]
    return [before + number + rest for number in numbers for rest in _expand_word(after)]


def repeat(text: str) -> list[int]:
    """The numbers of `2(x3),1`: 2, 2, 2, 1.

    Raises:
        ValueError: it is not written like that.
    """
    found = []
    for word in text.split(","):
        match = _TIMES.fullmatch(word)
        if match is None:
            raise ValueError(f"{text} is no list of numbers")
        found += [int(match.group(1))] * int(match.group(2) or 1)
    return found
