"""`run`: a function or a program on ranks, for a driver of a Ray cluster."""

from __future__ import annotations

import base64
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Final

import cloudpickle
import ray
from ompy.runtime.launching.launchers import SECRET
from ompy.runtime.ranks.environment import OWN_CODE
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from ompy_ray.hosting import AgentHost, remove_secret, tied, write_secret
from ompy_ray.placing import Node, Reservation

_TAIL: Final = 4000  # characters of standard error in an exception; arbitrary: a report has room
_GRACE_S: Final = 15.0  # arbitrary: ompy-run ends a job within seconds of SIGTERM
_SECRET_SIZE: Final = 32  # bytes; 256 bits of the kernel's random generator
_UNUSED_PORT: Final = "1"  # each host has a port of its own in the hostfile


class JobFailed(RuntimeError):
    """A job that did not end well.

    Attributes:
        code: the exit code of ompy-run.
        said: the end of what the job wrote to standard error.
    """

    def __init__(self, code: int, said: str) -> None:
        """Make one of an exit code and what was said."""
        super().__init__(f"the job ended with code {code}\n{said}")
        self.code = code
        self.said = said


def run(
    n: int,
    target: Callable[..., Any] | str,
    *args: Any,
    options: Sequence[str] = (),
    cpus_per_rank: float = 1,
    strategy: str = "PACK",
    timeout: float = 300,
) -> list[Any]:
    """Run a function or a program on ranks in a placement group of Ray, and wait for its end.

    Each node of the group has an actor, the actor an agent, and the agent the node's ranks. What
    they write comes out here. When this call is interrupted, or an actor or node dies, the job
    ends, and nothing of it is left.

    Args:
        n: how many ranks.
        target: a function, which is sent to all ranks; or the path of a Python program, which all
            nodes have.
        args: of the function, or of the program as text.
        options: of ompy-run, such as `["--mca", "pml", "bfo"]`.
        cpus_per_rank: what Ray reserves for each.
        strategy: of the placement group: PACK, SPREAD, STRICT_PACK or STRICT_SPREAD.
        timeout: seconds to wait for room in the cluster.

    Returns:
        What the function returned, by rank; nothing for a program.

    Raises:
        JobFailed: it ended with another code than 0.
        TimeoutError: the cluster had no room.
    """
    secret = secrets.token_bytes(_SECRET_SIZE)
    reservation = Reservation(n, cpus_per_rank, strategy, timeout)
    actors: list[Any] = []
    path = write_secret(secret)
    folder = Path(tempfile.mkdtemp(prefix="ompy-ray-"))
    try:
        nodes = reservation.nodes()
        actors += [_actor(reservation, node, cpus_per_rank) for node in nodes]
        ports = ray.get([actor.start_agent.remote(secret) for actor in actors], timeout=timeout)
        hosts = folder / "hosts"
        lines = zip(nodes, ports, strict=True)
        hosts.write_text(
            "".join(f"{node.address} slots={node.slots} port={port}\n" for node, port in lines)
        )
        words = ["--hostfile", str(hosts), "-n", str(n), *options]
        if not callable(target):
            program = [sys.executable, os.path.abspath(target), *map(str, args)]
            _launch([*words, *program], path)
            return []
        mark = secrets.token_hex(16)
        call = [sys.executable, "-m", "ompy_ray.call", mark]
        said = _launch([*words, *call], path, cloudpickle.dumps((target, args)), mark)
        results: list[Any] = cloudpickle.loads(base64.b64decode(said))
        return results
    finally:
        _end(actors, reservation)
        remove_secret(path)
        shutil.rmtree(folder, ignore_errors=True)


def _actor(reservation: Reservation, node: Node, cpus: float) -> Any:
    strategy = PlacementGroupSchedulingStrategy(
        placement_group=reservation.group, placement_group_bundle_index=node.bundle
    )
    return ray.remote(AgentHost).options(num_cpus=cpus, scheduling_strategy=strategy).remote()


def _launch(words: Sequence[str], secret: str, sent: bytes = b"", mark: str = "\n\n") -> str:
    """Run ompy-run to its end, and show what it writes.

    Args:
        words: its command line.
        secret: path of the job's.
        sent: what its standard input is.
        mark: what stands behind this in a line of its output is not shown.

    Returns:
        What stood there.

    Raises:
        JobFailed: it ended with another code than 0.
    """
    dialing = ["--mca", "plm", "dial", "--mca", "plm_dial_port", _UNUSED_PORT]
    start = [sys.executable, *OWN_CODE, "-m", "ompy.cli.run", *dialing, *words]
    pipe = subprocess.PIPE
    with subprocess.Popen(  # noqa: S603 - what the user asked for
        tied(*start),
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        env={**os.environ, SECRET: secret},
    ) as job:
        assert job.stdin is not None
        assert job.stdout is not None
        assert job.stderr is not None
        said: list[str] = []
        marked: list[str] = []
        threads = [
            threading.Thread(target=_give, args=(job.stdin, sent), daemon=True),
            threading.Thread(target=_show, args=(job.stdout, mark, marked), daemon=True),
            threading.Thread(target=_show_errors, args=(job.stderr, said), daemon=True),
        ]
        for thread in threads:
            thread.start()
        try:
            job.wait()
        except BaseException:  # an interrupt above all: the job goes first
            job.terminate()
            try:
                job.wait(_GRACE_S)
            except subprocess.TimeoutExpired:
                job.kill()
            raise
        for thread in threads:
            thread.join()
    if job.returncode:
        raise JobFailed(job.returncode, "".join(said)[-_TAIL:])
    return "".join(marked)


def _give(stdin: IO[bytes], sent: bytes) -> None:
    with suppress(BrokenPipeError):  # the job is over, and says why
        stdin.write(sent)
        stdin.close()


def _show(source: IO[bytes], mark: str, marked: list[str]) -> None:
    for line in source:
        text, found, behind = line.decode(errors="replace").partition(mark)
        if found:
            marked.append(behind.strip())
        sys.stdout.write(text)


def _show_errors(source: IO[bytes], said: list[str]) -> None:
    for line in source:
        text = line.decode(errors="replace")
        said.append(text)
        sys.stderr.write(text)


def _end(actors: Sequence[Any], reservation: Reservation) -> None:
    """Let agents end, which they do with the job, and give everything back."""
    try:
        parting = [actor.stop_agent.remote(_GRACE_S) for actor in actors]
        ray.wait(parting, num_returns=len(parting), timeout=2 * _GRACE_S) if parting else None
        for actor in actors:
            ray.kill(actor)
    finally:
        reservation.remove()
