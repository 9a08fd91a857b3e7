r"""What parameter files contain, and where they are looked for.

Every kind of file (the user's and the system's, those of `--tune` and `--am`, the override file)
may hold both forms:

    name = value                            the value is the rest of the line, trimmed
    -mca name value  -x VARIABLE=value      any number of them on a line, quoted as in a shell

A comment is a line that begins with `#` or `//`, or what is between `/*` and `*/` before a name.

Reference: openmpi.md 1.9.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from ompy.mca.errors import did_you_mean

NAME_CHARACTERS: Final = frozenset(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"
)  # reference openmpi.md 1.9
PARAMETER_OPTIONS: Final = ("-mca", "--mca", "-gmca", "--gmca")
EXPORT_OPTION: Final = "-x"
FILE_MAX: Final = 4 << 20  # characters; arbitrary: some ten thousand parameters
SUFFIX: Final = ".conf"  # may be left out when a parameter set is named


class Assignment(NamedTuple):
    """One parameter set in a file.

    Attributes:
        name: as written.
        raw: the text given.
        place: `path:line`.
    """

    name: str
    raw: str
    place: str


class FileContent(NamedTuple):
    """What a file says.

    Attributes:
        assignments: the last line first: of two for one name the later one wins.
        exports: `VARIABLE` or `VARIABLE=value` of each `-x`, with its place; the last line first.
    """

    assignments: list[Assignment]
    exports: list[tuple[str, str]]


def read_file(path: str, problems: list[str]) -> FileContent:
    """Read a parameter file.

    Args:
        path: of the file.
        problems: gets a text for each thing that is wrong.
    """
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read(FILE_MAX + 1)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        problems.append(f"{path}: cannot be read: {why}")
        return FileContent([], [])
    if len(text) > FILE_MAX:
        problems.append(f"{path}: has more than {FILE_MAX >> 20} Mi characters")
        return FileContent([], [])
    return read_text(text, path, problems)


def read_text(text: str, path: str, problems: list[str]) -> FileContent:
    """Read what a parameter file contains. Arguments as for `read_file`."""
    content = FileContent([], [])
    for number, line in _code_lines(text, path, problems):
        place = f"{path}:{number}"
        if line.startswith("-"):
            _read_options(line, place, content, problems)
        else:
            _read_assignment(line, place, content, problems)
    content.assignments.reverse()
    content.exports.reverse()
    return content


def _read_assignment(line: str, place: str, content: FileContent, problems: list[str]) -> None:
    name, equals, raw = line.partition("=")
    name = name.strip()
    if not equals or not _is_name(name):
        problems.append(f"{place}: not `name = value`: {line}")
        return
    content.assignments.append(Assignment(name, raw.strip(), place))


def _read_options(line: str, place: str, content: FileContent, problems: list[str]) -> None:
    import shlex  # a rank never gets here

    try:
        words = shlex.split(line)
    except ValueError as error:
        problems.append(f"{place}: {str(error).lower()}: {line}")
        return
    while words:
        option = words.pop(0)
        if option in PARAMETER_OPTIONS and len(words) >= 2 and _is_name(words[0]):
            content.assignments.append(Assignment(words[0], words[1], place))
            del words[:2]
        elif option == EXPORT_OPTION and words and words[0].partition("=")[0]:
            content.exports.append((words.pop(0), place))
        else:
            problems.append(f"{place}: not `-mca name value` or `-x VARIABLE=value`: {line}")
            return


def _is_name(text: str) -> bool:
    return bool(text) and NAME_CHARACTERS.issuperset(text)


def _code_lines(text: str, path: str, problems: list[str]) -> Iterator[tuple[int, str]]:
    """Lines with something left in them after comments are taken off, with their numbers."""
    comment_from = 0
    for number, whole in enumerate(text.split("\n"), 1):
        line = whole.strip()
        while comment_from or line.startswith("/*"):
            if not comment_from:
                comment_from = number
                line = line[2:]
            _, closed, line = line.partition("*/")
            if not closed:
                break
            comment_from = 0
            line = line.lstrip()
        if not comment_from and line and not line.startswith(("#", "//")):
            yield number, line
    if comment_from:
        problems.append(f"{path}:{comment_from}: the comment that begins here has no end")


def split_list(raw: str, home: str, separator: str = ",") -> list[str]:
    """The paths of a list, with the home directory for a leading `~/`."""
    paths = [path.strip() for path in raw.split(separator)]
    return [
        os.path.join(home, path[2:]) if path.startswith("~/") else path for path in paths if path
    ]


def locate(name: str, directories: Sequence[str]) -> str | None:
    """The first file of this name in `directories`; its `.conf` may be left out.

    A name with a directory in front is looked for there alone.
    """
    for directory in directories:
        path = os.path.join(directory, name)
        for candidate in (path, path + SUFFIX):
            if os.path.isfile(candidate):
                return candidate
    return None


def not_found(name: str, directories: Sequence[str]) -> str:
    """A sentence about a file that `locate` does not find."""
    if os.path.isabs(name):
        return f"there is no file {name}"
    offered = {
        entry.removesuffix(SUFFIX)
        for directory in directories
        if os.path.isdir(directory)
        for entry in os.listdir(directory)
        if entry.endswith(SUFFIX)
    }
    near = did_you_mean(name.removesuffix(SUFFIX), offered)
    there_are = f" (there are {', '.join(sorted(offered))})" if offered else ""
    return f"there is no file {name} in {', '.join(directories)}{near}{there_are}"


def configuration_directory(environ: Mapping[str, str]) -> str:
    """Where the system's files are: `$OMPY_SYSCONFDIR`, else `etc` of the Python installation."""
    return environ.get("OMPY_SYSCONFDIR") or os.path.join(sys.prefix, "etc")


def parameter_set_directory() -> str:
    """Where the parameter sets are that come with ompy: `configs/` of its source or package."""
    mca = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    package = os.path.dirname(mca)
    installed = os.path.join(package, "configs")
    if os.path.isdir(installed):
        return installed
    return os.path.join(os.path.dirname(os.path.dirname(package)), "configs")
