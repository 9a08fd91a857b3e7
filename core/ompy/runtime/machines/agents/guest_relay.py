"""The machine of a guest's launcher: a relay that has a terminal, and ends with an exit code.

What its ranks write stays here; all else goes to the job that was joined, and comes from there.
"""

from __future__ import annotations

import json
from typing import ClassVar, Final

from ompy.frameworks.job import Job
from ompy.mca.reporting import Finding
from ompy.runtime.agents.agent_tree import Tree
from ompy.runtime.connections.control import Kind
from ompy.runtime.diagnosis.verdict import BROKEN, Failure, Verdict
from ompy.runtime.launching.report import failure_block, fields_of
from ompy.runtime.machines.acts import Find, Send, Show
from ompy.runtime.machines.agents.agent_table import RELAY, AgentPhase, Table
from ompy.runtime.machines.agents.relaying import RelayMachine
from ompy.runtime.machines.children import Child
from ompy.runtime.machines.events import Event, Seen
from ompy.runtime.machines.stages import Stage

GRACE_MS: Final = 1000  # reference openmpi.md 2.4.2
_P, _S = AgentPhase, Seen
_TABLE: Final[Table] = {
    **RELAY,
    (_P.PASSING, _S.TOLD_TO_END, None): (_P.PASSING, _P.OVER),
    (_P.SWEEPING, _S.TOLD_TO_END, None): (_P.OVER,),
    **{(phase, _S.WRITTEN, None): (phase,) for phase in (*_P,)},
    **{(phase, _S.BROKEN, None): (phase,) for phase in (*_P,)},
}


class GuestMachine(RelayMachine):
    """The launcher of ranks that have joined a job.

    Attributes:
        done: nothing is left but to show what they wrote.
    """

    table: ClassVar[Table] = _TABLE

    def __init__(self, node: int, job: Job, child: Child, key: bytes, *, quiet: bool) -> None:
        """Nothing has begun.

        Args:
            node: index of this host in the job.
            job: the guest alone, as if it were a job.
            child: the agent here, which starts the ranks.
            key: of the job.
            quiet: say nothing about how it ended.
        """
        super().__init__(node, Tree([], node), [child], key)
        self._verdict = Verdict(job)
        self._first = -1  # number of its first rank in the job that was joined
        self._size = len(job.placements)
        self._quiet = quiet
        self._told_to_end = False
        self.done = False

    @property
    def exit_code(self) -> int:
        """What this launcher ends with."""
        return self._verdict.exit_code

    def failure_report(self) -> list[Find]:
        """How it ended, if it failed."""
        failure = self._verdict.failure
        if failure is None or self._quiet:
            return []
        text = failure_block(failure)
        return [Find(Finding("job failed", text, "error", fields_of(failure)))]

    def _happened(self, event: Event) -> None:
        match event.what:
            case Seen.WRITTEN:
                self._do(Send(self._node, Kind.CREDIT, {"bytes": event.header["bytes"]}))
            case Seen.BROKEN:
                if event.who == 1:
                    self._verdict.output_broken(event.text)
                    self._end_ranks()
            case Seen.TOLD_TO_END if self.phase is AgentPhase.PASSING and not self._told_to_end:
                self._told_to_end = True
                self._verdict.signalled(event.who)
                self._end_ranks()
            case Seen.PARENT_GONE | Seen.TOLD_TO_END:
                if event.what is Seen.PARENT_GONE and not self.done:
                    self._fail("The launcher of the job that was joined is gone.")
                super()._happened(event)
            case _:
                super()._happened(event)

    def _fail(self, headline: str) -> None:
        self._verdict.failed(Failure(BROKEN, headline))

    def _end_ranks(self) -> None:
        self._do(Send(self._node, Kind.END, {"grace_ms": GRACE_MS}))

    def _from_above(self, event: Event) -> None:
        if event.kind is Kind.START:
            placed = Job.from_dict(json.loads(event.body)).placements
            self._first = next(p.rank for p in placed if p.node == self._node)
        if event.kind is Kind.END:
            self._fail("The job that was joined has been ended.")
        super()._from_above(event)

    def _from_below(self, event: Event) -> None:
        header = event.header
        if event.kind is Kind.OUTPUT:
            rank = header["rank"] - self._first
            self._do(Show(self._node, rank, header["stream"], event.body))
            return
        if "rank" in header:
            self._judge(event, header["rank"] - self._first)
        super()._from_below(event)
        if event.kind is Kind.FINISHED:
            self.done = True

    def _judge(self, event: Event, rank: int) -> None:
        """What bears on the exit code: of the ranks that were started here in the beginning."""
        if not 0 <= rank < self._size:
            return
        header, verdict = event.header, self._verdict
        match event.kind:
            case Kind.STARTED:
                verdict.started(rank, header["pid"])
            case Kind.STAGE:
                verdict.advanced(rank, Stage(header["stage"]))  # the job compares its calls
            case Kind.UNSTARTED:
                verdict.unstarted(rank, header["code"], event.text)
            case Kind.EXITED:
                verdict.exited(rank, header["status"], expendable=header["expendable"])
            case Kind.LOST:
                verdict.lost(rank, header["pid"])
            case Kind.ABORTED:
                verdict.aborted(rank, header["pid"], header["code"], event.text)

    def _gone(self, node: int, reason: bytes) -> None:
        self._fail("The process that looks after the ranks here is gone.")
        super()._gone(node, reason)
        self.done = True
