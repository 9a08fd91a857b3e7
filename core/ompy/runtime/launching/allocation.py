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
_NUMBER: Final = re.compile(r"[0-9]{1,18}")  # C: int64_t has all of these
_TIMES: Final = re.compile(r"([0-9]{1,6})(?:\(x([0-9]{1,6})\))?")  # arbitrary: slots of a host
HOSTS_MAX: Final = 65536  # arbitrary: more than Slurm's MaxNodeCount has ever been
SHOWN_MAX: Final = 80  # characters of what is wrong; arbitrary: a line of a terminal


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
            f"{_HOSTS}={_short(environment[_HOSTS])} and "
            f"{_TASKS}={_short(environment.get(_TASKS, ''))} are of different lengths"
        )
    return list(zip(hosts, slots, strict=True))


def expand(text: str) -> list[str]:
    """The names of `n[1-3,07],m`: n1, n2, n3, n07, m.

    Raises:
        ValueError: it is not written like that.
    """
    words = _WORD.findall(text)
    if ",".join(words) != text:
        raise ValueError(f"{_short(text)} is no list of hosts")
    names: list[str] = []
    for word in words:
        names += _expand_word(word, HOSTS_MAX - len(names))
    return names


def _short(text: str) -> str:
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}..."


def _expand_word(word: str, most: int) -> list[str]:
    """The names that a word stands for, `most` of them; it has several lists where it has several.

    Raises:
        ValueError: it is written otherwise, or stands for more.
    """
    brackets = _LIST.search(word)
    if brackets is None:
        if "[" in word or "]" in word:
            raise ValueError(f"{_short(word)} is no list of hosts")
        if most < 1:
            raise ValueError(f"it names more than {HOSTS_MAX} hosts")
        return [word]
    before, after = word[: brackets.start()], word[brackets.end() :]
    numbers: list[str] = []
    for part in brackets.group(1).split(","):
        first, dash, last = part.partition("-")
        if not _NUMBER.fullmatch(first) or (dash and not _NUMBER.fullmatch(last)):
            raise ValueError(f"{_short(word)} is no list of hosts")
        end = int(last) if dash else int(first)
        if end - int(first) >= most - len(numbers):
            raise ValueError(f"{_short(word)} names more than {HOSTS_MAX} hosts")
        numbers += [str(n).zfill(len(first)) for n in range(int(first), end + 1)]
    if not numbers:  # from more to less
        raise ValueError(f"{_short(word)} is no list of hosts")
    rests = _expand_word(after, most // len(numbers))
    return [before + number + rest for number in numbers for rest in rests]


def repeat(text: str) -> list[int]:
    """The numbers of `2(x3),1`: 2, 2, 2, 1.

    Raises:
        ValueError: it is not written like that.
    """
    found: list[int] = []
    for word in text.split(","):
        match = _TIMES.fullmatch(word)
        if match is None:
            raise ValueError(f"{_short(text)} is no list of numbers")
        times = int(match.group(2) or 1)
        if times > HOSTS_MAX - len(found):
            raise ValueError(f"{_short(text)} is of more than {HOSTS_MAX} hosts")
        found += [int(match.group(1))] * times
    return found
