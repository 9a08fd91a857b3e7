"""Where the launchers of a user have their sockets: the folder, the names, and what is left there.

The folder is the user's alone; what somebody else has put in its place is refused. A job has two
files there, named by its id and its launcher's process: `JOB-PID.sock`, to which one connects, and
`JOB-PID.key`, what one says there first. A launcher that is killed leaves them; who lists jobs
removes them.
"""

from __future__ import annotations

import os
import socket
import stat
from contextlib import suppress
from typing import Final, NamedTuple

from ompy.outputs import PlantedError, refuse_planted

KEY_SIZE: Final = 32  # bytes; arbitrary: as the job's own
SOCKET: Final = ".sock"
KEY: Final = ".key"
NEW: Final = ".new"  # of a socket to which nobody can connect yet
_ONLY_MINE: Final = 0o700


class JobName(NamedTuple):
    """What the files of a job are called.

    Attributes:
        job_id: of the job.
        pid: of its launcher.
    """

    job_id: str
    pid: int

    @property
    def stem(self) -> str:
        """Without an ending."""
        return f"{self.job_id}-{self.pid}"


def folder_path() -> str:
    """The folder of this user, which need not be there."""
    given = os.environ.get("XDG_RUNTIME_DIR", "")
    if given and os.path.isabs(given) and _is_mine(given):
        return os.path.join(given, "ompy")
    # not TMPDIR: one shell is to see the jobs of another
    return f"/tmp/ompy-{os.geteuid()}"  # noqa: S108 - made with 0700, and a stranger's is refused


def _is_mine(path: str) -> bool:
    try:
        return os.stat(path).st_uid == os.geteuid()
    except OSError:
        return False


def open_folder(*, make: bool) -> int:
    """The descriptor of this user's folder.

    Args:
        make: make it if it is not there.

    Raises:
        PlantedError: it is a stranger's, or others may write there.
        FileNotFoundError: it is not there.
        OSError: it cannot be made or opened.
    """
    path = folder_path()
    refuse_planted(path)
    if make:
        with suppress(FileExistsError):
            os.mkdir(path, _ONLY_MINE)
    folder = os.open(path, os.O_DIRECTORY | os.O_NOFOLLOW | os.O_RDONLY | os.O_CLOEXEC)
    found = os.fstat(folder)
    if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & ~_ONLY_MINE:
        os.close(folder)
        raise PlantedError(path, found.st_uid, "folder, open to others,")
    return folder


def address_in(folder: int, name: str) -> str:
    """An address for `bind` and `connect`: however deep the folder is, it is short enough."""
    return f"/proc/self/fd/{folder}/{name}"


def listen_in(folder: int, name: JobName, key: bytes) -> socket.socket:
    """Make a job's files. Whoever sees the socket can connect to it.

    Raises:
        OSError: they cannot be made; none is left.
    """
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        file = os.open(name.stem + KEY, flags, 0o600, dir_fd=folder)
        try:
            os.write(file, key.hex().encode())
        finally:
            os.close(file)
        made.bind(address_in(folder, name.stem + NEW))
        made.listen()
        os.rename(name.stem + NEW, name.stem + SOCKET, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        made.close()
        remove_files(folder, name)
        raise
    return made


def remove_files(folder: int, name: JobName) -> None:
    """Remove a job's files; those that are not there are all right."""
    for ending in (SOCKET, NEW, KEY):
        with suppress(OSError):
            os.unlink(name.stem + ending, dir_fd=folder)


def jobs_in(folder: int) -> list[JobName]:
    """All jobs that have files there, by the launcher's process."""
    found = set()
    for entry in os.listdir(folder):
        stem, ending = os.path.splitext(entry)
        job_id, _, pid = stem.rpartition("-")
        if ending in {SOCKET, KEY, NEW} and job_id and pid.isdecimal():
            found.add(JobName(job_id, int(pid)))
    return sorted(found, key=lambda name: name.pid)


def connect_in(folder: int, name: JobName) -> socket.socket | None:
    """Connect to a job's launcher. What a launcher has left that is dead is removed: then None.

    Raises:
        OSError: it does not take anybody now.
    """
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        made.connect(address_in(folder, name.stem + SOCKET))
    except ConnectionRefusedError:  # it had listened before it had this name
        made.close()
        remove_files(folder, name)
        return None
    except FileNotFoundError:  # it is being made, or removed
        made.close()
        if not os.path.exists(f"/proc/{name.pid}"):
            remove_files(folder, name)
        return None
    except OSError:
        made.close()
        raise
    return made


def key_in(folder: int, name: JobName) -> str:
    """What to say first.

    Raises:
        OSError: it is not there any longer.
    """
    file = os.open(name.stem + KEY, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        return os.read(file, 2 * KEY_SIZE).decode()
    finally:
        os.close(file)
