"""A look at what is installed that suffices where ompy alone offers components.

`importlib.metadata` takes longer to import than everything else a launcher does before it can
start a job. So the folders on the path are looked through here first, and only as long as all
is plain: ordinary folders, and one distribution with entry points of ours, ompy itself. Whatever
else there is, strangers, archives, eggs, other finders, the standard library looks at.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Final, NamedTuple

GROUP_PREFIX: Final = "ompy."
_OWN_NAME: Final = "ompy"
_FOLDERS: Final = (".dist-info", ".egg-info")


class EntryPoint(NamedTuple):
    """One line of `entry_points.txt`; its attributes are named as `importlib.metadata` has them.

    Attributes:
        name: what stands before the `=`.
        value: what stands behind.
        group: the section it stands in.
    """

    name: str
    value: str
    group: str


class Installed(NamedTuple):
    """A distribution.

    Attributes:
        name: of its metadata.
        version: likewise.
        entry_points: all it has.
    """

    name: str
    version: str
    entry_points: list[EntryPoint]


class _NotPlain(Exception):
    """This is for the standard library."""


def only_ours() -> Installed | None:
    """The distribution ompy, if no other has components or hooks; None to look more closely."""
    if not all(_is_plain(finder) for finder in sys.meta_path):
        return None
    try:
        found = [folder for entry in sys.path for folder in _offering(entry or os.curdir)]
        if len(found) != 1:
            return None
        installed = _read(found[0])
    except (OSError, UnicodeError, _NotPlain):
        return None
    return installed if installed.name == _OWN_NAME else None


def _is_plain(finder: object) -> bool:
    """Whether it finds distributions in folders, or none at all."""
    return getattr(finder, "__name__", "") == "PathFinder" or not hasattr(
        finder, "find_distributions"
    )


def _offering(folder: str) -> Iterator[str]:
    """The metadata folders there that speak of our entry points.

    Raises:
        _NotPlain: there may be distributions of another form.
    """
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return
    except NotADirectoryError:
        raise _NotPlain from None
    for name in names:
        if name.lower() == "egg-info" or name.endswith((".egg", ".egg-link")):
            raise _NotPlain
        if name.endswith(_FOLDERS):
            path = os.path.join(folder, name)
            if GROUP_PREFIX in _text(os.path.join(path, "entry_points.txt")):
                yield path


def _text(file: str) -> str:
    try:
        with open(file, encoding="utf-8") as opened:
            return opened.read()
    except (FileNotFoundError, NotADirectoryError):
        return ""


def _read(folder: str) -> Installed:
    """What a metadata folder says.

    Raises:
        _NotPlain: more than is understood here.
    """
    facts: dict[str, str] = {}
    header, _, _ = _text(os.path.join(folder, "METADATA")).partition("\n\n")
    for line in header.splitlines():
        name, colon, value = line.partition(":")
        if colon and not line[0].isspace():
            facts.setdefault(name.lower(), value.strip())
    if not facts.get("name") or not facts.get("version"):
        raise _NotPlain
    points = list(_points(_text(os.path.join(folder, "entry_points.txt"))))
    return Installed(facts["name"], facts["version"], points)


def _points(text: str) -> Iterator[EntryPoint]:
    group = ""
    for raw in text.splitlines():
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        if line.startswith("[") and line.endswith("]"):
            group = line[1:-1]
            continue
        name, equals, value = line.partition("=")
        if not equals or not group:
            raise _NotPlain
        yield EntryPoint(name.strip(), value.strip(), group)
