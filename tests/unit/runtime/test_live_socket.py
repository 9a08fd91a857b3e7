"""The launcher's socket for those who watch: who is let in, and what is left."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from ompy.engine.reactor import Reactor
from ompy.outputs import PlantedError
from ompy.runtime.launching import live_socket
from ompy.runtime.launching.job_sockets import (
    KEY,
    SOCKET,
    JobName,
    connect_in,
    folder_path,
    jobs_in,
    key_in,
    listen_in,
    open_folder,
    remove_files,
)
from ompy.runtime.launching.live_socket import LINE_MAX, WATCHERS, LiveSocket

JOB = "0123456789abcdef"
PATIENCE = 20.0  # s; far beyond what anything here takes


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))


@pytest.fixture
def served() -> Iterator[JobName]:
    """A launcher that answers each question with it."""
    loop = Reactor()

    def ask(watcher: int, question: Mapping[str, Any]) -> None:
        live.inform(watcher, {"asked": question, "much": "x" * 10**6})

    live = LiveSocket(loop, JOB, ask)
    wake, end = socket.socketpair()
    loop.add_reader(wake, loop.stop)
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield JobName(JOB, os.getpid())
    end.send(b"x")
    thread.join()
    live.close()
    loop.close()
    wake.close()
    end.close()
    assert not os.listdir(folder_path()), "nothing is left"


@pytest.fixture
def connect(served: JobName) -> Iterator[Callable[[], socket.socket]]:
    made: list[socket.socket] = []
    folder = open_folder(make=False)

    def connect() -> socket.socket:
        found = connect_in(folder, served)
        assert found is not None
        found.settimeout(PATIENCE)
        made.append(found)
        return found

    yield connect
    for one in made:
        one.close()
    os.close(folder)


def the_key(name: JobName) -> str:
    folder = open_folder(make=False)
    try:
        return key_in(folder, name)
    finally:
        os.close(folder)


def said(connection: socket.socket) -> Any:
    with connection.makefile() as lines:
        return json.loads(lines.readline())


def is_closed(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def line(value: object) -> bytes:
    return json.dumps(value).encode() + b"\n"


def test_who_has_the_key_is_answered(served: JobName, connect: Callable[[], socket.socket]) -> None:
    mine = connect()
    mine.sendall(line({"key": the_key(served)}) + line({"ask": "job"}))
    assert said(mine)["asked"] == {"ask": "job"}
    for byte in line({"ask": "ranks"}):
        mine.sendall(bytes([byte]))
    assert said(mine)["asked"] == {"ask": "ranks"}


@pytest.mark.parametrize(
    "first",
    [
        line({"ask": "job"}),
        line({"key": "0" * 64}),
        line({"key": ""}),
        line({"key": None}),
        line(["key"]),
        b"no json\n",
        b"[" * 3000 + b"\n",
        b"x" * (LINE_MAX + 1),
        b"\xff\n",
    ],
)
def test_a_stranger_without_the_key_is_sent_away(
    first: bytes, connect: Callable[[], socket.socket]
) -> None:
    stranger = connect()
    with suppress(BrokenPipeError):
        stranger.sendall(first)
    assert is_closed(stranger)


def test_another_user_is_sent_away(
    served: JobName, connect: Callable[[], socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    key = the_key(served)
    monkeypatch.setattr(live_socket, "_is_ours", lambda connection: False)
    stranger = connect()
    with suppress(BrokenPipeError):
        stranger.sendall(line({"key": key}))
    assert is_closed(stranger)


def test_who_the_other_end_is_says_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = socket.socketpair()
    assert live_socket._is_ours(one)
    real, us = os.geteuid(), os.geteuid() + 1
    monkeypatch.setattr(live_socket.os, "geteuid", lambda: us)
    assert live_socket._is_ours(one) is (real == 0), "root may look at everything"
    one.close()
    other.close()
    with socket.socket() as no_peer:
        assert isinstance(live_socket._is_ours(no_peer), bool)


def test_there_are_only_so_many(served: JobName, connect: Callable[[], socket.socket]) -> None:
    key = line({"key": the_key(served)})
    inside = [connect() for _ in range(WATCHERS)]
    for one in inside:
        one.sendall(key + line({"ask": "job"}))
        said(one)
    assert is_closed(connect())


def test_what_a_dead_launcher_has_left_is_removed() -> None:
    folder = open_folder(make=True)
    name = JobName(JOB, os.getpid())
    listen_in(folder, name, b"k" * 32).close()
    assert jobs_in(folder) == [name]
    assert connect_in(folder, name) is None
    assert not os.listdir(folder)
    os.close(folder)


def test_what_is_half_made_stays_while_its_launcher_lives() -> None:
    folder = open_folder(make=True)
    living, dead = JobName(JOB, os.getpid()), JobName(JOB, 4_194_305)  # above Linux's greatest
    for name in (living, dead):
        Path(folder_path(), name.stem + KEY).touch()
        assert connect_in(folder, name) is None
    assert jobs_in(folder) == [living]
    os.close(folder)


def test_two_launchers_have_no_name_in_common() -> None:
    folder = open_folder(make=True)
    name = JobName(JOB, os.getpid())
    first = listen_in(folder, name, b"k" * 32)
    with pytest.raises(FileExistsError):
        listen_in(folder, name, b"k" * 32)
    first.close()
    remove_files(folder, name)
    os.close(folder)


def test_only_its_owner_may_look() -> None:
    folder = open_folder(make=True)
    name = JobName(JOB, os.getpid())
    made = listen_in(folder, name, b"k" * 32)
    assert os.stat(folder_path()).st_mode & 0o777 == 0o700
    assert os.stat(Path(folder_path(), name.stem + KEY)).st_mode & 0o777 == 0o600
    assert Path(folder_path(), name.stem + SOCKET).is_socket()
    made.close()
    remove_files(folder, name)
    os.close(folder)


def test_a_folder_that_others_may_use_is_refused(tmp_path: Path) -> None:
    (tmp_path / "ompy").mkdir()
    (tmp_path / "ompy").chmod(0o755)
    with pytest.raises(PlantedError):
        open_folder(make=True)


def test_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(0o700)
    (tmp_path / "ompy").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="ompy"):
        open_folder(make=True)


def test_where_no_folder_is_given_it_is_below_tmp(monkeypatch: pytest.MonkeyPatch) -> None:
    for other in ("", "relative", "/nowhere/at/all"):
        monkeypatch.setenv("XDG_RUNTIME_DIR", other)
        assert folder_path() == f"/tmp/ompy-{os.geteuid()}"
