"""From parameters and devices to modules: ranges, ports, who is whose partner."""

from __future__ import annotations

from typing import Any

import pytest
from ompy.data.errors import MPIError
from ompy.frameworks.nic.base import Identity, Nic
from ompy.mca.parameter import Values
from ompy.net.base import LinkError
from ompy_components.btl.openib import interfaces, modex, timing
from ompy_components.btl.openib.component import COMPONENT
from ompy_components.btl.openib.modex import PortRecord

DEFAULTS = {parameter.name: parameter.default for parameter in COMPONENT.parameters}


def values(**given: object) -> Values:
    return Values({**DEFAULTS, **given})


def test_defaults_are_in_range() -> None:
    found = timing.timing_limits(values())
    assert found[:5] == (13, 7, 7, 12, 4)
    assert not found.warnings
    assert found.timing(shared=True).rnr_retry == 7
    assert found.timing(shared=False).rnr_retry == 0, "credits: the receiver is always ready"
    tries = (found.retry_count + 1) * 4.096e-6 * 2**found.timeout
    assert 0.2 < tries < 0.35, "known in the time the agents take"


@pytest.mark.parametrize(
    ("name", "given", "taken"),
    [
        ("ib_timeout", 32, 31),
        ("ib_timeout", -1, 0),
        ("ib_retry_count", 8, 7),
        ("ib_rnr_retry", 100, 7),
        ("ib_min_rnr_timer", 32, 31),
        ("ib_qp_ous_rd_atom", 0, 1),
    ],
)
def test_what_is_out_of_range_is_clamped_with_a_warning(name: str, given: int, taken: int) -> None:
    found = timing.timing_limits(values(**{name: given}))
    (warning,) = found.warnings
    assert f"btl_openib_{name} is {given}" in warning
    assert f"{taken} is used" in warning
    assert taken in found[:5]


def nic(index: int, network: str) -> Any:
    return Nic(Identity(f"hca_{index}", f"eth{index}", network, 24, 0, emulated=True))


class Context:
    """In place of a rank's context: a network is the first letter of an address."""

    @property
    def network(self) -> Context:
        return self

    def in_network(self, address: str, network: str) -> bool:
        if network == "nonsense":
            raise LinkError("nobody can read it")
        return address[0] == network[0]


NICS = [nic(0, "a1"), nic(1, "a2"), nic(2, "b1")]


@pytest.mark.parametrize(
    ("given", "expected", "unknown"),
    [
        ({}, [0, 1, 2], []),
        ({"if_include": "hca_0, eth2"}, [0, 2], []),
        ({"if_include": "hca_1:1,hca_9"}, [1], ["hca_9"]),
        ({"if_exclude": "eth0"}, [1, 2], []),
        ({"ipaddr_include": "a/24"}, [0, 1], []),
        ({"ipaddr_exclude": "a/24"}, [2], []),
        ({"ipaddr_include": "a/24", "if_exclude": "hca_0"}, [1], []),
        ({"max_btls": 1}, [0], []),
        ({"if_include": "nothing"}, [], ["nothing"]),
    ],
)
def test_ports(given: dict[str, object], expected: list[int], unknown: list[str]) -> None:
    context: Any = Context()
    chosen, missing = interfaces.choose_devices(context, NICS, values(**given))
    assert [NICS.index(one) for one in chosen] == expected
    assert missing == unknown


def test_a_network_nobody_can_read() -> None:
    context: Any = Context()
    with pytest.raises(MPIError, match="nobody can read it"):
        interfaces.choose_devices(context, NICS, values(ipaddr_include="nonsense"))


def test_partners_are_of_one_subnet() -> None:
    """The first there with the first there: both ends say the same."""
    ours = [PortRecord(1, 10, 0, "a"), PortRecord(2, 11, 0, "b"), PortRecord(1, 12, 0, "c")]
    theirs = [PortRecord(2, 20, 0, "d"), PortRecord(1, 21, 0, "e"), PortRecord(3, 22, 0, "f")]
    for one, other in ((ours, theirs), (theirs, ours)):
        for index, port in enumerate(one):
            found = interfaces.find_partner(one, index, other)
            if found is not None:
                assert interfaces.find_partner(other, other.index(found), one) == port
    found = [interfaces.find_partner(ours, index, theirs) for index in range(3)]
    assert [one and one.lid for one in found] == [21, 20, None]


def test_modex() -> None:
    records = [PortRecord(0xFEC0 << 48, 7, 1000, "fe80::1"), PortRecord(2, 8, 0, "10.0.0.1")]
    blob = modex.pack_records("P,128", records)
    assert modex.unpack_records(blob, "P,128") == records
    assert modex.unpack_records(blob, "S,128") == [], "other queues: no partner"
    assert modex.unpack_records(b"", "P,128") == []
