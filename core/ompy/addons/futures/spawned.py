"""Workers that an executor starts, or finds by the name of a service: processes of other worlds."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from subprocess import _args_from_interpreter_flags  # type: ignore[attr-defined]
from typing import Any, Final

from ompy import MPI
from ompy.addons.futures.client import Workers, WorkersPool
from ompy.addons.futures.main_module import being_imported
from ompy.addons.futures.task_queue import environment_value, serialized
from ompy.addons.futures.worker import serve_tasks

SERVER: Final = "mpi4py.futures.server"  # what a worker runs
SERVICE: Final = "mpi4py.futures"  # its name, if nothing else is said
SERVER_HOST: Final = "localhost"  # reference mpi4py.md 8: where a client looks for it
SERVER_BIND: Final = ""  # reference mpi4py.md 8: where it listens: everywhere
SERVER_PORT: Final = 31415  # reference mpi4py.md 8
Address = tuple[str, int]


class SpawnedPool(WorkersPool):
    """Tasks are done by processes that are started for them, and end with them."""

    def _find_workers(self) -> Workers:
        return Workers(_spawned(self.options))


class ServicePool(WorkersPool):
    """Tasks are done by processes that wait for somebody who connects to their service."""

    def _find_workers(self) -> Workers:
        return Workers(_connected(self.options))


def check_not_recursive() -> None:
    """See that a worker that runs its client's main module does not start workers by that.

    Raises:
        RuntimeError: it does.
    """
    main = being_imported()
    if main is not None:
        raise RuntimeError(
            f"{main}, which a worker imports, starts workers itself: put what the program does "
            "behind `if __name__ == '__main__':`"
        )


def default_workers() -> int:
    """How many are started if nothing is said: as many as there is room for."""
    text = environment_value("MAX_WORKERS")
    if text is not None:
        return int(text)
    universe = MPI.COMM_WORLD.Get_attr(MPI.UNIVERSE_SIZE) or 1
    return max(int(universe) - MPI.COMM_WORLD.Get_size(), 1)


def _spawned(options: Mapping[str, Any]) -> MPI.Intercomm:
    words = [*_args_from_interpreter_flags(), *(options.get("python_args") or ())]
    program = options.get("python_exe") or sys.executable
    count = options.get("max_workers") or default_workers()
    # the end of a worker breaks its pool, and not the job, from the worker's first moment on
    info = MPI.Info.Create({"ompy_expendable": "true", **(options.get("mpi_info") or {})})
    spawn = serialized(MPI.COMM_SELF.Spawn)
    return spawn(program, [*words, "-m", SERVER], count, info)  # type: ignore[no-any-return]


def _connected(options: Mapping[str, Any]) -> MPI.Intercomm:
    service = options["service"]
    if isinstance(service, list | tuple):
        port = _port_at(*service)
    else:
        port = serialized(MPI.Lookup_name)(_service_name(service))
    return serialized(MPI.COMM_SELF.Connect)(port)  # type: ignore[no-any-return]


def _service_name(given: Any) -> str:
    return str(given) if isinstance(given, str) and given else environment_value("SERVICE", SERVICE)


def _port_at(host: str | None, port: int | None) -> str:
    """The port of MPI that a server tells who connects to its socket."""
    from socket import create_connection

    host = host or environment_value("SERVER_HOST", SERVER_HOST)
    with create_connection((host, int(port or _server_port()))) as connection:
        peer = serialized(MPI.Comm.Join)(connection.fileno())
        found: str = serialized(peer.recv)(None, 0)
        serialized(peer.Disconnect)()
    return found


def _server_port() -> int:
    return int(environment_value("SERVER_PORT", SERVER_PORT))


# --- what workers run


def serve_parent() -> bool:
    """Serve who has spawned this process. False: nobody has."""
    parent = MPI.Comm.Get_parent()
    if parent == MPI.COMM_NULL:
        return False
    serve_tasks(parent, MPI.COMM_WORLD)
    parent.Disconnect()
    return True


def serve_service(service: str | Address | None) -> None:
    """Serve one client that connects; all processes of COMM_WORLD call this.

    Args:
        service: its name, or host and port where the first of them listens; None for the usual
            name. An empty host and port 0 stand for the usual ones.
    """
    world = MPI.COMM_WORLD
    port, name = "", ""
    if world.Get_rank() == 0:
        port = MPI.Open_port()
        if isinstance(service, tuple):
            _tell_port(service, port)
        else:
            name = _service_name(service)
            MPI.Publish_name(name, port)
    client = world.Accept(port)
    if world.Get_rank() == 0:
        if name:
            MPI.Unpublish_name(name, port)
        MPI.Close_port(port)
    serve_tasks(client, world)
    client.Disconnect()


def _tell_port(address: Address, port: str) -> None:
    """Tell one client, which connects to a socket."""
    from socket import create_server

    host = address[0] or environment_value("SERVER_BIND", SERVER_BIND)
    with create_server((host, int(address[1] or _server_port())), backlog=0) as server:
        connection, _ = server.accept()
    with connection:
        peer = MPI.Comm.Join(connection.fileno())
        peer.send(port, 0)
        peer.Disconnect()
