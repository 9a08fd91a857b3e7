"""An agent's driver: its ranks, their processes, pipes and signals."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from typing import Any

from ompy.engine.reactor import Reactor
from ompy.frameworks.job import Job
from ompy.runtime.control import Decoder, Frame
from ompy.runtime.descendants import catches, reap_all, signal_descendants
from ompy.runtime.driver import ENDING, Driver
from ompy.runtime.forwarding import InputForwarder, OutputForwarder
from ompy.runtime.machines.acts import (
    PARENT,
    Act,
    AskRanks,
    CloseStreams,
    Credit,
    Feed,
    Kill,
    Look,
    Reap,
    SignalRanks,
    Terminate,
    ToRank,
    Welcome,
)
from ompy.runtime.machines.agent import Beat, HostMachine
from ompy.runtime.machines.events import Seen
from ompy.runtime.machines.local_ranks import RankLife
from ompy.runtime.pipes import Connection
from ompy.runtime.rank_report import REPORT_SIGNAL, SHORT_SIGNAL
from ompy.runtime.rank_server import RankServer, clean_up_after
from ompy.runtime.ranks import LocalRank
from ompy.runtime.shortage import shortage, tell_of


class Supervisor(Driver):
    """Looks after the ranks of one host until none is left."""

    def __init__(
        self,
        connection: Connection,
        decoder: Decoder,
        job: Job,
        ranks: list[LocalRank],
        start: Frame,
    ) -> None:
        """Take over started ranks.

        Args:
            connection: to the launcher.
            decoder: what was read from it.
            job: what runs.
            ranks: of this host.
            start: the message that began it; its body is the job's key and the job.
        """
        self._reactor = Reactor()
        super().__init__(self._reactor)
        self._reactor.set_exception_handler(self._failed)
        self._job = job
        self._ranks = {rank.process.pid: rank for rank in ranks}
        self._interactive: bool = start.header["interactive"]
        several = len(job.hosts) > 1
        self.machine = HostMachine(
            start.header["node"],
            Beat(start.header["heartbeat_ms"] / 1000, start.header["heartbeat_misses"]),
            [RankLife(rank.rank, rank.process.pid) for rank in ranks],
            len(job.placements),
            several=several,
        )
        self._launcher = self.connect(PARENT, connection, decoder)
        self._output = OutputForwarder(self._loop, self._launcher)
        self._input: InputForwarder | None = None
        self._server = RankServer(self._loop, self.tell, start.body, several)
        for rank in ranks:
            self._adopt(rank)

    def _adopt(self, rank: LocalRank) -> None:
        stdout, stderr = rank.process.stdout, rank.process.stderr
        self._output.add(rank.rank, stdout, stderr, prompts=self._prompts(rank))
        self._server.add(rank)
        if rank.process.stdin >= 0:
            self._input = InputForwarder(self._loop, self._launcher, rank.process.stdin)

    def _prompts(self, rank: LocalRank) -> bool:
        """Whether a person waits for what this rank writes, be it a line or not."""
        talked_to = self._interactive and rank.rank == self._job.stdin_rank
        return talked_to or len(self._job.placements) == 1

    def run(self) -> int:
        """Run until the launcher has gone or wants no more. Returns the agent's exit code."""
        self._reactor.add_signal_handler(signal.SIGCHLD, self._reap)
        for number in ENDING:
            self._reactor.add_signal_handler(number, self.see, Seen.TOLD_TO_END)
        self.see(Seen.BEGUN)
        self._loop.call_soon(self._reap)  # those that ended before there was a handler
        self._reactor.run_forever()
        return 0

    def clean_up(self) -> None:
        """Remove what ranks have left that were killed since `run` returned."""
        for rank in self._ranks.values():
            clean_up_after(rank)

    def _failed(self, loop: Reactor, context: dict[str, Any]) -> None:
        """A mistake of ours: say it and end, the launcher sees the end."""
        if short := shortage(context.get("exception")):
            tell_of(short)
        else:
            loop.default_exception_handler(context)
        self._loop.stop()

    # what the machine has done

    def perform(self, act: Act) -> None:
        """Do one thing."""
        match act:
            case ToRank():
                self._server.say(act.rank, act.kind, act.header, act.body)
            case Welcome():
                self._server.welcome(act.rank)
            case SignalRanks():
                self._signal_groups(act.number)
            case Terminate():
                groups = self._signal_groups(signal.SIGTERM)
                signal_descendants(signal.SIGTERM, but_groups=groups)
                self._signal_groups(signal.SIGCONT)  # a stopped process takes no SIGTERM
            case Kill():
                self._signal_groups(signal.SIGKILL)
                signal_descendants(signal.SIGKILL)
            case AskRanks():
                self._ask_for_reports(SHORT_SIGNAL if act.short else REPORT_SIGNAL)
            case Reap():
                self._reap()
            case Look():
                self._look(act.finalized)
            case _:
                self._perform_stream(act)

    def _perform_stream(self, act: Act) -> None:
        match act:
            case Credit():
                self._output.credit(act.size)
            case Feed():
                if self._input is not None:
                    self._feed(self._input, act.data)
            case CloseStreams():
                self._reactor.remove_signal_handler(signal.SIGCHLD)
                self._output.close()
                if self._input is not None:
                    self._input.close()
            case _:
                super().perform(act)

    def _feed(self, forwarder: InputForwarder, data: bytes) -> None:
        if data:
            forwarder.feed(data)
        else:
            forwarder.end()

    # processes

    def _reap(self) -> None:
        """Note what has exited."""
        ended, left = reap_all()
        statuses = [(os.waitstatus_to_exitcode(status), process) for process, status in ended]
        for status, process in sorted(statuses, key=lambda entry: entry[0] >= 0):
            if process in self._ranks:  # a crash before an exit code: it is rather the cause
                self._exited(self._ranks[process], status)
        self.see(Seen.REAPED, ended=bool(ended), left=left)

    def _exited(self, rank: LocalRank, status: int) -> None:
        rank.exited = True
        self._server.hear_out(rank)
        self._output.drain(rank.rank)
        clean_up_after(rank)  # again: it may have closed its connection before it was killed
        self.see(Seen.EXITED, rank.rank, status=status)

    def _look(self, finalized: frozenset[int]) -> None:
        ranks = self._ranks.values()
        ending = [r.rank for r in ranks if r.is_ending(client=r.rank not in finalized)]
        self.see(Seen.OUTLOOK, ending=ending)

    def _signal_groups(self, number: int) -> frozenset[int]:
        """Signal the process groups of the ranks that run. Returns their leaders."""
        running = [pid for pid, rank in self._ranks.items() if not rank.exited]
        for group in running:
            with suppress(ProcessLookupError):
                os.killpg(group, number)
        return frozenset(running)

    def _ask_for_reports(self, number: int) -> None:
        """Have the MPI processes that would not die of it say where they are."""
        for rank in self._ranks.values():
            running = not rank.exited and rank.client is not None
            if running and catches(rank.client_pid, number):
                with suppress(ProcessLookupError):
                    os.kill(rank.client_pid, number)
