"""Which rails carry what between the hosts of a job, as a table.

It is made when a user asks for it (`--display-comm`), and of what is known when the first path
fails. After Open MPI's `hook_comm_method_display` and PRRTE's `--display-comm` (reference
openmpi.md 2.4).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from ompy.data.errors import MPIError

if TYPE_CHECKING:
    from ompy.frameworks.proc import Proc
    from ompy.runtime.ranks.process import RankProcess

Row = tuple[str, str, list[str]]  # from host, to host, rails
COLLECTING: Final = 0.3  # s; arbitrary: both ends of a path mostly notice within that
_REASON_MAX: Final = 300  # characters; arbitrary: interface, addresses and host are in it


def all_rows(process: RankProcess) -> list[Row]:
    """The rails of this rank to one rank of each host, its own included."""
    me = process.context.me
    return _rows(process, [proc for proc in process.context.procs if proc is not me])


def known_rows(process: RankProcess, first: Proc | None) -> list[Row]:
    """The same of the ranks it has talked to until now: nobody new is asked for addresses.

    Args:
        process: the rank.
        first: whose rails stand for its host.
    """
    known = [proc for proc in process.context.procs if proc.bml_endpoint is not None]
    known.sort(key=lambda proc: proc is not first)
    return _rows(process, [proc for proc in known if proc is not process.context.me])


def _rows(process: RankProcess, procs: Sequence[Proc]) -> list[Row]:
    others: dict[int, Proc] = {}
    for proc in procs:
        others.setdefault(proc.node, proc)
    rows = []
    for _, proc in sorted(others.items()):
        try:
            rails = process.rails(proc)
        except MPIError as problem:
            rails = [problem.detail or str(problem)]
        rows.append((process.context.me.hostname, proc.hostname, rails))
    return rows


def table(rows: Sequence[Row], headline: str = "Rails between hosts:") -> str:
    """The rows under a headline, a line for each rail."""
    lines = [["from", "to", "rails"]]
    for own, other, rails in rows:
        for number, rail in enumerate(rails):
            lines.append([own, other, rail] if number == 0 else ["", "", rail])
    widths = [max(len(line[column]) for line in lines) for column in (0, 1)]
    text = [f"  {a:<{widths[0]}}  {b:<{widths[1]}}  {rail}".rstrip() for a, b, rail in lines]
    return "\n".join([f" {headline}", *text, ""])


def lost_path(
    process: RankProcess, tell: Callable[[dict[str, Any], list[Row]], object]
) -> Callable[[Proc | None, str], None]:
    """What a rank does when a path is lost: the first time, tell which there were.

    Args:
        process: the rank.
        tell: gets what was lost, and the rows.
    """
    told = False

    def lost(proc: Proc | None, reason: str) -> None:
        nonlocal told
        if not told:
            told = True
            peer = -1 if proc is None else proc.rank
            tell({"peer": peer, "reason": reason[:_REASON_MAX]}, known_rows(process, proc))

    return lost


class LostPaths:
    """The launcher's part: of the first path that is lost in a job, and of what follows at once."""

    def __init__(self) -> None:
        self._reports: list[tuple[int, int, str, list[Row]]] = []
        self._shown = False

    def add(self, rank: int, report: dict[str, Any], rows: Sequence[Sequence[Any]]) -> bool:
        """A rank has lost a path. True for the first: the table is due after `COLLECTING`."""
        known = [(str(own), str(other), list(rails)) for own, other, rails in rows]
        self._reports.append((rank, report["peer"], report["reason"], known))
        return len(self._reports) == 1

    def text(self, gone: frozenset[int]) -> str:
        """The table, once; empty when there is none, or when ranks that ended explain it all.

        Args:
            gone: ranks that ended by themselves: their connections ended with them.
        """
        reports = [report for report in self._reports if report[1] not in gone]
        if self._shown or not reports:
            return ""
        self._shown = True
        rank, peer, reason, _ = reports[0]
        whom = f"rank {peer}" if peer >= 0 else "other ranks"
        headline = f"Rank {rank} and {whom}: {reason}\n Rails as they were chosen:"
        rows: dict[tuple[str, str], list[str]] = {}
        for *_, known in reports:
            for own, other, rails in known:
                rows.setdefault((own, other), rails)
        return table([(own, other, rails) for (own, other), rails in rows.items()], headline)
