"""`ompy replay --rank --debugpy`: an editor attaches, and sees the run that was recorded."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

import pytest

pytest.importorskip("debugpy")
pytestmark = pytest.mark.proc
BIN: Final = Path(sys.executable).parent
PATIENCE: Final = 120  # s; arbitrary, far beyond what any program takes
STOPS: Final = 2  # at the breakpoint
PROGRAM: Final = """\
import os, time
from mpi4py import MPI
comm = MPI.COMM_WORLD
if comm.rank == 0:
    words = []
    for _ in range(2):
        words.append(comm.recv(source=MPI.ANY_SOURCE))
    print(words)
else:
    time.sleep(0.3 * (2 - comm.rank))
    comm.send(f"from {comm.rank}", dest=0)
"""
LINE: Final = 7  # that receives


class Editor:
    """An editor's end of the debug adapter protocol."""

    def __init__(self, port: int) -> None:
        self._socket = _connected(port)
        self._file = self._socket.makefile("rb")
        self._number = 0

    def ask(self, command: str, **arguments: Any) -> int:
        """Send a request. Returns its number."""
        self._number += 1
        request = {"seq": self._number, "type": "request", "command": command}
        body = json.dumps({**request, "arguments": arguments}).encode()
        self._socket.sendall(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        return self._number

    def answer(self, command: str, **arguments: Any) -> Any:
        """Send a request, and wait for its answer."""
        number = self.ask(command, **arguments)
        return self._until(lambda told: told.get("request_seq") == number).get("body")

    def event(self, *names: str) -> Any:
        """Wait for one of some events."""
        return self._until(lambda told: told.get("event") in names)

    def close(self) -> None:
        """Go away."""
        self._file.close()
        self._socket.close()

    def _until(self, wanted: Any) -> Any:
        while True:
            header = {}
            while (line := self._file.readline()) not in {b"\r\n", b""}:
                name, _, value = line.partition(b":")
                header[name.lower()] = value
            told = json.loads(self._file.read(int(header[b"content-length"])))
            if wanted(told):
                return told


def _connected(port: int) -> socket.socket:
    end = time.monotonic() + PATIENCE
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), PATIENCE)
        except ConnectionRefusedError:
            assert time.monotonic() < end, "nobody listens"
            time.sleep(0.1)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def test_an_editor_sees_what_was_recorded(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    record = [BIN / "ompy-run", "-n", "3", "--record", "kept", "--record-data"]
    command = [*map(str, record), "python", "program.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    port = _free_port()
    alone = [BIN / "ompy", "replay", "kept", "--rank", "0", "--debugpy", port]
    with subprocess.Popen(
        [str(word) for word in alone], cwd=tmp_path, text=True, stdout=-1, stderr=-1
    ) as replay:
        editor = Editor(port)
        editor.answer("initialize", adapterID="python", linesStartAt1=True, pathFormat="path")
        editor.ask("attach", justMyCode=True)
        editor.event("initialized")
        source = {"path": str(tmp_path / "program.py")}
        editor.answer("setBreakpoints", source=source, breakpoints=[{"line": LINE}])
        editor.ask("configurationDone")
        seen = []
        for _ in range(STOPS):
            thread = editor.event("stopped")["body"]["threadId"]
            frame = editor.answer("stackTrace", threadId=thread)["stackFrames"][0]
            assert frame["line"] == LINE
            seen.append(editor.answer("evaluate", expression="words", frameId=frame["id"]))
            editor.ask("continue", threadId=thread)
        editor.event("terminated", "exited")
        editor.close()
        told, errors = replay.communicate(timeout=PATIENCE)
    assert (replay.returncode, told) == (0, done.stdout), errors
    assert [each["result"] for each in seen] == ["[]", done.stdout.split(",")[0] + "]"]
