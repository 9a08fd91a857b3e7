"""The launcher's loop: routes between agents, printer, standard input and the verdict."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from ompy.engine.reactor import Reactor
from ompy.frameworks.job import Job
from ompy.frameworks.plm import AgentLink
from ompy.net.fault_rules import FaultRule
from ompy.runtime.channel import Channel
from ompy.runtime.control import Frame, Kind
from ompy.runtime.descendants import kill_descendants
from ompy.runtime.fault_report import NEVER_FIRED, FaultTally
from ompy.runtime.forwarding import OUTPUT_WINDOW
from ompy.runtime.heartbeat import Heartbeat
from ompy.runtime.launcher import PATIENCE, LaunchOptions
from ompy.runtime.printer import Printer
from ompy.runtime.ranks import Stage
from ompy.runtime.report import failure_block
from ompy.runtime.standard_input import StandardInput
from ompy.runtime.verdict import Verdict

if TYPE_CHECKING:
    from ompy.runtime.greeting import Greeting

SILENT: Final = "Nothing was heard of it for {:g} s: its host is down, or the way to it."
ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
FORWARDED: Final = (signal.SIGUSR1, signal.SIGUSR2)  # reference openmpi.md 2.4.2
REPORT_PATIENCE: Final = 0.5  # s; arbitrary: some hundred times what a rank takes to say it
_CREDIT_STEP: Final = OUTPUT_WINDOW // 8  # bytes; arbitrary: few messages, window never shut long


class _Agent:
    """An agent and the connection to it."""

    def __init__(self, node: int, link: AgentLink, greeting: Greeting | None) -> None:
        self.node = node
        self.link = link
        self.pid = greeting.pid if greeting else link.pid
        self.decoder = greeting.decoder if greeting else None
        self.heartbeat: Heartbeat | None = None
        self.channel: Channel | None = None
        self.done = False  # it has finished, or it has gone
        self.expected = False  # it lets us hear from it
        self.uncredited = 0

    def send(self, kind: Kind, header: dict[str, Any] | None = None, body: bytes = b"") -> None:
        if self.channel is not None:
            self.channel.send(kind, header, body)


class Coordinator:
    """One job from its start to its exit code."""

    def __init__(
        self,
        job: Job,
        links: list[AgentLink],
        options: LaunchOptions,
        greetings: Mapping[int, Greeting] = MappingProxyType({}),
    ) -> None:
        """Prepare; `run` runs.

        Args:
            job: what runs.
            links: its agents, by node; they have been told their job.
            options: how to go about it.
            greetings: what the remote ones said before.
        """
        self._job = job
        self._options = options
        self._loop = Reactor()
        self._loop.set_exception_handler(self._failed)
        self._verdict = Verdict(job)
        self._faults = FaultTally([FaultRule.from_dict(dict(rule)) for rule in job.faults])
        self._broken = False
        self._ending = False
        self._finished = False
        self._told_to_end = False
        self._fenced: set[int] = set()
        self._printer = Printer(
            self._loop,
            tag=options.tag,
            timestamp=options.timestamp,
            on_written=self._written,
            on_change=self._output_changed,
        )
        self._agents = [_Agent(node, link, greetings.get(node)) for node, link in enumerate(links)]
        self._input: StandardInput | None = None

    def run(self) -> int:
        """Run until every process of the job is gone and its output written."""
        self._take_signals()
        for agent in self._agents:
            self._listen(agent)
        if self._job.stdin_rank >= 0:
            self._input = StandardInput(self._loop, self._got_input)
            self._input.resume()
        if self._options.timeout_s:
            self._loop.call_later(self._options.timeout_s, self._time_out)
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()
        strict = NEVER_FIRED if self._options.fault_strict and self._faults.silent else 0
        return self._verdict.exit_code or int(self._broken) or strict

    def _listen(self, agent: _Agent) -> None:
        agent.channel = Channel(
            self._loop,
            agent.link.channel,
            lambda frame: self._on_frame(agent, frame),
            lambda reason: self._agent_gone(agent, reason),
            agent.decoder,
        )
        if agent.link.remote and self._options.heartbeat_ms:
            silence = self._options.heartbeat_ms * self._options.heartbeat_misses / 1000
            agent.heartbeat = Heartbeat(
                self._loop,
                self._options.heartbeat_ms / 1000,
                self._options.heartbeat_misses,
                lambda: agent.send(Kind.ALIVE),
                lambda: self._agent_silent(agent, silence),
            )
            agent.heartbeat.begin()
            patience = self._options.start_timeout_ms / 1000
            self._loop.call_later(patience, self._see_whether_heard_of, agent, patience)

    def _failed(self, loop: Reactor, context: dict[str, Any]) -> None:
        """A mistake of ours: say it and end everything."""
        loop.default_exception_handler(context)
        self._broken = True
        self._loop.stop()

    # what agents say

    def _on_frame(self, agent: _Agent, frame: Frame) -> None:
        header = frame.header
        if agent.heartbeat is not None:
            agent.heartbeat.heard()
        match frame.kind:
            case Kind.ALIVE:
                self._expect(agent)
            case Kind.OUTPUT:
                self._printer.show(agent.node, header["rank"], header["stream"], frame.body)
            case Kind.INPUT_TAKEN:
                self._input_taken(header["bytes"])
            case Kind.INPUT_CLOSED:
                self._input_taken(0)
            case Kind.MODEX | Kind.FENCED:
                self._relay(agent, frame)
            case Kind.FAULTS:
                self._faults.told(header["rank"], header["delivered"])
            case Kind.FINISHED:
                agent.done = True
            case _:
                self._judge(agent, frame)
        self._see()

    def _judge(self, agent: _Agent, frame: Frame) -> None:
        """What bears on the exit code."""
        header, verdict = frame.header, self._verdict
        match frame.kind:
            case Kind.STARTED:
                verdict.started(header["rank"], header["pid"])
            case Kind.STAGE:
                verdict.advanced(header["rank"], Stage(header["stage"]))
            case Kind.UNSTARTED:
                verdict.unstarted(header["rank"], header["code"], frame.body.decode())
            case Kind.EXITED:
                verdict.exited(header["rank"], header["status"])
                self._relay_departure(agent, frame)
            case Kind.LOST:
                verdict.lost(header["rank"], header["pid"])
            case Kind.ABORTED:
                reason = frame.body.decode(errors="replace")
                verdict.aborted(header["rank"], header["pid"], header["code"], reason)

    def _relay(self, agent: _Agent, frame: Frame) -> None:
        """Tell the other hosts what a rank committed, or all that all are at the fence."""
        if frame.kind is Kind.MODEX:
            self._tell_others(agent, frame.kind, frame.header, frame.body)
            return
        self._fenced.add(agent.node)
        if len(self._fenced) == len(self._agents):
            self._fenced.clear()
            self._tell_all(Kind.FENCED)

    def _relay_departure(self, agent: _Agent, frame: Frame) -> None:
        finalized = frame.header["stage"] == Stage.FINALIZED
        header = {"rank": frame.header["rank"], "finalized": finalized}
        self._tell_others(agent, Kind.DEPARTED, header, frame.header["reason"].encode())

    def _tell_all(self, kind: Kind, header: dict[str, Any] | None = None) -> None:
        for agent in self._agents:
            agent.send(kind, header)

    def _tell_others(self, but: _Agent, kind: Kind, header: dict[str, Any], body: bytes) -> None:
        for agent in self._agents:
            if agent is not but:
                agent.send(kind, header, body)

    def _expect(self, agent: _Agent) -> None:
        """It has begun to let us hear from it: from now on silence means something."""
        if agent.heartbeat is not None and not agent.expected:
            agent.expected = True
            agent.heartbeat.watch(on=True)

    def _see_whether_heard_of(self, agent: _Agent, patience: float) -> None:
        """It was ready, and then may never have begun."""
        if not agent.expected:
            self._agent_silent(agent, patience)

    def _agent_silent(self, agent: _Agent, seconds: float) -> None:
        """The network to it is broken, or its host is down, or it has been stopped."""
        if agent.channel is not None:
            agent.channel.close()
            with suppress(ProcessLookupError):
                os.kill(agent.link.pid, signal.SIGKILL)
            self._agent_gone(agent, SILENT.format(seconds))

    def _agent_gone(self, agent: _Agent, reason: str) -> None:
        agent.channel = None
        if agent.heartbeat is not None:
            agent.heartbeat.end()
        if not agent.done:
            agent.done = True
            self._verdict.agent_lost(agent.link.host, agent.pid, reason)
        self._see()

    # output and input

    def _written(self, node: int, count: int) -> None:
        agent = self._agents[node]
        agent.uncredited += count
        if agent.uncredited >= _CREDIT_STEP:
            agent.send(Kind.CREDIT, {"bytes": agent.uncredited})
            agent.uncredited = 0

    def _output_changed(self, stream: int, broken: str | None) -> None:
        if broken is not None and stream == 1:  # without standard error the job goes on
            self._verdict.output_broken(broken)
        self._see()

    def _got_input(self, data: bytes) -> None:
        node = self._job.placements[self._job.stdin_rank].node
        self._agents[node].send(Kind.INPUT if data else Kind.INPUT_END, None, data)

    def _input_taken(self, taken: int) -> None:
        """The rank has read so much; nothing when it will read no more."""
        if self._input is not None:
            if taken:
                self._input.taken(taken)
            else:
                self._input.close()

    # the end

    def _see(self) -> None:
        """Whether the job has to be ended, or has ended."""
        if all(agent.done for agent in self._agents):
            self._finish()
        elif self._verdict.failure is not None and not self._ending:
            self._end()

    def _end(self) -> None:
        """Have the agents end their ranks."""
        self._ending = True
        if not self._finished:
            grace_ms = self._options.kill_grace_ms
            self._tell_all(Kind.END, {"grace_ms": grace_ms})
            self._loop.call_later(grace_ms / 1000 + PATIENCE, self._finish)

    def _finish(self) -> None:
        """No agent has processes left, or answers: say how it went, go when all is written."""
        if not self._finished:
            self._finished = True
            if self._input is not None:
                self._input.close()
            kill_descendants(PATIENCE)
            if self._verdict.failure is not None and not self._options.quiet:
                self._printer.say(failure_block(self._verdict.failure))
            self._report_faults()
        if self._printer.idle:
            self._loop.stop()

    def _report_faults(self) -> None:
        strict = self._options.fault_strict
        lines = self._faults.lines(strict=strict)
        if lines and (not self._options.quiet or (strict and self._faults.silent)):
            self._printer.say("".join(f"ompy-run: {line}\n" for line in lines))

    def _time_out(self) -> None:
        """End the job, but first let the ranks say where they are."""
        self._verdict.timed_out(self._options.timeout_s, self._options.timeout_source)
        if not self._ending:
            self._ending = True
            self._tell_all(Kind.REPORT)
            self._loop.call_later(REPORT_PATIENCE, self._end)

    # signals

    def _take_signals(self) -> None:
        """Those that were ignored when we were started, as `nohup` does, stay ignored."""
        handlers = dict.fromkeys(ENDING, self._end_by_signal)
        handlers |= dict.fromkeys(FORWARDED, self._forward)
        handlers |= {signal.SIGTSTP: self._stop, signal.SIGCONT: self._continue}
        for number, handler in handlers.items():
            if signal.getsignal(number) != signal.SIG_IGN:
                self._loop.add_signal_handler(number, handler, number)

    def _end_by_signal(self, number: int) -> None:
        """End the job; told so a second time, wait for nothing."""
        if self._told_to_end:
            self._loop.stop()
        self._told_to_end = True
        self._verdict.signalled(number)
        self._see()

    def _forward(self, number: int) -> None:
        self._tell_all(Kind.SIGNAL, {"signal": number})

    def _stop(self, number: int) -> None:
        """Stop the ranks, then ourselves as this signal does by default."""
        self._forward(number)
        self._loop.remove_signal_handler(signal.SIGTSTP)
        signal.raise_signal(signal.SIGTSTP)
        self._loop.add_signal_handler(signal.SIGTSTP, self._stop, number)

    def _continue(self, number: int) -> None:
        self._forward(number)
        if self._input is not None:
            self._input.resume()
