"""Puts and gets of generated GASNet programs, in every form, and what ends them.

`gasnet_generated` has the rest of a program.

Source: reference gasnet.md 2.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any, Final, NamedTuple

from ompy.gasnet import INVALID_HANDLE

TRIES: Final = 30  # arbitrary: some succeed, and some do not
FORMS: Final = ("", "_nb", "_nbi")


class Shape(NamedTuple):
    """What a program is; the same on all ranks.

    Attributes:
        number: it is drawn from.
        ranks: of the job.
        share: bytes that each rank has in each segment.
        edges: sizes near which transfers go another way.
        phases: how many.
        end: one of `ENDS`.
        code: that it ends with.
    """

    number: int
    ranks: int
    share: int
    edges: tuple[int, ...]
    phases: int
    end: str
    code: int


class Op(NamedTuple):
    """A transfer under way: where, and what has to be so when it is done."""

    node: int
    begin: int
    end: int
    check: Callable[[], object]


class Transfers:
    """What one rank puts and gets, in its share of every segment.

    Attributes:
        shape: of the program.
        base: where the own share begins, in any segment.
        scratch: where the own segment has room for local memory.
        models: the own share of each segment, as it has to be.
        handles: of what is under way; `ops` says what that is.
        implicit: the same of implicit puts, and of gets.
    """

    shape: Shape
    me: int
    ranks: int
    base: int
    scratch: int

    def __init__(self, gasnet: Any, random: Random) -> None:
        self.gasnet, self.random = gasnet, random
        self.counted: Counter[str] = Counter()
        self.models: list[bytearray] = []
        self.memory = memoryview(b"")
        self.scratch_used = 0
        self.handles: list[Any] = []
        self.ops: list[Op] = []
        self.implicit: dict[bool, list[Op]] = {False: [], True: []}

    # --- puts and gets

    def size(self, limit: int = 1 << 30) -> int:
        random, edge = self.random, self.random.choice(self.shape.edges)
        size = random.choice((0, 1, 3, 8, 60, random.randrange(300), edge - 1, edge, edge + 1))
        return max(0, min(size, limit, self.shape.share))

    def find(self, size: int) -> tuple[int, int]:
        """A node and a place in the own share there that nothing is under way for."""
        for _ in range(8):
            node = self.random.randrange(self.ranks)
            at = self.random.randint(0, self.shape.share - size)
            if self.is_free(node, at, size):
                return node, at
        self.sync_all()
        return node, at

    def is_free(self, node: int, at: int, size: int) -> bool:
        under_way = (*self.ops, *self.implicit[False], *self.implicit[True])
        return all(o.node != node or at >= o.end or at + size <= o.begin for o in under_way)

    def local(self, size: int, data: bytes | None = None) -> Any:
        """Local memory, in the segment or not, at an odd address or not."""
        odd = self.random.randrange(4)
        if self.random.random() < 0.4 and self.scratch_used + size + 4 <= 4 * self.shape.share:
            at = self.scratch + self.scratch_used + odd
            self.scratch_used += size + odd
            found = self.memory[at : at + size]
        else:
            found = memoryview(bytearray(size + 4))[odd : odd + size]
        found[:] = data if data is not None else b"\xee" * size
        return found

    def put(self) -> None:
        size, form = self.size(), self.random.choice(FORMS)
        node, at = self.find(size)
        bulk = self.random.random() < 0.5
        data = self.random.randbytes(size)
        source = self.local(size, data)
        self.models[node][at : at + size] = data
        call = getattr(self.gasnet, f"put{form}{'_bulk' * bulk}")
        handle = call(node, self.base + at, source)
        if not form or not bulk:
            source[:] = b"\xdd" * size  # it is ours again
        self.note(form, handle, Op(node, at, at + size, bool), is_get=False)
        self.counted["puts"] += 1

    def get(self) -> None:
        size, form = self.size(), self.random.choice(FORMS)
        node, at = self.find(size)
        back = self.local(size)
        call = getattr(self.gasnet, f"get{form}{'_bulk' * (self.random.random() < 0.5)}")
        handle = call(back, node, self.base + at)
        expected = bytes(self.models[node][at : at + size])
        self.note(form, handle, Op(node, at, at + size, lambda: back == expected), is_get=True)
        self.counted["gets"] += 1

    def note(self, form: str, handle: Any, op: Op, *, is_get: bool) -> None:
        """It is under way, or done."""
        if form == "_nbi":
            self.implicit[is_get].append(op)
        elif form == "_nb" and handle is not INVALID_HANDLE:
            self.handles.append(handle)
            self.ops.append(op)
        else:
            done(op)

    def fill(self) -> None:
        size, form = self.size(), self.random.choice(FORMS)
        node, at = self.find(size)
        value = self.random.randrange(256)
        handle = getattr(self.gasnet, f"memset{form}")(node, self.base + at, value, size)
        self.models[node][at : at + size] = bytes([value]) * size
        self.note(form, handle, Op(node, at, at + size, bool), is_get=False)
        self.counted["fills"] += 1

    def value(self) -> None:
        """A number is put, and a number is got, each in one of its three ways."""
        gasnet, size, form = self.gasnet, self.random.randint(1, 8), self.random.choice(FORMS)
        node, at = self.find(size)
        number = self.random.getrandbits(8 * size)
        handle = getattr(gasnet, f"put{form}_val")(node, self.base + at, number, size)
        self.models[node][at : at + size] = number.to_bytes(size, "little")
        self.note(form, handle, Op(node, at, at + size, bool), is_get=False)
        node, at = self.find(size)
        wanted = int.from_bytes(self.models[node][at : at + size], "little")
        if self.random.random() < 0.5:
            found = gasnet.get_val(node, self.base + at, size)
        else:
            found = gasnet.wait_syncnb_valget(gasnet.get_nb_val(node, self.base + at, size))
        assert found == wanted, "a value that was not put"
        self.counted["values"] += 2

    def region(self) -> None:
        """Implicit operations that have a handle in the end."""
        gasnet, random = self.gasnet, self.random
        size = self.size() // 4
        node, at = self.find(4 * size)
        data = [random.randbytes(size) for _ in range(2)]
        expected = bytes(self.models[node][at + 2 * size : at + 4 * size])
        backs = [self.local(size) for _ in range(2)]
        gasnet.begin_nbi_accessregion()
        for piece, each in enumerate(data):
            gasnet.put_nbi(node, self.base + at + piece * size, each)
            gasnet.get_nbi(backs[piece], node, self.base + at + (2 + piece) * size)
            self.models[node][at + piece * size : at + (piece + 1) * size] = each
        handle = gasnet.end_nbi_accessregion()
        op = Op(node, at, at + 4 * size, lambda: b"".join(backs) == expected)
        self.note("_nb", handle, op, is_get=True)
        self.counted["regions"] += 1

    # --- several pieces

    def vector(self) -> None:
        random = self.random
        form, is_get = random.choice(FORMS), random.random() < 0.5
        one = random.choice((self.pieces, self.indices, self.strides))
        node, at, places, arguments = one()
        total = sum(size for _, size in places)
        data = random.randbytes(total)
        name = {"pieces": "v", "indices": "i", "strides": "s"}[one.__name__]
        model, part = self.models[node], 0
        local = self.local(total, None if is_get else data)
        expected = b"".join(bytes(model[at + o : at + o + n]) for o, n in places)
        for offset, size in () if is_get else places:
            model[at + offset : at + offset + size] = data[part : part + size]
            part += size
        call = getattr(self.gasnet, f"{'get' if is_get else 'put'}{name}{form}_bulk")
        handle = call(*arguments(local, is_get))
        end = at + max((offset + size for offset, size in places), default=0)
        check = (lambda: local == expected) if is_get else bool
        self.note(form, handle, Op(node, at, end, check), is_get=is_get)
        self.counted["vectors"] += 1

    def cut(self, local: Any) -> list[Any]:
        """A buffer in some pieces."""
        cuts = sorted(self.random.randint(0, len(local)) for _ in range(self.random.randrange(3)))
        ends = [0, *cuts, len(local)]
        return [local[a:b] for a, b in zip(ends, ends[1:], strict=False)]

    def pieces(self) -> Any:
        sizes = [self.size(self.shape.share // 4) for _ in range(self.random.randrange(4))]
        node, at = self.find(sum(sizes))
        places, begin = [], 0
        for size in sizes:
            places.append((begin, size))
            begin += size
        self.random.shuffle(places)
        remote = [(self.base + at + offset, size) for offset, size in places]

        def arguments(local: Any, is_get: bool) -> tuple[Any, ...]:
            return (self.cut(local), node, remote) if is_get else (node, remote, self.cut(local))

        return node, at, places, arguments

    def indices(self) -> Any:
        count, size = self.random.randrange(6), self.size(self.shape.share // 8)
        node, at = self.find(count * size)
        places = [(which * size, size) for which in range(count)]
        self.random.shuffle(places)
        remote = [self.base + at + offset for offset, _ in places]

        def arguments(local: Any, is_get: bool) -> tuple[Any, ...]:
            parts = self.cut(local)
            return (parts, node, remote, size) if is_get else (node, remote, size, parts)

        return node, at, places, arguments

    def strides(self) -> Any:
        random = self.random
        width, rows = random.randint(1, 40), random.randint(0, 6)
        stride = width + random.randrange(30)
        node, at = self.find(max(0, rows - 1) * stride + width)
        places = [(row * stride, width) for row in range(rows)]
        begin, shape = self.base + at, ((stride,), (width,), (width, rows))

        def arguments(local: Any, is_get: bool) -> tuple[Any, ...]:
            far, near, counts = shape
            if is_get:
                return local, near, node, begin, far, counts
            return node, begin, far, local, near, counts

        return node, at, places, arguments

    # --- what ends them

    def sync(self) -> None:
        """Some of what is under way, in one of the ways there are."""
        gasnet = self.gasnet
        way = self.random.randrange(7)
        if way == 0 and self.handles:
            which = self.random.randrange(len(self.handles))
            self.ended(which)
        elif way == 1:
            if not often(lambda: gasnet.try_syncnb_all(self.handles)):
                gasnet.wait_syncnb_all(self.handles)
            self.checked()
        elif way in (2, 3):
            call = gasnet.wait_syncnb_some if way == 2 else gasnet.try_syncnb_some
            found = call(self.handles)
            assert found or way == 3 or not self.handles
            self.checked()
        elif way in (4, 5):
            is_get = way == 5
            name = "gets" if is_get else "puts"
            if self.random.random() < 0.5 or not often(getattr(gasnet, f"try_syncnbi_{name}")):
                getattr(gasnet, f"wait_syncnbi_{name}")()
            self.drained(is_get)
        else:
            self.sync_all()

    def ended(self, which: int) -> None:
        handle = self.handles.pop(which)
        if self.random.random() < 0.5 or not often(lambda: self.gasnet.try_syncnb(handle)):
            self.gasnet.wait_syncnb(handle)
        done(self.ops.pop(which))

    def checked(self) -> None:
        """Those of the handles that were used up."""
        for which in reversed(range(len(self.handles))):
            if self.handles[which] is INVALID_HANDLE:
                del self.handles[which]
                done(self.ops.pop(which))

    def drained(self, is_get: bool) -> None:
        for op in self.implicit[is_get]:
            done(op)
        self.implicit[is_get].clear()

    def sync_all(self) -> None:
        self.gasnet.wait_syncnb_all(self.handles)
        self.checked()
        self.gasnet.wait_syncnbi_all()
        self.drained(is_get=False)
        self.drained(is_get=True)
        self.scratch_used = 0
        self.counted["syncs"] += 1


def often(attempt: Callable[[], bool]) -> bool:
    """Try it some times, each of which takes a moment. Whether it was so once."""
    return any(attempt() for _ in range(TRIES))


def done(op: Op) -> None:
    """A transfer is done: its bytes are as they should be."""
    assert op.check is bool or op.check(), "a get has found other bytes than were put"
