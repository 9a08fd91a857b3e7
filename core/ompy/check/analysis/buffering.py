"""Programs that end only because messages are buffered: their calls are run once more without.

In this second run a standard send ends when its receive has been posted, as a synchronous one does;
all else waits for what it waited for: a receive for its message, a collective call for the data it
needs. Whoever stands still then stands still in MPI too, where no message is buffered, unless
another receive that is posted could take what is sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ompy.check.analysis.matching import Messages, Receive, Send
from ompy.check.analysis.order import Collective, collectives_of
from ompy.check.findings import Found
from ompy.check.logs import Record


def buffering_findings(records: Mapping[int, Record], messages: Messages) -> list[Found]:
    """The sends that never end; at most one finding, as the rest follows from it."""
    if not all(record.complete and not record.threads for record in records.values()):
        return []
    return _Rerun(records, messages).found()


class _Rerun:
    """The second run."""

    def __init__(self, records: Mapping[int, Record], messages: Messages) -> None:
        self._records = records
        self._messages = messages
        self._at = dict.fromkeys(records, 0)
        self._sends = {
            rank: {send.place: send for send in sends} for rank, sends in messages.sends.items()
        }
        self._colls = {rank: collectives_of(record) for rank, record in records.items()}
        self._entered: dict[tuple[Any, int], int] = {}
        for rank, colls in self._colls.items():
            for index, coll in colls.items():
                self._entered[coll.call, rank] = index
        self._requests = {rank: self._requests_of(rank) for rank in records}

    def _requests_of(self, rank: int) -> dict[int, Send | Receive | Collective]:
        found: dict[int, Send | Receive | Collective] = {}
        for send in self._messages.sends[rank]:
            found[send.request] = send
        for receive in self._messages.receives[rank]:
            found[receive.request] = receive
        for coll in self._colls[rank].values():
            found[coll.request] = coll
        found.pop(0, None)
        return found

    def found(self) -> list[Found]:
        """What stands still."""
        moved = True
        while moved:
            moved = False
            for rank, record in self._records.items():
                while self._at[rank] < len(record.events) and self._ends(rank, record):
                    self._at[rank] += 1
                    moved = True
        stuck = [rank for rank, at in self._at.items() if at < len(self._records[rank].events)]
        sends = [send for rank in stuck for send in self._waiting_sends(rank)]
        if not sends or any(self._could_be_taken(send) for send in sends):
            return []
        first = [send for send in sends if self._target(send) in stuck]
        return [self._finding(first)] if first else []

    def _begun(self, rank: int, index: int) -> bool:
        """Whether a rank has come as far as an entry."""
        return rank not in self._at or self._at[rank] >= index

    def _ends(self, rank: int, record: Record) -> bool:
        """Whether the call of an entry ends."""
        index = self._at[rank]
        event = record.events[index]
        if event[0] == "send":
            send = self._sends[rank].get(index)
            return send is None or bool(send.request) or self._is_met(send)
        if event[0] == "recv":
            if event[7] or event[8] is None:
                return True
            sent = self._messages.send_of.get((rank, index))
            return sent is None or self._begun(sent.rank, sent.place)
        if event[0] == "coll":
            coll = self._colls[rank].get(index)
            return coll is None or bool(coll.request) or self._all_there(coll)
        if event[0] == "wait" and event[5] != "test":
            return all(self._is_over(rank, request) for request in event[4])
        return True

    def _is_met(self, send: Send) -> bool:
        """Whether a send's receive has been posted; of what nobody receives nothing is said."""
        if send.mode == "buffered":
            return True
        receive = self._messages.receive_of.get((send.rank, send.place))
        return receive is None or self._begun(receive.rank, receive.place)

    def _all_there(self, coll: Collective) -> bool:
        for rank in coll.needed():
            index = self._entered.get((coll.call, rank))
            if index is not None and not self._begun(rank, index):
                return False
        return True

    def _is_over(self, rank: int, request: int) -> bool:
        what = self._requests[rank].get(request)
        if isinstance(what, Send):
            return self._is_met(what)
        if isinstance(what, Receive):
            sent = self._messages.send_of.get((rank, what.place))
            return sent is None or self._begun(sent.rank, sent.place)
        return what is None or self._all_there(what)

    # who stands still

    def _waiting_sends(self, rank: int) -> list[Send]:
        index = self._at[rank]
        event = self._records[rank].events[index]
        if event[0] == "send":
            return [self._sends[rank][index]]
        if event[0] != "wait":
            return []
        requests = (self._requests[rank].get(request) for request in event[4])
        return [each for each in requests if isinstance(each, Send) and not self._is_met(each)]

    def _target(self, send: Send) -> int:
        receive = self._messages.receive_of.get((send.rank, send.place))
        return -1 if receive is None else receive.rank

    def _could_be_taken(self, send: Send) -> bool:
        """Whether a receive that is posted and waits could take it in place of its own message."""
        target = self._target(send)
        for receive in self._messages.receives.get(target, []):
            if receive.place > self._at[target]:
                break
            sent = self._messages.send_of.get((receive.rank, receive.place))
            waits = sent is None or not self._begun(sent.rank, sent.place)
            if waits and receive.key == send.key and receive.takes(send.source, send.tag):
                return True
        return False

    def _finding(self, sends: list[Send]) -> Found:
        said = "; ".join(
            f"rank {send.rank}'s {send.call} to rank {self._target(send)}" for send in sends[:4]
        )
        message = (
            f"these sends end only because MPI has room for their messages: {said}; each target "
            "would have to receive first, and waits itself. MPI 4.1, 3.5: a program may not rely "
            "on buffering; receive first on one side, or use Sendrecv or Isend"
        )
        sites = tuple(self._records[send.rank].site(send.site, send.call) for send in sends)
        return Found("buffering-dependent", message, sites)
