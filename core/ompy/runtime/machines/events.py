"""What happens to a machine of the control plane, and the error where it cannot happen."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from ompy.runtime.connections.control import Kind

NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


class Seen(Enum):
    """What a driver sees."""

    # words: the event has a kind, a header and a body
    ABOVE = "a word of the parent"
    BELOW = "a word of an agent below"
    RANK = "a word of a rank"
    # ends
    PARENT_GONE = "the connection to the parent has ended"
    CHILD_GONE = "the connection to an agent below has ended"
    CLIENT_GONE = "the connection to an MPI process has ended"
    EXITED = "the process of a rank has ended"
    EMPTY = "no process of the job is left here"
    # all processes
    BEGUN = "the driver is ready"
    TIME = "the moment that the machine asked for has come"
    TOLD_TO_END = "a signal that ends this process"
    # the launcher's surroundings
    STOPPED = "a signal that stops this process"
    CONTINUED = "it goes on"
    FORWARDED = "a signal that is meant for the ranks"
    READ = "something was read from standard input"
    WRITTEN = "output of a host needs no more memory"
    BROKEN = "an output stream takes no more"
    JOINED = "a guest has come, and has proven itself"
    INQUIRED = "somebody who watches the job asks"
    IDLE = "all output is written"
    # an agent's
    ATTACHED = "an MPI process has made itself known"
    UNEXECUTABLE = "a program could not be executed"
    FORKED = "the process of a rank of a later world has been started"
    UNFORKED = "it could not be"
    REAPED = "the ends of processes were looked for"
    OUTLOOK = "which ranks are on their way out"
    # passive mode, an agent's
    CAME = "an MPI process, or an agent, has come by itself"
    MET = "there is a connection to the coordinator"
    UNMET = "there will be none"
    STARTER_GONE = "the process that started a rank has ended"
    MISSING = "processes of a host ended that had not come"
    COORDINATED = "the coordinator in this process needs it no longer"
    # passive mode, the coordinator's
    MADE = "the job is made"
    UNUSABLE = "none can be made, or an agent is of no use"


class Event(NamedTuple):
    """One thing that has happened.

    Attributes:
        what: it is.
        who: the agent below, rank, number of one that comes; a signal's number; a count of bytes.
        kind: of a word.
        header: of a word; facts of other events.
        body: of a word; the reason of an end.
    """

    what: Seen
    who: int = -1
    kind: Kind | None = None
    header: Mapping[str, Any] = NOTHING
    body: bytes = b""

    @property
    def text(self) -> str:
        """The body, for people."""
        return self.body.decode(errors="replace")

    def __str__(self) -> str:
        return f"{self.what.value}: {self.kind.name}" if self.kind else self.what.value


class WrongPhase(AssertionError):
    """A machine was told something that cannot happen where it is."""
