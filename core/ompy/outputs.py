"""What this process writes for its user: files that are named, and standard error.

Of files, what somebody else may have put in their way is left alone.

In a folder such as /tmp anybody may make entries, and nobody removes another's. Who knows a name
that will be written can put a symbolic link there, or a folder or file of his own. Linux refuses
part of that itself where `fs.protected_symlinks` and `fs.protected_regular` are set; here all of it
is refused, on every system.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, TextIO

LINKS_MAX: Final = 40  # Linux: so many symbolic links are followed in one path
_SHARED: Final = stat.S_ISVTX | stat.S_IWOTH  # of a folder such as /tmp
_OF_OUTPUT: Final = frozenset(
    {errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EFBIG, errno.EPIPE, errno.EBADF, errno.EROFS}
)
Render = Callable[[str, str, str], str]  # name, whole lines of text, level -> what to write
_render: Render | None = None
_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC


class PlantedError(PermissionError):
    """What would be written to belongs to somebody else, in a folder that is everybody's."""

    def __init__(self, path: str, owner: int, kind: str) -> None:
        text = (
            f"{path} is a {kind} of user {owner}, in a folder where anybody may make one; it is "
            "not written to: name another place"
        )
        super().__init__(errno.EPERM, text)

    def __str__(self) -> str:
        return str(self.strerror)


def refuse_planted(path: str) -> None:
    """See that each step of a path is ours, or root's, or no stranger could make it.

    What is not there yet is all right, and so is what cannot be looked at: opening it tells.

    Raises:
        PlantedError: a step is a stranger's, in a folder such as /tmp.
    """
    trusted = {0, os.geteuid()}
    left = _steps(os.path.abspath(path))
    here, links = "/", 0
    while left:
        step = os.path.join(here, left.pop())
        if step in {"/proc", "/dev/fd"}:  # its links are none: they name what is open
            return
        try:
            folder, found = os.lstat(here), os.lstat(step)
        except OSError:
            return
        if folder.st_mode & _SHARED == _SHARED and found.st_uid not in {*trusted, folder.st_uid}:
            raise PlantedError(step, found.st_uid, _kind(found.st_mode))
        if not stat.S_ISLNK(found.st_mode):
            here = step
            continue
        links += 1
        if links > LINKS_MAX:
            return
        target = os.path.normpath(os.path.join(here, os.readlink(step)))
        here, left = "/", [*left, *_steps(target)]


def _steps(path: str) -> list[str]:
    """The names of a path from the root, the last first."""
    return [name for name in reversed(path.split("/")) if name]


def _kind(mode: int) -> str:
    names = {stat.S_IFLNK: "symbolic link", stat.S_IFDIR: "folder", stat.S_IFREG: "file"}
    return names.get(stat.S_IFMT(mode), "special file")


def open_directory(path: str) -> int:
    """The descriptor of a folder to write in, which is made unless it is there.

    Raises:
        PlantedError: it, or what leads there, is a stranger's.
        OSError: it cannot be made or opened.
    """
    refuse_planted(path)
    os.makedirs(path, exist_ok=True)
    refuse_planted(path)  # it may have come in between
    return os.open(os.path.realpath(path), os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


def create_in(directory: int, name: str) -> int:
    """A new file in a folder, for writing; one of that name that is there goes.

    A link is not followed: it goes, too.

    Args:
        directory: its descriptor.
        name: without a folder.

    Raises:
        OSError: it cannot be made, or what is there is another's.
    """
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=directory)
    return os.open(name, _CREATE | os.O_EXCL | os.O_NOFOLLOW, 0o644, dir_fd=directory)


def open_text(path: str, *, buffering: int = -1) -> TextIO:
    """A file for text, emptied, as `open(path, "w")` but for what strangers have planted.

    Raises:
        PlantedError: it is a stranger's.
        OSError: it cannot be opened.
    """
    refuse_planted(path)
    try:
        link = stat.S_ISLNK(os.lstat(path).st_mode)
    except OSError:
        link = False
    # what is no link now is followed as none: it may have been put there since
    file = os.open(path, _CREATE | (0 if link else os.O_NOFOLLOW), 0o644)
    try:
        refuse_planted(path)
        if stat.S_ISREG(os.fstat(file).st_mode):
            os.ftruncate(file, 0)
        return open(file, "w", buffering=buffering, encoding="utf-8")
    except BaseException:
        os.close(file)
        raise


def write_text(path: str, text: str) -> None:
    """Write a whole file.

    Raises:
        PlantedError: it is a stranger's.
        OSError: it cannot be written; a part of it may have been.
    """
    with open_text(path) as file:
        file.write(text)


def write_bytes(path: str, data: bytes) -> None:
    """Write a whole file of bytes. Raises as `write_text`."""
    with open_text(path) as file:
        file.buffer.write(data)


def clear_directory(path: str, is_ours: Callable[[str], object]) -> None:
    """Make a directory ready to be written into: files of an earlier time go.

    Args:
        path: of the directory, which is made if it is not there.
        is_ours: whether a file of this name is one that goes.

    Raises:
        OSError: it cannot be made or written, or is a stranger's.
    """
    folder = open_directory(path)
    try:
        for name in os.listdir(folder):
            if is_ours(name):
                os.unlink(name, dir_fd=folder)
    finally:
        os.close(folder)


def replace_text(path: str, name: str, text: str) -> None:
    """Write a file of a directory all at once.

    Raises:
        OSError: it cannot be written; what was there before still is.
    """
    unfinished = f".{name}"
    folder = open_directory(path)
    try:
        with open(create_in(folder, unfinished), "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(unfinished, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        with suppress(OSError):
            os.unlink(unfinished, dir_fd=folder)
        raise
    finally:
        os.close(folder)


def json_checksum(values: object) -> str:
    """A checksum of what a file of JSON says: the same before it is written and after it is read.

    Args:
        values: plain ones, that JSON has.
    """
    import json
    from zlib import crc32

    plain = json.loads(json.dumps(values))  # keys are texts, tuples are lists
    return f"{crc32(json.dumps(plain, sort_keys=True).encode()):08x}"


def output_failure(problem: BaseException) -> str:
    """Why standard output takes nothing; empty if that is not what an error is about.

    It is asked again, by an empty line. If it fails the rest goes nowhere from then on.
    """
    if not isinstance(problem, OSError) or problem.filename or problem.errno not in _OF_OUTPUT:
        return ""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
        os.write(1, b"\n")
    except OSError as again:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.close(nowhere)
        return f"standard output cannot be written: {again.strerror}"
    return ""


def working_directory_gone() -> str:
    """That nothing can be found by a relative path, and what to do; empty if it can."""
    try:
        os.getcwd()
    except OSError as problem:
        why = f"the working directory is not there any longer ({problem.strerror})"
        return f"{why}; change to another one first"
    return ""


READER_GONE: Final = 141  # exit code: 128 and SIGPIPE, as a shell has it


def drop_standard_output() -> None:
    """Let what is still buffered go nowhere: it has no reader, and Python would complain of it."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def keep_standard_streams() -> None:
    """Let nothing of ours get the number of a standard stream that is closed."""
    with suppress(OSError):  # too few descriptors: whoever needs one says so
        while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
            os.set_inheritable(descriptor, True)
        os.close(descriptor)


def speak(render: Render | None) -> None:
    """From now on write what is told as `render` makes it of name, text and level; None: as it is.

    Standard error is the process's, whoever in it speaks.
    """
    global _render  # noqa: PLW0603 - see above
    _render = render


def rendered(text: str, name: str, level: str) -> str:
    """What to write for a text of whole lines."""
    return text if _render is None else _render(name, text, level)


def tell(text: str, name: str = "notice", level: str = "info") -> None:
    """Write to `sys.stderr`; one that is closed, full or gone is no reason to fail.

    Args:
        text: whole lines.
        name: of the event, for programs.
        level: info, warning or error.
    """
    with suppress(AttributeError, OSError, ValueError):
        sys.stderr.write(rendered(text, name, level))
        sys.stderr.flush()


def warn(text: str, who: Sequence[str] = ("ompy",)) -> None:
    """Say on standard error, in one line, what goes on without. Past Python's buffers; never fails.

    Args:
        text: what was lost, where, why.
        who: says so.
    """
    write(f"{': '.join(who)}: warning: {text}\n", "warning", "warning")


def write(text: str, name: str = "notice", level: str = "info") -> None:
    """Write to descriptor 2, past Python's buffers; never fails.

    What was interrupted by a signal may be in the middle of writing to these.
    """
    data = rendered(text, name, level).encode(errors="backslashreplace")
    with suppress(OSError):
        while data:
            data = data[os.write(2, data) :]
