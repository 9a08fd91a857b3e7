"""The launcher's loop: routes between agents, printer, standard input and the verdict."""

from __future__ import annotations

import json
import signal
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from ompy import outputs
from ompy.engine.reactor import Reactor
from ompy.frameworks.bml import DISPLAY_RAILS
from ompy.frameworks.job import Job
from ompy.frameworks.plm import AgentLink
from ompy.mca.reporting import Finding
from ompy.net.fault_rules import FaultRule
from ompy.runtime.agent_connection import AgentConnection, departure
from ompy.runtime.comm_methods import COLLECTING, LostPaths
from ompy.runtime.control import Frame, Kind
from ompy.runtime.descendants import kill_descendants
from ompy.runtime.fault_report import NEVER_FIRED, FaultTally
from ompy.runtime.forwarding import OUTPUT_WINDOW
from ompy.runtime.job_events import SILENT, JobEvents, Voice
from ompy.runtime.launcher import PATIENCE, LaunchOptions
from ompy.runtime.printer import Printer
from ompy.runtime.rail_report import HEALED, LOST, RailTally
from ompy.runtime.ranks import Stage
from ompy.runtime.report import failure_block, fields_of
from ompy.runtime.shortage import shortage
from ompy.runtime.standard_input import StandardInput
from ompy.runtime.tree import Tree
from ompy.runtime.verdict import Verdict
from ompy.runtime.whereabouts import Whereabouts

if TYPE_CHECKING:
    from ompy.runtime.greeting import Greeting
    from ompy.runtime.rail_view import RailView

ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
FORWARDED: Final = (signal.SIGUSR1, signal.SIGUSR2)  # reference openmpi.md 2.4.2
REPORT_PATIENCE: Final = 0.5  # s; arbitrary: some hundred times what a rank takes to say it
WHERE_PATIENCE: Final = 2.0  # s; arbitrary: who presses Ctrl-C waits so long; usually it is ms
_CREDIT_STEP: Final = OUTPUT_WINDOW // 8  # bytes; arbitrary: few messages, window never shut long


class _Agent:
    """What there is to know of an agent, wherever it is in the tree."""

    def __init__(self, node: int, host: str) -> None:
        self.node = node
        self.host = host
        self.done = False  # it has finished, or it has gone
        self.uncredited = 0


class Coordinator:
    """One job from its start to its exit code."""

    _where: Whereabouts | None = None  # once somebody has asked the ranks

    def __init__(
        self,
        job: Job,
        links: Mapping[int, AgentLink],
        options: LaunchOptions,
        tree: Tree,
        greetings: Mapping[int, Greeting] = MappingProxyType({}),
        voice: Voice = SILENT,
    ) -> None:
        """Prepare; `run` runs.

        Args:
            job: what runs.
            links: the agents that the launcher has started, by node; they were told their job.
            options: how to go about it.
            tree: which agents have started which others.
            greetings: what the remote ones said before.
            voice: how what is said is written, and who else is told.
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
        self._lost_paths = LostPaths()
        self._rails = RailTally()
        self._view: RailView | None = None  # where somebody watches rails
        self._failed_alone: set[int] = set()  # ranks whose end was no consequence of another
        self._printer = Printer(
            self._loop,
            tag=options.tag,
            timestamp=options.timestamp,
            on_written=self._written,
            on_change=self._output_changed,
        )
        self._events = JobEvents(
            self._printer.say,
            voice.reporter,
            voice.packages,
            live_rails=options.display_rails >= DISPLAY_RAILS["live"],
        )
        self._agents = [_Agent(node, host) for node, host in enumerate(job.hosts)]
        self._tree = tree
        self._links = links
        self._greetings = greetings
        self._connections: dict[int, AgentConnection] = {}
        self._input: StandardInput | None = None
        if options.watch_rails or options.record_rails:
            self._view = self._watch_rails()  # it may have something to say at once

    def _watch_rails(self) -> RailView:
        from ompy.runtime.rail_view import RailView

        return RailView(
            self._loop,
            self._printer,
            [self._job.hosts[placement.node] for placement in self._job.placements],
            self._options.sample_interval_ms,
            self._events.found,
            show=self._options.watch_rails,
            record=self._options.record_rails,
        )

    def run(self) -> int:
        """Run until every process of the job is gone and its output written."""
        self._take_signals()
        for node, link in self._links.items():
            self._connections[node] = self._listen(node, link)
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

    def _listen(self, node: int, link: AgentLink) -> AgentConnection:
        greeting, options = self._greetings.get(node), self._options
        made = AgentConnection(
            self._loop,
            node,
            link,
            self._on_frame,
            self._connection_gone,
            pid=greeting.pid if greeting else 0,
            decoder=greeting.decoder if greeting else None,
        )
        interval_s, patience_s = options.heartbeat_ms / 1000, options.start_timeout_ms / 1000
        made.begin_heartbeats(interval_s, options.heartbeat_misses, patience_s)
        return made

    def _failed(self, loop: Reactor, context: dict[str, Any]) -> None:
        """A mistake of ours: say it and end everything."""
        if short := shortage(context.get("exception")):
            outputs.tell(f"ompy-run: error: {short}\n", "error", "error")
        else:
            loop.default_exception_handler(context)
        self._broken = True
        self._loop.stop()

    # what agents say

    def _on_frame(self, source: AgentConnection, frame: Frame) -> None:
        header = frame.header
        match frame.kind:
            case Kind.OUTPUT:
                node = self._job.placements[header["rank"]].node
                self._printer.show(node, header["rank"], header["stream"], frame.body)
            case Kind.INPUT_TAKEN:
                self._input_taken(header["bytes"])
            case Kind.INPUT_CLOSED:
                self._input_taken(0)
            case Kind.MODEX | Kind.FENCED | Kind.LEFT:
                self._relay(source, frame)
            case Kind.FAULTS:
                self._faults.told(header["rank"], header["delivered"])
            case Kind.PATHS:
                if self._lost_paths.add(header["rank"], header, json.loads(frame.body)):
                    self._loop.call_later(COLLECTING, self._show_lost_paths)
            case Kind.FINISHED:
                self._agents[header["node"]].done = True
            case Kind.AGENT_GONE:
                lost = [header["node"]] if header["alone"] else self._tree.subtree(header["node"])
                self._agents_gone(lost, header["pid"], frame.body.decode(errors="replace"))
            case _:
                self._judge(source, frame)
        self._see()

    def _judge(self, source: AgentConnection, frame: Frame) -> None:
        """What bears on the exit code, and what became of rails."""
        header, verdict = frame.header, self._verdict
        match frame.kind:
            case Kind.RAIL | Kind.CARRIED:
                self._rail_told(frame)
            case Kind.STARTED:
                verdict.started(header["rank"], header["pid"])
            case Kind.STAGE:
                verdict.advanced(header["rank"], Stage(header["stage"]), header.get("calls"))
            case Kind.UNSTARTED:
                verdict.unstarted(header["rank"], header["code"], frame.body.decode())
            case Kind.EXITED:
                if not self._ending:
                    self._failed_alone.add(header["rank"])
                verdict.exited(header["rank"], header["status"])
                self._tell_others(source, Kind.DEPARTED, *departure(frame))
            case Kind.WHERE:
                self._stands(frame)
            case Kind.LOST:
                verdict.lost(header["rank"], header["pid"])
            case Kind.ABORTED:
                reason = frame.body.decode(errors="replace")
                verdict.aborted(header["rank"], header["pid"], header["code"], reason)

    def _relay(self, source: AgentConnection, frame: Frame) -> None:
        """Tell the other hosts of a rank's commit or end, or all that all are at the fence."""
        if frame.kind is not Kind.FENCED:
            self._tell_others(source, frame.kind, frame.header, frame.body)
            return
        self._fenced.add(source.node)
        if len(self._fenced) == len(self._connections):
            self._fenced.clear()
            self._tell_all(Kind.FENCED)

    def _tell_all(self, kind: Kind, header: dict[str, Any] | None = None) -> None:
        for connection in self._connections.values():
            connection.send(kind, header)

    def _tell_others(
        self, but: AgentConnection, kind: Kind, header: dict[str, Any], body: bytes
    ) -> None:
        """Those the news did not come from; what passed it on has told its own others."""
        for connection in self._connections.values():
            if connection is not but:
                connection.send(kind, header, body)

    def _tell_one(self, node: int, kind: Kind, header: dict[str, Any], body: bytes = b"") -> None:
        connection = self._connections[self._tree.child_towards(node)]
        connection.send(kind, {**header, "to": node}, body)

    def _connection_gone(self, source: AgentConnection, reason: str) -> None:
        self._agents_gone(self._tree.subtree(source.node), source.pid, reason)

    def _agents_gone(self, nodes: list[int], pid: int, reason: str) -> None:
        """An agent is not there any longer, nor are those below: nothing will be heard of them.

        Args:
            nodes: its own and theirs.
            pid: its own.
            reason: what is known of it; may be empty.
        """
        lost = [agent for agent in map(self._agents.__getitem__, nodes) if not agent.done]
        for agent in lost:
            agent.done = True
        if lost:
            below = [agent.host for agent in lost if agent.node != nodes[0]]
            self._verdict.agent_lost(self._agents[nodes[0]].host, pid, reason, below)
        self._see()

    # output and input

    def _written(self, node: int, count: int) -> None:
        agent = self._agents[node]
        agent.uncredited += count
        if agent.uncredited >= _CREDIT_STEP:
            self._tell_one(node, Kind.CREDIT, {"bytes": agent.uncredited})
            agent.uncredited = 0

    def _output_changed(self, stream: int, broken: str | None) -> None:
        if broken is not None and stream == 1:  # without standard error the job goes on
            self._verdict.output_broken(broken)
        self._see()

    def _got_input(self, data: bytes) -> None:
        node = self._job.placements[self._job.stdin_rank].node
        self._tell_one(node, Kind.INPUT if data else Kind.INPUT_END, {}, data)

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
            self._found("rails watched", [self._end_view()], level="warning")
            self._show_lost_paths()
            failure = self._verdict.failure
            if failure is not None:
                text = "" if self._options.quiet else failure_block(failure)
                self._events.found(Finding("job failed", text, "error", fields_of(failure)))
            self._report_faults()
            self._report_rails()
        if self._printer.idle:
            self._loop.stop()

    def _found(
        self, name: str, sentences: Sequence[str], level: str = "info", **fields: Any
    ) -> None:
        """Tell what was found in sentences of ours, if in any."""
        text = "".join(f"ompy-run: {sentence}\n" for sentence in sentences if sentence)
        if text:
            self._events.found(Finding(name, text, level, fields))

    def _show_lost_paths(self) -> None:
        """Once, with what both ends have said."""
        text = self._lost_paths.text(frozenset(self._failed_alone))
        if text and not self._options.quiet:
            self._events.found(Finding("path lost", text, "warning"))

    def _report_faults(self) -> None:
        strict = self._options.fault_strict
        lines = self._faults.lines(strict=strict)
        if not self._options.quiet or (strict and self._faults.silent):
            totals = {
                rule.text: n
                for rule, n in zip(self._faults.rules, self._faults.totals(), strict=True)
            }
            self._found("faults delivered", lines, delivered=totals)

    def _end_view(self) -> str:
        if self._view is None:
            return ""
        return self._view.end(failed=self._verdict.failure is not None)

    def _rail_told(self, frame: Frame) -> None:
        if frame.kind is Kind.CARRIED:
            if self._view is not None:
                self._view.carried(frame.header, frame.body)
            return
        became, event = self._rails.told(frame.header)
        if self._view is not None:
            self._view.event(frame.header)
        if became == LOST:
            self._events.rail_lost(event)
        elif became == HEALED:
            self._events.rail_healed(event)

    def _report_rails(self) -> None:
        """What became of rails: a line each, and the file that was asked for."""
        shown = self._options.display_rails and not self._options.quiet
        lines = self._rails.lines() if shown else []
        name = self._options.report_rails
        if name:
            try:
                outputs.write_text(name, self._rails.document())
            except OSError as problem:
                why = f"{problem.strerror}; the report is lost"
                lines.append(f"warning: --report-rails {name}: {why}")
        self._found("rails", lines, rails=self._rails.events)

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
        asked = self._verdict.in_mpi
        if number == signal.SIGINT and asked and not (self._ending or self._options.quiet):
            self._ending = True
            self._where = Whereabouts(asked)
            self._tell_all(Kind.REPORT, {"short": True})
            self._loop.call_later(WHERE_PATIENCE, self._say_where)
        self._see()

    def _stands(self, frame: Frame) -> None:
        """A rank says where it is."""
        header = frame.header
        if self._where is not None:
            self._where.told(header["rank"], header["line"], header["waits"])
            if self._where.complete:
                self._say_where()

    def _say_where(self) -> None:
        """Say where the ranks were when somebody pressed Ctrl-C, and go on with the end."""
        if self._where is not None:
            self._found("interrupted", self._where.lines())
            self._where = None
            self._end()

    def _forward(self, number: int) -> None:
        self._tell_all(Kind.SIGNAL, {"signal": number})

    def _stop(self, number: int) -> None:
        """Stop the ranks, then ourselves as this signal does by default."""
        self._forward(number)
        if self._view is not None:
            self._view.leave()
        self._loop.remove_signal_handler(signal.SIGTSTP)
        signal.raise_signal(signal.SIGTSTP)
        self._loop.add_signal_handler(signal.SIGTSTP, self._stop, number)

    def _continue(self, number: int) -> None:
        self._forward(number)
        if self._input is not None:
            self._input.resume()
