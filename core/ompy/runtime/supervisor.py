"""The agent's loop: reaps the ranks, routes what they say, and ends them."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from ompy.engine.reactor import Reactor
from ompy.frameworks.job import Job
from ompy.runtime.channel import Channel
from ompy.runtime.control import Decoder, Frame, Kind
from ompy.runtime.descendants import catches, reap_all, signal_descendants
from ompy.runtime.forwarding import InputForwarder, OutputForwarder
from ompy.runtime.heartbeat import Heartbeat
from ompy.runtime.leaving import News
from ompy.runtime.modex import ModexStore
from ompy.runtime.pipes import Connection
from ompy.runtime.rank_report import REPORT_SIGNAL, SHORT_SIGNAL
from ompy.runtime.rank_server import RankServer, clean_up_after
from ompy.runtime.ranks import AttachedRank, LocalRank, Stage
from ompy.runtime.shortage import shortage, tell_of

RETRY: Final = (
    0.02  # s; arbitrary: how often what SIGKILL left, or forked meanwhile, is killed again
)
CAUSE_PATIENCE: Final = 1.0  # s; arbitrary: a process on its way out takes far less
LEFTOVER_GRACE_MS: Final = 200  # arbitrary: for processes of a rank that outlive it


class Supervisor:
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
        self._loop = Reactor()
        self._loop.set_exception_handler(self._failed)
        self._ranks = {rank.process.pid: rank for rank in ranks}
        self._abort: tuple[AttachedRank, int, str] | None = None
        self._abort_told = False
        self._failed_ranks: dict[int, str] = {}  # why, of those the others have not been told of
        self._node: int = start.header["node"]
        self._interactive: bool = start.header["interactive"]
        self._job = job
        self._several_hosts = len(job.hosts) > 1
        self._ending = False
        self._finished = False
        self._launcher = Channel(
            self._loop, connection, self._on_frame, self._launcher_gone, decoder
        )
        self._modex = ModexStore(frozenset(rank.rank for rank in ranks))
        self._output = OutputForwarder(self._loop, self._launcher)
        self._input: InputForwarder | None = None
        self._server = RankServer(
            self._loop,
            self,
            self._modex,
            len(job.placements),
            start.body,
            self._several_hosts,
        )
        self._heartbeat = self._begin_heartbeat(start.header)
        for rank in ranks:
            self._adopt(rank)

    def _begin_heartbeat(self, start: dict[str, Any]) -> Heartbeat | None:
        """Agents on other hosts: the launcher's host may vanish without a word."""
        interval_ms, misses = start["heartbeat_ms"], start["heartbeat_misses"]
        if not interval_ms:
            return None
        made = Heartbeat(
            self._loop,
            interval_ms / 1000,
            misses,
            lambda: self._launcher.send(Kind.ALIVE),
            self._loop.stop,
        )
        made.watch(on=True)
        made.begin()
        return made

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
        self._loop.add_signal_handler(signal.SIGCHLD, self._reap)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            self._loop.add_signal_handler(number, self._loop.stop)
        self._loop.call_soon(self._reap)  # those that ended before there was a handler
        self._loop.run_forever()
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

    # the launcher

    def _launcher_gone(self, _reason: str) -> None:
        self._loop.stop()

    def _on_frame(self, frame: Frame) -> None:
        if self._heartbeat is not None:
            self._heartbeat.heard()
        self._obey(frame)

    def _obey(self, frame: Frame) -> None:
        header = frame.header
        match frame.kind:
            case Kind.CREDIT:
                self._output.credit(header["bytes"])
            case Kind.INPUT if self._input is not None:
                self._input.feed(frame.body)
            case Kind.INPUT_END if self._input is not None:
                self._input.end()
            case Kind.SIGNAL:
                self._signalled(header["signal"])
            case Kind.REPORT:
                self._ask_for_reports(SHORT_SIGNAL if header.get("short") else REPORT_SIGNAL)
            case Kind.END:
                self._end(header["grace_ms"])
            case _:
                self._hear(frame)

    def _hear(self, frame: Frame) -> None:
        """What ranks of other hosts have come to."""
        header = frame.header
        match frame.kind:
            case Kind.MODEX:
                self._modex.commit(header["rank"], frame.body)
            case Kind.FENCED:
                self._modex.fenced()
            case Kind.LEFT:
                self._server.tell_leaving(header["ranks"])
            case Kind.DEPARTED:
                self._departed(header["rank"], frame.body.decode(), header["finalized"])

    # what the ranks say (rank_server.RankEvents)

    def advanced(self, rank: AttachedRank) -> None:
        """A rank has reached another stage."""
        said = {"rank": rank.rank, "stage": rank.stage, "calls": rank.calls}
        self._launcher.send(Kind.STAGE, said)

    def committed(self, rank: AttachedRank, packed: bytes) -> None:
        """A rank has published: agents of other hosts need it too."""
        if self._several_hosts:
            self._launcher.send(Kind.MODEX, {"rank": rank.rank}, packed)

    def left(self, news: News) -> None:
        """Ranks of this host finalize: those of other hosts hear of it too."""
        if self._several_hosts:
            self._launcher.send(Kind.LEFT, {"ranks": news})

    def fence_complete(self) -> None:
        """All ranks of this host wait at the fence."""
        if self._several_hosts:
            self._launcher.send(Kind.FENCED)
        else:
            self._modex.fenced()

    def aborted(self, rank: AttachedRank, code: int, reason: str) -> None:
        """A rank ends the job. If another is dying, that is the cause and has to come first."""
        if self._abort is None:  # what follows the first is its consequence
            self._abort = (rank, code, reason)
            self._loop.call_later(CAUSE_PATIENCE, self._tell_abort)
            self._reap()
            self._settle()

    def _settle(self) -> None:
        """Tell the launcher who aborted, once no other rank is on its way out."""
        if self._abort is not None and not self._abort_told:
            others = [rank for rank in self._ranks.values() if rank is not self._abort[0]]
            if not any(rank.is_ending() for rank in others):
                self._tell_abort()

    def _tell_abort(self) -> None:
        if self._abort is not None and not self._abort_told:
            self._abort_told = True
            rank, code, reason = self._abort
            header = {"rank": rank.rank, "pid": rank.client_pid, "code": code}
            self._launcher.send(Kind.ABORTED, header, reason.encode())

    def disturbed(self, rank: AttachedRank, delivered: Sequence[int]) -> None:
        """Faults have struck at a rank."""
        self._launcher.send(Kind.FAULTS, {"rank": rank.rank, "delivered": list(delivered)})

    def path_lost(self, rank: AttachedRank, report: Frame) -> None:
        """A rank has lost a path to another."""
        self._launcher.send(Kind.PATHS, {**report.header, "rank": rank.rank}, report.body)

    def rail_event(self, rank: AttachedRank, event: Frame) -> None:
        """A rail of a rank has broken, or is healed."""
        self._launcher.send(Kind.RAIL, {**event.header, "rank": rank.rank})

    def rails_carried(self, rank: AttachedRank, sample: Frame) -> None:
        """A rank says what its rails have carried."""
        self._launcher.send(Kind.CARRIED, {**sample.header, "rank": rank.rank}, sample.body)

    def stands(self, rank: AttachedRank, where: Frame) -> None:
        """A rank says where it is."""
        self._launcher.send(Kind.WHERE, {**where.header, "rank": rank.rank})

    def unexecutable(self, rank: AttachedRank, code: int, reason: str) -> None:
        """A program could not be executed; its process ends by itself."""
        self._launcher.send(Kind.UNSTARTED, {"rank": rank.rank, "code": code}, reason.encode())

    def lost(self, rank: AttachedRank) -> None:
        """The MPI process below a wrapper has gone."""
        self._launcher.send(Kind.LOST, {"rank": rank.rank, "pid": rank.client_pid})

    # ends

    def _reap(self) -> None:
        """Note what has exited. When nothing is left and nothing can come, this host is done."""
        ended, left = reap_all()
        statuses = [(os.waitstatus_to_exitcode(status), process) for process, status in ended]
        for status, process in sorted(statuses, key=lambda entry: entry[0] >= 0):
            if process in self._ranks:  # a crash before an exit code: it is rather the cause
                self._exited(self._ranks[process], status)
        if ended:
            self._settle()
        if not left:
            self._finish()
        elif not self._ending and all(r.exit_status is not None for r in self._ranks.values()):
            self._end(LEFTOVER_GRACE_MS)

    def _exited(self, rank: LocalRank, status: int) -> None:
        rank.exit_status = status
        self._server.hear_out(rank)
        self._output.drain(rank.rank)
        header = {
            "rank": rank.rank,
            "pid": rank.process.pid,
            "status": status,
            "stage": rank.stage,
            "reason": rank.how_it_went(),
        }
        clean_up_after(rank)  # again: it may have closed its connection before it was killed
        self._launcher.send(Kind.EXITED, header)
        self._departed(rank.rank, rank.how_it_went(), rank.stage is Stage.FINALIZED)

    def _departed(self, rank: int, reason: str, finalized: bool) -> None:
        """Tell the others, of a rank that failed once they have been told to end.

        They mostly have ended before they hear of it, and say nothing; who lives on because it
        handles SIGTERM waits in no call for what will not come.
        """
        self._modex.depart(rank, reason)
        if finalized or self._ending:
            self._server.tell_departure(rank, reason)
        else:
            self._failed_ranks[rank] = reason

    def _signalled(self, number: int) -> None:
        """The launcher passes a signal on. After SIGTSTP it stops, and says nothing for a while."""
        self._signal_groups(number)
        if self._heartbeat is not None and number in {signal.SIGTSTP, signal.SIGCONT}:
            self._heartbeat.watch(on=number == signal.SIGCONT)

    def _signal_groups(self, number: int) -> frozenset[int]:
        """Signal the process groups of the ranks that run. Returns their leaders."""
        running = [pid for pid, rank in self._ranks.items() if rank.exit_status is None]
        for group in running:
            with suppress(ProcessLookupError):
                os.killpg(group, number)
        return frozenset(running)

    def _ask_for_reports(self, number: int) -> None:
        """Have the MPI processes that would not die of it say where they are."""
        for rank in self._ranks.values():
            running = rank.exit_status is None and rank.client is not None
            if running and catches(rank.client_pid, number):
                with suppress(ProcessLookupError):
                    os.kill(rank.client_pid, number)

    def _end(self, grace_ms: int) -> None:
        """End everything: SIGTERM, and SIGKILL to what is left after the grace."""
        if grace_ms <= 0:
            self._kill()
        elif not self._ending:
            self._ending = True
            groups = self._signal_groups(signal.SIGTERM)
            signal_descendants(signal.SIGTERM, but_groups=groups)
            self._signal_groups(signal.SIGCONT)  # a stopped process takes no SIGTERM
            for rank, reason in self._failed_ranks.items():
                self._server.tell_departure(rank, reason)
            self._loop.call_later(grace_ms / 1000, self._kill)

    def _kill(self) -> None:
        if self._finished:
            return
        self._ending = True
        self._signal_groups(signal.SIGKILL)
        signal_descendants(signal.SIGKILL)
        self._loop.call_later(RETRY, self._kill)

    def _finish(self) -> None:
        """No process is left: send the rest of the output and wait for the launcher to go."""
        if self._finished:
            return
        self._finished = True
        self._loop.remove_signal_handler(signal.SIGCHLD)
        self._output.close()
        if self._input is not None:
            self._input.close()
        self._launcher.send(Kind.FINISHED, {"node": self._node})
