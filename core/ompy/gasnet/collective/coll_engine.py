"""What drives a rank's collectives: messages that come, operations that go on, teams that break.

Handlers only note what has come. The rest is done by `_drive`, out of whatever call waits or polls.

Source: reference gasnet.md 14 (Collectives).
"""

from __future__ import annotations

import _thread
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from ompy.frameworks.conduit import EXTENDED_HANDLERS, Category, Token, Transfer
from ompy.gasnet.atomics import Atomics
from ompy.gasnet.collective.coll_calls import ROOTED, Call, call_of
from ompy.gasnet.collective.coll_edges import MESSAGES, Message
from ompy.gasnet.collective.coll_operation import Operation, Services
from ompy.gasnet.collective.teams import Team
from ompy.gasnet.dissemination import Knowledge
from ompy.gasnet.errors import CollectiveMismatch, ResourceError
from ompy.gasnet.fill import halves, joined_number
from ompy.gasnet.rank import LAYER, FindConduit
from ompy.runtime.diagnosis.call_account import Group

if TYPE_CHECKING:
    from ompy.data.request import Waitable

COLLECTIVE: Final = EXTENDED_HANDLERS[6]
TEAM_ROUND: Final = EXTENDED_HANDLERS[7]
HEAD: Final = 5  # words of a message before its call, arbitrary: number, what, slot, place

Heard = tuple[int, int, list[int], bytes]  # handler, source, words, payload


class CollectiveEngine(Atomics):
    """Drives them. Attributes are private.

    They are
        _teams: by their number.
        _freed: numbers of those that are no more.
        _calls_ended: balance of their calls.
        _strangers: messages of teams that this member has not made yet.
        _operations: under way.
        _meeting: teams in whose barrier this member is.
        _notices: what other members have yet to be told of.
        _coll_news: something has come or moved.
        _taking: held while it is found out whose a message is.
        _driver: held by the thread that drives.
    """

    def __init__(self, find: FindConduit) -> None:
        super().__init__(find)
        self._teams: dict[int, Team] = {}
        self._freed: set[int] = set()
        self._calls_ended = 0
        self._strangers: dict[int, list[Heard]] = {}
        self._operations: list[Operation] = []
        self._meeting: list[Team] = []
        self._notices: deque[tuple[Team, int, Call, str]] = deque()
        self._coll_news = False
        self._taking = _thread.allocate_lock()
        self._driver = _thread.allocate_lock()

    def _prepare_collectives(self) -> None:
        """Have the handlers in the table, and the team of all."""
        self._add_handler(COLLECTIVE, self._on_collective)
        self._add_handler(TEAM_ROUND, self._on_team_round)
        self._teams[0] = Team(self, 0, range(self._conduit.context.size))

    # --- teams

    def _add_team(self, id_: int, nodes: Sequence[int]) -> Team:
        """A new team, and what has come for it."""
        team = Team(self, id_, nodes)
        with self._taking:
            if id_ in self._teams or id_ in self._freed:
                raise ResourceError(f"{team} would have the number of another one")
            self._teams[id_] = team
            early = self._strangers.pop(id_, [])
        for handler, source, words, payload in early:
            self._hear(handler, source, words, payload)
        return team

    def _drop_team(self, team: Team) -> None:
        team.freed = True
        with self._taking:
            del self._teams[team.id]
            self._freed.add(team.id)
        self._calls_ended += team.balance()

    def _calls_made(self) -> tuple[int, list[Group]]:
        """The balance of all teams' collectives, and those of the live ones."""
        teams = [team for team in self._teams.values() if team.size > 1]
        return sum(team.balance() for team in teams) + self._calls_ended, [
            team.group() for team in teams
        ]

    # --- what comes

    def _on_collective(self, token: Token, payload: memoryview, words: Sequence[int]) -> None:
        self._hear(COLLECTIVE, token.source, list(words), bytes(payload))

    def _on_team_round(self, token: Token, _payload: memoryview, words: Sequence[int]) -> None:
        self._hear(TEAM_ROUND, token.source, list(words), b"")

    def _hear(self, handler: int, source: int, words: list[int], payload: bytes) -> None:
        """Find out whose a message is, and note it there."""
        id_, rest = joined_number(*words[:2]), words[2:]
        with self._taking:
            team = self._teams.get(id_)
            if team is None:
                if id_ not in self._freed:
                    heard = (handler, source, words, payload)
                    self._strangers.setdefault(id_, []).append(heard)
                return
            if handler == TEAM_ROUND:
                parity, number, flags, name = rest
                team.barrier.take_round(parity, number, Knowledge(flags, name))
                self._coll_news = True
                return
            early = rest[0] > team.begun and MESSAGES[rest[1]] is not Message.BROKEN
            if early:
                team.early.setdefault(rest[0], []).append((source, rest, payload))
                return
        self._note(team, source, rest, payload)

    def _note(self, team: Team, source: int, words: list[int], payload: bytes) -> None:
        """A message of a collective that this member has begun, or is told is broken."""
        number, which, slot = words[:3]
        what, op = MESSAGES[which], team.active.get(number)
        if what is Message.BROKEN:
            self._break(team, number, payload.decode(errors="replace"))
            return
        mine = op.call if op is not None else team.past.get(number)
        theirs = call_of(words[HEAD:])
        if mine is not None and mine != theirs:
            text = f"collective {number} of {team}: rank {self._me} calls {mine}, "
            text += f"rank {source} calls {theirs}"
            if self._break(team, number, text):
                self._notices.append((team, number, mine, text))
        elif op is not None:
            op.take_message(
                team.node2rank(source), what, slot, joined_number(*words[3:HEAD]), payload
            )
            self._coll_news = True

    def _break(self, team: Team, number: int, text: str) -> bool:
        """Members have made different calls. Returns whether that is news."""
        news = team.broken is None
        if news:
            team.broken = text
            for op in [*team.active.values()]:
                if op.number >= number:
                    op.fail(CollectiveMismatch(text))
            self._coll_news = True
        return news

    # --- what leaves

    def _say(self, team: Team, peer: int, words: list[int], payload: memoryview) -> None:
        """Send a message of a collective to a member."""
        category = Category.MEDIUM if len(payload) else Category.SHORT
        everything = [*halves(team.id), *words]
        self._send_request(category, team.nodes[peer], COLLECTIVE, everything, payload)

    def _move(
        self, node: int, place: int, view: memoryview, told: Transfer, *, is_get: bool
    ) -> None:
        """Begin a put or get of a member's segment."""
        if is_get and not self._load(view, node, place):
            self._begin_get(node, place, view, told)
        elif not is_get and not self._store(node, place, view):
            self._begin_put(node, place, view, told, bulk=True)
        else:
            told.done(is_get=is_get)

    def _moved(self) -> None:
        """A put or get of a collective has ended."""
        self._coll_news = True

    def _tell(self, team: Team, number: int, mine: Call, text: str) -> None:
        """Tell all members that the team is broken."""
        said = memoryview(text.encode()[: self._conduit.max_medium])
        words = [number, MESSAGES.index(Message.BROKEN), 0, 0, 0, *mine.words()]
        for peer in range(team.size):
            if peer != team.rank:
                self._say(team, peer, words, said)

    # --- operations

    def _start(self, team: Team, call: Call, dst: memoryview, src: memoryview) -> Operation:
        """Begin a collective, and do of it what can be done now.

        Raises:
            CollectiveMismatch: an earlier one has found the members at different calls.
        """
        if team.broken is not None:
            raise CollectiveMismatch(team.broken)
        small, memory = self._conduit.max_medium, self._segment.memory
        services = Services(self._say, self._move, memory, self._moved, small)
        op = Operation(services, team, team.begun + 1, call, dst, src)
        with self._taking:
            team.begin_call(op)
            early = team.early.pop(op.number, [])
        for source, words, payload in early:
            self._note(team, source, words, payload)
        self._operations.append(op)
        if self._trace.active:
            self._copies += 1
            op.traced = self._copies
            peer = team.nodes[call.root] if call.kind in ROOTED else self._me
            fields = {"op": op.traced, "size": call.nbytes, "way": f"{op.number} of {team}"}
            self._trace.record(LAYER, "COLL", peer=peer, call=str(call), **fields)
        self._drive()
        return op

    def _finish_operation(self, op: Operation) -> None:
        """Wait for one. Raises what it ended with."""
        self._wait_for(lambda: op.complete)
        self._result(op)

    def _result(self, op: Operation) -> None:
        if op.problem is not None:
            self._drive()  # others are told
            raise op.problem

    def _drive(self) -> None:
        """Do all that can be done now; unless another thread is at it."""
        if not self._driver.acquire(False):
            self._progress()
            return
        try:
            self._coll_news = False
            while self._notices:
                self._tell(*self._notices.popleft())
            for team in [*self._meeting]:
                while (message := team.barrier.next_round()) is not None:
                    words = [*halves(team.id), message.parity, message.number, *message.known]
                    node = team.nodes[message.peer]
                    self._send_request(Category.SHORT, node, TEAM_ROUND, words)
            for op in [*self._operations]:
                op.advance()
                if op.complete:
                    self._end_operation(op)
        finally:
            self._driver.release()

    def _end_operation(self, op: Operation) -> None:
        self._operations.remove(op)
        op.team.ended(op.number)
        if op.traced and self._trace.active:
            self._trace.record(LAYER, "COLL_DONE", op=op.traced, well=int(op.problem is None))

    # --- whoever waits drives

    def _is_busy(self) -> bool:
        return bool(self._operations or self._meeting or self._notices)

    def _kick_barrier(self) -> None:
        super()._kick_barrier()
        if self._is_busy():
            self._drive()

    def _wait_for(self, predicate: Callable[[], bool]) -> None:
        if not self._is_busy():
            super()._wait_for(predicate)
            return
        while not predicate():
            self._drive()
            super()._wait_for(lambda: self._coll_news or predicate())

    def _wait(self, waitable: Waitable) -> None:
        if self._is_busy():
            self._wait_for(lambda: waitable.complete)
        else:
            super()._wait(waitable)

    def _begun_collectives(self) -> list[str]:
        """What is under way, a line each for people."""
        lines = [line for op in [*self._operations] for line in op.waiting()]
        for team in [*self._meeting]:
            missing = team.barrier.awaited()
            if missing is not None:
                rank = team.nodes[missing]
                lines.append(f"a barrier of {team}: nothing has come from rank {rank} yet")
        return lines
