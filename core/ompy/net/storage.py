"""Files of the local system, as the io components use them: real ones, in both worlds.

A read or write goes on until all is done, the file ends, or the system refuses. A fault script may
strike any call (`Network.work`): an error in its place, or a write that takes only some of
the bytes, which the loop here has to notice as it has to notice the kernel's own.

Errors of the system become `MPIError` with the file's class (`MPI_ERR_NO_SPACE` and so on).
"""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from struct import Struct
from typing import TYPE_CHECKING, Any, Final

from ompy.compiled import Shown, ccall, cclass
from ompy.data.errors import (
    ERR_ACCESS,
    ERR_BAD_FILE,
    ERR_FILE_EXISTS,
    ERR_FILE_IN_USE,
    ERR_IO,
    ERR_NO_SPACE,
    ERR_NO_SUCH_FILE,
    ERR_QUOTA,
    ERR_READ_ONLY,
    ERR_UNSUPPORTED_OPERATION,
    MPIError,
)
from ompy.net.faults.work import OTHER, READ, SHORT, WRITE

if TYPE_CHECKING:
    from ompy.net.base import Network

_CLASSES: Final = {
    errno.ENOENT: ERR_NO_SUCH_FILE,
    errno.EACCES: ERR_ACCESS,
    errno.EPERM: ERR_ACCESS,
    errno.EROFS: ERR_READ_ONLY,
    errno.EEXIST: ERR_FILE_EXISTS,
    errno.ENOSPC: ERR_NO_SPACE,
    errno.EFBIG: ERR_NO_SPACE,
    errno.EDQUOT: ERR_QUOTA,
    errno.ETXTBSY: ERR_FILE_IN_USE,
    errno.EBUSY: ERR_FILE_IN_USE,
    errno.EISDIR: ERR_BAD_FILE,
    errno.ENOTDIR: ERR_BAD_FILE,
    errno.ENAMETOOLONG: ERR_BAD_FILE,
    errno.ELOOP: ERR_BAD_FILE,
    errno.EOPNOTSUPP: ERR_UNSUPPORTED_OPERATION,
    errno.ENOLCK: ERR_UNSUPPORTED_OPERATION,
}
_FLOCK: Final = Struct("hhqqi4x")  # Linux fcntl.h: struct flock of 64 bit
PIECES_MAX: Final = 1024  # of a call; Linux: UIO_MAXIOV
NOBODY: Final = -1  # no rank: `flows.UNKNOWN`
_END: Final = os.SEEK_END
_read = os.preadv
_seek = os.lseek
_write = os.pwrite
CREATED_MODE: Final = 0o666  # of new files, less the umask; POSIX: as fopen


def _batches(pieces: Sequence[memoryview], at: int) -> Iterator[tuple[Sequence[memoryview], int]]:
    """As many pieces as one call may have, and where in the file they are."""
    for first in range(0, len(pieces), PIECES_MAX):
        batch = pieces[first : first + PIECES_MAX]
        yield batch, at
        at += sum(map(len, batch))


def storage_error(problem: OSError, what: str) -> MPIError:
    """The MPI error for one of the system.

    Args:
        problem: what the system said.
        what: was tried, as in "writing to /tmp/x".
    """
    code = _CLASSES.get(problem.errno or 0, ERR_IO)
    made = MPIError(code, f"{what}: {problem.strerror or problem}")
    made.__cause__ = problem
    return made


def remove_file(path: str) -> None:
    """Delete a file.

    Raises:
        MPIError: it cannot be.
    """
    try:
        os.unlink(path)
    except OSError as problem:
        raise storage_error(problem, f"deleting {path}") from problem


@cclass
class StoredFile:
    """An open file.

    Attributes:
        path: where it is.
    """

    _descriptor: int
    _network: Shown[Network]
    path: str
    __slots__ = tuple(__annotations__)

    def __init__(
        self,
        network: Network,
        path: str,
        *,
        reads: bool,
        writes: bool,
        create: bool = False,
        exclusive: bool = False,
        permissions: int = CREATED_MODE,
    ) -> None:
        """Open a file; nothing that is in it is touched.

        Args:
            network: of the rank, whose faults strike here too.
            path: of the file.
            reads: it will be read.
            writes: it will be written.
            create: make it if it is not there.
            exclusive: an error if it is there.
            permissions: of a new one.

        Raises:
            MPIError: it cannot be opened.
        """
        self._network = network
        self.path = path
        flags = os.O_CLOEXEC
        flags |= os.O_RDWR if reads and writes else os.O_WRONLY if writes else os.O_RDONLY
        flags |= os.O_CREAT if create else 0
        flags |= os.O_EXCL if exclusive else 0
        self._descriptor = -1
        self._descriptor = self._call(OTHER, "opening", os.open, path, flags, permissions)

    def _call(self, kind: str, doing: str, call: Callable[..., Any], *arguments: Any) -> Any:
        """Call the system, or be struck in its place.

        Raises:
            MPIError: it refuses.
        """
        try:
            struck = self._network.work(NOBODY, kind).error if self._network.disturbed else 0
            if struck:
                raise OSError(struck, f"{os.strerror(struck)} (a fault script's)")
            return call(*arguments)
        except OSError as problem:
            raise storage_error(problem, f"{doing} {self.path}") from problem
        except OverflowError as problem:
            raise MPIError(ERR_IO, f"{doing} {self.path}: {problem}") from problem

    @ccall
    def read_into(self, view: memoryview, at: int) -> int:
        """Read until the view is full or the file ends.

        Args:
            view: writable bytes.
            at: first byte in the file.

        Returns:
            Bytes read.

        Raises:
            MPIError: it cannot be read.
        """
        if self._network.disturbed:
            return self._read_disturbed(view, at)
        done: int = 0
        size: int = len(view)
        try:
            while done < size:
                took: int = _read(self._descriptor, [view[done:] if done else view], at + done)
                if not took:
                    break
                done += took
        except OSError as problem:
            raise storage_error(problem, f"reading {self.path}") from problem
        except OverflowError as problem:
            raise MPIError(ERR_IO, f"reading {self.path}: {problem}") from problem
        return done

    def _read_disturbed(self, view: memoryview, at: int) -> int:
        done = 0
        while done < len(view):
            rest = [view[done:]]
            took = self._call(READ, "reading", os.preadv, self._descriptor, rest, at + done)
            if not took:
                break
            done += took
        return done

    @ccall
    def write_from(self, view: memoryview, at: int) -> None:
        """Write all of a view.

        Args:
            view: bytes.
            at: first byte in the file.

        Raises:
            MPIError: it cannot be written; some of the bytes may have been.
        """
        if self._network.disturbed:
            self._write_disturbed(view, at)
            return
        done: int = 0
        size: int = len(view)
        try:
            while done < size:
                took: int = _write(self._descriptor, view[done:] if done else view, at + done)
                done += took
        except OSError as problem:
            raise storage_error(problem, f"writing to {self.path}") from problem
        except OverflowError as problem:
            raise MPIError(ERR_IO, f"writing to {self.path}: {problem}") from problem

    def _write_disturbed(self, view: memoryview, at: int) -> None:
        done = 0
        while done < len(view):
            struck = self._network.work(NOBODY, WRITE).error
            rest = view[done:]
            if struck == SHORT and len(rest) > 1:
                rest = rest[: len(rest) // 2]
            try:
                if struck > 0:
                    raise OSError(struck, f"{os.strerror(struck)} (a fault script's)")
                done += os.pwrite(self._descriptor, rest, at + done)
            except OSError as problem:
                raise storage_error(problem, f"writing to {self.path}") from problem

    def write_pieces(self, pieces: Sequence[memoryview], at: int) -> None:
        """Write several views one after the other, few calls of the system for all of them.

        Raises:
            MPIError: they cannot be written; some of the bytes may have been.
        """
        for batch, first in _batches(pieces, at):
            place, done = first, 0
            if not self._network.disturbed:
                done = self._call(WRITE, "writing to", os.pwritev, self._descriptor, batch, place)
            for piece in batch:  # what the system has left out
                skipped = min(done, len(piece))
                if skipped < len(piece):
                    self.write_from(piece[skipped:], place + skipped)
                done -= skipped
                place += len(piece)

    def read_pieces(self, pieces: Sequence[memoryview], at: int) -> int:
        """Read into several views one after the other, until all are full or the file ends.

        Returns:
            Bytes read.

        Raises:
            MPIError: it cannot be read.
        """
        total = 0
        for batch, place in _batches(pieces, at):
            took: int = self._call(READ, "reading", os.preadv, self._descriptor, batch, place)
            total += took
            if took == sum(map(len, batch)):
                continue
            for piece in batch:
                skipped = min(took, len(piece))
                took -= skipped
                if skipped < len(piece):
                    more = self.read_into(piece[skipped:], at + total)
                    total += more
                    if more < len(piece) - skipped:
                        return total
        return total

    @ccall
    def size(self) -> int:
        """Bytes in it.

        Raises:
            MPIError: the system does not say.
        """
        if not self._network.disturbed:
            try:
                return _seek(self._descriptor, 0, _END)  # nobody uses that position
            except OSError:
                pass  # pipes and terminals have no end
        return int(self._call(OTHER, "looking at", os.fstat, self._descriptor).st_size)

    def resize(self, size: int) -> None:
        """Cut it off, or have zeros at its end.

        Raises:
            MPIError: it cannot be done.
        """
        self._call(OTHER, "resizing", os.ftruncate, self._descriptor, size)

    def allocate_room(self, size: int) -> None:
        """Have room on the device for its first `size` bytes; what is in it stays.

        Raises:
            MPIError: there is not so much.
        """
        if size:
            self._call(WRITE, "allocating", os.posix_fallocate, self._descriptor, 0, size)

    def flush_writes(self) -> None:
        """Have what was written on the device; what others wrote is seen from now on.

        Raises:
            MPIError: it failed.
        """
        try:
            self._call(OTHER, "flushing", os.fsync, self._descriptor)
        except MPIError as problem:
            cause = problem.__cause__
            if not isinstance(cause, OSError) or cause.errno != errno.EINVAL:
                raise  # EINVAL: a pipe or a device that has nothing to flush

    def is_on_device(self) -> bool:
        """Whether the kernel itself stores it on a block device.

        Then it has one cache of the file, and whoever flushes it flushes what all wrote. Not so
        where a server or a process (FUSE) may keep something for each that has it open.
        """
        if self._network.disturbed:
            return False  # a fault script may strike each one's
        try:
            return os.major(os.fstat(self._descriptor).st_dev) != 0  # 0: no device stands behind it
        except OSError:
            return False

    def refresh(self) -> None:
        """Forget what is cached of it: a lock has a network file system's client do so."""
        with suppress(MPIError):
            self.lock(0, 1, exclusive=False)
            self.unlock(0, 1)

    def lock(self, begin: int, size: int, *, exclusive: bool) -> None:
        """Wait until nobody else has a lock on these bytes, and have one.

        It belongs to this open file, not to the process, so it works between ranks of one process.

        Raises:
            MPIError: ERR_UNSUPPORTED_OPERATION and others, the file system has no locks.
        """
        kind = fcntl.F_WRLCK if exclusive else fcntl.F_RDLCK
        asked = _FLOCK.pack(kind, os.SEEK_SET, begin, size, 0)
        self._call(OTHER, "locking", fcntl.fcntl, self._descriptor, fcntl.F_OFD_SETLKW, asked)

    def unlock(self, begin: int, size: int) -> None:
        """Give the lock back."""
        asked = _FLOCK.pack(fcntl.F_UNLCK, os.SEEK_SET, begin, size, 0)
        with suppress(OSError):  # there is nothing else to do: the end of the file gives it back
            fcntl.fcntl(self._descriptor, fcntl.F_OFD_SETLKW, asked)

    def close(self) -> None:
        """Close it.

        Raises:
            MPIError: what was written could not be stored.
        """
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor < 0:
            return
        try:
            os.close(descriptor)
        except OSError as problem:
            raise storage_error(problem, f"closing {self.path}") from problem

    def __del__(self) -> None:
        with suppress(Exception):  # whoever forgot it, or failed before
            self.close()
