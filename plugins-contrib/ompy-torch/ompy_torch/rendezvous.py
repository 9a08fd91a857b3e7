"""Where ranks, size and store of `init_process_group` come from in a job of ompy-run.

torch takes them from RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT by default (`env://`), which
ompy-run does not set. In its jobs `env://` means the job's own, and so does `ompy://` everywhere.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from datetime import timedelta
from importlib import import_module
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

import torch.distributed as dist

SCHEME: Final = "ompy"
_LOOPBACK: Final = "127.0.0.1"
_WAITING: Final = 128  # arbitrary: ranks that connect at the same time
_PROBE_S: Final = 2.0  # arbitrary: an address that is reachable answers far sooner

Found = tuple[dist.Store, int, int]


def register_rendezvous() -> None:
    """Tell torch of `ompy://`, and stand before its `env://`."""
    module = import_module("torch.distributed.rendezvous")
    module.register_rendezvous_handler(SCHEME, from_job)
    # there is no other way in. A torch that has it no more wants `init_method="ompy://"`
    handlers: dict[str, Any] = getattr(module, "_rendezvous_handlers", {})
    usual = handlers.get("env")
    if usual is None:
        return

    def from_environment(url: str, timeout: timedelta, **others: Any) -> Iterator[Found]:
        if "OMPY_RANK" not in os.environ:  # no job of ompy-run
            return iter(usual(url, timeout=timeout, **others))
        if "MASTER_ADDR" not in os.environ:
            return from_job(url, timeout)
        check_origins(url)  # torch would wait long for ranks that there are not
        return iter(usual(url, timeout=timeout, **others))

    handlers["env"] = from_environment


def from_job(url: str, timeout: timedelta, **_: Any) -> Iterator[Found]:
    """Store, rank and size from the job.

    Args:
        url: `ompy://` or `env://`, with `rank` and `world_size` if the user gave them.
        timeout: of the store's calls.

    Raises:
        ValueError: the user's or torchrun's rank or size is another than the job's.
    """
    from ompy import MPI

    check_origins(url)
    world = MPI.COMM_WORLD
    yield _shared_store(world, timeout), world.rank, world.size


def check_origins(url: str) -> None:
    """See that whoever says something of rank and size says what the job does.

    Raises:
        ValueError: the user's or torchrun's rank or size is another than the job's.
    """
    from ompy import MPI

    world = MPI.COMM_WORLD
    given = {**_named("RANK", "rank"), **_named("WORLD_SIZE", "world_size")}
    given |= {name: (value, name) for name, value in parse_qsl(urlsplit(url).query)}
    for name, true in (("rank", world.rank), ("world_size", world.size)):
        if name in given and given[name][0] != str(true):
            value, origin = given[name]
            raise ValueError(
                f"{origin} is {value}, but this process is rank {world.rank} of {world.size} of "
                f"its ompy job: unset {origin}, or start the program with one launcher alone"
            )


def _named(variable: str, name: str) -> dict[str, tuple[str, str]]:
    value = os.environ.get(variable)
    return {} if value is None else {name: (value, f"the variable {variable}")}


def _shared_store(world: Any, timeout: timedelta) -> dist.Store:
    """A TCPStore, served by rank 0; that of a job on one host listens at the loopback alone."""
    from ompy import MPI

    hosts = set(world.allgather(MPI.Get_processor_name()))
    listener: socket.socket | None = None
    places: list[tuple[str, int]] = []
    if world.rank == 0:
        listener = socket.create_server((_LOOPBACK if len(hosts) == 1 else "", 0), backlog=_WAITING)
        port = listener.getsockname()[1]
        names = [_LOOPBACK] if len(hosts) == 1 else _own_addresses()
        places = [(name, port) for name in names]
    places = world.bcast(places)
    host, port = places[0] if world.rank == 0 else _reachable(places)
    return dist.TCPStore(
        host,
        port,
        world.size,
        listener is not None,
        timeout=timeout,
        wait_for_workers=False,
        master_listen_fd=None if listener is None else listener.detach(),
    )


def _own_addresses() -> list[str]:
    """The IPv4 addresses of this host that others may reach."""
    from ompy.net.real import host_interfaces

    return [found.address for found in host_interfaces() if not found.loopback]


def _reachable(places: list[tuple[str, int]]) -> tuple[str, int]:
    """The first place that answers.

    Raises:
        ConnectionError: none does.
    """
    for place in places:
        try:
            socket.create_connection(place, timeout=_PROBE_S).close()
        except OSError:
            continue
        return place
    tried = ", ".join(f"{host}:{port}" for host, port in places)
    raise ConnectionError(f"rank 0's store cannot be reached at {tried}: is there a firewall?")
