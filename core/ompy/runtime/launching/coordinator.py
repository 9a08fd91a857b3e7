"""The launcher's driver: agents, printer, standard input, signals, the view of rails."""

from __future__ import annotations

import json
import signal
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from ompy import outputs
from ompy.engine.reactor import Reactor
from ompy.frameworks.bml import DISPLAY_RAILS
from ompy.frameworks.job import Job
from ompy.frameworks.plm import AgentLink
from ompy.runtime.agents.agent_tree import Tree
from ompy.runtime.connections.control import Kind
from ompy.runtime.connections.driver import ENDING, Driver
from ompy.runtime.diagnosis.shortage import shortage
from ompy.runtime.launching.job_events import SILENT, JobEvents, Reporting
from ompy.runtime.launching.launcher import PATIENCE, LaunchOptions, start_header
from ompy.runtime.launching.printer import Printer
from ompy.runtime.launching.standard_input import StandardInput
from ompy.runtime.machines.acts import (
    Act,
    AdmitGuest,
    CloseView,
    Find,
    Inform,
    KeepAutopsy,
    ReportRails,
    ResumeInput,
    Show,
    Suspend,
    Sweep,
    TakeInput,
    TellRail,
    Watched,
    Widen,
)
from ompy.runtime.machines.children import Child
from ompy.runtime.machines.events import Event, Seen
from ompy.runtime.machines.launcher.job import JobMachine
from ompy.runtime.machines.launcher.job_news import said
from ompy.runtime.machines.launcher.job_rules import JobRules
from ompy.runtime.machines.launcher.job_table import JobPhase
from ompy.runtime.ranks.descendants import kill_descendants, let_end

if TYPE_CHECKING:
    from ompy.mca.reporting import Finding
    from ompy.runtime.agents.agent_start import ReadyAgent
    from ompy.runtime.guests.listener import Guest, GuestListener
    from ompy.runtime.launching.live_socket import LiveSocket
    from ompy.runtime.launching.output_files import OutputCopies
    from ompy.runtime.rails.rail_view import RailView

LIVE_AFTER: Final = 0.2  # s; arbitrary: nobody watches a job that is over by then
FINDINGS: Final = 64  # that a watcher is told; arbitrary: more than a screen has lines for
FORWARDED: Final = (signal.SIGUSR1, signal.SIGUSR2)  # reference openmpi.md 2.4.2


class Coordinator(Driver):
    """One job from its start to its exit code."""

    def __init__(
        self,
        job: Job,
        links: Mapping[int, AgentLink],
        options: LaunchOptions,
        tree: Tree,
        ready_agents: Mapping[int, ReadyAgent] = MappingProxyType({}),
        reporting: Reporting = SILENT,
    ) -> None:
        """Prepare; `run` runs.

        Args:
            job: what runs.
            links: the agents that the launcher has started, by node; they were told their job.
            options: how to go about it.
            tree: which agents have started which others.
            ready_agents: what the remote ones said before.
            reporting: how what is said is written, and who else is told.
        """
        self._reactor = Reactor()
        super().__init__(self._reactor)
        self._reactor.set_exception_handler(self._failed)
        self._options = options
        self._links = links
        self._ready_agents = ready_agents
        self._guests: dict[int, bytes] = {}  # what those are told who have not been told their job
        self._broken = False
        self._reported = False
        children = _children(links, ready_agents)
        made = _machine_class(options)(job, tree, children, rules_of(options))
        self._job_machine = self.machine = made
        self._input: StandardInput | None = None
        if job.stdin_rank >= 0:
            self._input = StandardInput(self._loop, lambda data: self.see(Seen.READ, body=data))
        self._printer = Printer(
            self._loop,
            tag=options.tag,
            timestamp=options.timestamp,
            on_written=lambda node, count: self.see(Seen.WRITTEN, node=node, bytes=count),
            on_change=self._output_changed,
            files=_output_copies(options, len(job.placements)),
        )
        self._events = JobEvents(
            self._printer.say,
            reporting.reporter,
            reporting.packages,
            live_rails=options.display_rails >= DISPLAY_RAILS["live"],
        )
        self._job_id = job.job_id
        self._live: LiveSocket | None = None  # once a job has run for a little while
        self._findings: deque[Finding] = deque(maxlen=FINDINGS)
        self._view: RailView | None = None  # where somebody watches rails
        if options.watch_rails or options.record_rails:
            self._view = self._watch_rails(job)  # it may have something to say at once

    def let_guests_in(self, listener: GuestListener | None) -> None:
        """Have programs of other launchers join the job, if they may."""
        if listener is not None:
            listener.begin_accepting(self._reactor, self._admit_guest)

    def _admit_guest(self, guest: Guest) -> None:
        """One has proven itself: it is the next host, unless the job is over for all."""
        from ompy.runtime.guests.listener import turn_away
        from ompy.runtime.machines.launcher.open_job import OpenJobMachine

        machine = self._job_machine
        assert isinstance(machine, OpenJobMachine), "else there is no listener"
        if machine.phase is not JobPhase.RUNNING:
            turn_away(guest, "the job is being ended")
            return
        node = machine.next_node
        self._guests[node] = guest.hidden_key
        self.connect(node, guest.connection, guest.decoder)
        facts = {"host": str(guest.header["host"]), "pid": int(guest.header["pid"])}
        self.see(Seen.JOINED, node, guest.apps, **facts)

    def _tell_job(self, node: int, job: Job) -> None:
        """Give a guest its place, and the job."""
        self.send(node, Kind.BRANCH, {"node": node}, self._guests.pop(node))
        header = start_header(node, self._options, remote=True)
        self.send(node, Kind.START, header, job.packed())

    def _watch_rails(self, job: Job) -> RailView:
        from ompy.runtime.rails.rail_view import RailView

        return RailView(
            self._loop,
            self._printer,
            [job.hosts[placement.node] for placement in job.placements],
            self._options.sample_interval_ms,
            self._events.found,
            show=self._options.watch_rails,
            record=self._options.record_rails,
        )

    def run(self) -> int:
        """Run until every process of the job is gone and its output written."""
        self._take_signals()
        for node, link in self._links.items():
            ready = self._ready_agents.get(node)
            self.connect_agent(node, link, ready.decoder if ready else None)
        if self._input is not None:
            self._input.resume()
        self.see(Seen.BEGUN)
        self._reactor.call_later(LIVE_AFTER, self._let_watch)
        try:
            self._reactor.run_forever()
        finally:
            if self._live is not None:
                self._live.close()
            self._reactor.close()
        job = self._job_machine
        return job.verdict.exit_code or int(self._broken) or job.exit_code

    def _failed(self, loop: Reactor, context: dict[str, Any]) -> None:
        """A mistake of ours: say it and end everything."""
        if short := shortage(context.get("exception")):
            outputs.tell(f"ompy-run: error: {short}\n", "error", "error")
        else:
            loop.default_exception_handler(context)
        self._broken = True
        self._loop.stop()

    # what the machine has done

    def perform(self, act: Act) -> None:
        """Do one thing."""
        match act:
            case Show():
                self._printer.show(act.node, act.rank, act.stream, act.data)
            case TakeInput() | ResumeInput():
                if self._input is not None:
                    _go_on_reading(self._input, act)
            case AdmitGuest():
                self._tell_job(act.node, act.job)
            case Find():
                self._findings.append(act.finding)
                self._events.found(act.finding)
            case Inform():
                self._inform(act)
            case TellRail() | Watched() | CloseView() | KeepAutopsy() | ReportRails() | Widen():
                self._show_rails(act)
            case Sweep():
                self._part()
                kill_descendants(PATIENCE)
            case Suspend():
                self._suspend(act.number)
            case _:
                super().perform(act)

    def _part(self) -> None:
        """Let commands end by themselves that have to; their agents do when we are gone."""
        parting = {node: link for node, link in self._links.items() if link.parting_s}
        for node in parting:
            self.disconnect(node)
        let_end({link.pid: link.parting_s for link in parting.values()})

    def _output_changed(self, stream: int, broken: str | None) -> None:
        if broken is not None:
            self.see(Seen.BROKEN, stream, broken.encode())
        self._see_idle()

    def _see_idle(self) -> None:
        """Nothing comes behind the last report."""
        if self._reported and self._printer.idle:
            self.see(Seen.IDLE)

    # who watches

    def _let_watch(self) -> None:
        """Make the socket; a job that nobody can watch goes on all the same."""
        with suppress(OSError, ImportError):
            from ompy.runtime.launching.live_socket import LiveSocket

            self._live = LiveSocket(self._reactor, self._job_id, self._inquired)

    def _inquired(self, watcher: int, question: Mapping[str, Any]) -> None:
        self.tell(Event(Seen.INQUIRED, watcher, header=question))

    def _inform(self, act: Inform) -> None:
        """What the launcher has told its user is in each answer about ranks."""
        told = [[one.level, one.text.rstrip()] for one in self._findings if one.text]
        if self._live is not None:
            self._live.inform(act.watcher, {**act.answer, "findings": told})

    # rails

    def _show_rails(
        self, act: TellRail | Watched | CloseView | KeepAutopsy | ReportRails | Widen
    ) -> None:
        match act:
            case Widen():
                world = act.job.worlds[-1]
                self._printer.add_world(world.first, world.size)
                if self._view is not None:
                    self._view.set_hosts([act.job.hosts[p.node] for p in act.job.placements])
            case TellRail():
                tell = self._events.rail_healed if act.healed else self._events.rail_lost
                tell(act.event)
            case Watched() if self._view is not None:
                if act.kind is Kind.CARRIED:
                    self._view.carried(act.header, act.body)
                else:
                    self._view.event(act.header)
            case KeepAutopsy():
                self._find("autopsy lost", self._write_autopsy(), "warning")
            case CloseView() if self._view is not None:
                self._find("rails watched", [self._view.end(failed=act.failed)], "warning")
            case ReportRails():
                self._report_rails(list(act.lines))

    def _report_rails(self, lines: list[str]) -> None:
        """What became of rails: a line each, and the file that was asked for. It is the end."""
        lines += self._write_autopsy() if self._job_machine.proof is not None else []
        name, rails = self._options.report_rails, self._job_machine.news.rails
        if name:
            try:
                outputs.write_text(name, rails.document())
            except OSError as problem:
                why = f"{problem.strerror}; the report is lost"
                lines.append(f"warning: --report-rails {name}: {why}")
        self._find("rails", lines, rails=rails.events)
        self._reported = True
        self._see_idle()

    def _write_autopsy(self) -> list[str]:
        """Who waits for whom, for ever or when ranks were asked, if a file was asked for."""
        name, proof = self._options.autopsy, self._job_machine.proof
        asked = self._job_machine.inquests.last
        if not name or (proof is None and asked is None):
            return []
        from ompy.runtime.diagnosis.autopsy import as_json
        from ompy.runtime.diagnosis.survey import seen_waits, survey_as_json
        from ompy.runtime.diagnosis.wait_graph import wait_graph

        if proof is not None:
            found, told = proof.found, as_json(*proof)
        else:
            assert asked is not None, "one of the two"
            why, survey = asked
            found, told = seen_waits(survey), survey_as_json(survey, why)
        text = wait_graph(found) if name.endswith(".svg") else json.dumps(told, indent=1) + "\n"
        try:
            outputs.write_text(name, text)
        except OSError as problem:
            return [f"warning: --autopsy {name}: {problem.strerror}; it is lost"]
        return []

    def _find(
        self, name: str, sentences: Sequence[str], level: str = "info", **fields: Any
    ) -> None:
        for act in said(name, sentences, level, **fields):
            self.perform(act)

    # signals

    def _take_signals(self) -> None:
        """Those that were ignored when we were started, as `nohup` does, stay ignored."""
        what = dict.fromkeys(ENDING, Seen.TOLD_TO_END)
        what |= dict.fromkeys(FORWARDED, Seen.FORWARDED)
        what |= {signal.SIGTSTP: Seen.STOPPED, signal.SIGCONT: Seen.CONTINUED}
        for number, seen in what.items():
            if signal.getsignal(number) != signal.SIG_IGN:
                self._reactor.add_signal_handler(number, self.see, seen, number)

    def _suspend(self, number: int) -> None:
        """Stop ourselves as this signal does by default."""
        if self._view is not None:
            self._view.leave()
        self._reactor.remove_signal_handler(number)
        signal.raise_signal(number)
        self._reactor.add_signal_handler(number, self.see, Seen.STOPPED, number)


def _output_copies(options: LaunchOptions, size: int) -> OutputCopies | None:
    """The files for what ranks write.

    Raises:
        NotAvailable: they cannot be made.
    """
    if options.output is None:
        return None
    from ompy.mca.component import NotAvailable
    from ompy.runtime.launching.output_files import OutputCopies

    try:
        return OutputCopies(options.output, size)
    except OSError as problem:
        text = f"--output-filename {options.output.directory}: {problem.strerror}"
        raise NotAvailable(text) from None


def _children(
    links: Mapping[int, AgentLink], ready_agents: Mapping[int, ReadyAgent]
) -> list[Child]:
    """The agents that the launcher is connected to; a remote one has said what it is there."""
    pids = {node: link.pid for node, link in links.items()}
    pids |= {node: ready.pid for node, ready in ready_agents.items() if node in links}
    return [Child(node, pids[node], remote=link.remote) for node, link in links.items()]


def _machine_class(options: LaunchOptions) -> type[JobMachine]:
    """Few jobs may be joined; the others do without the rows for it."""
    if not options.joinable:
        return JobMachine
    from ompy.runtime.machines.launcher.open_job import OpenJobMachine

    return OpenJobMachine


def _go_on_reading(read: StandardInput, act: TakeInput | ResumeInput) -> None:
    """The rank has taken so much, nothing when it will take no more; or we go on after a stop."""
    if isinstance(act, ResumeInput):
        read.resume()
    elif act.size:
        read.taken(act.size)
    else:
        read.close()


def rules_of(options: LaunchOptions) -> JobRules:
    """What the machine has to know of them."""
    return JobRules(
        grace_ms=options.kill_grace_ms,
        timeout_s=options.timeout_s,
        timeout_source=options.timeout_source,
        quiet=options.quiet,
        heartbeat_s=options.heartbeat_ms / 1000,
        misses=options.heartbeat_misses,
        start_s=options.start_timeout_ms / 1000,
        display_rails=bool(options.display_rails),
        fault_strict=options.fault_strict,
        still_s=options.still_ms / 1000,
        survives=options.survives,
        kills=options.kills,
        stacks=options.stacks,
    )
