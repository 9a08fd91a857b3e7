"""The agent: the process that starts the ranks of one host and answers for them.

It ends when its connection to the launcher ends, and takes every process of the job on this
host with it.
"""

from __future__ import annotations

import json
import os
import select
import socket
from typing import TYPE_CHECKING, Final

from ompy import outputs
from ompy.frameworks.job import Job
from ompy.runtime.connections.control import (
    AGENT_NAME,
    KEY_SIZE,
    ControlError,
    Decoder,
    Frame,
    Kind,
    encode,
)
from ompy.runtime.connections.frame_io import receive_frames, send_all
from ompy.runtime.connections.pipes import Connection
from ompy.runtime.diagnosis.shortage import shortage, tell_of
from ompy.runtime.ranks.descendants import become_subreaper, control_process, kill_descendants
from ompy.runtime.ranks.rank_starter import NO_PLACE, RankStarter
from ompy.runtime.ranks.ranks import LocalRank, adopted_rank
from ompy.runtime.ranks.spawn import Spawned, raise_open_files
from ompy.runtime.ranks.warm import WarmStart

if TYPE_CHECKING:
    from ompy.runtime.agents.agent_proof import AgentProof
    from ompy.runtime.ranks.forked import ForkedRank

OPEN_FILES: Final = 8192  # arbitrary: six per rank, so more ranks than a host will run
START_PATIENCE: Final = 600.0  # s; arbitrary: agents of other hosts may take long to be ready
PATIENCE: Final = 5.0  # s; arbitrary: killed processes go at once unless the kernel holds them
_SET_NAME: Final = 15  # Linux PR_SET_NAME
LAUNCHER_GONE: Final = 1  # exit code nobody is left to read


def serve(
    connection: Connection, warm: WarmStart | None = None, proof: AgentProof | None = None
) -> ForkedRank:
    """Be an agent: run what the launcher at the other end says.

    Args:
        connection: to the launcher; it then belongs to the agent.
        warm: what this process has to be for ranks to be forks of it; None if it is not.
        proof: by which this agent has proven itself, if it had to: the job key is in it.

    Returns:
        Not in the agent, which ends itself. In a fork of it that is a rank: what to run, once the
        caller has nothing of the agent left.
    """
    outcome: ForkedRank | int = LAUNCHER_GONE
    try:
        _become_agent()
        if warm is not None:
            warm.warm_up()
        decoder = Decoder()
        first = _receive_first(connection, decoder)
        if first is not None and first.kind is Kind.BRANCH:
            from ompy.runtime.agents.relay import relay  # few agents become one

            outcome = relay(connection, decoder, first, proof)
        elif first is not None:
            if proof is not None:
                first = first._replace(body=proof.key + first.body)
            outcome = _run(connection, decoder, first, warm)
    except KeyboardInterrupt:  # meant for the launcher, before we left its terminal
        pass
    except ControlError as problem:
        outputs.tell(f"ompy-agent: error: {problem}\n", "error", "error")
    except BaseException as problem:
        if short := shortage(problem):
            tell_of(short)
        else:
            import traceback

            traceback.print_exc()
    finally:
        if isinstance(outcome, int):
            try:
                kill_descendants(PATIENCE)
            finally:  # what cannot be listed dies with its parent
                os._exit(outcome)
    connection.close()
    decoder.close()
    return outcome


def _become_agent() -> None:
    """Leave the launcher's terminal and standard streams, keep its standard error."""
    os.setsid()
    control_process(_SET_NAME, AGENT_NAME.encode())
    become_subreaper()
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    os.close(null)


def _receive_first(connection: Connection, decoder: Decoder) -> Frame | None:
    """The first message, or None when the launcher has gone, or its host without a word."""
    while (frame := decoder.next()) is None:
        ready, _, _ = select.select([connection], [], [], START_PATIENCE)
        try:
            if not ready or not receive_frames(connection, decoder):
                return None
        except BlockingIOError:  # half a record
            continue
    if frame.kind not in {Kind.START, Kind.BRANCH}:
        raise ControlError(f"the first message is {frame.kind.name}, START was expected")
    return frame


def _run(
    connection: Connection, decoder: Decoder, start: Frame, warm: WarmStart | None
) -> int | ForkedRank:
    """Start the ranks, then the loop that looks after them: it is imported while they start."""
    job = Job.from_dict(json.loads(start.body[KEY_SIZE:]))
    starter = RankStarter(start.header, raise_open_files(OPEN_FILES), warm)
    ours = [p for p in job.placements if p.node == start.header["node"]]
    ranks = []
    if "adopted" in start.header:
        registration = socket.socket(fileno=start.descriptors[0])
        ranks.append(adopted_rank(start.header["adopted"], registration))
        _tell_started(connection, ours[0].rank, ranks[-1].process, {})
        ours = []
    host = job.hosts[start.header["node"]]
    nowhere = starter.place_ranks([placement.rank for placement in ours], host)
    for placement in ours:
        if nowhere:
            _tell_unstarted(connection, placement.rank, NO_PLACE, nowhere)
            continue
        with_stdin = placement.rank == job.stdin_rank
        try:
            process = starter.start_rank(job, placement, with_stdin=with_stdin)
        except OSError as problem:
            why = f"no process could be started: {problem.strerror}"
            _tell_unstarted(connection, placement.rank, 1, why)
            continue
        if not isinstance(process, Spawned):
            return process
        _tell_started(connection, placement.rank, process, starter.report_of(placement.rank))
        ranks.append(LocalRank(placement.rank, placement.local_rank, process))

    from ompy.runtime.agents.supervisor import Supervisor
    from ompy.runtime.ranks.forked import BecomeRank

    supervisor = Supervisor(connection, decoder, job, ranks, start, starter)
    try:
        code = supervisor.run()
    except BecomeRank as fork:
        return fork.rank
    kill_descendants(PATIENCE)
    supervisor.clean_up()
    return code


def _tell_started(
    connection: Connection, rank: int, process: Spawned, more: dict[str, str]
) -> None:
    send_all(connection, encode(Kind.STARTED, {"rank": rank, "pid": process.pid, **more}))


def _tell_unstarted(connection: Connection, rank: int, code: int, why: str) -> None:
    send_all(connection, encode(Kind.UNSTARTED, {"rank": rank, "code": code}, why.encode()))
