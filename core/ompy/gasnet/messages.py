"""Active messages.

A handler is called as `handler(token, payload, *arguments)`. The payload of a Short is empty, that
of a Medium is the handler's until it returns, that of a Long is the place in the own segment.
Arguments are numbers of 32 bits with a sign.

Source: reference gasnet.md 1 (Active messages).
"""

from __future__ import annotations

from _thread import get_ident
from collections.abc import Callable, Sequence
from functools import partial
from operator import index as as_index
from typing import Any, Final

from ompy.data.errors import MPIError
from ompy.frameworks.conduit import CLIENT_HANDLERS, HANDLERS, MAX_ARGS, Category, Handler, Token
from ompy.gasnet.errors import BadArgument
from ompy.gasnet.rank import LAYER, Rank, readable_bytes
from ompy.gasnet.table import ClientHandler

LARGEST: Final = 0x7FFF_FFFF  # reference gasnet.md 1: an argument has 32 bits, and a sign
NOTHING: Final = memoryview(b"")

SHORT: Final = Category.SHORT
MEDIUM: Final = Category.MEDIUM
LONG: Final = Category.LONG
LONG_ASYNC: Final = Category.LONG_ASYNC


class Messages(Rank):
    """Requests, replies, polling."""

    # --- requests

    def am_request_short(self, node: int, handler: int | ClientHandler, *arguments: int) -> None:
        """Send arguments to a handler of a rank.

        Args:
            node: the rank.
            handler: index in its table, or a function of the own one.
            arguments: up to `am_max_args`.

        Raises:
            BadArgument: an argument is wrong, or this thread may not communicate now.
            ResourceError: the peer is gone.
        """
        self._request(SHORT, node, handler, NOTHING, 0, arguments)

    def am_request_medium(
        self, node: int, handler: int | ClientHandler, payload: Any, *arguments: int
    ) -> None:
        """Send bytes as well, up to `am_max_medium`; they may be changed when this returns.

        Raises:
            BadArgument, ResourceError: as `am_request_short`.
        """
        self._request(MEDIUM, node, handler, readable_bytes(payload), 0, arguments)

    def am_request_long(
        self, node: int, handler: int | ClientHandler, payload: Any, offset: int, *arguments: int
    ) -> None:
        """Send bytes to a place in the rank's segment, then run the handler there.

        Args:
            node: the rank.
            handler: as of `am_request_short`.
            payload: up to `am_max_long_request` bytes; they may be changed when this returns.
            offset: into the rank's segment.
            arguments: as of `am_request_short`.

        Raises:
            BadArgument, ResourceError: as `am_request_short`.
        """
        self._request(LONG, node, handler, readable_bytes(payload), offset, arguments)

    def am_request_long_async(
        self, node: int, handler: int | ClientHandler, payload: Any, offset: int, *arguments: int
    ) -> None:
        """As `am_request_long`, but the bytes stay as they are until the reply's handler runs."""
        self._request(LONG_ASYNC, node, handler, readable_bytes(payload), offset, arguments)

    # --- replies

    def am_reply_short(self, token: Token, handler: int | ClientHandler, *arguments: int) -> None:
        """Answer a request with arguments: once, from within its handler.

        Raises:
            BadArgument: an argument is wrong, the token is not that of the running handler or that
                of a reply, a reply was sent already, or a handler-safe lock is held.
        """
        self._reply(SHORT, token, handler, NOTHING, 0, arguments)

    def am_reply_medium(
        self, token: Token, handler: int | ClientHandler, payload: Any, *arguments: int
    ) -> None:
        """Answer with bytes as well, up to `am_max_medium`. Raises as `am_reply_short`."""
        self._reply(MEDIUM, token, handler, readable_bytes(payload), 0, arguments)

    def am_reply_long(
        self, token: Token, handler: int | ClientHandler, payload: Any, offset: int, *arguments: int
    ) -> None:
        """Answer with bytes to a place in the asker's segment, up to `am_max_long_reply`."""
        self._reply(LONG, token, handler, readable_bytes(payload), offset, arguments)

    # --- polling

    def am_poll(self) -> None:
        """Let communication advance once: handlers of what has arrived run.

        Raises:
            BadArgument: in a handler, with a handler-safe lock, or in a no-interrupt section.
        """
        self._check_free()
        self._progress()
        self._kick_barrier()

    def block_until(self, predicate: Callable[[], bool]) -> None:
        """Poll until `predicate` is true, which handlers see to; it must not communicate.

        Raises:
            BadArgument: as `am_poll`; or it is no function.
        """
        self._check_free()
        if not callable(predicate):
            raise BadArgument(f"{predicate!r} cannot be called: block_until takes a function")
        self._blocked += 1
        try:
            self._wait_for(predicate)
        finally:
            self._blocked -= 1

    def am_get_msg_source(self, token: Token) -> int:
        """The rank that sent the message whose handler got this token.

        Raises:
            BadArgument: its handler does not run in this thread.
        """
        self._check_token(token)
        return token.source

    # --- limits

    def am_max_args(self) -> int:
        """Arguments of a message."""
        return MAX_ARGS

    def am_max_medium(self) -> int:
        """Bytes of a Medium."""
        self._need_init()
        return self._conduit.max_medium

    def am_max_long_request(self) -> int:
        """Bytes of a request's Long."""
        self._need_init()
        return self._conduit.max_long_request

    def am_max_long_reply(self) -> int:
        """Bytes of a reply's Long."""
        self._need_init()
        return self._conduit.max_long_reply

    # --- below

    def _request(
        self,
        category: Category,
        node: int,
        handler: int | ClientHandler,
        payload: memoryview,
        offset: int,
        arguments: Sequence[int],
    ) -> None:
        self._check_node(node)
        index = self._index_of(handler)
        words = words_of(arguments)
        if category is MEDIUM:
            check_size(payload, self._conduit.max_medium, "Medium")
        elif category is not SHORT:
            check_size(payload, self._conduit.max_long_request, "Long request")
            self._check_range(node, offset, len(payload))
        self._send_request(category, node, index, words, payload, offset)

    def _send_request(
        self,
        category: Category,
        node: int,
        index: int,
        words: Sequence[int],
        payload: memoryview = NOTHING,
        offset: int = 0,
    ) -> None:
        """Send a request whose arguments are right; a turn of polling comes first."""
        self._progress()
        with self._guard:
            if node == self._me:
                self._deliver(Token(node, is_request=True), category, index, words, payload, offset)
                return
            try:
                self._conduit.request(category, node, index, words, payload, offset)
            except MPIError as problem:
                raise self._failed(problem) from problem

    def _reply(
        self,
        category: Category,
        token: Token,
        handler: int | ClientHandler,
        payload: memoryview,
        offset: int,
        arguments: Sequence[int],
    ) -> None:
        self._check_token(token)
        if not token.is_request:
            raise BadArgument("a reply cannot be answered: nothing may be sent from its handler")
        if token.replied:
            raise BadArgument("this request has been answered already")
        if self._held or self._quiet:
            self._refuse_quiet(get_ident())
        index = self._index_of(handler)
        words = words_of(arguments)
        if category is MEDIUM:
            check_size(payload, self._conduit.max_medium, "Medium")
        elif category is LONG:
            check_size(payload, self._conduit.max_long_reply, "Long reply")
            self._check_range(token.source, offset, len(payload))
        self._send_reply(category, token, index, words, payload, offset)

    def _send_reply(
        self,
        category: Category,
        token: Token,
        index: int,
        words: Sequence[int],
        payload: memoryview = NOTHING,
        offset: int = 0,
    ) -> None:
        if token.source == self._me:
            token.replied = True
            answer = Token(self._me, is_request=False)
            self._deliver(answer, category, index, words, payload, offset)
            return
        try:
            self._conduit.reply(category, token, index, words, payload, offset)
        except MPIError as problem:
            raise self._failed(problem) from problem
        token.replied = True

    def _deliver(
        self,
        token: Token,
        category: Category,
        index: int,
        words: Sequence[int],
        payload: memoryview,
        offset: int,
    ) -> None:
        """Run a handler of the own rank on a message of its own."""
        if category is MEDIUM:
            payload = memoryview(bytearray(payload))
        elif category is not SHORT:
            place = self._segment.memory[offset : offset + len(payload)]
            place[:] = payload
            payload = place
        if self._trace.active:
            self._tell_own(token, category, index, len(words), len(payload))
        handler = self._table[index]
        assert handler is not None, "the table has something for every index of ours"
        handler(token, payload, words)

    def _tell_own(
        self, token: Token, category: Category, index: int, words: int, size: int
    ) -> None:
        """A message of the own rank is traced."""
        self._copies += 1
        name = ("AMRequest" if token.is_request else "AMReply") + category.value.title()
        fields = {"am": self._copies, "handler": index, "arguments": words, "size": size}
        name = name.replace(" ", "")
        self._trace.record(LAYER, name, peer=self._me, **fields, way="own rank")

    def _check_token(self, token: Token) -> None:
        running = self._handling.get(get_ident())
        if not running or running[-1] is not token:
            raise BadArgument("a token is good only within its handler, in the thread that runs it")

    def _index_of(self, handler: int | ClientHandler) -> int:
        known = handler if isinstance(handler, int) else self._indices.get(handler)
        if known is None:
            raise BadArgument(f"{handler!r} was not given to attach as a handler")
        if known not in CLIENT_HANDLERS:
            first, last = CLIENT_HANDLERS[0], CLIENT_HANDLERS[-1]
            raise BadArgument(f"handler index {known} is not one of {first} to {last}")
        return known

    # --- handlers

    def _fill_table(self, chosen: Sequence[tuple[int, ClientHandler]]) -> None:
        """Put the client's handlers into the table, and what refuses all other indices."""
        for index in CLIENT_HANDLERS:
            self._table[index] = partial(self._unknown, index)
        for index, function in chosen:
            self._table[index] = partial(self._run, function)
            self._indices.setdefault(function, index)
        assert len(self._table) == HANDLERS

    def _run(
        self, function: ClientHandler, token: Token, payload: memoryview, words: Sequence[int]
    ) -> None:
        """Call a client's handler, and see to what it may do meanwhile."""
        me = get_ident()
        running = self._handling.setdefault(me, [])
        before = len(self._held.get(me, ()))
        running.append(token)
        try:
            function(token, payload, *words)
        except MPIError as problem:
            self._handlers_own = problem
            raise
        finally:
            running.pop()
            if not running:
                del self._handling[me]
        if len(self._held.get(me, ())) != before:
            raise BadArgument(f"{function!r} has returned with a handler-safe lock held")

    def _unknown(
        self, index: int, token: Token, _payload: memoryview, _words: Sequence[int]
    ) -> None:
        raise BadArgument(
            f"node {token.source} sent a message to handler {index}, which node {self._me} lacks"
        )

    def _add_handler(self, index: int, handler: Handler) -> None:
        """Put a handler of the API's own into the table."""
        assert self._table[index] is None, f"handler {index} is there twice"
        self._table[index] = handler

    def _kick_barrier(self) -> None:
        """Send what a barrier has to send."""


def words_of(arguments: Sequence[int]) -> list[int]:
    """Arguments as plain integers.

    Raises:
        BadArgument: there are too many, or one is no number of 32 bits with a sign.
    """
    if len(arguments) > MAX_ARGS:
        raise BadArgument(f"{len(arguments)} arguments are more than {MAX_ARGS}")
    words = []
    for argument in arguments:
        try:
            number = as_index(argument)
        except TypeError:
            raise BadArgument(f"the argument {argument!r} is no integer") from None
        if not -LARGEST - 1 <= number <= LARGEST:
            raise BadArgument(f"the argument {number} does not fit 32 bits with a sign")
        words.append(number)
    return words


def check_size(payload: memoryview, limit: int, what: str) -> None:
    """See that a payload is not too large.

    Raises:
        BadArgument: it is.
    """
    if len(payload) > limit:
        raise BadArgument(f"{len(payload)} bytes are more than the {limit} of a {what}")
