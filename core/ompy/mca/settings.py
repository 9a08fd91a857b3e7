"""What the user has set, where, and which source wins.

Sources, best first: the command line (`--mca NAME VALUE`), the environment
(`OMPY_MCA_NAME=VALUE`), parameter files (left-most wins).

Reference: openmpi.md 1.7 and 1.9. What a file may contain is said at `read_file_text`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from ompy.mca.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

ENVIRONMENT_PREFIX: Final = "OMPY_MCA_"
PARAM_FILES: Final = "mca_base_param_files"  # reference openmpi.md 1.10
NO_FILES: Final = "none"  # reference openmpi.md 1.10
NAME_CHARACTERS: Final = frozenset(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"
)  # reference openmpi.md 1.9


class Origin(NamedTuple):
    """Where a value comes from.

    Attributes:
        source: `default`, `command line`, `environment` or `file`.
        detail: `--mca btl self,tcp`, `OMPY_MCA_btl`, `/home/x/.ompy/mca-params.conf:3`;
            empty for a default.
    """

    source: str
    detail: str

    def __str__(self) -> str:
        return f"{self.source} ({self.detail})" if self.detail else self.source

    @property
    def place(self) -> str:
        """Where to go and mend it, for the beginning of a message."""
        if self.source == "environment":
            return f"environment variable {self.detail}"
        return self.detail or self.source


DEFAULT: Final = Origin("default", "")


class Setting(NamedTuple):
    """One value the user gave to one name; not known to be valid.

    Attributes:
        name: full name of the parameter.
        raw: the text given.
        origin: where.
    """

    name: str
    raw: str
    origin: Origin


def default_files(home: str) -> list[str]:
    """The parameter files that are read when the user names none: the user's, the system's."""
    return [
        os.path.join(home, ".ompy", "mca-params.conf"),
        os.path.join(sys.prefix, "etc", "ompy-mca-params.conf"),
    ]


def gather(
    command_line: Sequence[tuple[str, str]],
    environ: Mapping[str, str],
    files: Sequence[Path] | None = None,
) -> list[Setting]:
    """Everything the user has set, best source first.

    Args:
        command_line: name and value of each `--mca`, in order.
        environ: environment variables; `OMPY_MCA_*` are settings.
        files: parameter files to read instead of the default ones, best first. Those that
            do not exist are passed over. `mca_base_param_files`, set by the user on the
            command line or in the environment, replaces them; its files must exist.

    Returns:
        The settings; of several with the same name the first wins, the others are shadowed.

    Raises:
        UsageError: a name has two values on the command line, or a file cannot be read or
            understood.
    """
    settings = [*_command_line_settings(command_line), *_environment_settings(environ)]
    home = environ.get("HOME") or os.path.expanduser("~")
    named = next((setting for setting in settings if setting.name == PARAM_FILES), None)
    problems: list[str] = []
    if named is None:
        paths = default_files(home) if files is None else [os.fspath(path) for path in files]
        paths = [path for path in paths if os.path.exists(path)]
    else:
        paths = _named_files(named.raw, home)
        missing = [path for path in paths if not os.path.exists(path)]
        problems += [f"{named.origin.place}: there is no file {path}" for path in missing]
        paths = [path for path in paths if path not in missing]
    for path in paths:
        settings += _file_settings(path, problems)
    if problems:
        raise UsageError(*problems)
    return settings


def _command_line_settings(pairs: Sequence[tuple[str, str]]) -> list[Setting]:
    settings: dict[str, Setting] = {}
    problems = []
    for name, raw in pairs:
        origin = Origin("command line", f"--mca {name} {raw}")
        first = settings.setdefault(name, Setting(name, raw, origin))
        if first.raw != raw:  # reference openmpi.md 1.8.7, as Open MPI 5 has it
            problems.append(
                f"{first.origin.detail} and {origin.detail}: "
                f"{name} can have one value on the command line"
            )
    if problems:
        raise UsageError(*problems)
    return list(settings.values())


def _environment_settings(environ: Mapping[str, str]) -> list[Setting]:
    return [
        Setting(key.removeprefix(ENVIRONMENT_PREFIX), environ[key], Origin("environment", key))
        for key in sorted(environ)
        if key.startswith(ENVIRONMENT_PREFIX)
    ]


def _named_files(raw: str, home: str) -> list[str]:
    paths = [path.strip() for path in raw.split(",")]
    if paths == [NO_FILES]:
        return []
    return [
        os.path.join(home, path[2:]) if path.startswith("~/") else path for path in paths if path
    ]


def _file_settings(path: str, problems: list[str]) -> list[Setting]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read()
    except OSError as error:
        problems.append(f"{path}: cannot be read: {error.strerror}")
        return []
    return read_file_text(text, path, problems)


def read_file_text(text: str, path: str, problems: list[str]) -> list[Setting]:
    r"""The settings of a parameter file, the last assignment of a name before earlier ones.

    One `name = value` a line; the value is the rest of the line, trimmed, and may be empty.
    Comments are lines that begin with `#` or `//`, and whatever is between `/*` and `*/`
    before a name.

    Args:
        text: of the file.
        path: its name, for origins and messages.
        problems: gets a text for each line that is neither assignment nor comment.
    """
    by_name: dict[str, list[Setting]] = {}
    for number, line in _code_lines(text, path, problems):
        name, equals, raw = line.partition("=")
        name = name.strip()
        if not equals or not name or not NAME_CHARACTERS.issuperset(name):
            problems.append(f"{path}:{number}: not `name = value`: {line}")
            continue
        setting = Setting(name, raw.strip(), Origin("file", f"{path}:{number}"))
        by_name.setdefault(name, []).append(setting)
    return [setting for settings in by_name.values() for setting in reversed(settings)]


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
