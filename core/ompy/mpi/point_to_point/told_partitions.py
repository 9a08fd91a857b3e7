"""Partitioned messages in a world that tries all orders: which partition is told of when.

There the sender chooses the tags of partitions, as messages of an explored world have room for
tags that nothing has had before. So it waits for no answer, and its offer is the only message
beside the partitions. Offers have a tag for each user's tag: so they match in the order of the
requests (MPI 4.1, 4.2.1), and depend on nothing else. The world is told which messages belong
together, and says when a program is told of a whole message, or that a partition has come.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from struct import Struct
from typing import TYPE_CHECKING, Any, Final

from ompy.data.convertor import ContiguousConvertor
from ompy.data.errors import ERR_INTERN, MPIError
from ompy.data.request import Deferred, Request
from ompy.frameworks.direct import TAG_PARTITIONS, DirectLine, DirectRequest, Whole
from ompy.mpi.point_to_point.partition_channels import (
    PARTITIONS_MAX,
    Answered,
    Channels,
    Offer,
    Offered,
    Parts,
    problem_of,
)
from ompy.trace.tag_names import name_tags_by

if TYPE_CHECKING:
    from ompy.mpi.state import CommState

# tags of offers, less the user's; arbitrary: clear of all others, and of those of requests
TAG_OFFERS: Final = -(1 << 44)
_OFFER: Final = Struct("<qQQ")

name_tags_by(lambda tag: "an offer of partitions" if tag <= TAG_OFFERS else "")


class ToldChannels(Channels):
    """Partitioned messages of one communicator, on one rank."""

    def __init__(self, state: CommState, line: DirectLine) -> None:
        super().__init__(state)
        self.line = line
        self._used: defaultdict[int, int] = defaultdict(int)  # tags, by target

    def make_offer(self, target: int, tag: int, parts: Parts, answered: Answered) -> None:
        """Offer partitions to a rank, and say with which tags they are sent.

        Raises:
            MPIError: ERR_INTERN, there are not so many tags.
        """
        used = self._used[target]
        if used + parts.partitions > PARTITIONS_MAX:
            raise MPIError(ERR_INTERN, f"no more than {PARTITIONS_MAX} partitions are explored")
        self._used[target] += max(parts.partitions, 1)
        first = TAG_PARTITIONS - used
        self._send(target, TAG_OFFERS - tag, _OFFER.pack(first, *parts))
        answered(first, None)

    def await_offer(self, source: int, tag: int, offered: Offered) -> None:
        """Be told of the next offer of a rank with a tag."""
        self.post_offer(source, tag, offered)

    def post_offer(self, source: int, tag: int, offered: Offered) -> int:
        """The same; returns the number of the receive."""
        room = memoryview(bytearray(_OFFER.size))
        into = ContiguousConvertor(room)
        request = self._pml.irecv(self._communicator, into, source, TAG_OFFERS - tag)
        assert isinstance(request, DirectRequest), "the world matches it"
        request.notify(partial(self._hear, request, room, tag, offered))
        number: int = request.number
        return number

    def _hear(self, request: Request, room: memoryview, tag: int, offered: Offered) -> None:
        problem = problem_of(request)
        if problem is not None:
            offered(None, problem)
            return
        first, partitions, size = _OFFER.unpack(room)
        offered(Offer(0, tag, Parts(partitions, size), first), None)

    def take_tags(self, source: int, offer: Offer, count: int) -> int:
        """The first of the tags of what is offered."""
        del source, count
        return offer.first

    def answer_offer(self, target: int, offer: Offer, first: int, error: int = 0) -> None:
        """The sender waits for none; where the receive fails, its partitions come to nothing."""
        del first
        for each in range(offer.parts.partitions if error else 0):
            room = memoryview(bytearray(offer.parts.size))
            into = ContiguousConvertor(room)
            self._pml.irecv(self._communicator, into, target, offer.first - each)

    def release_tags(self, source: int, first: int) -> None:
        """No tag is used again."""


class ToldMessage:
    """What the world tells of one partitioned request.

    Attributes:
        whole: what the program waits for, of the last start.
    """

    def __init__(self, channels: ToldChannels, context: int) -> None:
        """Nothing is under way.

        Args:
            channels: of the communicator.
            context: its id.
        """
        self._channels = channels
        self._line = channels.line
        self._context = context
        self._offer = 0  # the receive of it, and the operation that it belongs to
        self._made: Whole | None = None
        self.whole: Whole | None = None
        self._asked: dict[int, Whole] = {}  # partitions that the program has asked for

    def await_offer(self, source: int, tag: int, offered: Offered) -> None:
        """Wait for the sender to tell of the message."""
        self._made = self._line.begin_parts(self._context, Deferred(), kept=True, asked=True)
        self._offer = self._channels.post_offer(source, tag, offered)
        self._line.add_parts(self._made, [self._offer])

    def begin_message(self, message: Request) -> Whole:
        """A start: what the program waits for until `message` is complete, and it is told."""
        self._asked = {}
        whole = self.whole = self._line.begin_parts(self._context, message, kept=True)
        if self._made is not None:
            self._line.add_parts(whole, [self._offer], of=self._made)
        return whole

    def post_receives(self, post: Any) -> None:
        """Post receives for the partitions; which there are says the offer alone.

        Args:
            post: posts them, and returns them.
        """
        assert self.whole is not None, "it was started"
        with self._line.stepping(self.whole):
            posted: Sequence[Request] = post()
        self._line.add_parts(self.whole, _numbers(posted))

    def sent(self, request: Request) -> None:
        """A partition is sent, as the program has made it ready."""
        assert self.whole is not None, "it was started"
        numbers = [] if request.complete else _numbers([request])
        if not self.whole.complete:
            self._line.add_parts(self.whole, numbers, now=True)

    def look_for(self, partition: int, receives: Any) -> bool:
        """Whether the program is told that a partition is here.

        Args:
            partition: of the receiver.
            receives: says of which receives it consists; None while that is not known.
        """
        assert self.whole is not None, "it was started"
        if self.whole.complete:
            return True
        whole = self._asked.get(partition)
        if whole is None:
            whole = self._line.begin_parts(self._context, Deferred(), asked=True)
            self._asked[partition] = whole
            found: Sequence[Request] | None = receives(partition)
            if found is not None:
                self._watch(whole, found)
        return whole.complete or self._line.look_for(whole)

    def watch_asked(self, receives: Any) -> None:
        """Now it is known of which receives partitions consist that were asked for."""
        for partition, whole in self._asked.items():
            self._watch(whole, receives(partition))

    def _watch(self, whole: Whole, receives: Sequence[Request]) -> None:
        assert self.whole is not None, "it was started"
        self._line.add_parts(whole, _numbers(receives), of=self.whole)
        missing = [each for each in receives if not each.complete]
        message = whole.of
        assert isinstance(message, Request), "it was begun so"
        left = len(missing)

        def come() -> None:
            nonlocal left
            left -= 1
            if not left:
                message.finish()

        for each in missing:
            each.notify(come)
        if not missing:
            message.finish()


def _numbers(requests: Sequence[Request]) -> list[int]:
    return [one.number for one in requests if isinstance(one, DirectRequest)]


def told_message(state: CommState, channels: Channels) -> ToldMessage | None:
    """What the world tells of a request; None where it tells nothing."""
    if not isinstance(channels, ToldChannels):
        return None
    return ToldMessage(channels, state.communicator.context_id)


def channels_of(state: Any) -> Channels:
    """Those of a communicator, made on first use."""
    if state.partitions is None:
        line = state.communicator.context.direct
        told = line is not None and line.explores
        state.partitions = ToldChannels(state, line) if told else Channels(state)
    found: Channels = state.partitions
    return found
