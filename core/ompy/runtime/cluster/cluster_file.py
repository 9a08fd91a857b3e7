"""A cluster file: TOML that says what a cluster has and what messages cost there."""

from __future__ import annotations

import math
import re
import tomllib
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from ompy.mca.errors import UsageError, did_you_mean
from ompy.mca.parameters.parameter_files import parameter_set_directory
from ompy.runtime.cluster.model import (
    CROSSINGS,
    CROSSINGS_LEAST,
    Cluster,
    MessageCosts,
    Validated,
    Way,
)
from ompy.runtime.cluster.topology import (
    FAT_TREE,
    SWITCH,
    TORUS,
    FatTree,
    Switch,
    Topology,
    Torus,
)
from ompy.runtime.faults.fault_script import Duration, Rate

FOLDER: Final = "clusters"  # of configs/, where names without a path are looked for
SUFFIX: Final = ".toml"
FILE_MAX: Final = 1 << 20  # bytes; arbitrary: as of a fault script
HOSTS_MAX: Final = 65_536  # as of an allocation (runtime README, row 342)
RANKS_MAX: Final = 1_000_000  # of a job, likewise
BITS: Final = 8e9  # bit/s in a byte per ns
_NEEDS: Final = {SWITCH: (), FAT_TREE: ("arity", "levels"), TORUS: ("dimensions",)}

Count = Annotated[int, Field(ge=1, le=HOSTS_MAX, strict=True)]
Bytes = Annotated[int, Field(ge=0, strict=True)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", populate_by_name=True)


class _Messages(_Strict):
    """Messages of some sizes."""

    begin: Bytes = Field(0, alias="from")
    latency: Duration
    overhead: Duration = 0
    gap: Duration = 0
    bandwidth: Rate
    rendezvous: Annotated[bool, Field(strict=True)] = False
    crossings: Annotated[int, Field(ge=CROSSINGS_LEAST, strict=True)] = CROSSINGS


class _Memory(_Strict):
    bandwidth: Rate
    rank_bandwidth: Rate | None = None
    messages: Annotated[list[_Messages], Field(min_length=1)]


class _Network(_Memory):
    topology: Literal["switch", "fat-tree", "torus"] = "switch"
    arity: Annotated[int, Field(ge=2, le=HOSTS_MAX, strict=True)] | None = None
    levels: Annotated[int, Field(ge=1, le=16, strict=True)] | None = None
    dimensions: Annotated[list[Count], Field(min_length=1, max_length=8)] | None = None
    hop_latency: Duration = 0


class _Validated(_Strict):
    hosts: Count
    ranks: Annotated[int, Field(ge=1, le=RANKS_MAX, strict=True)]
    error: Annotated[float, Field(ge=0)]
    by: str = ""


class _File(_Strict):
    hosts: Count
    ranks_per_host: Annotated[int, Field(ge=1, le=RANKS_MAX, strict=True)] | None = None
    network: _Network
    memory: _Memory
    validated: _Validated | None = None


_TABLES: Final[dict[str, type[BaseModel]]] = {
    "network": _Network,
    "memory": _Memory,
    "validated": _Validated,
}


def read_cluster(text: str) -> Cluster:
    """The cluster of a file, or of a name in `configs/clusters`.

    Raises:
        UsageError: there is no such file, or it says something that cannot be.
    """
    path = _path(text)
    try:
        if path.stat().st_size > FILE_MAX:
            raise UsageError(f"--cluster {path}: it has more than {FILE_MAX} bytes")
        values = tomllib.loads(path.read_text())
    except OSError as problem:
        raise UsageError(f"--cluster {path}: {problem.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"--cluster {path}: it is not text in UTF-8") from None
    except tomllib.TOMLDecodeError as problem:
        raise UsageError(f"--cluster {path}: it is no TOML: {problem}") from None
    return cluster_of(values, str(path))


def cluster_of(values: dict[str, Any], name: str) -> Cluster:
    """The cluster that the values of a file describe.

    Raises:
        UsageError: they say something that cannot be; all of it is told.
    """
    try:
        said = _File.model_validate(values)
    except ValidationError as problem:
        raise UsageError(*(f"{name}: {_wrong(one)}" for one in problem.errors())) from None
    problems = _wrong_together(said)
    if problems:
        raise UsageError(*(f"{name}: {one}" for one in problems))
    network = said.network
    return Cluster(
        name,
        said.hosts,
        said.ranks_per_host or 0,
        _topology(said),
        network.hop_latency,
        network.bandwidth / BITS,
        _way(network),
        _way(said.memory),
        said.memory.bandwidth / BITS,
        Validated(*said.validated.model_dump().values()) if said.validated else None,
    )


def _path(text: str) -> Path:
    if "/" in text or text.endswith(SUFFIX):
        return Path(text)
    shipped = (Path(parameter_set_directory()) / FOLDER).glob(f"*{SUFFIX}")
    named = {path.stem: path for path in shipped}
    if text not in named:
        near = did_you_mean(text, list(named))
        there = ", ".join(sorted(named))
        raise UsageError(
            f"--cluster {text}: no cluster has this name{near}; there are {there}; "
            f"a file ends in {SUFFIX}"
        )
    return named[text]


def _wrong(error: ErrorDetails) -> str:
    """One mistake: the key, and what is allowed."""
    key = ".".join(
        f"{part}" if isinstance(part, str) else f"[{part}]" for part in error["loc"]
    ).replace(".[", "[")
    if error["type"] == "extra_forbidden":
        known = _keys_of(error["loc"][:-1])
        last = str(error["loc"][-1])
        return (
            f"{key}: there is no such key{did_you_mean(last, known)}; there are {', '.join(known)}"
        )
    if error["type"] == "missing":
        return f"{key}: it is missing"
    said = re.sub(r"^Value error, ", "", error["msg"])
    return f"{key} = {str(error['input'])[:80]!s}: {said[0].lower()}{said[1:]}"


def _keys_of(place: tuple[int | str, ...]) -> list[str]:
    kind = _TABLES.get(str(place[0]), _File) if place else _File
    if "messages" in place:
        kind = _Messages
    return sorted(field.alias or name for name, field in kind.model_fields.items())


def _wrong_together(said: _File) -> list[str]:
    """What no single key shows."""
    found = []
    network = said.network
    needs = _NEEDS[network.topology]
    for key in ("arity", "levels", "dimensions"):
        given = getattr(network, key) is not None
        if given and key not in needs:
            of = next(name for name, keys in _NEEDS.items() if key in keys)
            found.append(f"network.{key}: it is of a {of}, and this is a {network.topology}")
        elif key in needs and not given:
            found.append(f"network.{key}: it is missing; a {network.topology} needs it")
    if not found:
        room = _room(said)
        if said.hosts > room:
            found.append(f"hosts = {said.hosts}: this {network.topology} has {room} at most")
    for name, way in (("network", network), ("memory", said.memory)):
        found += _wrong_sizes(name, way)
    return found


def _room(said: _File) -> int:
    network = said.network
    if network.topology == FAT_TREE:
        return int((network.arity or 0) ** (network.levels or 0))
    if network.topology == TORUS:
        return math.prod(network.dimensions or ())
    return said.hosts


def _wrong_sizes(name: str, way: _Memory) -> list[str]:
    sizes = [one.begin for one in way.messages]
    if sizes[0] != 0:
        return [f"{name}.messages[0].from = {sizes[0]}: the first begins at 0"]
    for number, (one, other) in enumerate(pairwise(sizes), 1):
        if other <= one:
            return [f"{name}.messages[{number}].from = {other}: it has to be more than {one}"]
    return []


def _topology(said: _File) -> Topology:
    network = said.network
    if network.topology == FAT_TREE:
        return FatTree(network.arity or 0, network.levels or 0)
    if network.topology == TORUS:
        return Torus(tuple(network.dimensions or ()))
    return Switch(said.hosts)


def _way(said: _Memory) -> Way:
    messages = tuple(
        MessageCosts(
            one.begin,
            one.latency,
            one.overhead,
            one.gap,
            one.bandwidth / BITS,
            one.rendezvous,
            one.crossings,
        )
        for one in said.messages
    )
    return Way(messages, (said.rank_bandwidth or 0) / BITS)
