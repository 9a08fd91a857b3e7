"""Which hosts a Dask cluster has, by what its scheduler knows of the workers."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from ompy.net.real import host_interfaces

Known = Mapping[str, Any]  # what `Client.scheduler_info` says


def hosts_of(known: Known, chosen: list[str] | None = None) -> dict[str, int]:
    """The hosts, each with the threads of all its workers.

    Args:
        known: the cluster.
        chosen: addresses of the workers that may be used; none for all.

    Raises:
        ValueError: there is no worker in a process of its own, or a chosen one is not there.
    """
    workers: dict[str, Any] = known["workers"]
    absent = sorted(set(chosen or ()) - set(workers))
    if absent:
        raise ValueError(f"the cluster has no worker {absent[0]}")
    hosts: dict[str, int] = {}
    for address in chosen or workers:
        host = urlsplit(address).hostname
        if not address.startswith("inproc:") and host:
            hosts[host] = hosts.get(host, 0) + int(workers[address]["nthreads"])
    if not hosts:
        raise ValueError(
            "the cluster has no worker in a process of its own: LocalCluster wants processes=True"
        )
    return hosts


def first_worker_of(known: Known, host: str) -> str:
    """The worker that a host's agent is to be a child of.

    Raises:
        ValueError: the cluster has none there.
    """
    # the launcher calls its own host by its name, whatever it was called by
    names = {host, *_own_addresses()} if host == socket.gethostname() else {host}
    found = sorted(address for address in known["workers"] if urlsplit(address).hostname in names)
    if not found:
        raise ValueError(f"the Dask cluster has no worker on {host} any more")
    return str(found[0])


def _own_addresses() -> list[str]:
    return ["localhost", *(interface.address for interface in host_interfaces())]
