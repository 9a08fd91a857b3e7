"""What an endpoint does as its path comes and goes (`ompy.frameworks.paths.path_keeper`).

README.md, "The life of a path", says which event of the machine comes from what a socket shows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ompy.frameworks.paths.path_keeper import PathUser
from ompy.frameworks.paths.path_life import IN_USE, TRYING, Life, Stage
from ompy.net.seals.handshake import NONCE_SIZE

from ompy_components.btl.tcp.connecting import Attempt
from ompy_components.btl.tcp.framing import FrameReader

if TYPE_CHECKING:
    from ompy.frameworks.paths.path_keeper import KeptPath
    from ompy.net.base import Stream

    from ompy_components.btl.tcp.accepting import HalfOpen
    from ompy_components.btl.tcp.connecting import Connector
    from ompy_components.btl.tcp.endpoint import TcpEndpoint


class TcpPath(PathUser):
    """Of one endpoint: where its next connection comes from.

    Attributes:
        endpoint: that uses it.
    """

    __slots__ = ("_attempt", "_connector", "_incoming", "_made", "endpoint")

    def __init__(self, endpoint: TcpEndpoint, connector: Connector) -> None:
        self.endpoint = endpoint
        self._connector = connector
        self._attempt: Attempt | None = None  # ours, under way
        self._incoming: HalfOpen | None = None  # the peer's, which was taken, and is to hear of it
        self._made: Stream | None = None  # what came of either, and is not used yet

    # -- what the keeper asks

    def ends(self) -> tuple[str, str, str]:
        """Interface and addresses."""
        return self.endpoint.ends()

    def unopened(self, reason: str) -> str:
        """With where from and where to, and what to do."""
        own, address, there = self.endpoint.ends()
        return (
            f"cannot connect to {there} from {own} ({address}): {reason}; "
            "btl_tcp_if_include names the interfaces to use"
        )

    def wanted(self) -> bool:
        """Something waits to be sent that is no BYE."""
        return self.endpoint.unsaid()

    def hears_the_end(self) -> bool:
        """The kernel of a process that has ended closes its connections, behind all it has sent."""
        return True

    def open_ended(self) -> bool:
        """Nobody waits for a completion here: what the kernel has taken is complete."""
        return False

    def progress(self) -> object:
        """Nobody looks at it."""
        return 0

    # -- what the machine has it do

    def renew(self, number: int) -> None:
        """Each connection has a reader of its own; there is nothing else that is counted."""

    def say(self, number: int, stage: Stage) -> None:
        """Begin to connect."""
        self._attempt = Attempt(self, self.endpoint.proc, self._connector)
        self._attempt.begin(self.endpoint.address, self.nonce(number))

    def learn(self, payload: object) -> None:
        """Use the peer's connection, when it has heard so."""
        incoming: HalfOpen = payload  # type: ignore[assignment]
        self._incoming = incoming
        incoming.taken_by(self)

    def ready(self) -> None:
        """Use the connection that was made, unless the peer is still to hear of it."""
        stream, self._made = self._made, None
        if stream is not None:
            self.use(stream)

    def use(self, stream: Stream) -> None:
        """Both ends are in: frames may go."""
        self.endpoint.begin(stream, self.reader())

    def reader(self) -> FrameReader:
        """For a new connection."""
        module = self.endpoint.module
        return FrameReader(max(module.eager_limit, module.max_send_size))

    def stop(self, reason: str) -> None:
        """Nothing of the generation is used any more."""
        self.end_attempts()
        self.endpoint.drop_stream()

    def fail_open(self) -> None:
        """What waits to be sent."""
        self.endpoint.fail_queue()

    # -- what is seen of connections

    def made(self, stream: Stream) -> None:
        """The peer has taken ours."""
        self._attempt, self._made = None, stream
        life = self.endpoint.path.life
        self.endpoint.path.word(life.number, Stage.UP)

    def failed(self, attempt: Attempt, why: str) -> None:
        """Nothing came of ours. One that was only to say BYE is not made again."""
        assert attempt is self._attempt
        path = self.endpoint.path
        only_bye = self.endpoint.said_bye and not path.broken
        if only_bye:
            path.left()
        path.broke(why, final=bool(self.endpoint.proc.departed) or self.goes_elsewhere())
        if only_bye:
            self.endpoint.close()
        elif path.life.life is Life.PAUSING:
            self.endpoint.note("NOT_MENDED" if path.broken else "RETRY", why=why)

    def goes_elsewhere(self) -> bool:
        """What waits for the first connection has another rail, and has waited long enough."""
        return False

    def offered(self, incoming: HalfOpen) -> bool:
        """The peer wants to connect. Whether that is to be taken, in place of what there is."""
        number = self.number_of(incoming.acceptor.theirs)
        return self.endpoint.path.word(number, Stage.OPENING, incoming)

    def heard(self, stream: Stream) -> None:
        """The peer knows by now that its connection was taken."""
        self._incoming = None
        stream.belongs_to(self.endpoint.proc.rank)
        self.use(stream)

    def offer_failed(self) -> None:
        """The peer's connection, which was taken, is gone before it has heard so."""
        self.endpoint.lose("the peer closed the connection during the handshake")

    def number_of(self, nonce: bytes) -> int:
        """The generation of an offer: it says none, so it is the next, or the one begun here."""
        life = self.endpoint.path.life
        return life.number + (life.life not in (*IN_USE, *TRYING))

    def nonce(self, number: int) -> bytes:
        """What an offer begins with."""
        return self._connector.context.network.entropy(NONCE_SIZE)

    # -- the end

    def close(self) -> None:
        """The module ends."""
        self.end_attempts()
        self.endpoint.drop_stream()

    def end_attempts(self, *, abandon: bool = False) -> None:
        """Of ours and the peer's, give up what is under way."""
        attempt, self._attempt = self._attempt, None
        incoming, self._incoming = self._incoming, None
        if attempt is not None:
            attempt.end(abandon=abandon)
        if incoming is not None:
            incoming.taken_by(None)
            incoming.reject()


def connections(path: KeptPath) -> TcpPath:
    """What makes those of a path of this BTL."""
    assert isinstance(path.user, TcpPath)
    return path.user
