"""Which address of a peer each interface of tcp connects to, between hosts."""

from ipaddress import ip_address, ip_network
from types import SimpleNamespace

from ompy.frameworks.proc import Proc
from ompy.net.base import Interface, Network
from ompy_components.btl.tcp.interfaces import KEY, pairs

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
