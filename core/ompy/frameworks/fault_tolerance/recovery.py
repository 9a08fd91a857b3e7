"""What one rank keeps so that its program survives the death of others (`mpi_ft_enable`).

The agents say who has died (`departures.py`). Each communicator then has a *channel*: messages with
an internal tag between its members, which nothing revokes. One between two groups has another
communicator for them, of both. A channel carries agreements (`consensus.py`) and these:

    REVOKE   the communicator is revoked. Who hears it first says it to all others, so that all who
             live hear it, whoever dies meanwhile.
    FREED    this member has freed its communicator. It goes on answering until all that live have
             said so: one whose leader has died may still ask what was decided.
    LEAVES   the same of all its communicators: this rank finalizes. It does so when all that live
             have said it, or left.

What waits for one member of many (ANY_SOURCE) is in doubt when a member has died that the program
has not acknowledged. So failures have an order in each communicator, that of the news, and a number
of them is acknowledged.

All is done with the rank's lock held, from the engine's polling or in a call of the API. Without
`mpi_ft_enable` nothing of this exists (`RankContext.recovery` is None).

| number | value | source |
|---|---|---|
| messages of a revocation among n members | at most n (n - 1) | each says it once to each other |
| tag of the channel | -55 | arbitrary: between those of `patience.py` and `partitioned.py` |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from enum import IntEnum
from functools import partial
from struct import Struct
from typing import TYPE_CHECKING, Final
from weakref import WeakSet

from ompy.data.constants import ANY_SOURCE
from ompy.data.convertor import ContiguousConvertor, GrowingConvertor
from ompy.data.errors import ERR_REVOKED, ERR_UNSUPPORTED_OPERATION, MPIError
from ompy.data.request import Request, Waitable
from ompy.frameworks.collectives.values import pack_values, unpack_values
from ompy.frameworks.fault_tolerance.consensus import Consensus, Note, Say, answer_when_over
from ompy.frameworks.pml import STANDARD, MatchedMessage, PmlWrapper
from ompy.trace.tag_names import name_tags

if TYPE_CHECKING:
    from ompy.data.convertor import Convertor
    from ompy.frameworks.communicator import Communicator
    from ompy.frameworks.context import RankContext
    from ompy.frameworks.pml import Pml
    from ompy.frameworks.proc import Proc

TAG_RECOVERY: Final = -55  # arbitrary: between those of `patience.py` and `partitioned.py`
name_tags({TAG_RECOVERY: "revocations and agreements"})

_HEADER: Final = Struct("<Bqii")  # what it is; number of the agreement, its round, accepted in
_MEMBER: Final = Struct("<i")


Release = Callable[["Communicator"], object]


class Word(IntEnum):
    """What is said on a channel that is no part of an agreement; `Say` has lower numbers."""

    REVOKE = 32
    FREED = 33
    LEAVES = 34


class Agreement(Waitable):
    """One agreement of the members of a communicator; complete when it is decided.

    Attributes:
        value: what each has said, by rank; who is not in it has died.
    """

    def __init__(self, machine: Consensus) -> None:
        super().__init__()
        self.machine = machine
        self.value: dict[int, bytes] = {}

    def __repr__(self) -> str:
        return "an agreement of the members that live"


class Channel:
    """What one communicator has for recovery.

    Attributes:
        communicator: whose.
        line: in which its messages are: the same one, or one of both groups.
        revoked: it is.
        failed: its members that have died, in the order of the news.
        acknowledged: how many of them the program has acknowledged.
        on_revoke: called when it is revoked, once.
    """

    def __init__(self, recovery: Recovery, communicator: Communicator, line: Communicator) -> None:
        self.communicator = communicator
        self.line = line
        self.revoked = False
        self.acknowledged = 0
        self.on_revoke: list[Callable[[], object]] = []
        self._recovery = recovery
        self._pml: Pml = communicator.pml
        self._begun = 0  # agreements, by number
        self._agreements: dict[int, Agreement] = {}
        self._early: dict[int, list[Note]] = {}  # of agreements that have not begun here
        self._sent: list[Request] = []
        self._listening: Request | None = None
        self._over = False
        self._followers: WeakSet[Channel] = WeakSet()
        self._freed: set[int] = set()  # members that have freed it, ranks in `procs`
        self._release: Release | None = None  # once this one has
        members = {*communicator.procs, *communicator.own}
        self._members = members
        self.failed = self.members_among(recovery.dead)

    # --- messages

    def begin_listening(self) -> None:
        """Listen."""
        if len(self._members) > 1:
            room = GrowingConvertor()
            with suppress(MPIError):
                request = self._pml.irecv(self.line, room, ANY_SOURCE, TAG_RECOVERY)
                self._listening = request
                request.notify(partial(self._arrived, request, room))

    def _close(self) -> None:
        """Listen no more."""
        self._over = True
        listening, self._listening = self._listening, None
        self._recovery.forget(self)
        if listening is not None:
            self._pml.cancel(listening)

    def _arrived(self, request: Request, room: GrowingConvertor) -> None:
        """Something came. It may come anywhere within the PML: what follows waits for a turn."""
        if request.cancelled or request.error:
            return
        self._recovery.do_soon(partial(self._take_in, request.source, room.view))

    def _take_in(self, source: int, data: memoryview | None) -> None:
        if self._over:  # meanwhile
            return
        self.begin_listening()
        if data is None:
            return
        what, number, round_, accepted = _HEADER.unpack_from(data)
        match what:
            case Word.REVOKE:
                self.revoke()
            case Word.FREED:
                self._freed.add(source)
                self.look_whether_free()
            case Word.LEAVES:
                self._recovery.leaves(self.line.procs[source])
            case _:
                said, *packed = unpack_values(data[_HEADER.size :])
                value = tuple((_MEMBER.unpack_from(v)[0], v[_MEMBER.size :]) for v in packed)
                note = Note(source, Say(what), round_, said, accepted, value)
                self._hear(number, note)

    def _say(
        self,
        target: int,
        what: int,
        number: int = 0,
        round_: int = 0,
        accepted: int = 0,
        body: bytes = b"",
    ) -> None:
        """Send one of the others something; whom it does not reach needs nothing any more."""
        packed = memoryview(_HEADER.pack(what, number, round_, accepted) + body)
        self._sent = [request for request in self._sent if not request.complete]
        with suppress(MPIError):
            request = self._pml.isend(
                self.line, ContiguousConvertor(packed), target, TAG_RECOVERY, STANDARD
            )
            self._sent.append(request)

    def tell_all(self, what: Word) -> None:
        """Send all others that are there a word."""
        me = self._recovery.me
        for place, proc in enumerate(self.line.procs):
            if proc is not me and not proc.departed:
                self._say(place, what)

    # --- revocation

    def revoke(self) -> None:
        """From now on all calls in it fail but agreements; all members that live are told."""
        if self.revoked or self._over:
            return
        self.revoked = True
        self.tell_all(Word.REVOKE)
        revoke_calls(self.communicator)
        self._pml.revoke(self.communicator, TAG_RECOVERY)
        self._recovery.on_revoked(self.communicator)
        for callback in self.on_revoke:
            callback()
        for follower in self._followers:
            follower.revoke()

    def add_follower(self, other: Channel) -> None:
        """Another communicator, of a window or a file, is to be revoked with this one."""
        self._followers.add(other)
        if self.revoked:
            other.revoke()

    # --- agreements

    def agree(self, said: bytes) -> Agreement:
        """Begin an agreement; all members that live call this equally often.

        Args:
            said: what this member says.

        Raises:
            MPIError: ERR_UNSUPPORTED_OPERATION, it is between two groups and has no line of both.
        """
        line = self.line
        if line.between:
            text = f"{line.name} is between two groups, and was made without a line of both"
            raise MPIError(ERR_UNSUPPORTED_OPERATION, text)
        self._begun += 1
        number = self._begun
        gone = [place for place, proc in enumerate(line.procs) if proc.left]
        machine = Consensus(line.rank, range(line.size), gone)
        agreement = self._agreements[number] = Agreement(machine)
        self._send(number, machine.begin_saying(said))
        for note in self._early.pop(number, ()):
            self._send(number, machine.hear(note))
        self._look_whether_decided(number)
        return agreement

    def _hear(self, number: int, note: Note) -> None:
        if number > self._begun:
            self._early.setdefault(number, []).append(note)
            return
        agreement = self._agreements.get(number)
        if agreement is None:
            self._send(number, answer_when_over(note))
            return
        self._send(number, agreement.machine.hear(note))
        self._look_whether_decided(number)

    def _send(self, number: int, notes: list[Note]) -> None:
        for note in notes:
            body = pack_values([note.said, *(_MEMBER.pack(m) + said for m, said in note.value)])
            self._say(note.peer, note.say, number, note.round, note.accepted, body)

    def _look_whether_decided(self, number: int) -> None:
        agreement = self._agreements[number]
        if agreement.machine.decided:
            del self._agreements[number]
            agreement.value = dict(agreement.machine.value)
            agreement.finish()

    def note_failed(self, procs: Iterable[Proc]) -> None:
        """Others know that these have died, of which the news are under way."""
        self.failed += [proc for proc in procs if proc not in self.failed]

    def members_among(self, procs: Iterable[Proc]) -> list[Proc]:
        """Those of some processes that are members."""
        return [proc for proc in procs if proc in self._members]

    def lose(self, proc: Proc) -> None:
        """A process has died, or left."""
        if proc not in self._members:
            return
        procs = self.line.procs
        if proc in procs and not self.line.between:
            place = procs.index(proc)
            for number, agreement in list(self._agreements.items()):
                self._send(number, agreement.machine.lose(place))
                self._look_whether_decided(number)
        self.look_whether_free()

    # --- the end

    def free(self, release: Release) -> None:
        """This member needs it no more.

        Args:
            release: gives a communicator back, when nobody can ask anything in it any more.
        """
        if self._release is None:
            self._release = release
            self.tell_all(Word.FREED)
            self.look_whether_free()

    def look_whether_free(self) -> None:
        """Give it back if all members have freed it that are there."""
        if self._release is None:
            return
        for place, proc in enumerate(self.line.procs):
            if proc is not self._recovery.me and not proc.left and place not in self._freed:
                return
        release, self._release = self._release, None
        self._close()
        release(self.communicator)
        if self.line is not self.communicator:
            release(self.line)


class RevokedPml(PmlWrapper):
    """What a communicator has once it is revoked: nothing begins any more."""

    __slots__ = ()

    def isend(
        self, communicator: Communicator, convertor: Convertor, target: int, tag: int, mode: int
    ) -> Request:
        """Refuse."""
        raise revoked_error(communicator)

    def irecv(
        self, communicator: Communicator, convertor: Convertor, source: int, tag: int
    ) -> Request:
        """Refuse."""
        raise revoked_error(communicator)

    def iprobe(self, communicator: Communicator, source: int, tag: int) -> Request | None:
        """Refuse."""
        raise revoked_error(communicator)

    def probe(self, communicator: Communicator, source: int, tag: int) -> Request:
        """Refuse."""
        raise revoked_error(communicator)

    def improbe(self, communicator: Communicator, source: int, tag: int) -> MatchedMessage | None:
        """Refuse."""
        raise revoked_error(communicator)

    def mprobe(self, communicator: Communicator, source: int, tag: int) -> MatchedMessage:
        """Refuse."""
        raise revoked_error(communicator)


def revoke_calls(communicator: Communicator) -> None:
    """Have whatever begins in a communicator fail from now on."""
    communicator.revoked = True
    communicator.pml = RevokedPml(communicator.pml)
    if communicator.coll is not None:
        communicator.coll.refuse_all(partial(revoked_error, communicator))


def revoked_error(communicator: Communicator) -> MPIError:
    """The error of calls in a communicator that is revoked."""
    return MPIError(ERR_REVOKED, f"{communicator.name} has been revoked: Shrink makes a new one")


class Recovery:
    """What one rank has for recovery.

    Attributes:
        dead: those that have died, in the order of the news.
        on_unreachable: told a rank to which no path leads any more; one of the two will be ended,
            as agreements count on it that the living reach each other.
    """

    def __init__(self, context: RankContext) -> None:
        self._context = context
        self._channels: dict[int, Channel] = {}
        self._leaving: set[int] = set()  # ranks that finalize
        self._left = False
        self.dead = context.departures.dead
        self.on_unreachable: Callable[[int], object] = lambda _rank: None
        self.on_revoked: Callable[[Communicator], object] = lambda _communicator: None
        context.departures.add_listener(self._heard)

    @property
    def me(self) -> Proc:
        """This process."""
        return self._context.me

    def channel(self, communicator: Communicator) -> Channel:
        """That of a communicator."""
        return self._channels[communicator.context_id]

    def add_communicator(self, communicator: Communicator, line: Communicator) -> None:
        """One has been made.

        Args:
            communicator: it.
            line: for the messages of its channel.
        """
        channel = self._channels[communicator.context_id] = Channel(self, communicator, line)
        channel.begin_listening()

    def on_revoke(self, communicator: Communicator, callback: Callable[[], object]) -> None:
        """Call `callback` when it is revoked; at once if it is."""
        channel = self._channels.get(communicator.context_id)
        if channel is not None and channel.communicator is communicator:
            channel.on_revoke.append(callback)
            if channel.revoked:
                callback()

    def forget(self, channel: Channel) -> None:
        """A communicator goes."""
        self._channels.pop(channel.communicator.context_id, None)

    def do_soon(self, what: Callable[[], object]) -> None:
        """Do something at the engine's next turn."""
        self._context.engine.call_later(0, what)

    def release(self, communicator: Communicator, release: Release) -> None:
        """A communicator is freed; `release` is called when nobody asks in it any more."""
        channel = self._channels.get(communicator.context_id)
        if channel is None or channel.communicator is not communicator:
            release(communicator)
        else:
            self.do_soon(partial(channel.free, release))

    def unacknowledged(self, communicator: Communicator) -> Proc | None:
        """A member that has died, and the program has not acknowledged it."""
        channel = self._channels.get(communicator.context_id)
        if channel is None or channel.acknowledged >= len(channel.failed):
            return None
        return channel.failed[channel.acknowledged]

    def share_fate(self, communicator: Communicator, hidden: Communicator) -> None:
        """Have a communicator that users do not see revoked with that it was made of."""
        self.channel(communicator).add_follower(self.channel(hidden))

    def revoke(self, communicator: Communicator) -> None:
        """Revoke a communicator."""
        channel = self._channels.get(communicator.context_id)
        if channel is not None and channel.communicator is communicator:
            with self._context.engine.lock:
                channel.revoke()

    def _heard(self, proc: Proc, _silent: bool) -> None:
        """Noted at once, as the PML looks at what is in doubt; the rest waits for a turn."""
        if proc in self.dead:
            for channel in self._channels.values():
                channel.note_failed(channel.members_among([proc]))
        self.do_soon(partial(self._lose, proc))

    def _lose(self, proc: Proc) -> None:
        for channel in list(self._channels.values()):
            channel.lose(proc)

    def leaves(self, proc: Proc) -> None:
        """A rank finalizes."""
        if proc.rank not in self._leaving:
            self._leaving.add(proc.rank)
            self._context.departures.left(proc.rank)

    def finalize(self) -> None:
        """Return when all that live finalize too, so that nobody has anything to ask any more."""
        engine = self._context.engine
        with engine.lock:
            if self._left:
                return
            self._left = True
            for channel in list(self._channels.values()):
                channel.tell_all(Word.LEAVES)
        engine.wait_until(self._all_leave)

    def _all_leave(self) -> bool:
        return not any(
            proc is not self.me and not proc.left
            for channel in self._channels.values()
            for proc in channel.line.procs
        )
