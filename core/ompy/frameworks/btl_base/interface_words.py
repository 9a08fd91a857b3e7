"""What the words of `if_include`, `if_exclude` and their like say: names, or networks."""

from __future__ import annotations

from ompy.data.errors import ERR_ARG, MPIError
from ompy.net.base import LinkError, Network


def words_of(text: str) -> list[str]:
    """The words of a parameter, which commas separate."""
    return [word.strip() for word in text.split(",") if word.strip()]


def check_words(text: str) -> None:
    """See that each word with a slash is a network; whether one is here only a rank can tell.

    Raises:
        ValueError: one is none.
    """
    for word in words_of(text):
        address, slash, bits = word.partition("/")
        numbers = [*address.split("."), bits]
        if slash and not (
            len(numbers) == 5
            and all(number.isdecimal() for number in numbers)
            and max(map(int, numbers[:4])) < 256
            and int(bits) <= 32
        ):
            raise ValueError(f"{word} is not a network such as 10.1.0.0/16")


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
