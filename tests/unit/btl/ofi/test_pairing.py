"""Which module of a peer each of ours talks to, and which ways are left out."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ompy.data.errors import MPIError
from ompy.net.base import Address, Interface
from ompy.net.real import RealNetwork
from ompy_components.btl.ofi import modex
from ompy_components.btl.ofi.modex import PeerRecord
from ompy_components.btl.ofi.selection import interfaces
from ompy_components.btl.ofi.selection.module_pairs import Ways
from ompy_components.btl.ofi.selection.pairing import pairs

from tests.unit.btl.ofi.test_providers import info


class Addresses:
    """A network as far as its addresses go."""

    def __init__(self, own: tuple[str, ...] = (), dead: tuple[str, ...] = ()) -> None:
        self.own, self.dead, self.asked = own, dead, list[str]()

    def in_network(self, address: str, network: str) -> bool:
        return RealNetwork.in_network(cast("Any", self), address, network)

    def interfaces(self) -> list[Interface]:
        return [Interface(f"eth{n}", host, 24, loopback=False) for n, host in enumerate(self.own)]

    def leads_to(self, interface: Interface, host: str) -> bool:
        return host not in self.dead

    def answers(self, address: Address, source: str, timeout_ms: int) -> bool:
        self.asked.append(f"{source} {address.host}:{address.port} {timeout_ms}")
        return address.host not in self.dead


def records(*addresses: str) -> list[PeerRecord]:
    return [PeerRecord("tcp;ofi_rxm", 2, 16, b"x", one, 24, 9) for one in addresses]


def paired(left: list[PeerRecord], right: list[PeerRecord], same_host: bool = False) -> Any:
    network = cast("Any", Addresses())
    return [tuple(one) for one in pairs(network, left, right, same_host=same_host)]


@pytest.mark.parametrize(
    ("left", "right", "found"),
    [
        # management and two rails, which the other host has in another order
        (
            ["10.0.0.1", "10.1.0.1", "10.2.0.1"],
            ["10.2.0.2", "10.0.0.2", "10.1.0.2"],
            [(0, 1, True), (1, 2, True), (2, 0, True)],
        ),
        (["10.0.0.1"], ["10.1.0.2", "10.0.0.2"], [(0, 1, True)]),
        (["10.0.0.1", "10.1.0.1"], ["10.8.0.2", "10.9.0.2"], [(0, 0, False), (1, 1, False)]),
        (["10.0.0.1", "10.1.0.1"], ["10.1.0.2", "10.9.0.2"], [(0, 1, False), (1, 0, True)]),
        # two in one network
        (["10.0.0.1", "10.0.0.2"], ["10.0.0.3", "10.0.0.4"], [(0, 0, True), (1, 1, True)]),
        # a bridge that is everywhere the same
        (["172.17.0.1", "10.0.0.1"], ["172.17.0.1", "10.0.0.2"], [(1, 1, True)]),
        (["172.17.0.1"], ["172.17.0.1"], [(0, 0, True)]),
        ([""], [""], [(0, 0, True)]),  # a fabric without addresses
        ([], ["10.0.0.1"], []),
    ],
)
def test_pairs(left: list[str], right: list[str], found: list[tuple[int, int, bool]]) -> None:
    assert paired(records(*left), records(*right)) == found


def test_on_one_host_addresses_are_the_same() -> None:
    both = records("10.0.0.1", "10.1.0.1")
    assert paired(both, both, same_host=True) == [(0, 0, True), (1, 1, True)]


@given(st.lists(st.integers(0, 3)), st.lists(st.integers(0, 3)))
def test_nobody_is_paired_twice_and_who_can_is(left: list[int], right: list[int]) -> None:
    lefts = records(*(f"10.{net}.0.1{n}" for n, net in enumerate(left)))
    rights = records(*(f"10.{net}.0.2{n}" for n, net in enumerate(right)))
    found = paired(lefts, rights)
    assert len({one for one, _, _ in found}) == len({one for _, one, _ in found}) == len(found)
    assert len(found) == min(len(left), len(right))
    near = sum(min(left.count(net), right.count(net)) for net in range(4))
    assert sum(is_near for _, _, is_near in found) == near


def test_other_providers_and_modes_are_no_partners() -> None:
    (one,) = records("10.0.0.1")
    assert not paired([one], [one._replace(provider="shm"), one._replace(mode=0)])


def ways(network: Addresses, there: list[PeerRecord], timeout: int = 500) -> tuple[Ways, Any]:
    me = SimpleNamespace(rank=0, node=0, local_rank=0)
    proc = SimpleNamespace(rank=1, node=1, hostname="far")
    modexes = {0: modex.pack(records(*network.own)), 1: modex.pack(there)}
    context = SimpleNamespace(
        me=me, rank=0, network=network, modex=lambda one: {modex.KEY: modexes[one.rank]}
    )
    return Ways(cast("Any", context), timeout), proc


def partners(found: Ways, proc: Any, count: int, *, proven: bool = False) -> list[int | None]:
    each = [found.partner(proc, index, proven=proven) for index in range(count)]
    return [None if one is None else one[0] for one in each]


def test_a_rail_that_leads_nowhere_is_left_out(capfd: pytest.CaptureFixture[str]) -> None:
    network = Addresses(("10.0.0.1", "10.1.0.1"), dead=("10.1.0.2",))
    found, proc = ways(network, records("10.0.0.2", "10.1.0.2"))
    assert partners(found, proc, 2) == [0, None]
    assert partners(found, proc, 2) == [0, None]
    assert network.asked == ["10.0.0.1 10.0.0.2:9 500", "10.1.0.1 10.1.0.2:9 500"], "once"
    assert "does without 10.1.0.1 - 10.1.0.2: host far" in " ".join(capfd.readouterr().err.split())
    assert partners(found, proc, 2, proven=True) == [0, 1], "a message has come over it"


def test_where_nothing_answers_all_are_used() -> None:
    network = Addresses(("10.0.0.1", "10.1.0.1"), dead=("10.0.0.2", "10.1.0.2"))
    found, proc = ways(network, records("10.0.0.2", "10.1.0.2"))
    assert partners(found, proc, 2) == [0, 1]


@pytest.mark.parametrize(("timeout", "own"), [(0, ("10.0.0.1", "10.1.0.1")), (9, ("10.0.0.1",))])
def test_nobody_is_asked_without_need(timeout: int, own: tuple[str, ...]) -> None:
    network = Addresses(own)
    found, proc = ways(network, records("10.0.0.2", "10.1.0.2"), timeout)
    assert partners(found, proc, len(own)) == list(range(len(own)))
    assert not network.asked


def test_left_over_modules_want_a_route() -> None:
    network = Addresses(("10.0.0.1", "10.1.0.1"), dead=("10.9.0.2",))
    found, proc = ways(network, records("10.0.0.2", "10.9.0.2"))
    assert partners(found, proc, 2) == [0, None]


def chosen(include: str = "", exclude: str = interfaces.EXCLUDED) -> list[str]:
    network = Addresses(("10.0.0.1", "10.1.0.1", "127.0.0.1"))
    procs = [SimpleNamespace(node=0), SimpleNamespace(node=1)]
    context: Any = SimpleNamespace(network=network, one_host=False, me=procs[0])
    infos = [info("tcp", domain=name) for name in ("eth0", "eth1", "eth2", "mlx5_0")]
    return [one.domain for one in interfaces.wanted(context, infos, include, exclude)]


def test_interfaces_are_chosen_as_by_tcp() -> None:
    assert chosen() == ["eth0", "eth1", "mlx5_0"]
    assert chosen("eth1, mlx5_0") == ["eth1", "mlx5_0"]
    assert chosen("10.0.0.0/24") == ["eth0"]
    assert chosen(exclude="10.1.0.0/16,eth2") == ["eth0", "mlx5_0"]
    with pytest.raises(MPIError, match=r"names rail9, .* eth0 \(10.0.0.1/24\)"):
        chosen("eth0,rail9")
    with pytest.raises(MPIError, match="if_include or btl_ofi_if_exclude"):
        chosen(exclude="10.0.0/xy")


def test_one_module_for_each_domain_of_the_first_provider() -> None:
    infos = [
        info("tcp", domain="eth0"),
        info("tcp", domain="eth0", max_message=1),
        info("sockets", domain="eth0"),
        info("tcp", domain="eth1"),
    ]
    assert interfaces.one_a_domain(infos, 16) == [infos[0], infos[3]]
    assert interfaces.one_a_domain(infos, 1) == [infos[0]], "as the seed"
