"""Messages on their way as flows: what shares a link shares its bandwidth.

Rates are max-min fair (`fair_rates.py`) and change whenever a flow begins or ends. Only flows that
meet on links which are short matter to each other: a link whose flows together ask for no more than
it has never decides anything. So what is computed anew is what hangs together by short links.

Pure: it is told the time, and says when it wants to be asked again.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from math import ceil
from typing import Final

from ompy.runtime.cluster.fair_rates import fair_rates

SHORT: Final = 1 + 1e-9  # of what a link has; arbitrary: beyond what sums of doubles lose
# bytes that count as none; arbitrary: rounding of some 1e9 bytes in doubles, never a whole byte
NOTHING: Final = 1e-4


class Link:
    """One link.

    Attributes:
        capacity: bytes per ns.
        asked: what its flows would take if it had no end.
        flows: those that use it, in the order of their beginning.
        carried: bytes of flows that have begun.
    """

    __slots__ = ("asked", "capacity", "carried", "flows")

    def __init__(self, capacity: float) -> None:
        self.capacity = capacity
        self.asked = 0.0
        self.flows: dict[Flow, None] = {}
        self.carried = 0

    @property
    def short(self) -> bool:
        """Whether its flows ask for more than it has."""
        return self.asked > self.capacity * SHORT


class Flow:
    """Bytes on their way.

    Attributes:
        token: whose they are; the network does not look at it.
        way: links.
        limit: bytes per ns at most.
        rate: bytes per ns now.
        left: bytes, at the time `since`.
        due: ns; when the last byte goes at this rate; -1 while it has no rate.
    """

    __slots__ = ("due", "left", "limit", "number", "rate", "since", "token", "way")

    def __init__(
        self, number: int, token: object, way: tuple[int, ...], size: float, limit: float, now: int
    ) -> None:
        self.number = number
        self.token = token
        self.way = way
        self.limit = limit
        self.left = float(size)
        self.rate = 0.0
        self.since = now
        self.due = -1


class FlowNetwork:
    """Links and the flows on them.

    Attributes:
        links: by number.
    """

    def __init__(self) -> None:
        self.links: list[Link] = []
        self._begun = 0
        self._changed: dict[Flow, None] = {}
        self._under_way: dict[Flow, None] = {}
        self._pushed = 0
        self._due: list[tuple[int, int, int, Flow]] = []

    def add_link(self, capacity: float) -> int:
        """A link of so many bytes per ns; returns its number."""
        self.links.append(Link(capacity))
        return len(self.links) - 1

    def begin_flow(
        self, now: int, way: Sequence[int], size: int, limit: float, token: object = None
    ) -> Flow:
        """Let bytes go; `share_links` gives them a rate.

        Args:
            now: ns.
            way: links.
            size: bytes, at least 1.
            limit: bytes per ns at most.
            token: given back when they have gone.
        """
        self._begun += 1
        flow = Flow(self._begun, token, tuple(way), size, limit, now)
        self._under_way[flow] = None
        for number in flow.way:
            link = self.links[number]
            link.flows[flow] = None
            link.asked += limit
            link.carried += size
        self._changed[flow] = None
        return flow

    def share_links(self, now: int) -> None:
        """Give new rates to all whom the flows that began or ended matter to."""
        changed, self._changed = self._changed, {}
        seen: set[Flow] = set()
        for flow in changed:
            if flow not in seen and flow in self._under_way:
                group = self._together(flow)
                seen.update(group)
                self._share(now, group)

    def next_due(self) -> int | None:
        """When the next flow ends if nothing else happens; None if none is under way."""
        due = self._due
        while due and (due[0][3].due != due[0][0] or due[0][3] not in self._under_way):
            heapq.heappop(due)
        return due[0][0] if due else None

    def take_ended(self, now: int) -> list[object]:
        """The tokens of flows that have ended by now, in order; `share_links` next."""
        ended = []
        while (due := self.next_due()) is not None and due <= now:
            flow = heapq.heappop(self._due)[3]
            ended.append(flow.token)
            self._remove(flow)
        return ended

    def under_way(self) -> list[Flow]:
        """All of them, in the order of their beginning."""
        return list(self._under_way)

    def _remove(self, flow: Flow) -> None:
        del self._under_way[flow]
        for number in flow.way:
            link = self.links[number]
            if link.short:
                self._changed.update(link.flows)
            del link.flows[flow]
            link.asked = link.asked - flow.limit if link.flows else 0.0
        self._changed.pop(flow, None)

    def _together(self, first: Flow) -> list[Flow]:
        """All flows that hang together with one by short links."""
        found = {first: None}
        links: set[int] = set()
        waiting = [first]
        while waiting:
            for number in waiting.pop().way:
                if number in links or not self.links[number].short:
                    continue
                links.add(number)
                for flow in self.links[number].flows:
                    if flow not in found:
                        found[flow] = None
                        waiting.append(flow)
        return sorted(found, key=lambda flow: flow.number)

    def _share(self, now: int, flows: Sequence[Flow]) -> None:
        if len(flows) == 1 and not any(self.links[number].short for number in flows[0].way):
            self._set_rate(now, flows[0], flows[0].limit)
            return
        short = {
            number: self.links[number].capacity
            for flow in flows
            for number in flow.way
            if self.links[number].short
        }
        rates = fair_rates([flow.way for flow in flows], [flow.limit for flow in flows], short)
        for flow, rate in zip(flows, rates, strict=True):
            self._set_rate(now, flow, rate)

    def _set_rate(self, now: int, flow: Flow, rate: float) -> None:
        if rate == flow.rate:
            return
        flow.left = max(flow.left - flow.rate * (now - flow.since), 0.0)
        flow.since, flow.rate = now, rate
        flow.due = now + ceil(max(flow.left - NOTHING, 0.0) / rate)
        self._pushed += 1
        heapq.heappush(self._due, (flow.due, flow.number, self._pushed, flow))
