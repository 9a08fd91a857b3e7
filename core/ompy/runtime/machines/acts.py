"""What a machine of the control plane has its driver do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from ompy.frameworks.job import Job
from ompy.mca.reporting import Finding
from ompy.runtime.connections.control import Kind
from ompy.runtime.machines.events import NOTHING

PARENT: Final = -1  # stands for the parent where an agent below is asked for


class Send(NamedTuple):
    """Say a word to the parent or to an agent below; nothing happens if that has gone."""

    to: int
    kind: Kind
    header: Mapping[str, Any] = NOTHING
    body: bytes = b""


class Drop(NamedTuple):
    """Close the connection to an agent below, and end what stands for it here."""

    node: int


class Stop(NamedTuple):
    """Leave the loop: this process has nothing more to decide."""


class Sweep(NamedTuple):
    """Kill every process below this one, except shells that lead to other agents."""


class Find(NamedTuple):
    """Tell the user."""

    finding: Finding


# the launcher's


class Show(NamedTuple):
    """Write what a rank has written."""

    node: int
    rank: int
    stream: int
    data: bytes


class TakeInput(NamedTuple):
    """The rank has taken so many bytes of standard input; 0: it takes no more."""

    size: int


class ResumeInput(NamedTuple):
    """Standard input may be read again, if it is ours."""


class TellRail(NamedTuple):
    """Tell all who listen that a rail broke, or that it is used again."""

    healed: bool
    event: Mapping[str, Any]


class Watched(NamedTuple):
    """Something for the view of rails: what they carried, or what became of one."""

    kind: Kind
    header: Mapping[str, Any]
    body: bytes


class CloseView(NamedTuple):
    """The job is over: leave the view of rails as it is, and say what there is to say."""

    failed: bool


class KeepAutopsy(NamedTuple):
    """Write the autopsy to the file that was asked for, if one was."""


class ReportRails(NamedTuple):
    """Tell what became of rails, and write the file that was asked for."""

    lines: Sequence[str]


class Suspend(NamedTuple):
    """Stop this process, as the signal does by default."""

    number: int


class Inform(NamedTuple):
    """Answer somebody who watches the job; nothing happens if nobody is there any more."""

    watcher: int
    answer: Mapping[str, Any]


class Widen(NamedTuple):
    """The job has more ranks now."""

    job: Job


class AdmitGuest(NamedTuple):
    """Tell a guest its job."""

    node: int
    job: Job


class MakeJob(NamedTuple):
    """All agents are here, with these parts: make the job of them (MADE or UNUSABLE)."""

    parts: Sequence[Mapping[str, Any]]


class Released(NamedTuple):
    """No agent needs the coordinator any longer."""


# an agent's


class ToRank(NamedTuple):
    """Say a word to an MPI process; nothing happens if it has gone."""

    rank: int
    kind: Kind
    header: Mapping[str, Any] = NOTHING
    body: bytes = b""


class Admit(NamedTuple):
    """Make an MPI process a rank: the key, the job, its lifeline."""

    rank: int


class Hang(NamedTuple):
    """Close the connection to an MPI process: it ends by that."""

    rank: int


class SignalRanks(NamedTuple):
    """Send a signal to the process groups of the ranks that run, not to those of `but`."""

    number: int
    but: frozenset[int] = frozenset()


class Terminate(NamedTuple):
    """Ask all processes of the job here to end, stopped ones too; not the MPI process of `but`."""

    but: int = -1


class Kill(NamedTuple):
    """Kill all processes of the job here; not the MPI process of `but`."""

    but: int = -1


class AskRanks(NamedTuple):
    """Have the MPI processes say where they are (WHERE)."""


class Reap(NamedTuple):
    """Look for processes that have ended."""


class Look(NamedTuple):
    """Say which ranks are on their way out (OUTLOOK).

    Those in `finalized` are not, only because their MPI process is.
    """

    finalized: frozenset[int]


class Credit(NamedTuple):
    """So many bytes more of output may be sent."""

    size: int


class Feed(NamedTuple):
    """Standard input for the rank that has it; nothing is its end."""

    data: bytes


class CloseStreams(NamedTuple):
    """Send on what the ranks have written until now, and close what leads to them."""


class Grow(NamedTuple):
    """The job has one world more; start those of its ranks (FORKED or UNFORKED for each)."""

    body: bytes
    start: tuple[int, ...]


class KillRank(NamedTuple):
    """Kill the processes of one rank."""

    rank: int


# passive agents'


class Keep(NamedTuple):
    """A rank that has come is ours: tell it so, and watch it and, if it has one, its starter."""

    who: int
    rank: int
    starter: int


class TurnAway(NamedTuple):
    """Refuse a rank that has come by a code and a text; without a code close its connection.

    An empty text says that the reason has been told.
    """

    who: int
    code: int | None = None
    text: str = ""


class WatchTasks(NamedTuple):
    """Under Slurm: whether tasks of this host end without having come (MISSING)."""


class Meet(NamedTuple):
    """Find the coordinator, or be it (MET or UNMET)."""

    leads: bool
    part: Mapping[str, Any]


class TakeMeeting(NamedTuple):
    """Use the connection to the coordinator, or close it."""

    take: bool


class Say(NamedTuple):
    """Tell the user a sentence."""

    text: str


class Adopt(NamedTuple):
    """The job has begun: serve those that were kept as its ranks. The body is the job."""

    body: bytes


class CancelStep(NamedTuple):
    """Have Slurm end the whole step."""


Act = (
    Send
    | Drop
    | Stop
    | Sweep
    | Find
    | Show
    | TakeInput
    | ResumeInput
    | TellRail
    | Watched
    | CloseView
    | KeepAutopsy
    | ReportRails
    | Suspend
    | Inform
    | MakeJob
    | Widen
    | AdmitGuest
    | Grow
    | KillRank
    | Released
    | ToRank
    | Admit
    | Hang
    | SignalRanks
    | Terminate
    | Kill
    | AskRanks
    | Reap
    | Look
    | Credit
    | Feed
    | CloseStreams
    | Keep
    | TurnAway
    | WatchTasks
    | Meet
    | Say
    | TakeMeeting
    | Adopt
    | CancelStep
)
