"""How a job ended: the first failure decides (reference openmpi.md 2.6). Does no I/O."""

from __future__ import annotations

import errno
import shlex
import signal
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from ompy.frameworks.job import Job, JobWorld, called_abort
from ompy.runtime.diagnosis.call_account import ADVICE, complaint
from ompy.runtime.diagnosis.rank_spans import ranks_in_words
from ompy.runtime.machines.stages import Stage

IMPROPER: Final = 1  # reference openmpi.md 2.6: an end without MPI_Init or MPI_Finalize
TIMED_OUT: Final = errno.ETIMEDOUT  # reference openmpi.md 2.6: 110 on Linux
BY_SIGNAL: Final = 128  # reference openmpi.md 2.6: plus the number of the signal
PROGRAM_WIDTH: Final = 54  # columns; arbitrary: a line of a report with its label fits a terminal
HOSTS_SHOWN: Final = 6  # arbitrary: names that fit a line
BROKEN: Final = 1  # arbitrary: the launcher itself failed

_SIGNAL_ADVICE: Final[dict[int, str]] = {
    signal.SIGKILL: "Something outside the job killed it. Running out of memory is the usual "
    "cause: see `dmesg`, or the limits of the container.",
    signal.SIGSEGV: "Native code crashed. `python -X faulthandler` shows the Python line.",
    signal.SIGBUS: "Native code crashed, or memory behind a mapped file was not to be had. "
    "`python -X faulthandler` shows the Python line.",
    signal.SIGABRT: "Native code gave up; it mostly says why in the output above.",
}


class Failure(NamedTuple):
    """Why a job failed.

    Attributes:
        code: the launcher's exit code.
        headline: what happened, a sentence or two.
        facts: what it happened to: names and values.
        advice: what to do.
    """

    code: int
    headline: str
    facts: tuple[tuple[str, str], ...] = ()
    advice: str = ""


class _Rank:
    """What the launcher knows of a rank."""

    def __init__(self, number: int, host: str, program: str) -> None:
        self.number = number
        self.host = host
        self.program = program
        self.pid = 0
        self.stage = Stage.STARTED
        self.exited = False
        self.dead = False  # it had not finalized, and the job went on without it
        self.world: JobWorld | None = None  # of those that came later
        self.discarded = False  # with it: what is told of it was under way

    def facts(self) -> tuple[tuple[str, str], ...]:
        name = str(self.number)
        if self.world is not None:
            place, root = self.number - self.world.first, self.world.root
            whose = f"that rank {root} spawned" if self.world.parents else "of a guest"
            name += f" (rank {place} of {self.world.size} {whose})"
        return (
            ("rank", name),
            ("host", self.host),
            ("process", str(self.pid or "none")),
            ("program", self.program),
        )


def _shown(argv: tuple[str, ...]) -> str:
    """A command on one line of a terminal."""
    text = " ".join(shlex.join(argv).split())
    return text if len(text) <= PROGRAM_WIDTH else f"{text[:PROGRAM_WIDTH]} ..."


class Verdict:
    """Told what happens to a job; knows its exit code.

    Attributes:
        failure: the first failure, None as long as there was none.
    """

    def __init__(self, job: Job) -> None:
        self.failure: Failure | None = None
        self._unstarted: dict[str, list[int]] = {}  # ranks, by why
        self._told: Failure | None = None  # about these
        self._accounts: dict[int, Mapping[str, Any]] = {}
        self._ranks = [
            _Rank(p.rank, job.hosts[p.node], _shown(job.apps[p.app].argv)) for p in job.placements
        ]

    def add_world_of(self, job: Job) -> None:
        """The job has one world more."""
        for p in job.placements[len(self._ranks) :]:
            made = _Rank(p.rank, job.hosts[p.node], _shown(job.apps[p.app].argv))
            made.world = job.world_of(p.rank)
            self._ranks.append(made)

    def discarded(self, world: JobWorld) -> None:
        """A world has not come about: the end of its ranks means nothing."""
        for rank in self._ranks[world.first : world.first + world.size]:
            rank.exited, rank.stage = True, Stage.FINALIZED
            rank.discarded = True

    def is_discarded(self, rank: int) -> bool:
        """Whether it is of a world that has not come about."""
        return self._ranks[rank].discarded

    @property
    def in_mpi(self) -> frozenset[int]:
        """The ranks that run and are between MPI_Init and MPI_Finalize."""
        running = (rank for rank in self._ranks if not rank.exited)
        return frozenset(rank.number for rank in running if rank.stage is Stage.INITIALIZED)

    @property
    def living(self) -> frozenset[int]:
        """The ranks whose processes have not ended, whether they are in MPI or not."""
        return frozenset(rank.number for rank in self._ranks if not rank.exited)

    @property
    def dead(self) -> frozenset[int]:
        """The ranks without which the job has gone on."""
        return frozenset(rank.number for rank in self._ranks if rank.dead)

    def has_ended(self, rank: int) -> bool:
        """Whether a rank has, as far as is known here."""
        return self._ranks[rank].exited

    def is_in_mpi(self, rank: int) -> bool:
        """Whether a rank has initialised MPI; it may have finalized it."""
        return self._ranks[rank].stage in {Stage.INITIALIZED, Stage.FINALIZED}

    def state_of(self, rank: int) -> dict[str, Any]:
        """What is known of a rank without asking it: number, host, pid, state, program."""
        known = self._ranks[rank]
        state = known.stage.value if not known.exited else "dead" if known.dead else "ended"
        return {
            "rank": rank,
            "host": known.host,
            "pid": known.pid,
            "state": state,
            "program": known.program,
        }

    @property
    def exit_code(self) -> int:
        """What the launcher ends with."""
        return self.failure.code if self.failure else 0

    def started(self, rank: int, pid: int) -> None:
        """A rank runs."""
        self._ranks[rank].pid = pid

    def unstarted(self, rank: int, code: int, reason: str) -> None:
        """A rank could not be started. Those of which the same is said are told of together."""
        equal = self._unstarted.setdefault(reason, [])
        equal.append(rank)
        if self.failure is None or (self.failure is self._told and len(equal) > 1):
            who = ranks_in_words(equal)
            facts = self._ranks[equal[0]].facts() if len(equal) == 1 else ()
            headline = f"{who[0].upper()}{who[1:]} could not be started: {reason}."
            self.failure = self._told = Failure(code, headline, facts)

    def advanced(self, rank: int, stage: Stage, calls: Mapping[str, Any] | None = None) -> None:
        """A rank has reached a stage.

        Args:
            rank: which.
            stage: what it has reached.
            calls: the account of its collective calls, when it has finalized.
        """
        if self._ranks[rank].discarded:
            return
        self._ranks[rank].stage = stage
        if stage is Stage.FINALIZED and calls:
            self._accounts[rank] = calls
            self._compare_calls()
        self._look_for_improper_end()

    def exited(self, rank: int, status: int, *, expendable: bool = False) -> bool:
        """A rank has ended.

        Args:
            rank: which.
            status: its exit code, or minus the number of a signal.
            expendable: the others can do without it: however it ended, it counts as finalized.

        Returns:
            Whether it is one that had not finalized, and the job goes on without.
        """
        if self._ranks[rank].discarded:
            return False
        done = self._ranks[rank].stage is Stage.FINALIZED
        self._ranks[rank].exited = True
        if expendable:
            self._ranks[rank].stage = Stage.FINALIZED
            self._ranks[rank].dead = not done
            self._look_for_improper_end()
            self._look_for_survivors(rank, status)
        elif status < 0:
            self._killed(rank, -status)
        elif status > 0:
            headline = f"Rank {rank} ended with exit code {status}, so the whole job was ended."
            advice = "If it said why, its output above has it."
            self._fail(status, headline, rank, advice)
        else:
            self._look_for_improper_end()
        return expendable and not done

    def _look_for_survivors(self, rank: int, status: int) -> None:
        """Where ranks may die the others say how the job went; if there are none, the last does."""
        if all(other.dead for other in self._ranks):
            code = BY_SIGNAL - status if status < 0 else status or IMPROPER
            self._fail(code, f"No rank has survived; the last was rank {rank}.", rank)

    def _killed(self, rank: int, number: int) -> None:
        try:
            name = f"{signal.Signals(number).name}, {signal.strsignal(number)}"
        except ValueError:  # a real-time signal
            name = "no name"
        headline = f"Rank {rank} was killed by signal {number} ({name}); the job was ended."
        advice = _SIGNAL_ADVICE.get(
            number, "Nothing in the job sends this signal unasked: look for who did."
        )
        self._fail(BY_SIGNAL + number, headline, rank, advice)

    def _look_for_improper_end(self) -> None:
        """A rank that ended with 0 in the middle of MPI, or before it while others use MPI."""
        initialized = any(
            rank.stage in {Stage.INITIALIZED, Stage.FINALIZED} for rank in self._ranks
        )
        for rank in self._ranks:
            if not rank.exited or rank.stage is Stage.FINALIZED:
                continue
            if rank.stage is Stage.INITIALIZED:
                what = "after MPI_Init or gasnet.init, without MPI_Finalize or gasnet.exit"
                advice = (
                    "A rank that uses MPI or GASNet has to leave it before it ends; os._exit() and "
                    "exec skip that. Other ranks might wait for it for ever."
                )
            elif initialized:
                what = "without MPI_Init or gasnet.init, while other ranks called it"
                advice = (
                    "Either all ranks of a job use MPI, or GASNet, or none. Look for a branch that "
                    "leaves the program early, or for a program that is not the one you meant."
                )
            else:
                continue
            headline = f"Rank {rank.number} ended {what}, so the whole job was ended."
            self._fail(IMPROPER, headline, rank.number, advice)

    def _compare_calls(self) -> None:
        """All have finalized: were their collective calls the same."""
        if len(self._accounts) == len(self._ranks):
            found = complaint(self._accounts)
            self._accounts.clear()
            if found:
                headline = f"The ranks did not make the same collective calls: {found}"
                self._set(Failure(IMPROPER, headline, advice=ADVICE))

    def lost(self, rank: int, pid: int) -> None:
        """The MPI process of a rank went without finalizing; the wrapper around it lives."""
        if self._ranks[rank].discarded:
            return
        headline = (
            f"The MPI process {pid} of rank {rank} went without MPI_Finalize, while the program "
            "that started it goes on. The whole job was ended."
        )
        self._fail(IMPROPER, headline, rank, "Its exit code is known to its parent only.")

    def vanished(self, rank: int, pid: int, launcher: str, *, orphan: bool = False) -> None:
        """A rank that another launcher has started ended without finalizing, or lost its parent."""
        if orphan:
            headline = f"The process that started rank {rank} is gone. The job was ended."
            advice = f"It was killed, or {launcher} itself failed there."
            self._fail(IMPROPER, headline, rank, advice)
            return
        headline = f"Rank {rank} (process {pid}) ended without MPI_Finalize. The job was ended."
        advice = f"Its exit code is known to {launcher}; its output above may say why."
        self._fail(IMPROPER, headline, rank, advice)

    def aborted(self, rank: int, pid: int, code: int, reason: str) -> None:
        """A rank has ended the job."""
        if self._ranks[rank].discarded:
            return
        self._ranks[rank].pid = pid
        known = reason == called_abort(code)  # which the box says without it
        headline = f"Rank {rank} aborted the job with code {code}{'.' if known else f': {reason}'}"
        facts = (*self._ranks[rank].facts(), ("call", "MPI_Abort"))  # tools look for this word
        self._set(Failure(code % 256, headline, facts))

    def timed_out(self, seconds: float, source: str) -> None:
        """The job has taken longer than it may."""
        headline = f"The job was ended because it ran longer than {seconds:g} s ({source})."
        self._set(Failure(TIMED_OUT, headline, self._whereabouts()))

    def failed(self, failure: Failure) -> None:
        """Something that is none of the others: a proof that ranks never go on, for one."""
        self._set(failure)

    def _whereabouts(self) -> tuple[tuple[str, str], ...]:
        """How far the ranks that still run have come, by stage."""
        found: dict[str, list[int]] = {}
        for rank in self._ranks:
            if not rank.exited:
                found.setdefault(rank.stage, []).append(rank.number)
        return tuple((stage, ranks_in_words(ranks)) for stage, ranks in found.items())

    def signalled(self, number: int) -> None:
        """The launcher was told to end."""
        name = signal.Signals(number).name
        self._set(Failure(BY_SIGNAL + number, f"The job was ended by {name} to ompy-run."))

    def agent_lost(self, host: str, pid: int, reason: str, below: Sequence[str] = ()) -> None:
        """An agent has gone, or talks nonsense for the reason given.

        Args:
            host: where it was.
            pid: of the agent there.
            reason: what is known of it; may be empty.
            below: the hosts whose agents it had started, which end with it.
        """
        facts: tuple[tuple[str, str], ...] = (("host", host), ("process", str(pid)))
        if below:
            more = f" and {len(below) - HOSTS_SHOWN} more" if len(below) > HOSTS_SHOWN else ""
            facts += (("with it", ", ".join(below[:HOSTS_SHOWN]) + more),)
        headline = "The process that looks after the ranks of a host is gone. The job was ended."
        advice = reason or (
            "Something killed it, or its host is down; a message above may say more."
        )
        self._set(Failure(BROKEN, headline, facts, advice))

    def output_broken(self, reason: str) -> None:
        """Standard output takes no more; an empty reason means that its reader went away."""
        if reason:
            headline = f"Standard output cannot be written: {reason}. The job was ended."
            self._set(Failure(BROKEN, headline))
        else:
            self._set(Failure(BY_SIGNAL + signal.SIGPIPE, ""))

    def _fail(self, code: int, headline: str, rank: int, advice: str = "") -> None:
        self._set(Failure(code, headline, self._ranks[rank].facts(), advice))

    def _set(self, failure: Failure) -> None:
        """The first failure is the cause, what follows its consequence."""
        if self.failure is None:
            self.failure = failure
