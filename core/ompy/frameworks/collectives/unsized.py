"""Messages whose size only their sender knows, between all members of a communicator at once.

Objects are of any size, and a receiver that waits for a message does not know how long it will be.
A module of coll that has memory in common may carry them there (`CollModule.unsized_messages`): one
call instead of one message for each pair, and nothing to match. A message that has no room there is
told of, and goes as a message of the PML: its readers get None for it. So each sender decides for
itself, and its readers do as they are told.

| call | a member's part | what it gets |
|---|---|---|
| bcast | the root's message | the root's |
| gather | its message | the root: all of them |
| allgather | its message | all of them |
| scatter | the root: one for each member | its own |
| alltoall | one for each member | what each has for it |
| along | one for each edge that leads away | what comes along each edge that leads here |

A member that fails before its part is done says so in place of it (`give_up`): those who need the
part get an error, and the next call goes on as if nothing had been.
"""

from __future__ import annotations

from typing import Any

from ompy.compiled import ccall, cclass
from ompy.frameworks.collectives.neighbours import Neighbours


@cclass
class UnsizedMessages:
    """The calls of one member. All members make the same ones in the same order.

    A message is `bytes`, or None for one that is longer than there is room for. What a member gets
    is a copy in memory of its own, or None for what comes as a message of the PML; in a list, the
    place of its own is None, too.

    Attributes:
        room: bytes up to which a message may have to go this way.
        block_room: the same for one of those that differ from member to member.
    """

    block_room: int
    room: int
    __slots__ = tuple(__annotations__)

    @ccall
    def begun(self) -> int:
        """A number that grows by one with each call here that this member has begun."""
        raise NotImplementedError

    @ccall
    def give_up(self, code: int) -> None:
        """Take no part in the next call.

        Args:
            code: of the error that those get who need this member's part.
        """
        raise NotImplementedError

    @ccall
    def bcast(self, said: Any, root: int) -> Any:
        """The root's message. What others than the root give, and what the root gets, is None.

        Raises:
            MPIError: as every call here: a member has left, given up, or makes another call.
        """
        raise NotImplementedError

    @ccall
    def gather(self, said: Any, root: int) -> list[Any] | None:
        """All members' messages, by rank, at the root; None elsewhere, at once."""
        raise NotImplementedError

    @ccall
    def allgather(self, said: Any) -> list[Any]:
        """All members' messages, by rank."""
        raise NotImplementedError

    @ccall
    def scatter(self, said: list[Any] | None, root: int) -> Any:
        """This member's message of the root's, which are by rank. None at the root."""
        raise NotImplementedError

    @ccall
    def edge_room(self, edges: Neighbours) -> int:
        """Bytes up to which a message along these edges may go this way."""
        raise NotImplementedError

    @ccall
    def along(self, said: list[Any], edges: Neighbours) -> list[Any]:
        """What comes along each edge that leads here; None also where nobody is.

        Args:
            said: a message for each target.
            edges: of this member.
        """
        raise NotImplementedError

    @ccall
    def alltoall(self, said: list[Any]) -> list[Any]:
        """What all members have for this one, by rank."""
        raise NotImplementedError
