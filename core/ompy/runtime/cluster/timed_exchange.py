"""All messages of a cluster's ranks: when they are there, what they meet, when that is known.

A message leaves a rank when its processor has spent the overhead, moves as a flow over links, and
is there a latency later. Messages of one rank to another arrive in order. What arrives meets the
first posted receive that fits; a receive takes what came first. With a rendezvous only the envelope
comes at once, and the bytes move when a receive is there. Pure but for a clock that it is given.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, Protocol

from ompy.data.constants import ANY_SOURCE, ANY_TAG
from ompy.runtime.cluster.flow_network import FlowNetwork
from ompy.runtime.cluster.model import CROSSINGS_LEAST, Cluster, MessageCosts, Way
from ompy.runtime.cluster.topology import LinkName
from ompy.runtime.exploration.events import DONE, FROM, NOTHING

MEMORY: Final = "memory"
NETWORK: Final = "network"
POLL_LEAST: Final = 100  # ns; arbitrary: any positive number makes polling end

Operation = tuple[int, int]  # a rank, and the number of one of its operations


class Clock(Protocol):
    """Virtual time."""

    time: int

    def after(self, delay: int, callback: Callable[[], object]) -> None:
        """Call in so many ns."""


class Message:
    """A message.

    Attributes:
        sender: who has begun it.
        context: id of the communicator.
        target: receiver's rank in the job.
        source: sender's rank in the communicator.
        tag: of it.
        data: its bytes.
        costs: of its size and way.
        waited: its sender is told when it is complete.
        synchronous: and that is when it is matched.
        latency: ns, with that of the links.
        here: it has arrived, or its envelope has.
        whole: all of its bytes have.
        ended: called when they have.
    """

    __slots__ = (
        "context",
        "costs",
        "data",
        "ended",
        "here",
        "latency",
        "sender",
        "source",
        "synchronous",
        "tag",
        "target",
        "waited",
        "whole",
    )

    def __init__(
        self,
        sender: Operation,
        to: tuple[int, int],
        source: int,
        tag: int,
        data: bytes,
        costs: MessageCosts,
        latency: int,
    ) -> None:
        self.sender = sender
        self.context, self.target = to
        self.source = source
        self.tag = tag
        self.data = data
        self.costs = costs
        self.latency = latency
        self.waited = self.synchronous = False
        self.here = self.whole = False
        self.ended: Callable[[], object] | None = None


class Receive:
    """A receive that is posted."""

    __slots__ = ("number", "source", "tag")

    def __init__(self, number: int, source: int, tag: int) -> None:
        self.number = number
        self.source = source
        self.tag = tag

    def fits(self, message: Message) -> bool:
        """Whether it may take a message; internal tags are not for wildcards."""
        if self.source not in {ANY_SOURCE, message.source}:
            return False
        return self.tag == message.tag or (self.tag == ANY_TAG and message.tag >= 0)


class Box:
    """Where messages and receives of a rank meet, in one communicator."""

    __slots__ = ("posted", "sent", "waiting")

    def __init__(self) -> None:
        self.posted: list[Receive] = []
        self.waiting: list[Message] = []
        self.sent: dict[int, int] = {}  # messages, by the sender's rank in the job

    def take_receive(self, message: Message) -> Receive | None:
        """The first that fits, which is posted no longer."""
        for place, receive in enumerate(self.posted):
            if receive.fits(message):
                return self.posted.pop(place)
        return None

    def find_message(self, source: int, tag: int, *, takes: bool) -> Message | None:
        """The first that fits and has no receive."""
        asked = Receive(0, source, tag)
        for place, message in enumerate(self.waiting):
            if asked.fits(message):
                return self.waiting.pop(place) if takes else message
        return None


class RankState:
    """What one rank has to do with messages.

    Attributes:
        arrived: what is complete for it, and its processor has not dealt with.
        told: what it is told with the next answer.
        wanted: operations that it waits for; None if it does not wait.
        others: it waits for any other, too.
        probes: it waits for a message that a probe finds.
        busy: ns; its processor deals with messages until then.
        next_send: ns; the earliest that its next message can leave.
    """

    __slots__ = ("arrived", "busy", "next_send", "others", "probes", "told", "wanted")

    def __init__(self) -> None:
        self.arrived: list[tuple[int, tuple[Any, ...]]] = []
        self.told: list[tuple[Any, ...]] = []
        self.wanted: frozenset[int] | None = None
        self.others = False
        self.probes = False
        self.busy = 0
        self.next_send = 0


class TimedExchange:
    """Messages, receives and links of one cluster.

    Attributes:
        counts: messages and bytes, by the way they take.
        poll_cost: ns of virtual time that a poll takes, as much as a message costs a processor.
    """

    def __init__(
        self, cluster: Cluster, hosts: Sequence[int], clock: Clock, wake: Callable[[int], object]
    ) -> None:
        """Nothing is under way.

        Args:
            cluster: what it costs.
            hosts: of each rank.
            clock: virtual time.
            wake: told a rank that may go on.
        """
        self._cluster = cluster
        self._hosts = list(hosts)
        self._clock = clock
        self._wake = wake
        self._ranks = [RankState() for _ in self._hosts]
        self._boxes: dict[tuple[int, int], Box] = {}
        self._pairs: dict[tuple[int, int], deque[Message]] = {}
        self._flows = FlowNetwork()
        self._links: dict[LinkName, int] = {}
        self._ways: dict[tuple[int, int], tuple[tuple[int, ...], int]] = {}
        self._settling = False
        self._tick = -1  # ns; when the flows are looked at next
        first = cluster.memory.messages[0].overhead
        self.poll_cost = max(first, POLL_LEAST)
        self.counts = {MEMORY: [0, 0], NETWORK: [0, 0]}

    # what ranks do

    def costs(self, rank: int, target: int, size: int) -> MessageCosts:
        """Of a message from rank to rank."""
        return self._way(rank, target).costs(size)

    def busy_until(self, rank: int) -> int:
        """When the rank's processor has dealt with what it was told of (ns)."""
        return self._ranks[rank].busy

    def send_message(
        self,
        sender: Operation,
        to: tuple[int, int],
        source: int,
        tag: int,
        data: bytes,
        *,
        waited: bool,
        synchronous: bool,
    ) -> None:
        """A message leaves; its sender has spent the overhead.

        Args:
            sender: the rank and the number of the operation.
            to: context id and rank in the job.
            source: the sender's rank in the communicator.
            tag: of it.
            data: its bytes.
            waited: the sender is told when it is complete.
            synchronous: it is complete when it is matched.
        """
        rank, target = sender[0], to[1]
        costs = self.costs(rank, target, len(data))
        latency = costs.latency + self._route(rank, target)[1]
        message = Message(sender, to, source, tag, data, costs, latency)
        message.waited, message.synchronous = waited, synchronous
        count = self.counts[self._kind(rank, target)]
        count[0] += 1
        count[1] += len(data)
        box = self._box(to)
        box.sent[rank] = box.sent.get(rank, 0) + 1
        self._pairs.setdefault((rank, target), deque()).append(message)
        state, now = self._ranks[rank], self._clock.time
        start = max(now, state.next_send)
        state.next_send = start + costs.gap
        if start > now:
            self._clock.after(start - now, partial(self._leave, message))
        else:
            self._leave(message)

    def post_receive(self, operation: Operation, context: int, source: int, tag: int) -> None:
        """A rank posts a receive."""
        rank, number = operation
        box = self._box((context, rank))
        message = box.find_message(source, tag, takes=True)
        receive = Receive(number, source, tag)
        if message is None:
            box.posted.append(receive)
        else:
            self._match(message, partial(self._received, rank, number, message))

    def cancel_receive(self, operation: Operation) -> bool:
        """Cancel a receive, unless it is matched."""
        rank, number = operation
        for (_, owner), box in self._boxes.items():
            for place, receive in enumerate(box.posted if owner == rank else ()):
                if receive.number == number:
                    del box.posted[place]
                    return True
        return False

    def forget(self, context: int, rank: int) -> None:
        """A rank has freed a communicator."""
        self._boxes.pop((context, rank), None)

    def find_message(
        self, rank: int, context: int, source: int, tag: int, *, takes: bool
    ) -> Message | None:
        """What a probe finds now; a message that is taken may still be on its way (`whole`)."""
        found = self._box((context, rank)).find_message(source, tag, takes=takes)
        if found is not None and takes:
            self._match(found, partial(self._wake, rank))
        return found

    def tell_rank(self, rank: int, news: tuple[Any, ...]) -> None:
        """Have a rank told something with its next answer."""
        self._ranks[rank].told.append(news)

    def begin_wait(
        self, rank: int, wanted: Sequence[int], *, others: bool = False, probes: bool = False
    ) -> bool:
        """A rank waits. Whether it already has what it waits for.

        Args:
            rank: which.
            wanted: numbers of operations.
            others: any other suffices.
            probes: a message that no receive has taken suffices.
        """
        state = self._ranks[rank]
        state.wanted, state.others, state.probes = frozenset(wanted), others, probes
        arrived, state.arrived = state.arrived, []
        for overhead, news in arrived:
            self._deal_with(rank, overhead, news)
        return any(self._satisfies(state, news) for news in state.told)

    def end_wait(self, rank: int) -> None:
        """It does not wait any more."""
        state = self._ranks[rank]
        state.wanted, state.others, state.probes = None, False, False

    def take_arrived(self, rank: int) -> int:
        """A rank polls: it is told of all that has come. Returns the overhead of that, in ns."""
        state = self._ranks[rank]
        arrived, state.arrived = state.arrived, []
        state.told += [news for _, news in arrived]
        return sum(overhead for overhead, _ in arrived)

    # what the world asks

    def news(self, rank: int) -> list[tuple[Any, ...]]:
        """What the rank is told now."""
        state = self._ranks[rank]
        told, state.told = state.told, []
        return told

    def link_loads(self) -> list[tuple[LinkName, int, float]]:
        """Each link that was used: name, bytes, and bytes per ns that it has."""
        links = self._flows.links
        found = [(name, links[at].carried, links[at].capacity) for name, at in self._links.items()]
        return [one for one in found if one[1]]

    def fill_in(self, said: Mapping[int, dict[str, Any]]) -> None:
        """Say of ranks what they cannot say themselves: what was sent, and what nothing took.

        Args:
            said: how ranks stand, as `standing.py` has it; those that wait are filled in.
        """
        for rank, standing in said.items():
            if standing.get("live"):
                continue
            standing["sent"] = {comm: [] for comm in standing["begun"]}
            standing["received"] = {comm: [] for comm in standing["begun"]}
            standing["unmatched"] = []
            for (context, to), box in self._boxes.items():
                self._fill_in_box(rank, standing, context, to, box)

    def _fill_in_box(
        self, rank: int, standing: dict[str, Any], context: int, to: int, box: Box
    ) -> None:
        for sender, count in box.sent.items():
            if rank == sender:
                standing["sent"].setdefault(str(context), []).append([to, count])
            if rank == to:
                standing["received"].setdefault(str(context), []).append([sender, count])
        if rank == to:
            standing["unmatched"] += [
                [context, one.sender[0], number, one.tag, len(one.data)]
                for number, one in enumerate(box.waiting, 1)
            ]

    # how it is done

    def _box(self, place: tuple[int, int]) -> Box:
        found = self._boxes.get(place)
        if found is None:
            found = self._boxes[place] = Box()
        return found

    def _kind(self, rank: int, target: int) -> str:
        return MEMORY if self._hosts[rank] == self._hosts[target] else NETWORK

    def _way(self, rank: int, target: int) -> Way:
        near = self._kind(rank, target) == MEMORY
        return self._cluster.memory if near else self._cluster.network

    def _route(self, rank: int, target: int) -> tuple[tuple[int, ...], int]:
        """Links from rank to rank, and ns that these take."""
        found = self._ways.get((rank, target))
        if found is not None:
            return found
        way, here, there = self._way(rank, target), self._hosts[rank], self._hosts[target]
        hops: tuple[LinkName, ...] = (("memory", here),)
        capacity, latency = self._cluster.memory_bandwidth, 0
        if here != there:
            hops = self._cluster.topology.route(here, there)
            capacity = self._cluster.link_bandwidth
            latency = self._cluster.hop_latency * len(hops)
        kind = self._kind(rank, target)
        ports = [(f"sends ({kind})", rank, way.port), (f"receives ({kind})", target, way.port)]
        if way.rank_bandwidth:
            ends = dict.fromkeys((rank, target))
            ports += [(f"sends and receives ({kind})", end, way.rank_bandwidth) for end in ends]
        links = [self._link((what, end), bandwidth) for what, end, bandwidth in ports]
        links += [self._link(hop, capacity) for hop in hops]
        self._ways[rank, target] = tuple(links), latency
        return self._ways[rank, target]

    def _link(self, name: LinkName, capacity: float) -> int:
        found = self._links.get(name)
        if found is None:
            found = self._links[name] = self._flows.add_link(capacity)
        return found

    def _leave(self, message: Message) -> None:
        if message.costs.rendezvous:
            self._clock.after(self._envelope(message), partial(self._arrive, message))
            return
        self._move(message, partial(self._after_move, message, partial(self._arrive, message)))

    def _envelope(self, message: Message) -> int:
        """What a message without bytes takes on the same way (ns)."""
        rank, target = message.sender[0], message.target
        return self._way(rank, target).messages[0].latency + self._links_latency(message)

    def _links_latency(self, message: Message) -> int:
        """That of all links on the way (ns)."""
        return self._route(message.sender[0], message.target)[1]

    def _move(self, message: Message, ended: Callable[[], object]) -> None:
        """Have the bytes move: all but the first take time (LogGP)."""
        size = len(message.data) - 1
        if size <= 0:
            ended()
            return
        way = self._route(message.sender[0], message.target)[0]
        self._flows.begin_flow(self._clock.time, way, size, message.costs.bandwidth, ended)
        self._plan_settling()

    def _after_move(self, message: Message, arrived: Callable[[], object]) -> None:
        message.whole = True
        self._clock.after(message.latency, arrived)

    def _plan_settling(self) -> None:
        if not self._settling:
            self._settling = True
            self._clock.after(0, self._settle)

    def _settle(self) -> None:
        self._settling = False
        self._flows.share_links(self._clock.time)
        due = self._flows.next_due()
        if due is not None and not self._clock.time <= self._tick <= due:
            self._tick = due
            self._clock.after(due - self._clock.time, self._end_flows)

    def _end_flows(self) -> None:
        now = self._clock.time
        if now == self._tick:
            self._tick = -1
        for ended in self._flows.take_ended(now):
            assert callable(ended), "as `_move` gave it"
            ended()
        self._plan_settling()

    def _arrive(self, message: Message) -> None:
        """A message is there, or its envelope; those that were sent before it are first."""
        message.here = True
        pair = self._pairs[message.sender[0], message.target]
        while pair and pair[0].here:
            self._deliver(pair.popleft())

    def _deliver(self, message: Message) -> None:
        box = self._box((message.context, message.target))
        receive = box.take_receive(message)
        if receive is None:
            box.waiting.append(message)
            if self._ranks[message.target].probes:
                self._wake(message.target)
            return
        self._match(message, partial(self._received, message.target, receive.number, message))

    def _match(self, message: Message, ended: Callable[[], object]) -> None:
        """A message has met its receive: it ends at once, or its bytes begin to move."""
        sent = partial(self._sent, message)
        if message.costs.rendezvous:
            move = partial(self._move, message, partial(self._end_rendezvous, message, ended, sent))
            self._clock.after(self._links_latency(message), move)  # the sender gets the answer
            return
        message.whole = True
        if message.waited:
            self._clock.after(message.latency, sent)
        ended()

    def _end_rendezvous(
        self, message: Message, ended: Callable[[], object], sent: Callable[[], object]
    ) -> None:
        """The bytes have left. Crossings follow, the last of which only the receiver waits for."""
        links = self._links_latency(message)
        left = message.costs.crossings - CROSSINGS_LEAST  # after the bytes' own
        if message.waited:
            self._clock.after(links * left, sent)
        message.whole = True
        rest = message.latency - self._envelope(message)
        self._clock.after(max(rest, 0) + links * (1 + left), ended)

    def _sent(self, message: Message) -> None:
        rank, number = message.sender
        self._complete(rank, 0, (DONE, number, message.source, message.tag, None))

    def _received(self, rank: int, number: int, message: Message) -> None:
        news = (DONE, number, message.source, message.tag, message.data)
        self._complete(rank, message.costs.overhead, news)

    def _complete(self, rank: int, overhead: int, news: tuple[Any, ...]) -> None:
        state = self._ranks[rank]
        if state.wanted is None:
            state.arrived.append((overhead, news))
        else:
            self._deal_with(rank, overhead, news)

    def _deal_with(self, rank: int, overhead: int, news: tuple[Any, ...]) -> None:
        """The processor of a rank that waits takes what has come, one after the other."""
        state, now = self._ranks[rank], self._clock.time
        state.busy = max(state.busy, now) + overhead
        if state.busy > now:
            self._clock.after(state.busy - now, partial(self._dealt_with, rank, news))
        else:
            self._dealt_with(rank, news)

    def _dealt_with(self, rank: int, news: tuple[Any, ...]) -> None:
        state = self._ranks[rank]
        state.told.append(news)
        if self._satisfies(state, news):
            self._wake(rank)

    def _satisfies(self, state: RankState, news: tuple[Any, ...]) -> bool:
        if state.wanted is None:
            return False
        if news[0] in {FROM, NOTHING}:
            return state.probes
        return state.others or news[1] in state.wanted
