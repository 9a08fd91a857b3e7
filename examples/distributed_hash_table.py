"""A dictionary spread over the ranks, by active messages: each key lives with one of them.

Who wants to store or look up something sends a request to the rank that owns the key. A handler
there does it, in that rank's memory, and replies. So nothing has to be locked: a rank's handlers
run when it polls, one at a time.
"""

import pickle
import random
from zlib import crc32

from ompy import gasnet

WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
DRAWS = 200  # of each rank


class DistributedDict:
    """Keys and counts; keys and what is found are pickled, up to a Medium's size."""

    def __init__(self) -> None:
        self.mine: dict[str, int] = {}  # those this rank owns
        self.found: dict[int, object] = {}  # answers, by ticket
        self.tickets = 0
        self.stored = 0
        self.handlers = [self.on_add, self.on_added, self.on_look, self.on_found]

    @staticmethod
    def owner(key: str) -> int:
        """The rank that has a key: all ranks say the same."""
        return crc32(key.encode()) % gasnet.nodes()

    # what anybody may call

    def add(self, key: str, number: int) -> None:
        """Add to a key's count; `settle` waits for it."""
        self.stored -= 1
        gasnet.am_request_medium(self.owner(key), self.on_add, key.encode(), number)

    def settle(self) -> None:
        """Wait until all that this rank has added is stored."""
        gasnet.block_until(lambda: self.stored == 0)

    def get(self, key: str) -> object:
        """A key's count, or None."""
        self.tickets += 1
        ticket = self.tickets
        gasnet.am_request_medium(self.owner(key), self.on_look, key.encode(), ticket)
        gasnet.block_until(lambda: ticket in self.found)
        return self.found.pop(ticket)

    # handlers: token, payload, arguments

    def on_add(self, token: gasnet.Token, payload: memoryview, number: int) -> None:
        """Add to a count of this rank's, and say so."""
        key = bytes(payload).decode()
        self.mine[key] = self.mine.get(key, 0) + number
        gasnet.am_reply_short(token, self.on_added)

    def on_added(self, _token: gasnet.Token, _payload: memoryview) -> None:
        """The owner has it."""
        self.stored += 1

    def on_look(self, token: gasnet.Token, payload: memoryview, ticket: int) -> None:
        """Tell a count of this rank's."""
        count = self.mine.get(bytes(payload).decode())
        gasnet.am_reply_medium(token, self.on_found, pickle.dumps(count), ticket)

    def on_found(self, _token: gasnet.Token, payload: memoryview, ticket: int) -> None:
        """The owner has answered."""
        self.found[ticket] = pickle.loads(payload)  # noqa: S301 - from a rank of this job


def drawn(rank: int) -> list[str]:
    """The words a rank counts."""
    return random.Random(rank).choices(WORDS, k=DRAWS)


gasnet.init()
table = DistributedDict()
gasnet.attach(table.handlers)
for word in drawn(gasnet.mynode()):
    table.add(word, 1)
table.settle()
gasnet.barrier()  # everybody has

every = [word for rank in range(gasnet.nodes()) for word in drawn(rank)]
for word in random.Random(gasnet.mynode()).sample(WORDS, 3):
    assert table.get(word) == every.count(word), word
assert table.get("thirteen") is None
gasnet.barrier()  # nobody has a question any more

if gasnet.mynode() == 0:
    counts = {word: table.get(word) for word in WORDS}
    assert counts == {word: every.count(word) for word in WORDS}
    print(f"{len(every)} words of {gasnet.nodes()} rank(s) counted, 'one' {counts['one']} times")
gasnet.barrier()
