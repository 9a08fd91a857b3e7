"""An agent's driver: its ranks, their processes, pipes and signals."""

from __future__ import annotations

import os
import signal
from collections.abc import Container
from contextlib import suppress
from typing import Any

from ompy.engine.reactor import Reactor
from ompy.frameworks.job import Job, Placement
from ompy.runtime.agents.forwarding import InputForwarder, OutputForwarder
from ompy.runtime.connections.control import KEY_SIZE, Decoder, Frame
from ompy.runtime.connections.driver import ENDING, Driver
from ompy.runtime.connections.pipes import Connection
from ompy.runtime.diagnosis.rank_report import SHORT_SIGNAL
from ompy.runtime.diagnosis.shortage import shortage, tell_of
from ompy.runtime.launching.spares import NOBODY, Spare
from ompy.runtime.machines.acts import (
    PARENT,
    Act,
    Admit,
    AskRanks,
    CloseStreams,
    Credit,
    Feed,
    Grow,
    Kill,
    KillRank,
    Look,
    Reap,
    SignalRanks,
    Terminate,
    ToRank,
)
from ompy.runtime.machines.agents.agent import Beat, HostMachine
from ompy.runtime.machines.agents.local_ranks import RankLife
from ompy.runtime.machines.events import Seen
from ompy.runtime.machines.launcher.asking import widened
from ompy.runtime.ranks.descendants import catches, reap_all, signal_descendants
from ompy.runtime.ranks.rank_server import RankServer, clean_up_after
from ompy.runtime.ranks.rank_starter import RankStarter
from ompy.runtime.ranks.ranks import LocalRank
from ompy.runtime.ranks.spawn import Setting, Spawned, spawn


class Supervisor(Driver):
    """Looks after the ranks of one host until none is left."""

    def __init__(
        self,
        connection: Connection,
        decoder: Decoder,
        job: Job,
        ranks: list[LocalRank],
        start: Frame,
        starter: RankStarter,
    ) -> None:
        """Take over started ranks.

        Args:
            connection: to the launcher.
            decoder: what was read from it.
            job: what runs.
            ranks: of this host.
            start: the message that began it; its body is the job's key and the job.
            starter: what has started them, for those that come later.
        """
        self._reactor = Reactor()
        super().__init__(self._reactor)
        self._reactor.set_exception_handler(self._failed)
        self._job = job
        self._start = start
        self._starter = starter
        self._spares: list[Spare] = []
        self._to_replace = 0  # spares that may die before use and are forked again
        starter.ignored = frozenset(n for n in ENDING if signal.getsignal(n) == signal.SIG_IGN)
        self._ranks = {rank.process.pid: rank for rank in ranks}
        self._interactive: bool = start.header["interactive"]
        several = len(job.hosts) > 1 or start.header["several"]
        self.machine = HostMachine(
            start.header["node"],
            Beat(start.header["heartbeat_ms"] / 1000, start.header["heartbeat_misses"]),
            [RankLife(rank.rank, rank.process.pid) for rank in ranks],
            [placement.node for placement in job.placements],
            several=several,
        )
        self._launcher = self.connect(PARENT, connection, decoder)
        self._output = OutputForwarder(self._loop, self._launcher)
        self._input: InputForwarder | None = None
        self._reaping = False
        self._server = RankServer(self._loop, self.tell, start.body, several, job)
        for rank in ranks:
            self._adopt(rank)

    def _adopt(self, rank: LocalRank) -> None:
        stdout, stderr = rank.process.stdout, rank.process.stderr
        if rank.adopted:
            self._watch_adopted(rank)
        else:
            self._output.add(rank.rank, stdout, stderr, prompts=self._prompts(rank))
        self._server.add(rank)
        if rank.process.stdin >= 0:
            self._input = InputForwarder(self._loop, self._launcher, rank.process.stdin)

    def _watch_adopted(self, rank: LocalRank) -> None:
        """It is no child of ours: how it ends nobody here is told, only that it does."""

        def ended() -> None:
            self._reactor.remove_reader(watched)
            os.close(watched)
            self._exited(rank, 0)
            self._reap()

        watched = os.pidfd_open(rank.process.pid)
        self._reactor.add_reader(watched, ended)

    def _prompts(self, rank: LocalRank) -> bool:
        """Whether a person waits for what this rank writes, be it a line or not."""
        talked_to = self._interactive and rank.rank == self._job.stdin_rank
        debugged = self._starter.is_debugged(rank.rank)
        return talked_to or debugged or len(self._job.placements) == 1

    def run(self) -> int:
        """Run until the launcher has gone or wants no more. Returns the agent's exit code."""
        self._reactor.add_signal_handler(signal.SIGCHLD, self._reap)
        for number in ENDING:
            self._reactor.add_signal_handler(number, self.see, Seen.TOLD_TO_END)
        self.see(Seen.BEGUN)
        self._loop.call_soon(self._reap)  # those that ended before there was a handler
        if self._starter.warm is not None and self._start.header.get("spares"):
            self._to_replace = self._start.header["spares"]
            self._loop.call_soon(self._fork_spares, self._to_replace)
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
            case Admit():
                self._server.admit_rank(act.rank)
            case SignalRanks():
                self._signal_groups(act.number, act.but)
            case Terminate():
                groups = self._signal_groups(signal.SIGTERM)
                signal_descendants(signal.SIGTERM, but_groups=groups)
                self._signal_groups(signal.SIGCONT)  # a stopped process takes no SIGTERM
            case Kill():
                self._signal_groups(signal.SIGKILL)
                signal_descendants(signal.SIGKILL)
            case AskRanks():
                self._ask_for_reports()
            case Reap():
                self._reap()
            case Grow() | KillRank():
                self._change(act)
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

    # worlds that come later

    def _change(self, act: Grow | KillRank) -> None:
        """Note where ranks are, and start some; or end one."""
        if isinstance(act, KillRank):
            self._kill_rank(act.rank)
            return
        body, start = act
        self._job = widened(self._job, body)
        key = self._start.body[:KEY_SIZE]
        self._server.widen_job(self._job, key + self._job.packed())
        nowhere = self._starter.place_ranks(start, self._job.hosts[self._start.header["node"]])
        for rank in start:
            if nowhere:
                self.see(Seen.UNFORKED, rank, nowhere.encode())
            else:
                self._fork(self._job.placements[rank])
        if start:
            self._reactor.add_signal_handler(signal.SIGCHLD, self._reap)
            self._loop.call_soon(self._reap)

    def _fork_spares(self, count: int) -> None:
        """Have processes wait that may be ranks of worlds which come later."""
        if self._ranks and all(rank.exited for rank in self._ranks.values()):
            return
        for _ in range(count):
            told, orders = os.pipe()
            try:
                made = spawn(
                    NOBODY,
                    {},
                    with_stdin=False,
                    open_files=self._starter.open_files,
                    ignored=self._starter.ignored,
                    orders=told,
                    setting=Setting(merged=self._starter.merged),
                )
            except OSError:  # then it is started when it is needed
                os.close(orders)
                return
            finally:
                os.close(told)
            if not isinstance(made, Spawned):
                from ompy.runtime.ranks.forked import BecomeRank

                raise BecomeRank(made, self)
            self._spares.append(Spare(made, orders))

    def _replace_spares(self, ended: Container[int]) -> None:
        """Fork others for those that died before use: at most as many again as there were."""
        dead = [spare for spare in self._spares if spare.process.pid in ended]
        for spare in dead:
            self._spares.remove(spare)
            spare.dismiss()
        count = min(len(dead), self._to_replace)
        if count:
            self._to_replace -= count
            self._loop.call_soon(self._fork_spares, count)

    def _dismiss_spares(self) -> None:
        spares, self._spares = self._spares, []
        for spare in spares:
            spare.dismiss()

    def _fork(self, placement: Placement) -> None:
        starter = self._starter
        try:
            process = starter.start_rank(
                self._job, placement, with_stdin=False, spares=self._spares
            )
        except OSError as problem:
            reason = f"no process could be started: {problem.strerror}"
            self.see(Seen.UNFORKED, placement.rank, reason.encode())
            return
        if not isinstance(process, Spawned):
            from ompy.runtime.ranks.forked import BecomeRank

            raise BecomeRank(process, self)
        rank = LocalRank(placement.rank, placement.local_rank, process)
        self._ranks[process.pid] = rank
        told: dict[str, Any] = starter.report_of(rank.rank)
        self.see(Seen.FORKED, rank.rank, b"", pid=process.pid, **told)
        self._adopt(rank)

    def _kill_rank(self, number: int) -> None:
        for rank in self._ranks.values():
            if rank.rank == number and not rank.exited:
                with suppress(ProcessLookupError):
                    rank.send_signal(signal.SIGKILL)

    # processes

    def _reap(self) -> None:
        """Note what has exited, unless it is being noted: a rank's last word may ask for it."""
        if self._reaping:
            return
        self._reaping = True
        try:
            self._note_ends()
        finally:
            self._reaping = False

    def _note_ends(self) -> None:
        ended, left = reap_all()
        statuses = [(os.waitstatus_to_exitcode(status), process) for process, status in ended]
        for status, process in sorted(statuses, key=lambda entry: entry[0] >= 0):
            if process in self._ranks:  # a crash before an exit code: it is rather the cause
                self._exited(self._ranks[process], status)
        if self._spares:
            self._replace_spares({process for process, _ in ended})
        left = left or any(rank.adopted and not rank.exited for rank in self._ranks.values())
        self.see(Seen.REAPED, ended=bool(ended), left=left)

    def _exited(self, rank: LocalRank, status: int) -> None:
        rank.exited = True
        self._server.hear_out(rank)
        self._output.drain(rank.rank)
        clean_up_after(rank)  # again: it may have closed its connection before it was killed
        self._server.forget_rank(rank)
        self._starter.forget_rank(rank.rank)
        if all(other.exited for other in self._ranks.values()):
            self._dismiss_spares()
        self.see(Seen.EXITED, rank.rank, status=status)

    def _look(self, finalized: frozenset[int]) -> None:
        ranks = self._ranks.values()
        ending = [r.rank for r in ranks if r.is_ending(client=r.rank not in finalized)]
        self.see(Seen.OUTLOOK, ending=ending)

    def _signal_groups(self, number: int, but: frozenset[int] = frozenset()) -> frozenset[int]:
        """Signal the process groups of the ranks that run. Returns their leaders.

        A group whose leader is no MPI process, a shell perhaps, is signalled in any case.
        """
        running = {pid: rank for pid, rank in self._ranks.items() if not rank.exited}
        for pid, rank in running.items():
            if rank.rank in but and rank.client_pid == pid:
                continue
            with suppress(ProcessLookupError):
                rank.send_signal(number)
        return frozenset(running)

    def _ask_for_reports(self) -> None:
        """Have the MPI processes that would not die of it say where they are."""
        for rank in self._ranks.values():
            running = not rank.exited and rank.client is not None
            if running and catches(rank.client_pid, SHORT_SIGNAL):
                with suppress(ProcessLookupError):
                    os.kill(rank.client_pid, SHORT_SIGNAL)
