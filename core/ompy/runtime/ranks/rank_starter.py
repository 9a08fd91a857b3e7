"""What an agent does to start one rank: its variables, its place, a fork or a new interpreter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ompy.frameworks.job import App, Job, Placement
from ompy.runtime.ranks.environment import ranks_variables
from ompy.runtime.ranks.spawn import Setting, Spawned, spawn
from ompy.runtime.ranks.warm import Program, WarmStart, program_to_fork

if TYPE_CHECKING:
    from ompy.runtime.launching.spares import Spare
    from ompy.runtime.place.host_place import HostPlace
    from ompy.runtime.ranks.forked import ForkedRank

NO_PLACE: Final = 2  # exit code: the command line asks for what the host has not


class RankStarter:
    """Starts the ranks of one host.

    Attributes:
        open_files: limits of what ranks may open.
        warm: what this process has to be for ranks to be forks of it; None if it is not.
        ignored: signals that were ignored before this process took them over.
        merged: standard error of ranks goes where their standard output does.
    """

    def __init__(
        self, start: Mapping[str, Any], open_files: tuple[int, int], warm: WarmStart | None
    ) -> None:
        """Nothing is started.

        Args:
            start: the header of START.
            open_files: limits of what ranks may open.
            warm: what this process has to be for ranks to be forks of it; None if it is not.
        """
        self.open_files = open_files
        self.warm = warm
        self.ignored: frozenset[int] = frozenset()
        self.merged: bool = start.get("merged", False)
        self._start = start
        self._debug: Mapping[str, Any] = start.get("debug") or {}
        self._place: HostPlace | None = None

    def place_ranks(self, ranks: Sequence[int], host: str) -> str:
        """Find hardware threads for more ranks, if they are to be bound.

        Args:
            ranks: their numbers, rising.
            host: what this one is called.

        Returns:
            Why there are none; empty if all is well.
        """
        rule = self._start.get("place")
        if not rule:
            return ""
        # few jobs ask for it, and ranks are forks of this process
        from ompy.runtime.place.host_place import HostPlace
        from ompy.runtime.place.mapper import Rule
        from ompy.runtime.place.topology import PlaceError

        try:
            if self._place is None:
                self._place = HostPlace(Rule.from_dict(rule))
            self._place.place_ranks(ranks)
        except PlaceError as problem:
            return f"host {host}: {problem}"
        return ""

    def forget_rank(self, rank: int) -> None:
        """It has ended: another may have its place."""
        if self._place is not None:
            self._place.forget_rank(rank)

    def report_of(self, rank: int) -> dict[str, str]:
        """What the launcher is told of its place: a header's field, if anybody wants to know."""
        text = self._place.report_of(rank) if self._place is not None else ""
        return {"bound": text} if text else {}

    def is_debugged(self, rank: int) -> bool:
        """Whether somebody talks with a debugger in it."""
        return bool(self._debug) and self._debug["rank"] == rank

    def start_rank(
        self, job: Job, placement: Placement, *, with_stdin: bool, spares: list[Spare] | None = None
    ) -> Spawned | ForkedRank:
        """Its process: a spare, or a new one.

        Args:
            job: what runs.
            placement: of the rank.
            with_stdin: it reads from a pipe.
            spares: processes that wait; one that is used goes.

        Raises:
            OSError: no process or descriptor to be had.
        """
        rank = placement.rank
        environment = ranks_variables(job, placement, self._start)
        if self._place is not None:
            environment |= self._place.variables_of(rank)
        app, program = self._command(job.apps[placement.app], rank, environment)
        threads = self._place.threads_of(rank) if self._place is not None else frozenset[int]()
        terminal: str = self._debug["terminal"] if self.is_debugged(rank) else ""
        while program is not None and spares:
            spare = spares.pop(0)
            try:
                if threads:
                    from ompy.runtime.place.host_place import bind_process

                    bind_process(spare.process.pid, threads)
                return spare.become_rank(app, environment, program)
            except OSError:  # it has been killed
                continue
        return spawn(
            app,
            environment,
            with_stdin=with_stdin,
            open_files=self.open_files,
            program=program,
            ignored=self.ignored,
            setting=Setting(threads, self.merged, terminal),
        )

    def _command(
        self, app: App, rank: int, environment: Mapping[str, str]
    ) -> tuple[App, Program | None]:
        """What is executed, and what a fork runs in place of that."""
        if not self.is_debugged(rank):
            return app, program_to_fork(self.warm, app, environment, self._start)
        from ompy.runtime.diagnosis.debugging import debugged_words

        words = debugged_words(app.argv, self._debug["words"])
        return app._replace(argv=tuple(words)), None
