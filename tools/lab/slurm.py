"""Slurm on the hosts of a laboratory: munged, slurmctld on h1, a slurmd on each host.

Configuration after what was tried for several slurmds on one machine: no cgroups, no accounting.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path

CONTROLLER_PORT = 16817  # arbitrary: not the usual one
NODE_PORT = 17000  # arbitrary: same
CPUS = 2  # per host; arbitrary: Slurm places by it, the machine's cores are shared anyway
DAEMONS = ("munged", "slurmctld", "slurmd")
SCRIPTS = "slurmscriptd"  # a child of slurmctld

Start = Callable[[str, Sequence[str], str], object]  # host, command, name of its log


def missing() -> list[str]:
    """Which of Slurm's programs are not installed."""
    return [name for name in (*DAEMONS, "srun") if shutil.which(name) is None]


def configuration(directory: Path, addresses: Sequence[str]) -> str:
    """The text of slurm.conf for hosts h1, h2, ... with these addresses."""
    nodes = "\n".join(
        f"NodeName=h{number} NodeHostname=h{number} NodeAddr={address} Port={NODE_PORT} "
        f"CPUs={CPUS} RealMemory=1000 State=UNKNOWN"
        for number, address in enumerate(addresses, 1)
    )
    return f"""ClusterName=ompylab
SlurmctldHost=h1({addresses[0]})
SlurmctldPort={CONTROLLER_PORT}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={directory}/munge.socket
CryptoType=crypto/munge
StateSaveLocation={directory}/state
SlurmdSpoolDir={directory}/spool.%n
SlurmctldPidFile={directory}/slurmctld.pid
SlurmdPidFile={directory}/slurmd.%n.pid
TmpFS={directory}/tmp.%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
ReturnToService=2
SwitchType=switch/none
MpiDefault=none
SlurmdParameters=config_overrides
{nodes}
PartitionName=lab Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:8
"""  # noqa: S108 - below a directory of our own


def up(directory: Path, addresses: Sequence[str], start: Start) -> None:
    """Start the daemons; they end with the laboratory."""
    (directory / "state").mkdir()
    for number in range(1, len(addresses) + 1):
        (directory / f"spool.h{number}").mkdir()
        (directory / f"tmp.h{number}").mkdir()
    key = directory / "munge.key"
    key.touch(mode=0o600)
    key.write_bytes(os.urandom(1024))
    config = directory / "slurm.conf"
    config.write_text(configuration(directory, addresses))
    files = ("key-file", "socket", "pid-file", "log-file", "seed-file")
    names = ("key", "socket", "pid", "log", "seed")
    options = [f"--{o}={directory}/munge.{n}" for o, n in zip(files, names, strict=True)]
    start("h1", ["munged", "--foreground", "--force", *options], "munged")
    deadline = time.monotonic() + 5
    while not (directory / "munge.socket").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    start("h1", ["slurmctld", "-D", "-f", str(config)], "slurmctld")
    for number in range(1, len(addresses) + 1):
        host = f"h{number}"
        start(host, ["slurmd", "-D", "-N", host, "-f", str(config)], f"slurmd.{host}")
