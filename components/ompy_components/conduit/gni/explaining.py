"""Why an operation takes the way it takes: asks the conduit's rules, changed one thing at a time.

Nothing here decides. The ways come from `rdma/transfer_choice.py` and `rdma/get_alignment.py`, room
in a message from the peer's transport. What would change them is found by asking again with another
size, place or value. The words are those of `ompy trace`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from ompy.data.errors import ERR_ARG, MPIError
from ompy.frameworks.explanation import Branch, Change, Explanation, Limit, OperationAsked
from ompy.trace.operations import PLACES, way_of_posts

from ompy_components.conduit.gni import headers
from ompy_components.conduit.gni.rdma.engine import TRANSFER_MAX
from ompy_components.conduit.gni.rdma.get_alignment import get_pieces
from ompy_components.conduit.gni.rdma.transfer_choice import IMMEDIATE_SIZE, Ways

if TYPE_CHECKING:
    from ompy_components.conduit.gni.conduit import GniConduit

MESSAGES: Final = ("short", "medium", "long", "long-async")
NAMES: Final = {"short": "Short", "medium": "Medium", "long": "Long", "long-async": "LongAsync"}
CUTOVERS: Final = {  # attributes of `Ways`, and the parameters that give them
    "put_fma": "put_fma_rdma_cutover",
    "put_bounce": "put_bounce_register_cutover",
    "get_fma": "get_fma_rdma_cutover",
    "get_bounce": "get_bounce_register_cutover",
}
ALIGNED: Final = "not aligned as the NIC wants it, so by buffers, piece by piece"
# seed gasnet: the largest values of these
MOST: Final = {"put_fma": 16384, "get_fma": 16384, "put_bounce": 32768, "get_bounce": 32768}
NEAR: Final = 8  # bytes; arbitrary: more than the alignment of a get

Way = tuple[str, int]  # of one post, and its bytes


class Explaining:
    """Explains for one rank. Call with nothing under way."""

    def __init__(self, conduit: GniConduit) -> None:
        self._conduit = conduit
        self._values = conduit.resources.parameters
        self._ways = self._with()

    def _with(self, **changes: int) -> Ways:
        """The rules, with other cutovers."""
        values = {name: getattr(self._values, name) for name in CUTOVERS.values()}
        return Ways(SimpleNamespace(**values | changes), self._conduit.resources.nic)

    def explain(self, asked: OperationAsked) -> Explanation:
        """Everything there is to say about an operation."""
        self._check(asked)
        return Explanation(
            self.way(asked),
            tuple(self._branches(asked)),
            tuple(self._receiver(asked)),
            (self._route(asked.peer),),
            tuple(self._limits(asked)),
            tuple(self._changes(asked)),
            tuple(self._sizes(asked)),
        )

    def _check(self, asked: OperationAsked) -> None:
        conduit = self._conduit
        most = {"short": 0, "medium": conduit.max_medium}
        for name in ("long", "long-async"):
            most[name] = conduit.max_long_request
        limit = most.get(asked.name, asked.size)
        if asked.size > limit:
            text = f"a {NAMES[asked.name]} brings up to {limit} bytes, not {asked.size}"
            raise MPIError(ERR_ARG, text)

    def way(self, asked: OperationAsked) -> str:
        """The way, as a trace has it."""
        if asked.name in MESSAGES:
            return self._message_way(asked)
        if self._own(asked.peer):
            return "own memory"
        if self._near(asked.peer):
            return "PSHM"
        posts = list(self._put_posts(asked) if asked.name == "put" else self._get_posts(asked))
        return way_of_posts(asked.name, asked.size, posts) if posts else "nothing is moved"

    # the rules

    def _own(self, peer: int) -> bool:
        return peer == self._conduit.context.rank

    def _near(self, peer: int) -> bool:
        return not self._own(peer) and self._conduit.mapped[peer] is not None

    def _message_way(self, asked: OperationAsked) -> str:
        if self._own(asked.peer):
            return "own rank"
        carrier = self._conduit.transport(asked.peer).name
        if not asked.name.startswith("long"):
            return carrier
        return f"{carrier}, {'packed' if asked.size <= self._room(asked) else 'put before'}"

    def _room(self, asked: OperationAsked) -> int:
        """Bytes that a LONG's message has room for."""
        most = self._conduit.transport(asked.peer).max_packed
        return most - headers.long_head_size(asked.arguments)

    def _put_posts(self, asked: OperationAsked) -> Iterator[Way]:
        size, ways = asked.size, self._ways
        if not asked.bulk and size > ways.max_put_local:  # the API puts the head first
            yield from self._put_posts(asked._replace(size=size - ways.max_put_local, bulk=True))
            size = ways.max_put_local
        while size > 0:
            piece = min(size, TRANSFER_MAX)
            bulk = asked.bulk or size > TRANSFER_MAX
            place = ways.put(piece, inside=asked.inside, bulk=bulk)
            kind = "FMA put" if piece <= ways.put_fma else "BTE put"
            yield f"{kind}, {PLACES[place.value]}", piece
            size -= piece

    def _get_posts(self, asked: OperationAsked) -> Iterator[Way]:
        at = 0
        while at < asked.size:
            size = min(asked.size - at, TRANSFER_MAX)
            offset = asked.offset + at
            for piece in get_pieces(offset, size, at, inside=asked.inside, ways=self._ways):
                kind = "FMA get" if piece.length <= self._ways.get_fma else "BTE get"
                yield f"{kind}, {PLACES[piece.place.value]}", piece.length
            at += size

    # in words

    def _full(self, name: str) -> str:
        return f"conduit_{self._conduit.name}_{name}"

    def _route(self, peer: int) -> str:
        if self._own(peer):
            return f"rank {peer} is this one: handlers run at once, memory is copied"
        if self._near(peer):
            return f"rank {peer} is of this host: messages by PSHM, its segment is mapped"
        carrier = self._conduit.transport(peer).name
        return f"the emulated {self._conduit.name} NIC reaches rank {peer}: messages by {carrier}"

    def _branches(self, asked: OperationAsked) -> Iterator[Branch]:
        yield Branch(self._route(asked.peer), (self._full("pshm"), self._full("messages")))
        if self._own(asked.peer) or (self._near(asked.peer) and asked.name not in MESSAGES):
            return
        if asked.name in MESSAGES:
            yield from self._message_branches(asked)
            return
        if asked.size > TRANSFER_MAX:
            text = f"{asked.size} bytes > {TRANSFER_MAX}: cut; all pieces but the last are waited"
            yield Branch(f"{text} for (seed)")
        yield from self._size_branches(asked)

    def _message_branches(self, asked: OperationAsked) -> Iterator[Branch]:
        if not asked.name.startswith("long"):
            yield Branch("a Short or Medium is one message")
            return
        room, fits = self._room(asked), asked.size <= self._room(asked)
        yield Branch(
            f"{asked.size} bytes {'<=' if fits else '>'} {room}, the room of a message beside "
            f"{asked.arguments} arguments: they {'go along' if fits else 'are put before it'}"
        )
        if not fits and not self._near(asked.peer):
            put = asked._replace(name="put", bulk=True)
            yield from self._size_branches(put)
            yield Branch(f"so the bytes go by {self.way(put)}")

    def _size_branches(self, asked: OperationAsked) -> Iterator[Branch]:
        kind, ways, size = asked.name, self._ways, min(asked.size, TRANSFER_MAX)
        fma = ways.put_fma if kind == "put" else ways.get_fma
        bounce = ways.put_bounce if kind == "put" else ways.get_bounce
        text = f"{size} bytes {'<=' if size <= fma else '>'} {fma}: "
        text += "FMA" if size <= fma else "BTE, a block transfer"
        yield Branch(text, (self._full(f"{kind}_fma_rdma_cutover"),))
        if kind == "get" and (asked.offset | asked.size) & 3:
            text = f"offset {asked.offset} or size {asked.size} is no multiple of 4: the aligned "
            yield Branch(text + "bytes around are read into a buffer, of large gets at both ends")
        if kind == "put" and not asked.bulk:
            yield Branch(
                f"not bulk: the source is free when the call returns; up to {ways.max_put_local} "
                "bytes can be let go of, and what is more is put first and waited for"
            )
        if kind == "put" and size <= fma and "unregistered" in self.way(asked):
            yield Branch("the processor moves the bytes of an FMA put: they need no registration")
        elif asked.inside:
            yield Branch("the local memory is in the registered segment")
        else:
            at_most = f"{'<=' if size <= bounce else '>'} {bounce}"
            text = f"the local memory is in no segment, and {size} bytes {at_most}: "
            kept = "registered" in self.way(asked)
            large = "registered for this transfer" if kept else ALIGNED
            text += "a buffer" if size <= bounce else f"it is {large}"
            text += f", the descriptor's own up to {IMMEDIATE_SIZE} bytes" * (size <= bounce)
            yield Branch(text, (self._full(f"{kind}_bounce_register_cutover"),))

    def _receiver(self, asked: OperationAsked) -> Iterator[str]:
        if asked.name not in MESSAGES:
            if not self._own(asked.peer):
                yield "does nothing: its memory is read or written"
            return
        yield "its handler runs when it polls; it may reply, once"
        if not self._own(asked.peer):
            yield "the credit comes back with the reply, or by itself when the handler has returned"

    def _limits(self, asked: OperationAsked) -> Iterator[Limit]:
        if self._own(asked.peer):
            return
        near, values = self._near(asked.peer), self._values
        if asked.name in MESSAGES:
            depth = "pshm_network_depth" if near else "networkdepth"
            count = getattr(values, depth)
            yield Limit(f"{count} requests under way to each peer", (self._full(depth),))
            yield Limit(f"a Medium brings up to {self._conduit.max_medium} bytes")
            yield Limit(f"a Long brings up to {self._conduit.max_long_request} bytes")
        if near:
            return
        yield Limit(f"{values.num_pd} messages and posts under way in all", (self._full("num_pd"),))
        largest = max(values.get_bounce_register_cutover, values.put_bounce_register_cutover)
        if "bounce" in self.way(asked):
            count = values.bounce_size // largest if largest else 0
            text = f"{count} bounce buffers of {largest} bytes"
            yield Limit(text, (self._full("bounce_size"),))
        if "registered" in self.way(asked).replace("unregistered", ""):
            most = values.memreg or "any number of"
            yield Limit(f"{most} temporary registrations at a time", (self._full("memreg"),))

    # what would change it

    def _changes(self, asked: OperationAsked) -> Iterator[Change]:
        if self._own(asked.peer):
            return
        now = self.way(asked)
        if asked.name not in MESSAGES and not self._near(asked.peer):
            others: dict[str, dict[str, Any]]
            others = {"the local memory in the segment": {"inside": True}}
            others["the local memory in no segment"] = {"inside": False}
            if asked.name == "put":
                others |= {"bulk": {"bulk": True}, "not bulk": {"bulk": False}}
            else:
                others["an offset that is a multiple of 4"] = {"offset": asked.offset & ~3}
            for text, fields in others.items():
                way = self.way(asked._replace(**fields))
                if way != now:
                    yield Change(text, way)
            yield from self._cutover_changes(asked, now)
        elif asked.name.startswith("long") and asked.size > self._room(asked):
            yield Change(f"{self._room(asked)} bytes or fewer", self._fitting_way(asked))
            if not self._near(asked.peer):
                put = asked._replace(name="put", bulk=True)
                yield from self._cutover_changes(put, self.way(put))
        if asked.peer in self._conduit.neighbours():
            yield from self._pshm_change()

    def _fitting_way(self, asked: OperationAsked) -> str:
        """The way of a Long whose bytes go along."""
        return self.way(asked._replace(size=self._room(asked)))

    def _cutover_changes(self, asked: OperationAsked, now: str) -> Iterator[Change]:
        size = min(asked.size, TRANSFER_MAX)
        for attribute, name in CUTOVERS.items():
            if not name.startswith(asked.name):
                continue
            value = getattr(self._ways, attribute)
            for text, other in ((f"{size} or more", size), (f"below {size}", size - 1)):
                known = other <= MOST[attribute]
                if known and (other < value) == text.startswith("below") and other >= 0:
                    self._ways = self._with(**{name: other})
                    way = self.way(asked)
                    self._ways = self._with()
                    if way != now:
                        yield Change(f"{self._full(name)} {text}", way, (self._full(name),))

    def _pshm_change(self) -> Iterator[Change]:
        off = "off" if self._values.pshm else "on"
        way = "by the NIC" if self._values.pshm else "PSHM"
        yield Change(f"{self._full('pshm')} {off}", way, (self._full("pshm"),))

    def _sizes(self, asked: OperationAsked) -> Iterator[tuple[int, str]]:
        """Where the way is another one; of gets for sizes that are as aligned as the one asked."""
        edges = {0, IMMEDIATE_SIZE, self._ways.max_put_local, TRANSFER_MAX}
        edges |= {getattr(self._ways, attribute) for attribute in CUTOVERS}
        edges |= {edge + self._ways.max_put_local for edge in edges}  # heads of puts
        most = 2 * TRANSFER_MAX
        if asked.name == "short":
            most = 0
        elif asked.name == "medium":
            most = self._conduit.max_medium
        elif asked.name in MESSAGES:
            most = self._conduit.max_long_request
            edges.add(0 if self._own(asked.peer) else self._room(asked))
        near = range(-NEAR, NEAR + 1)
        sizes = {edge + step for edge in edges for step in near if 0 <= edge + step <= most}
        last = ""
        for size in sorted(sizes):
            aligned = asked.name != "get" or not (size ^ asked.size) & 3
            way = _uncounted(self.way(asked._replace(size=size))) if aligned else last
            if way != last:
                yield size, way
                last = way


def _uncounted(way: str) -> str:
    """Without how many of each, which changes with every piece."""
    return re.sub(r"\b\d+ x |, \d+ bytes read", "", way)
