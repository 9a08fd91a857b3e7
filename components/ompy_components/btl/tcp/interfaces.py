"""Which interfaces tcp uses, and which address of a peer each of them connects to."""

from __future__ import annotations

from ompy.data.errors import ERR_ARG, MPIError
from ompy.frameworks.btl_base.interface_words import in_named_network, words_of
from ompy.frameworks.context import RankContext
from ompy.frameworks.paths.address_probes import AddressProbes
from ompy.frameworks.proc import Proc
from ompy.net.base import Address, Interface, Network

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
    if exclude == standard and context.one_host:
        loopbacks = [interface for interface in found if interface.loopback]
        if loopbacks:
            return loopbacks[:1]
    words = words_of(exclude)
    return [i for i in found if not any(_matches(context.network, i, word) for word in words)]


def publish(context: RankContext, addresses: list[tuple[str, int]]) -> None:
    """Tell the peers where this rank listens, in the order of its modules."""
    text = "\n".join(f"{host} {port}" for host, port in addresses)
    context.wireup.publish(KEY, text.encode())


class Probes:
    """Which pairs of interfaces are used, as far as addresses of other hosts have answered."""

    def __init__(self, context: RankContext, timeout_ms: int) -> None:
        """Ask nothing yet; the rest is as for `AddressProbes`."""
        self._context = context
        self._probes = AddressProbes(context, timeout_ms)

    def usable(
        self, proc: Proc, own: list[Interface], found: dict[int, Address]
    ) -> dict[int, Address]:
        """The pairs over which a connection was seen to work; all of them if none was.

        The first use of a pair that does not work then is the error that says why.
        """
        if not self._probes.timeout_ms or proc.node == self._context.me.node:
            return found
        ways: dict[tuple[str, str], tuple[int, str]] = {}
        for position, there in found.items():
            ours = own[position]
            name = f"{ours.name} ({ours.address} - {there.host})"
            ways.setdefault((ours.address, there.host), (there.port, name))  # several are one way
        silent = self._probes.silent(proc, ways)
        kept = {
            position: there
            for position, there in found.items()
            if (own[position].address, there.host) not in silent
        }
        return kept or found


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
    for word in words_of(include):
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


def _matches(network: Network, interface: Interface, word: str) -> bool:
    """Whether an interface is meant by its name or by address/bits."""
    if "/" not in word:
        return interface.name == word
    parameters = "btl_tcp_if_include or btl_tcp_if_exclude"
    return in_named_network(network, interface.address, word, parameters)
