"""Which address of a peer each interface of tcp connects to, between hosts."""

from ipaddress import ip_address, ip_network
from types import SimpleNamespace

from ompy.frameworks.proc import Proc
from ompy.net.base import Address, Interface, Network
from ompy_components.btl.tcp.interfaces import KEY, Probes, pairs

DOCKER = "172.17.0.1"


class Hosts(Network):
    """The interfaces of one host, which sends by `route` what is not in their networks."""

    def __init__(self, found, route):
        super().__init__()
        self._found, self._route = found, route

    def interfaces(self):
        return self._found

    def in_network(self, address, network):
        return ip_address(address) in ip_network(network, strict=False)

    def leads_to(self, interface, host):
        return interface.name == self._route


def interface(address, name="eth0", prefix=24):
    return Interface(name, address, prefix, loopback=False)


def chosen(own, theirs, route="eth0", same_host=False):
    """Addresses of the peer by the names of our interfaces."""
    me, peer = Proc(0, 0, 0, "a"), Proc(1, int(not same_host), 1, "b")
    text = "\n".join(f"{address} 5000" for address in theirs)
    context = SimpleNamespace(
        network=Hosts(own, route), me=me, modex=lambda _: {KEY: text.encode()}
    )
    return {own[index].name: found.host for index, found in pairs(context, peer, own).items()}


def test_by_network_whatever_the_order():
    own = [interface("10.77.1.1", "rail1"), interface("10.77.2.1", "rail2")]
    assert chosen(own, ["10.77.2.2", "10.77.1.2"]) == {"rail1": "10.77.1.2", "rail2": "10.77.2.2"}


def test_an_address_that_both_hosts_have_is_no_way():
    own = [interface(DOCKER, "docker0", 16), interface("10.0.0.1")]
    assert chosen(own, [DOCKER, "10.0.0.2"]) == {"eth0": "10.0.0.2"}


def test_one_machine_may_have_two_names():
    assert chosen([interface("10.0.0.1")], ["10.0.0.1"]) == {"eth0": "10.0.0.1"}


def test_on_one_host_it_is():
    own = [interface(DOCKER, "docker0", 16)]
    assert chosen(own, [DOCKER], same_host=True) == {"docker0": DOCKER}


def test_between_networks_only_where_the_route_is():
    own = [interface(DOCKER, "docker0", 16), interface("10.0.1.1")]
    assert chosen(own, ["172.18.0.1", "10.0.2.1"]) == {"eth0": "172.18.0.1"}
    assert chosen(own, ["10.0.2.1"], route="none") == {}


def test_each_address_once():
    own = [interface("10.0.0.1"), interface("10.0.0.3", "eth1")]
    assert chosen(own, ["10.0.0.2"]) == {"eth0": "10.0.0.2"}


RAILS = [interface("10.77.1.1", "rail1"), interface("10.77.2.1", "rail2")]
FOUND = {0: Address("10.77.1.2", 5000), 1: Address("10.77.2.2", 5000)}


def probed(silent, asked, timeout_ms=500, node=1, local_rank=1):
    """Usable pairs by name, where some addresses do not answer; twice, for two ranks there."""
    me, peers = Proc(0, 0, local_rank, "a"), [Proc(rank, node, rank, "b") for rank in (1, 2)]

    def answers(address, source, patience):
        asked.append((source, address.host, patience))
        return address.host not in silent

    probes = Probes(SimpleNamespace(network=SimpleNamespace(answers=answers), me=me), timeout_ms)
    both = [probes.usable(peer, RAILS, dict(FOUND)) for peer in peers]
    assert both[0] == both[1]
    return [RAILS[position].name for position in both[0]]


def test_an_address_that_does_not_answer_is_done_without_and_said_once(capsys):
    asked = []
    assert probed({"10.77.2.2"}, asked, local_rank=0) == ["rail1"]
    assert asked == [("10.77.1.1", "10.77.1.2", 500), ("10.77.2.1", "10.77.2.2", 500)]
    assert capsys.readouterr().err.count("does without rail2 (10.77.2.1 - 10.77.2.2): host b") == 1
    assert probed({"10.77.2.2"}, []) == ["rail1"]
    assert capsys.readouterr().err == "", "one rank of a host says it"


def test_if_none_answers_the_first_use_says_why(capsys):
    assert probed({"10.77.1.2", "10.77.2.2"}, []) == ["rail1", "rail2"]
    assert capsys.readouterr().err == ""


def test_nobody_is_asked_on_the_own_host_or_without_a_timeout():
    asked = []
    assert probed({"10.77.2.2"}, asked, node=0) == ["rail1", "rail2"]
    assert probed({"10.77.2.2"}, asked, timeout_ms=0) == ["rail1", "rail2"]
    assert asked == []
