"""Max-min fair shares of links: no flow can get more but at the cost of one that has no more.

By progressive filling (Bertsekas and Gallager, *Data Networks*, 6.5.2): all rates rise together;
a flow stops at its own limit, or when a link on its way is full. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

ROUNDING: Final = 1e-12  # relative; arbitrary: many times what double precision loses here


def fair_rates(
    ways: Sequence[Sequence[int]], limits: Sequence[float], capacities: Mapping[int, float]
) -> list[float]:
    """The rate of each flow.

    Args:
        ways: links of each flow, each once.
        limits: what each flow takes at most.
        capacities: of the links that may be short; links that are not named never are.
    """
    filling = _Filling(ways, capacities)
    by_limit = sorted(range(len(ways)), key=limits.__getitem__, reverse=True)
    while filling.rising:
        level = filling.level()
        before = len(by_limit)
        while by_limit and limits[by_limit[-1]] <= level:
            filling.stop_flow(by_limit[-1], limits[by_limit.pop()])
        if len(by_limit) == before:
            filling.fill_links(level)
    rates = list(limits)
    for flow, rate in filling.rates.items():
        rates[flow] = rate
    return rates


class _Filling:
    """Links that fill up.

    Attributes:
        rates: of flows that rise no longer.
        rising: how many flows still rise on each link.
    """

    def __init__(self, ways: Sequence[Sequence[int]], capacities: Mapping[int, float]) -> None:
        self._ways = ways
        self._flows: dict[int, list[int]] = {}
        for flow, way in enumerate(ways):
            for link in way:
                if link in capacities:
                    self._flows.setdefault(link, []).append(flow)
        self._room = {link: capacities[link] for link in self._flows}
        self.rising = {link: len(flows) for link, flows in self._flows.items()}
        self.rates: dict[int, float] = {}

    def level(self) -> float:
        """The rate at which the next link is full."""
        return min(self._room[link] / count for link, count in self.rising.items())

    def fill_links(self, level: float) -> None:
        """Stop all on the links that are full at this level."""
        most = level * (1 + ROUNDING)
        full = [link for link, count in self.rising.items() if self._room[link] / count <= most]
        for link in full:
            for flow in self._flows[link]:
                self.stop_flow(flow, level)

    def stop_flow(self, flow: int, rate: float) -> None:
        """A flow rises no longer."""
        if flow in self.rates:
            return
        self.rates[flow] = rate
        for link in self._ways[flow]:
            if link in self.rising:
                self._room[link] = max(self._room[link] - rate, 0.0)
                self.rising[link] -= 1
                if not self.rising[link]:
                    del self.rising[link]
