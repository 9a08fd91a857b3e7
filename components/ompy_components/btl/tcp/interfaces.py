"""Which interfaces tcp uses, and which address of a peer each of them connects to."""

from __future__ import annotations

from ompy import outputs
from ompy.data.errors import ERR_ARG, MPIError
from ompy.frameworks.context import RankContext
from ompy.frameworks.proc import Proc
from ompy.net.base import Address, Interface, LinkError, Network

KEY = "btl.tcp"


def choose(context: RankContext, include: str, exclude: str, standard: str) -> list[Interface]:
    """The interfaces to use.

    Args:
        context: the rank.
        include: value of `btl_tcp_if_include`.
        exclude: value of `btl_tcp_if_exclude`.
        standard: default of `btl_tcp_if_exclude`.

    Raises:
        MPIError: ERR_ARG, `include` names what is not there.
    """
    found = context.network.interfaces()
    if include:
        return _included(context.network, found, include)
    if exclude == standard and all(proc.node == context.me.node for proc in context.procs):
        loopbacks = [interface for interface in found if interface.loopback]
        if loopbacks:
            return loopbacks[:1]
    words = _words(exclude)
    return [i for i in found if not any(_matches(context.network, i, word) for word in words)]


def publish(context: RankContext, addresses: list[tuple[str, int]]) -> None:
    """Tell the peers where this rank listens, in the order of its modules."""
    text = "\n".join(f"{host} {port}" for host, port in addresses)
    context.wireup.publish(KEY, text.encode())


class Probes:
    """Which addresses of other hosts have answered: asked once for each host and interface.

    Virtual bridges and rails that are not connected look like any other interface. The ranks of
    a host have the same addresses, so what one of them answers holds for all.
    """

    def __init__(self, context: RankContext, timeout_ms: int) -> None:
        """Ask nothing yet.

        Args:
            context: the rank.
            timeout_ms: how long an address may take to answer; 0 takes all for good.
        """
        self._context = context
        self._timeout_ms = timeout_ms
        self._silent: dict[int, frozenset[int]] = {}

    def usable(
        self, proc: Proc, own: list[Interface], found: dict[int, Address]
    ) -> dict[int, Address]:
        """The pairs over which a connection was seen to work; all of them if none was.

        The first use of a pair that does not work then is the error that says why.
        """
        if not self._timeout_ms or proc.node == self._context.me.node:
            return found
        if proc.node not in self._silent:
            self._silent[proc.node] = self._probe(proc, own, found)
        silent = self._silent[proc.node]
        kept = {position: there for position, there in found.items() if position not in silent}
        return kept or found

    def _probe(self, proc: Proc, own: list[Interface], found: dict[int, Address]) -> frozenset[int]:
        network, answered = self._context.network, dict[tuple[str, str], bool]()
        silent = set()
        for position, there in found.items():
            pair = (own[position].address, there.host)  # several links are one way
            if pair not in answered:
                answered[pair] = network.answers(there, pair[0], self._timeout_ms)
            if not answered[pair]:
                silent.add(position)
        if silent and len(silent) < len(found) and self._context.me.local_rank == 0:
            ways = {f"{own[p].name} ({own[p].address} - {found[p].host})" for p in silent}
            outputs.tell(
                f"ompy: {self._context.me} does without {', '.join(sorted(ways))}: host "
                f"{proc.hostname} does not answer there within {self._timeout_ms} ms\n",
                "ways left out",
                "warning",
            )
        return frozenset(silent)


def pairs(context: RankContext, proc: Proc, own: list[Interface]) -> dict[int, Address]:
    """Which address of `proc` each of our interfaces connects to, by position.

    Interfaces are paired by network, each address of the peer at most once; what is left over
    is paired in order, where packets would leave by that interface. An address that this host
    has too is no way to another one: bridges such as docker0 have the same one everywhere. Both
    sides compute the same pairs up to the order of their lists.
    """
    text = context.modex(proc).get(KEY, b"").decode()
    theirs = [Address(line.split()[0], int(line.split()[1])) for line in text.splitlines()]
    network = context.network
    if proc.node != context.me.node:
        ours = {interface.address for interface in network.interfaces()}
        theirs = [address for address in theirs if address.host not in ours] or theirs
    found: dict[int, Address] = {}
    for position, interface in enumerate(own):
        for address in theirs:
            if network.in_network(address.host, f"{interface.address}/{interface.prefix}"):
                found[position] = address
                theirs.remove(address)
                break
    for position, interface in enumerate(own):
        if position not in found:
            leading = [a for a in theirs if network.leads_to(interface, a.host)]
            if leading:
                found[position] = leading[0]
                theirs.remove(leading[0])
    return found


def _included(network: Network, found: list[Interface], include: str) -> list[Interface]:
    chosen: list[Interface] = []
    for word in _words(include):
        matching = [interface for interface in found if _matches(network, interface, word)]
        if not matching:
            names = ", ".join(f"{i.name} ({i.address}/{i.prefix})" for i in found)
            raise MPIError(
                ERR_ARG,
                f"btl_tcp_if_include names {word}, which is not here or has no cable; in use "
                f"are {names}",
            )
        chosen += [interface for interface in matching if interface not in chosen]
    return chosen


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _matches(network: Network, interface: Interface, word: str) -> bool:
    """Whether an interface is meant by its name or by address/bits."""
    if "/" not in word:
        return interface.name == word
    try:
        return network.in_network(interface.address, word)
    except LinkError as problem:
        raise MPIError(ERR_ARG, f"btl_tcp_if_include or btl_tcp_if_exclude: {problem}") from problem
