"""Writes a traced job as an OTF2 archive, by OTF2's library: for Vampir, Traveler, Score-P's tools.

The package `otf2` is that library with its binding for Python; it is imported when an archive is
written. The archive is made beside its place and then moved there, so what was there before stays
until all is written.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any, Final

from ompy import outputs
from ompy.trace.communicators import Communicator
from ompy.trace.exporting.otf2_records import (
    Place,
    Record,
    Region,
    communicators_of,
    otf2_records,
    places_of,
    regions_of,
)
from ompy.trace.reading import RankHeader
from ompy.trace.trace_files import JobTrace

NAME: Final = "traces"  # as Score-P calls the files in an archive, which tools expect
ANCHOR: Final = f"{NAME}.otf2"
_OURS: Final = frozenset({NAME, ANCHOR, f"{NAME}.def"})
NANOSECONDS: Final = 1_000_000_000  # arbitrary: ticks in a second of the clock, as traces have them
RANKS_MAX: Final = 1 << 16  # arbitrary: the library makes two files for each
_ROLES: Final = {
    "barrier": "BARRIER",
    "one to all": "COLL_ONE2ALL",
    "all to one": "COLL_ALL2ONE",
    "all to all": "COLL_ALL2ALL",
    "other": "COLL_OTHER",
    "message": "POINT2POINT",
    "one-sided": "RMA",
    "file": "FILE_IO",
}


class LibraryError(Exception):
    """OTF2's library is not installed, or has refused something; the text says what to do."""


def write_archive(path: str, trace: JobTrace) -> int:
    """Write a folder with an archive; one that is there already is replaced.

    Args:
        path: of the folder.
        trace: what is written.

    Returns:
        How many events were written.

    Raises:
        LibraryError: the library is missing, or cannot write.
        OSError: the folder cannot be made, or is there and no archive.
    """
    library = _library()
    outputs.refuse_planted(path)
    place = os.path.realpath(path)
    _refuse_other(path, place)
    unfinished = f"{place}.{os.getpid()}.unfinished"
    records = otf2_records(trace)
    writer = _Writer(library, trace, records)
    os.mkdir(unfinished)
    try:
        try:
            writer.write_files(unfinished)
        except (import_module("_otf2").Error, library.error.Error) as problem:
            raise LibraryError(f"OTF2's library cannot write it: {problem}") from None
        _move(unfinished, place)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return len(records)


def _library() -> Any:
    try:
        return import_module("otf2")
    except ImportError as problem:
        raise LibraryError(
            f"OTF2's library is needed ({problem}): pip install 'ompy[otf2]', where there is a "
            "package for this Python, or Debian's python3-otf2"
        ) from None


def _refuse_other(path: str, place: str) -> None:
    """See that nothing but an archive would be replaced.

    Raises:
        OSError: something else is there.
    """
    with suppress(FileNotFoundError):
        if not _OURS.issuperset(os.listdir(place)):
            raise FileExistsError(None, "it is there, with files that are of no OTF2 archive", path)


def _move(unfinished: str, place: str) -> None:
    before = f"{unfinished}.before"
    with suppress(FileNotFoundError):
        os.rename(place, before)
    os.rename(unfinished, place)
    shutil.rmtree(before, ignore_errors=True)


class _Writer:
    """Hands records to the library."""

    def __init__(self, library: Any, trace: JobTrace, records: Sequence[Record]) -> None:
        self._otf2 = library
        self._trace = trace
        self._records = records
        self._places: dict[Place, Any] = {}
        self._regions: dict[Region, Any] = {}
        self._communicators: dict[tuple[Any, ...], Any] = {}
        named = (rank for each in communicators_of(records) for rank in each.members + each.remote)
        self._ranks = sorted({*trace.headers, *named})
        if len(self._ranks) > RANKS_MAX:
            raise LibraryError(f"its communicators have {len(self._ranks)} ranks; {RANKS_MAX} fit")

    def write_files(self, folder: str) -> None:
        """Make the archive's files in a folder that is empty."""
        with self._otf2.writer.open(folder, NAME, timer_resolution=NANOSECONDS) as archive:
            archive.creator = f"ompy {self._trace.job.get('ompy', '')}".strip()
            archive.description = _description(self._trace)
            archive.machine_name = _machine(self._trace)
            self._define(archive.definitions)
            for record in self._records:
                event = getattr(self._otf2.events, record.name)
                writer = archive.event_writer_from_location(self._places[record.place])
                writer.write(event(record.time, **self._values(record)))
            # the library takes the wall clock at the first write for that of the first event
            first = self._records[0].time if self._records else 0
            archive._realtime_timestamp = (self._trace.wall + first) / NANOSECONDS  # noqa: SLF001

    def _values(self, record: Record) -> dict[str, Any]:
        """The attributes of a record, as the library takes them."""
        values = dict(record.values)
        if "region" in values:
            values["region"] = self._regions[values["region"]]
        if "communicator" in values:
            values["communicator"] = self._communicators[_identity(values["communicator"])]
        if "collective_op" in values:
            name = values["collective_op"].upper()
            values["collective_op"] = getattr(self._otf2.CollectiveOp, name)
            if values["root"] is None:
                values["root"] = self._otf2.Undefined.UINT32.value
        return values

    def _define(self, definitions: Any) -> None:
        self._define_places(definitions)
        for region in regions_of(self._records):
            self._regions[region] = self._region(definitions, region)
        self._define_communicators(definitions)

    def _define_places(self, definitions: Any) -> None:
        """Hosts, ranks on them, and the locations of each rank.

        A member of a communicator whose events are missing has a location without any.
        """
        otf2, headers = self._otf2, self._trace.headers
        machine = definitions.system_tree_node(_machine(self._trace), class_name="machine")
        hosts: dict[str, Any] = {}
        for rank in self._ranks:
            name = _host(headers.get(rank))
            if name not in hosts:
                hosts[name] = definitions.system_tree_node(name, class_name="node", parent=machine)
                shared = otf2.SystemTreeDomain.SHARED_MEMORY
                definitions.system_tree_node_domain(hosts[name], shared)
        lanes = {place.rank: place.lane for place in places_of(self._records)}  # the last of each
        for rank in self._ranks:
            group = definitions.location_group(
                f"rank {rank}",
                location_group_type=otf2.LocationGroupType.PROCESS,
                system_tree_parent=hosts[_host(headers.get(rank))],
            )
            for lane in range(lanes.get(rank, 0) + 1):
                self._places[Place(rank, lane)] = definitions.location(
                    f"rank {rank}" if not lane else f"rank {rank}, calls beside {lane}",
                    type=otf2.LocationType.CPU_THREAD,
                    group=group,
                )

    def _region(self, definitions: Any, region: Region) -> Any:
        otf2 = self._otf2
        where = f"{os.path.basename(region.file)}:{region.line}" if region.file else "nowhere"
        return definitions.region(
            region.name,
            canonical_name=region.call,
            description=f"{region.call} at {where} in {region.function}",
            region_role=getattr(otf2.RegionRole, _ROLES.get(region.role, "FUNCTION")),
            paradigm=otf2.Paradigm.MPI,
            source_file=region.file or "",
            begin_line_number=region.line,
            end_line_number=region.line,
        )

    def _define_communicators(self, definitions: Any) -> None:
        otf2 = self._otf2
        definitions.group(
            "MPI ranks",
            group_type=otf2.GroupType.COMM_LOCATIONS,
            paradigm=otf2.Paradigm.MPI,
            members=tuple(self._places[Place(rank)] for rank in self._ranks),
        )
        for each in communicators_of(self._records):
            identity = _identity(each)
            if identity in self._communicators:
                continue  # the other group's view, or another name of it
            if each.remote:
                made = definitions.inter_comm(
                    each.name, self._group(definitions, each, each.members),
                    self._group(definitions, each, each.remote), None,
                )  # fmt: skip
            else:
                made = definitions.comm(each.name, self._group(definitions, each, each.members))
            self._communicators[identity] = made

    def _group(self, definitions: Any, of: Communicator, members: Sequence[int]) -> Any:
        return definitions.group(
            f"members of {of.name}",
            group_type=self._otf2.GroupType.COMM_GROUP,
            paradigm=self._otf2.Paradigm.MPI,
            members=tuple(self._places[Place(rank)] for rank in members),
        )


def _identity(communicator: Communicator) -> tuple[Any, ...]:
    """What all members see of it alike: between two groups each calls the other one remote."""
    context, _, members, remote = communicator
    return (context, *sorted((members, remote)))


def _host(header: RankHeader | None) -> str:
    """The name of a rank's host."""
    if header is None:
        return "not in the trace"
    return header.host or f"host {header.node}"


def _machine(trace: JobTrace) -> str:
    hosts = {header.host for header in trace.headers.values() if header.host}
    return hosts.pop() if len(hosts) == 1 else "cluster"


def _description(trace: JobTrace) -> str:
    ranks = trace.job.get("ranks")
    first = ranks[0] if isinstance(ranks, list) and ranks else {}
    program = first.get("program", "") if isinstance(first, dict) else ""
    return f"{program or 'a job'}, traced by ompy"
