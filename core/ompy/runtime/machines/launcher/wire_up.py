"""How a launcher's machine has ranks find each other, and tells all of those that leave."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ompy.frameworks.job import Placement
from ompy.runtime.connections.control import Kind
from ompy.runtime.connections.modex import CardIndex
from ompy.runtime.machines.acts import Send
from ompy.runtime.machines.children import Children
from ompy.runtime.machines.events import NOTHING, Event

ToOne = Callable[[int, Kind, Mapping[str, Any], bytes], Send]


class WireUp:
    """That of one job."""

    def __init__(self, children: Children, to_one: ToOne) -> None:
        """Nothing has been said.

        Args:
            children: the agents that the launcher is connected to.
            to_one: the act that tells a word to one agent, wherever it is.
        """
        self._children = children
        self._to_one = to_one
        self._cards = CardIndex()

    def word(self, event: Event, placements: Sequence[Placement]) -> list[Send]:
        """Ranks of a host have committed, or an agent wants what those of a host have.

        Args:
            event: MODEX or FETCH.
            placements: of all ranks.
        """
        if event.kind is Kind.MODEX:
            followers = self._cards.commit(event.body, placements)
            return [self._to_one(other, Kind.MODEX, NOTHING, event.body) for other in followers]
        agent, host = event.header["node"], event.header["host"]
        return [self._to_one(agent, Kind.MODEX, {"host": host}, self._cards.cards_for(agent, host))]

    def departed(self, event: Event) -> list[Send]:
        """A rank has ended: if that is news, those that leave before it come first."""
        news = self._children.departure(event)
        return [*self._children.leaving(), *news] if news else []
