"""The grammar of `receive_queues`: which queue pairs an endpoint has, and their buffers.

    entry:entry:...      P,size,num[,low[,win[,rsv]]]
                         S,size,num[,low[,sd_max[,rd_init[,srq_limit]]]]

Sizes are those of a fragment, the PML's header included. Source: reference openmpi.md 5.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

QUEUES_MAX: Final = 16  # reference openmpi.md 5.3: the header has 4 bits for the queue
NUM: Final = 256  # reference openmpi.md 5.2: buffers where an entry does not say
CREDITS_MAX: Final = (1 << 11) - 1  # reference openmpi.md 5.3: 11 bits for credits
SMALLEST: Final = 128  # reference openmpi.md 5.2: bytes of the first entry
TINY: Final = 1024  # reference openmpi.md 5.2: of the second, where eager_limit is tiny
FIELDS: Final = {"P": 6, "S": 7}


class BadReceiveQueues(ValueError):
    """`receive_queues` cannot be used; the text says which entry and why."""


class PerPeer(NamedTuple):
    """An entry `P`: buffers of one peer.

    Attributes:
        size: bytes of a fragment.
        num: buffers that credits stand for.
        low: spent buffers are posted again when so many are left.
        win: credits that are worth a message of their own.
        rsv: further buffers, for such messages.
    """

    size: int
    num: int
    low: int
    win: int
    rsv: int

    @property
    def text(self) -> str:
        """As the grammar has it."""
        return ",".join(("P", *map(str, self)))


class Shared(NamedTuple):
    """An entry `S`: buffers for all peers.

    Attributes:
        size: bytes of a fragment.
        num: buffers at most.
        low: spent buffers are posted again when so many are left, of `num`.
        sd_max: sends the module has under way at most.
        rd_init: buffers at first.
        srq_limit: when fewer are left the device says so.
    """

    size: int
    num: int
    low: int
    sd_max: int
    rd_init: int
    srq_limit: int

    @property
    def text(self) -> str:
        """As the grammar has it."""
        return ",".join(("S", *map(str, self)))


Entry = PerPeer | Shared


def default(eager_limit: int, max_send_size: int) -> str:
    """The value Open MPI 4.1 takes for these limits.

    Source: reference openmpi.md 5.2.
    """
    power = 1
    while power < eager_limit // 4:
        power *= 2
    second = power // 2 if power // 2 > SMALLEST else TINY
    sizes = sorted({second, eager_limit, max_send_size} - {SMALLEST})
    sizes = [size for size in sizes if size > SMALLEST and size <= max(eager_limit, max_send_size)]
    entries = [f"S,{SMALLEST},256,192,128", *(f"S,{size},1024,1008,64" for size in sizes)]
    return ":".join(entries)


def parse_receive_queues(text: str, largest: int) -> tuple[list[Entry], list[str]]:
    """Read a value of `receive_queues`.

    Args:
        text: the value.
        largest: bytes that the largest entry has to have room for.

    Returns:
        The entries, and warnings for people.

    Raises:
        BadReceiveQueues: it breaks a rule.
    """
    entries = [_entry(word.strip()) for word in text.split(":")]
    if len(entries) > QUEUES_MAX:
        raise BadReceiveQueues(f"{len(entries)} entries are more than {QUEUES_MAX}")
    _check_sizes(entries, largest)
    warnings = []
    if entries[-1].size > largest:
        warnings.append(
            f"the largest entry has room for {entries[-1].size} bytes, but no fragment is longer "
            f"than {largest}: the rest of each buffer is never used"
        )
    return entries, warnings


def canonical(entries: Sequence[Entry]) -> str:
    """The value with every field; peers have to have the same."""
    return ":".join(entry.text for entry in entries)


def _check_sizes(entries: Sequence[Entry], largest: int) -> None:
    for before, after in pairwise(entries):
        if after.size <= before.size:
            raise BadReceiveQueues(
                f"{after.text} comes after {before.text}: sizes have to ascend from entry to entry"
            )
    if entries[-1].size < largest:
        raise BadReceiveQueues(
            f"the largest entry has room for {entries[-1].size} bytes, and fragments have up to "
            f"{largest} (the larger of eager_limit and max_send_size)"
        )


def _entry(word: str) -> Entry:
    letter, *fields = word.split(",")
    if letter == "X":
        raise BadReceiveQueues(
            f"{word}: XRC queues (X) need a connection that the ranks of a host share, which the "
            f"verbs interface here does not have; S gives the same buffers"
        )
    if letter not in FIELDS:
        raise BadReceiveQueues(f"{word!r} begins with {letter!r}: an entry begins with P or S")
    if not fields or len(fields) >= FIELDS[letter]:
        raise BadReceiveQueues(
            f"{word}: {letter} has 1 to {FIELDS[letter] - 1} numbers, not {len(fields)}"
        )
    numbers = [_number(word, field) for field in fields]
    if numbers[0] < 1:
        raise BadReceiveQueues(f"{word}: buffers of {numbers[0]} bytes")
    return _per_peer(word, numbers) if letter == "P" else _shared(word, numbers)


def _number(word: str, field: str) -> int:
    text = field.strip()
    if not text.isdecimal():
        raise BadReceiveQueues(f"{word}: {field!r} is no number")
    return int(text)


def _field(numbers: Sequence[int], index: int, default: int) -> int:
    return numbers[index] if len(numbers) > index else default


def _per_peer(word: str, numbers: Sequence[int]) -> PerPeer:
    num = _field(numbers, 1, NUM)
    low = _field(numbers, 2, num * 3 // 4)
    _check_num(word, num, low)
    if num > CREDITS_MAX:
        raise BadReceiveQueues(f"{word}: {num} buffers, a header can name {CREDITS_MAX} credits")
    win = _field(numbers, 3, (num - low) * 2)
    # buffers are posted again in lots of num - low, so that no more credits than so many lots of
    # them ever gather while the sender has none left: a larger window would be waited for for ever
    lot = num - low
    win = max(1, min(win, num // lot * lot))
    rsv = _field(numbers, 4, num * 2 // win)
    return PerPeer(numbers[0], num, low, win, max(1, rsv))


def _shared(word: str, numbers: Sequence[int]) -> Shared:
    num = _field(numbers, 1, NUM)
    low = _field(numbers, 2, num * 3 // 4)
    _check_num(word, num, low)
    sd_max = _field(numbers, 3, max(1, low // 4))
    rd_init = _field(numbers, 4, max(1, num // 4))
    limit = _field(numbers, 5, max(1, rd_init * 3 // 16))
    if sd_max < 1:
        raise BadReceiveQueues(f"{word}: sd_max is {sd_max}, and nothing could ever be sent")
    if not 1 <= rd_init <= num:
        raise BadReceiveQueues(f"{word}: rd_init is {rd_init}, which has to be 1 to num, {num}")
    if limit > num:
        raise BadReceiveQueues(f"{word}: srq_limit is {limit}, which may be num, {num}, at most")
    return Shared(numbers[0], num, low, sd_max, rd_init, limit)


def _check_num(word: str, num: int, low: int) -> None:
    if num <= low:
        raise BadReceiveQueues(f"{word}: num, {num}, has to be more than low, {low}")
