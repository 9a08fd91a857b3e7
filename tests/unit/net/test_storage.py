"""Files of the local system, and what a fault script does to them."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
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
    MPIError,
)
from ompy.net.faults.work import OTHER, SHORT, UNTOUCHED, WRITE, Work
from ompy.net.storage import StoredFile, remove_file, storage_error


class Network(SimpleNamespace):
    """A network with no more than faults of files."""

    def __init__(self, *struck: int) -> None:
        super().__init__(disturbed=bool(struck), struck=list(struck), asked=[])

    def work(self, receiver: int, rail: str) -> Work:
        self.asked.append(rail)
        if rail != WRITE and self.struck[:1] == [SHORT]:
            return UNTOUCHED
        return Work(self.struck.pop(0) if self.struck else 0)


def opened(path: Path, *struck: int, **how: Any) -> StoredFile:
    file = StoredFile(Network(), str(path), **{"reads": True, "writes": True, "create": True} | how)
    file._network = Network(*struck)
    return file


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (errno.ENOENT, ERR_NO_SUCH_FILE),
        (errno.EACCES, ERR_ACCESS),
        (errno.EROFS, ERR_READ_ONLY),
        (errno.EEXIST, ERR_FILE_EXISTS),
        (errno.ENOSPC, ERR_NO_SPACE),
        (errno.EDQUOT, ERR_QUOTA),
        (errno.ETXTBSY, ERR_FILE_IN_USE),
        (errno.ENOTDIR, ERR_BAD_FILE),
        (errno.EIO, ERR_IO),
        (errno.ESTALE, ERR_IO),
    ],
)
def test_classes_of_errors(number: int, code: int) -> None:
    made = storage_error(OSError(number, "as the system says"), "trying")
    assert (made.code, made.detail) == (code, "trying: as the system says")


def test_reading_and_writing(tmp_path: Path) -> None:
    path = tmp_path / "x"
    file = opened(path)
    file.write_from(memoryview(b"hello"), 3)
    room = bytearray(b"......")
    assert file.read_into(memoryview(room), 4) == 4
    assert room == b"ello.."
    assert file.read_into(memoryview(room), 8) == 0
    file.resize(4)
    file.allocate_room(20)
    assert (file.size(), path.read_bytes()[:5]) == (20, b"\0\0\0h\0")
    file.flush_writes()
    file.close()
    file.close()
    with pytest.raises(MPIError):
        file.size()


def test_what_cannot_be_opened_stays(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"here")
    with pytest.raises(MPIError) as caught:
        opened(path, exclusive=True)
    assert caught.value.code == ERR_FILE_EXISTS
    assert path.read_bytes() == b"here"
    with pytest.raises(MPIError) as caught:
        remove_file(str(tmp_path / "y"))
    assert caught.value.code == ERR_NO_SUCH_FILE


def test_a_place_that_the_system_has_no_number_for(tmp_path: Path) -> None:
    file = opened(tmp_path / "x")
    for call in (file.write_from, file.read_into):
        with pytest.raises(MPIError) as caught:
            call(memoryview(bytearray(1)), (1 << 63) - 1)
        assert caught.value.code == ERR_IO


def test_short_writes_go_on(tmp_path: Path) -> None:
    path = tmp_path / "x"
    file = opened(path, SHORT, SHORT, 0, SHORT, 0)
    file.write_from(memoryview(b"0123456789"), 0)
    assert path.read_bytes() == b"0123456789"
    assert set(file._network.asked) == {WRITE}
    assert len(file._network.asked) == 3  # 5 bytes, 2, and the rest


def test_a_struck_write_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"0123")
    file = opened(path, errno.ENOSPC)
    with pytest.raises(MPIError) as caught:
        file.write_from(memoryview(b"abcd"), 0)
    assert caught.value.code == ERR_NO_SPACE
    assert path.read_bytes() == b"0123"
    file._network = Network(errno.EIO)
    with pytest.raises(MPIError) as caught:
        file.read_into(memoryview(bytearray(1)), 0)
    assert caught.value.code == ERR_IO


def test_locks_are_of_open_files(tmp_path: Path) -> None:
    one, other = opened(tmp_path / "x"), opened(tmp_path / "x")
    one.lock(0, 10, exclusive=True)
    other.lock(10, 5, exclusive=True)
    one.unlock(0, 10)
    other.lock(0, 10, exclusive=False)
    one.lock(0, 10, exclusive=False)
    one.refresh()
    one.close()
    other.close()


def test_sizes(tmp_path: Path) -> None:
    file = opened(tmp_path / "x")
    assert file.size() == 0
    file.write_from(memoryview(b"12345"), 95)
    assert file.size() == 100
    file._network = Network(0, 0)
    assert file.size() == 100
    assert file._network.asked == [OTHER]
    os.mkfifo(tmp_path / "pipe")
    assert opened(tmp_path / "pipe", create=False).size() == 0  # it has no end to be sought


def test_a_size_that_the_system_does_not_say(tmp_path: Path) -> None:
    file = opened(tmp_path / "x", errno.EIO)
    with pytest.raises(MPIError) as caught:
        file.size()
    assert caught.value.code == ERR_IO


def test_who_stores_a_file(tmp_path: Path) -> None:
    """Where no device stands behind a file system, nobody flushes for others."""
    file = opened(tmp_path / "x")
    assert file.is_on_device() == (os.major(os.stat(tmp_path / "x").st_dev) != 0)
    assert not StoredFile(Network(), "/proc/self/status", reads=True, writes=False).is_on_device()
    file._network = Network(0)
    assert not file.is_on_device()
