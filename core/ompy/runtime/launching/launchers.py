"""Other launchers: what their variables say of the job this process belongs to.

A program that another launcher starts n times would be n worlds of one, each of which does all
the work. It is made one job (`ompy.runtime.passive`), or it is an error, never silence.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

ALONE: Final = "OMPY_SINGLETON"  # set to anything: separate worlds of one are what is meant
OURS: Final = "OMPY_SIZE"  # what ompy-run's ranks start are plain programs
SECRET: Final = "OMPY_SECRET_FILE"  # noqa: S105 - names a file with what proves a host's membership


class LauncherError(Exception):
    """Another launcher started this process, and no job can be made of it; the text says why."""


class Membership(NamedTuple):
    """What a process is in the job another launcher has made.

    Attributes:
        launcher: its name, for messages.
        job: names the job, on all its hosts alike.
        rank: of this process.
        size: processes of the job.
        local_rank: of this process among those of its host.
        local_size: how many those are.
        meeting: name or address of the host with the coordinator; empty when there is one host.
        leads: whether this is that host; None when the host of rank 0 is.
        secret: the file that proves membership between hosts; empty for MUNGE.
    """

    launcher: str
    job: str
    rank: int
    size: int
    local_rank: int
    local_size: int
    meeting: str
    leads: bool | None
    secret: str


def membership(environment: Mapping[str, str]) -> Membership | None:
    """The job another launcher has made of this process and others; None if there is none.

    Raises:
        LauncherError: there is one, and it cannot be wired up; the text says what to do.
    """
    if ALONE in environment or OURS in environment:
        return None
    # srun may have started torchrun or mpirun, so these come first
    for find in (_torchrun, _open_mpi, _slurm, _set_by_hand, _kubernetes):
        found = find(environment)
        if found is not None:
            return _checked(found) if found.size > 1 else None
    if _number(environment, "PMI_SIZE") > 1 and "PMI_RANK" in environment:
        count = environment["PMI_SIZE"]
        raise LauncherError(_advice("mpiexec", f"{count} times (PMI_SIZE={count})", count))
    if _number(environment, "PMIX_RANK") > 0:  # its size is in no variable
        rank = environment["PMIX_RANK"]
        raise LauncherError(_advice("a PMIx launcher", f"as rank {rank} of several", "N"))
    return None


def _slurm(environment: Mapping[str, str]) -> Membership | None:
    """A task of a step. A batch script itself has no step (Slurm's srun(1))."""
    size = _number(environment, "SLURM_STEP_NUM_TASKS")
    if "SLURM_PROCID" not in environment or size < 2:
        return None
    if _number(environment, "SLURM_HET_SIZE") > 1:
        text = "srun started a heterogeneous step, which ompy cannot make one job of: use ompy-run"
        raise LauncherError(f"{text}. {_alone_if_meant()}")
    from ompy.runtime.launching.allocation import expand, repeat

    node = _needed(environment, "srun", "SLURM_NODEID")
    try:
        hosts = expand(environment.get("SLURM_STEP_NODELIST", ""))
        local_size = repeat(environment.get("SLURM_STEP_TASKS_PER_NODE", ""))[node]
    except (ValueError, IndexError) as problem:
        text = f"srun's variables cannot be understood: {problem}. {_alone_if_meant()}"
        raise LauncherError(text) from None
    step = (environment.get(name, "") for name in ("SLURM_CLUSTER_NAME", "SLURM_JOB_ID"))
    return Membership(
        "srun",
        ".".join(("slurm", *step, environment.get("SLURM_STEP_ID", ""))),
        _needed(environment, "srun", "SLURM_PROCID"),
        size,
        _needed(environment, "srun", "SLURM_LOCALID"),
        local_size,
        hosts[0] if local_size < size else "",
        node == 0,
        environment.get(SECRET, ""),
    )


def _open_mpi(environment: Mapping[str, str]) -> Membership | None:
    """Mpirun of Open MPI (reference openmpi.md 2.4.1)."""
    prefix = "OMPI_COMM_WORLD_"
    if f"{prefix}RANK" not in environment or f"{prefix}SIZE" not in environment:
        return None
    names = [f"{prefix}{name}" for name in ("RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE")]
    job = f"mpirun.{environment.get('PMIX_NAMESPACE', '')}"
    return _plain(environment, "mpirun of Open MPI", job, names)


def _torchrun(environment: Mapping[str, str]) -> Membership | None:
    """A worker of torchrun."""
    return _set_by_hand(environment) if "TORCHELASTIC_RUN_ID" in environment else None


def _set_by_hand(environment: Mapping[str, str]) -> Membership | None:
    """Torchrun's variables, whoever set them."""
    if "RANK" not in environment or _number(environment, "WORLD_SIZE") < 0:
        return None
    parts = ("TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "MASTER_ADDR", "MASTER_PORT")
    job = ".".join(("torchrun", *(environment.get(name, "") for name in parts)))
    names = ["RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"]
    return _plain(environment, "torchrun", job, names)


def _kubernetes(environment: Mapping[str, str]) -> Membership | None:
    """A pod of an indexed job: a host with one rank."""
    if "JOB_COMPLETION_INDEX" not in environment:
        return None
    counted = {**environment, "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}
    names = ["JOB_COMPLETION_INDEX", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"]
    job = f"kubernetes.{environment.get('MASTER_ADDR', '')}"
    return _plain(counted, "an indexed job of Kubernetes", job, names)


def _plain(
    environment: Mapping[str, str], launcher: str, job: str, names: list[str]
) -> Membership | None:
    """Where rank, size, local rank and local size are four variables."""
    rank, size = _number(environment, names[0]), _number(environment, names[1])
    if size == 1 or (size < 0 and names[1] in environment):
        return None
    rank, size, local_rank, local_size = (_needed(environment, launcher, name) for name in names)
    meeting, secret = environment.get("MASTER_ADDR", ""), environment.get(SECRET, "")
    if local_size < size:
        missing = [name for name in ("MASTER_ADDR", SECRET) if not environment.get(name)]
        if missing:
            raise LauncherError(
                f"{launcher} started this program on several hosts, and {' and '.join(missing)} "
                f"is not set: MASTER_ADDR is the host of rank 0, {SECRET} a file on every host "
                "with the same 16 random bytes or more, which only you can read (`head -c 32 "
                f"/dev/urandom > FILE; chmod 600 FILE`). {_alone_if_meant()}"
            )
    return Membership(
        launcher,
        job,
        rank,
        size,
        local_rank,
        local_size,
        meeting if local_size < size else "",
        None,
        secret,
    )


def _checked(found: Membership) -> Membership:
    """Numbers that fit together.

    Raises:
        LauncherError: they do not.
    """
    if 0 <= found.local_rank < found.local_size <= found.size and 0 <= found.rank < found.size:
        return found
    raise LauncherError(
        f"the variables of {found.launcher} contradict each other: rank {found.rank} of "
        f"{found.size}, local rank {found.local_rank} of {found.local_size}. {_alone_if_meant()}"
    )


def _number(environment: Mapping[str, str], name: str) -> int:
    """A variable's number, -1 when it is none."""
    text = environment.get(name, "")
    return int(text) if text.isdecimal() else -1


def _needed(environment: Mapping[str, str], launcher: str, name: str) -> int:
    number = _number(environment, name)
    if number < 0:
        said = f"{name}={environment[name]} is no number" if name in environment else "is not set"
        what = said if name in environment else f"{name} {said}"
        raise LauncherError(
            f"{launcher} started this program, and {what}: without it the processes cannot be "
            f"made one job. {_alone_if_meant()}"
        )
    return number


def _advice(launcher: str, how: str, count: str) -> str:
    return (
        f"{launcher} started this program {how}, and ompy cannot make one job of what it starts: "
        f"run `ompy-run -n {count} ...` in its place. {_alone_if_meant()}"
    )


def _alone_if_meant() -> str:
    return f"If separate worlds of one are meant, set {ALONE}=1"
