"""What the words of `if_include`, `if_exclude` and their like say: names, or networks."""

from __future__ import annotations

from ompy.data.errors import ERR_ARG, MPIError
from ompy.net.base import LinkError, Network


def words_of(text: str) -> list[str]:
    """The words of a parameter, which commas separate."""
    return [word.strip() for word in text.split(",") if word.strip()]


def in_named_network(network: Network, address: str, word: str, parameters: str) -> bool:
    """Whether an address is in the network that a word says as `address/bits`.

    Args:
        network: of the rank.
        address: of an interface.
        word: of a parameter's value.
        parameters: where the word may be from, as `btl_tcp_if_include or btl_tcp_if_exclude`.

    Raises:
        MPIError: ERR_ARG, nobody can read the word.
    """
    try:
        return network.in_network(address, word)
    except LinkError as problem:
        raise MPIError(ERR_ARG, f"{parameters}: {problem}") from problem
