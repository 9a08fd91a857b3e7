"""The watching end of a live view."""

from __future__ import annotations

import os
import socket

import pytest
from ompy.cli.watching import live_jobs
from ompy.runtime.launching.job_sockets import JobName


@pytest.mark.parametrize("when", ["before it is asked", "when it is asked"])
def test_a_launcher_that_does_not_answer_leaves_no_socket(
    monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    ours, theirs = socket.socketpair()
    if when == "before it is asked":
        theirs.close()
    else:
        theirs.shutdown(socket.SHUT_WR)
    name = JobName("job", 1)
    monkeypatch.setattr(live_jobs, "open_folder", lambda *, make: os.open("/", os.O_RDONLY))
    monkeypatch.setattr(live_jobs, "jobs_in", lambda folder: [name])
    monkeypatch.setattr(live_jobs, "key_in", lambda folder, name: "key")
    sockets = iter([ours, None])
    monkeypatch.setattr(live_jobs, "connect_in", lambda folder, name: next(sockets))
    assert live_jobs.list_jobs() == []
    assert ours.fileno() == -1
    theirs.close()
