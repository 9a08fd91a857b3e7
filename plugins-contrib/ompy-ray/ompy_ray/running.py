"""`run`: a function or a program on ranks, for a driver of a Ray cluster."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any, Final

import cloudpickle
import ray
from ompy.runtime.environment import OWN_CODE
from ompy.runtime.launchers import SECRET
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from ompy_ray.call import CALL, RESULTS
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
        command = _command(target, args, folder)
        launch = ["--hostfile", str(hosts), "-n", str(n), *options, *command]
        _launch(launch, path)
        if not callable(target):
            return []
        results: list[Any] = cloudpickle.loads((folder / RESULTS).read_bytes())
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


def _command(target: Callable[..., Any] | str, args: Sequence[Any], folder: Path) -> list[str]:
    if not callable(target):
        return [sys.executable, os.path.abspath(target), *map(str, args)]
    (folder / CALL).write_bytes(cloudpickle.dumps((target, args)))
    return [sys.executable, "-m", "ompy_ray.call", str(folder)]


def _launch(words: Sequence[str], secret: str) -> None:
    """Run ompy-run to its end, and show what it writes.

    Raises:
        JobFailed: it ended with another code than 0.
    """
    dialing = ["--mca", "plm", "dial", "--mca", "plm_dial_port", _UNUSED_PORT]
    start = [sys.executable, *OWN_CODE, "-m", "ompy.cli.run", *dialing, *words]
    pipe = subprocess.PIPE
    with subprocess.Popen(  # noqa: S603 - what the user asked for
        tied(*start),
        stdin=subprocess.DEVNULL,
        stdout=pipe,
        stderr=pipe,
        env={**os.environ, SECRET: secret},
    ) as job:
        said: list[str] = []
        threads = [
            threading.Thread(target=_show, args=(job.stdout, sys.stdout, []), daemon=True),
            threading.Thread(target=_show, args=(job.stderr, sys.stderr, said), daemon=True),
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


def _show(source: IO[bytes], sink: Any, kept: list[str]) -> None:
    for line in source:
        text = line.decode(errors="replace")
        kept.append(text)
        sink.write(text)


def _end(actors: Sequence[Any], reservation: Reservation) -> None:
    """Let agents end, which they do with the job, and give everything back."""
    try:
        parting = [actor.stop_agent.remote(_GRACE_S) for actor in actors]
        ray.wait(parting, num_returns=len(parting), timeout=2 * _GRACE_S) if parting else None
        for actor in actors:
            ray.kill(actor)
    finally:
        reservation.remove()
