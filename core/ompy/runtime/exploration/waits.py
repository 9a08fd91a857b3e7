"""What ranks of an explored world wait for, and what can be chosen for them; plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ompy.compiled import cclass
from ompy.runtime.exploration.boxes import Box, Message, Operation
from ompy.runtime.exploration.events import NOTHING, POLL, PROBE, Value
from ompy.runtime.exploration.windows.spins import Spin

News = tuple[Any, ...]


class Offer(NamedTuple):
    """An open choice.

    Attributes:
        key: which.
        kind: of choice.
        values: what can be chosen, and what belongs to it.
        spins: how often its rank has read the same in vain, if it can do nothing else; else -1.
    """

    key: Operation
    kind: str
    values: dict[Value, Any]
    spins: int = -1

    @property
    def idle(self) -> bool:
        """It is a poll that can find nothing, or a read in vain: it waits until others are done."""
        only_nothing = self.kind in {POLL, PROBE} and self.values.keys() == {(NOTHING,)}
        return self.spins >= 0 or only_nothing


def next_choice(
    offers: Sequence[Offer], script: Mapping[Operation, Value]
) -> tuple[Offer, Value] | None:
    """Which open choice is made now, and what is chosen; None if the script has others for all.

    Args:
        offers: the open choices, in the order in which they are made.
        script: what is chosen where. Polls that can find nothing wait for all others even if it has
            them: if they came first, one rank would have all turns.
    """
    for offer in offers:
        value = script.get(offer.key)
        if value in offer.values and value is not None and (not offer.idle or offer.spins >= 0):
            return offer, value
    for offer in offers:
        if offer.key not in script and not offer.idle:
            return offer, next(iter(offer.values))
    for offer in offers:
        value = script.get(offer.key, next(iter(offer.values)))
        if value in offer.values and offer.idle:
            return offer, value
    return None


class Wait(NamedTuple):
    """What a rank waits for.

    Attributes:
        kind: MATCH (of one operation, which is no choice), ANY, POLL, FURTHER, PROBE, CANCEL.
        number: of the operation that waits.
        wanted: numbers of operations, of which one suffices.
        inner: operations of the library's own suffice, too.
        box, probe: of a probe: where it looks, and for what.
        receive: the number of the one that is to be cancelled.
        takes: a probe takes its message out of matching.
        waits: a probe that finds nothing goes on waiting.
        site: where it stands.
    """

    kind: str
    number: int
    wanted: tuple[int, ...] = ()
    inner: bool = False
    box: tuple[int, int] = (0, 0)
    probe: tuple[int, int] = (0, 0)
    takes: bool = False
    waits: bool = True
    site: str = ""
    receive: int = 0

    @property
    def polls(self) -> bool:
        """It goes on whatever there is."""
        return self.kind == POLL or not self.waits


class Completion(NamedTuple):
    """Of an operation.

    Attributes:
        news: what its rank is told.
        past: events that it depends on, a bit for each.
        box, message: what it has received, and where.
        of: the operation of another rank that it says was begun.
        knows: what that one's rank knew then.
    """

    news: News
    past: int
    box: Box | None
    message: Message | None
    of: Operation
    knows: Mapping[int, int]


class Whole:
    """Messages of a rank that its program is told of as one operation.

    What they lead to, as a further step of a collective call, depends on them. What the program
    does depends on them only when it is told.

    Attributes:
        number: of the operation.
        past: events that those depend on which have come.
        knows: of others' operations, by these.
        come: of each message that has come, what it depends on and makes known, where others may
            be made of it later, too; else None.
    """

    def __init__(
        self, number: int, past: int, knows: Mapping[int, int], *, kept: bool = False
    ) -> None:
        self.number = number
        self.past = past
        self.knows = knows
        self.come: dict[int, tuple[int, Mapping[int, int]]] | None = {} if kept else None


@cclass
class Rank:
    """One rank, as the exchange knows it."""

    apart: dict[int, list[Whole]]
    asked: dict[int, int]
    chosen: Any  # numbers of operations are of any size
    done: dict[int, Completion]
    idle: int
    inner: set[int]
    kept: dict[int, Whole]
    knows: Any
    nothings: int
    open: set[int]
    past: Any  # of any number of bits
    reads: set[int]
    served: set[int]
    spin: Any
    wait: Any
    wholes: dict[tuple[int, int], Whole]
    __slots__ = tuple(__annotations__)

    def __init__(self) -> None:
        self.past = 0
        self.knows = {}  # of others' operations
        self.wait = None
        self.done = {}  # of what is complete and it was not told of
        self.inner = set()  # its operations that are the library's own
        self.served = set()  # of these, such as are told whatever it waits for
        self.open = set()  # its operations that are not complete
        self.wholes = {}  # under way, by context id and tag
        self.apart = {}  # messages that belong to some
        self.kept = {}  # by number: those that remember what has come
        # wholes that only who looks for them is told of, and how often that could have found them
        self.asked = {}
        self.reads = set()  # wholes that are answers of windows
        self.nothings = 0  # polls in a row that could have found something
        self.idle = 0  # polls in a row that could not
        self.chosen = 0  # the operation that was chosen last among several
        self.spin = Spin()

    def __reduce__(self) -> Any:
        """For copies of a world at a choice."""
        waits = (self.past, self.knows, self.wait, self.done, self.spin, self.chosen)
        sets = (self.inner, self.served, self.open, self.reads)
        wholes = (self.wholes, self.apart, self.kept, self.asked)
        return Rank, (), waits + sets + wholes + (self.nothings, self.idle)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        """Be that one."""
        self.past, self.knows, self.wait, self.done, self.spin, self.chosen, *rest = state
        self.inner, self.served, self.open, self.reads, *rest = rest
        self.wholes, self.apart, self.kept, self.asked, self.nothings, self.idle = rest
