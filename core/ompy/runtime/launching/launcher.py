"""The launcher: starts the agents of a job, shows what the ranks write, ends with their code."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ompy.frameworks.job import Job
from ompy.frameworks.plm import AgentLink, CommandPlm, PlmComponent, Target
from ompy.mca.component import NotAvailable
from ompy.runtime.agents.agent_tree import Branch, Tree, parents
from ompy.runtime.agents.early_agent import discard
from ompy.runtime.connections.control import KEY_SIZE, Kind, encode
from ompy.runtime.connections.frame_io import send_all
from ompy.runtime.connections.pipes import connection_of
from ompy.runtime.launching.job_events import SILENT, Reporting
from ompy.runtime.ranks.descendants import become_subreaper, kill_descendants

if TYPE_CHECKING:
    from ompy.runtime.agents.agent_proof import AgentProof
    from ompy.runtime.agents.agent_start import ReadyAgent
    from ompy.runtime.guests.listener import GuestListener
    from ompy.runtime.launching.kills import Kill
    from ompy.runtime.place.mapper import Rule

PATIENCE: Final = 5.0  # s; arbitrary: killed processes go at once unless the kernel holds them


class OutputFiles(NamedTuple):
    """Files for what ranks write.

    Attributes:
        directory: absolute path of a folder; it is made.
        copied: it goes to our own streams too.
        numbered: there is a folder for each job in it.
    """

    directory: str
    copied: bool = True
    numbered: bool = True


class Debugged(NamedTuple):
    """A rank that runs under a debugger.

    Attributes:
        rank: which.
        words: what stands before its program (`debugging.py`).
        terminal: path of the terminal that the rank talks to by itself; empty for pipes.
        waits_at: where an editor attaches; empty if none is waited for.
    """

    rank: int
    words: tuple[str, ...]
    terminal: str = ""
    waits_at: str = ""


class LaunchOptions(NamedTuple):
    """How the launcher behaves; nothing of it concerns the ranks.

    Attributes:
        universe: how many ranks the hosts are meant for.
        kill_grace_ms: from SIGTERM to SIGKILL when ranks are ended.
        tag: mark each line of output with its rank and stream.
        timestamp: mark each line of output with the time.
        timeout_s: end the job after so many seconds; 0 for never.
        timeout_source: what set the timeout, for the message.
        quiet: say nothing about how the job ended.
        start_timeout_ms: how long agents of other hosts may take to be ready.
        attach_timeout_ms: how long a rank waits for the first answer of its agent.
        heartbeat_ms: how often they and the launcher let each other hear from them.
        heartbeat_misses: how often the launcher hears nothing before an agent is lost.
        launcher_misses: the same for the launcher, with the agents.
        radix: how many agents the launcher or an agent starts on other hosts; 0 for any number.
        concurrent: how many of them at the same time.
        fault_strict: a fault of the script that never struck is an error.
        survives: a rank that dies does not end the job (mpi_ft_enable).
        kills: who is killed on purpose.
        spares: processes on each host that wait to be ranks which are spawned.
        joinable: path of the ticket by which guests may join; empty if none may.
        join_address: where the launcher listens for them.
        fork_ranks: agents may run programs in forks of themselves.
        display_rails: what is shown of rails that break, one of `DISPLAY_RAILS`.
        report_rails: the file for the report of them; empty for none.
        autopsy: the file for who waits for whom, if ranks do for ever; empty for none.
        still_ms: how long a rank sleeps before it says so.
        watch_rails: show what rails carry while the job runs.
        record_rails: the file for what they carried; empty for none.
        sample_interval_ms: how often ranks say so.
        adopted: the process that is rank 0 and was not started, and the descriptor of its
            registration socket.
        place: how the ranks of each host are bound; None if nothing is asked.
        merged: standard error of ranks goes where their standard output does.
        output: files for what ranks write; None for none.
        debug: the rank that runs under a debugger; None for none.
        stacks: at a timeout, show where each thread of each rank is.
    """

    universe: int
    kill_grace_ms: int
    tag: bool = False
    timestamp: bool = False
    timeout_s: float = 0.0
    timeout_source: str = ""
    quiet: bool = False
    start_timeout_ms: int = 0
    attach_timeout_ms: int = 300_000  # as the parameter
    heartbeat_ms: int = 0
    heartbeat_misses: int = 0
    launcher_misses: int = 0
    radix: int = 0
    concurrent: int = 128  # Open MPI 4.1: plm_rsh_num_concurrent
    fault_strict: bool = False
    survives: bool = False
    kills: tuple[Kill, ...] = ()
    spares: int = 0
    joinable: str = ""
    join_address: str = "127.0.0.1"
    fork_ranks: bool = False
    display_rails: int = 0
    report_rails: str = ""
    autopsy: str = ""
    still_ms: int = 250
    watch_rails: bool = False
    record_rails: str = ""
    sample_interval_ms: int = 100
    adopted: tuple[int, int] | None = None
    place: Rule | None = None
    merged: bool = False
    output: OutputFiles | None = None
    debug: Debugged | None = None
    stacks: bool = False


Starts = Sequence[tuple[PlmComponent, Target]]


def launch(job: Job, starts: Starts, options: LaunchOptions, reporting: Reporting = SILENT) -> int:
    """Run a job to its end. Returns the exit code (reference openmpi.md 2.6).

    For a process of its own: it takes over signals and the standard streams, becomes the
    parent of everything the job leaves behind, and kills all its descendants in the end.

    Args:
        job: what runs.
        starts: what starts the agent of each of its hosts.
        options: how to go about it.
        reporting: how what is said is written, and who else is told.

    Raises:
        NotAvailable: an agent could not be started on one of the hosts; none is left.
        ControlError: the job is too large to be told to an agent.
    """
    become_subreaper()
    links: dict[int, AgentLink] = {}
    listener: GuestListener | None = None
    try:
        tree = Tree(_branches(starts, options.radix))
        for node, (plm, target) in enumerate(starts):
            if not isinstance(plm, CommandPlm):
                links[node] = plm.start_agent(target)
        discard()
        proof = _proof(starts)
        ready_agents: Mapping[int, ReadyAgent] = {}
        if len(links) < len(starts) or any(link.remote for link in links.values()):
            from ompy.runtime.agents.agent_start import AgentStart

            start = AgentStart(tree, links, options.concurrent, proof=proof)
            ready_agents = start.run(options.start_timeout_ms / 1000)
            _set_partings(starts, links)
            job = _with_cores(job, ready_agents, options.place.elements if options.place else 1)
        key = proof.key if proof is not None else os.urandom(KEY_SIZE)
        if options.joinable:
            listener = _listener(job, options, key)
            job = job._replace(told_machines=_machines(job, options.join_address))
        _tell(job, links, options, key)

        from ompy.runtime.launching.coordinator import Coordinator  # imported while the ranks start

        coordinator = Coordinator(job, links, options, tree, ready_agents, reporting)
        coordinator.let_guests_in(listener)
        return coordinator.run()
    finally:
        if listener is not None:
            listener.stop_accepting()
        for link in links.values():
            link.channel.close()
        kill_descendants(PATIENCE)


def _set_partings(starts: Starts, links: Mapping[int, AgentLink]) -> None:
    """Commands that have to end by themselves get the time for it."""
    for node, link in links.items():
        plm = starts[node][0]
        if isinstance(plm, CommandPlm):
            link.parting_s = plm.parting_s


def _branches(starts: Starts, radix: int) -> list[Branch]:
    """The agents that are started by commands: who starts which of them, parents first.

    Only those of one component start each other: what leads from the launcher's host to one by
    ssh need not lead from there to one of Slurm's.

    Raises:
        NotAvailable: a component cannot start anything there.
    """
    nodes: dict[str, list[int]] = {}
    for node, (plm, _) in enumerate(starts):
        if isinstance(plm, CommandPlm):
            nodes.setdefault(plm.name, []).append(node)
    found = []
    for ours in nodes.values():
        plm = starts[ours[0]][0]
        assert isinstance(plm, CommandPlm), "that is how they were chosen"
        for node, parent in parents(ours, radix if plm.anywhere else 0).items():
            target = starts[node][1]
            command = tuple(plm.command(target))
            found.append(Branch(node, parent, target.name, command, plm.secret() is not None))
    return found


def _proof(starts: Starts) -> AgentProof | None:
    """By what agents prove themselves whose connections nothing else protects.

    Raises:
        NotAvailable: they cannot.
    """
    found = {plm.secret(): plm for plm, _ in starts if isinstance(plm, CommandPlm)}
    found.pop(None, None)
    if not found:
        return None
    from ompy.runtime.agents.agent_proof import AgentProof
    from ompy.runtime.connections.credentials import CredentialError

    secret, plm = found.popitem()
    try:
        return AgentProof(secret or "")
    except CredentialError as problem:
        without = f"; where nobody can: --mca plm_{plm.name}_seal none"
        raise NotAvailable(
            f"{problem}. What plm {plm.name} starts agents by carries the job key otherwise, and "
            f"whoever reads the network could read it"
            f"{without if any(one.name == 'seal' for one in plm.parameters) else ''}"
        ) from None


def _listener(job: Job, options: LaunchOptions, key: bytes) -> GuestListener:
    """Where guests come in.

    Raises:
        NotAvailable: nobody can be let in.
    """
    from ompy.runtime.guests.listener import GuestListener
    from ompy.runtime.guests.ticket import TicketError

    try:
        return GuestListener(options.joinable, job.job_id, options.join_address, key)
    except TicketError as problem:
        raise NotAvailable(f"--joinable {options.joinable}: {problem}") from None
    except (OSError, ValueError) as problem:
        why = getattr(problem, "strerror", None) or problem
        text = f"plm_base_join_address {options.join_address}: cannot listen there: {why}"
        raise NotAvailable(text) from None


def _machines(job: Job, address: str) -> int:
    """How many machines a job's hosts are, guests' included, who may be elsewhere or not."""
    from ipaddress import ip_address

    elsewhere = len(job.hosts) > 1 or not ip_address(address).is_loopback
    return len(job.hosts) + 1 if elsewhere else 1


def _with_cores(job: Job, ready_agents: Mapping[int, ReadyAgent], each: int) -> Job:
    """The job, now that the other hosts have said how many cores they have, if ranks take some."""
    oversubscribed = any(
        (placement.local_rank + 1) * each > ready_agents[placement.node].cores
        for placement in job.placements
        if placement.node in ready_agents
    )
    return job._replace(oversubscribed=job.oversubscribed or oversubscribed)


def start_header(node: int, options: LaunchOptions, *, remote: bool) -> dict[str, Any]:
    """What START says to the agent of a host, beside the job."""
    header: dict[str, Any] = {
        "node": node,
        "universe": options.universe,
        "interactive": os.isatty(0),
        "spares": options.spares,
        "several": bool(options.joinable),
        "heartbeat_ms": options.heartbeat_ms if remote else 0,
        "heartbeat_misses": options.launcher_misses,
        "fork_ranks": options.fork_ranks,
        "agent_misses": options.heartbeat_misses,
        "start_timeout_ms": options.start_timeout_ms,
        "attach_timeout_ms": options.attach_timeout_ms,
        "merged": options.merged,
    }
    if options.place is not None:
        header["place"] = options.place._asdict()
    if options.debug is not None:
        header["debug"] = options.debug._asdict()
    return header


def _tell(job: Job, links: Mapping[int, AgentLink], options: LaunchOptions, key: bytes) -> None:
    """Send each agent its job and the key all its processes share; they tell those below.

    An agent that has proven itself has the key.

    Raises:
        NotAvailable: a remote one does not read it.
    """
    body = job.packed()
    for node, link in links.items():
        header = start_header(node, options, remote=link.remote)
        registrations: list[int] = []
        if options.adopted is not None:
            header["adopted"], *registrations = options.adopted
        told = body if link.sealed is not None else key + body
        frame = encode(Kind.START, header, told, len(registrations))
        if link.remote:
            link.channel.settimeout(options.start_timeout_ms / 1000)
        try:
            send_all(connection_of(link), frame, registrations)
        except TimeoutError:
            raise NotAvailable(f"the agent on host {link.host} does not take its job") from None
        except OSError:  # it has ended already: its channel will say so
            pass
