"""A job of one host listens on loopback only: its ranks over every BTL, its agent, its launcher."""

from __future__ import annotations

import os
import socket

import pytest

from tests.support.effort import THOROUGH
from tests.support.libfabric_devices import needs_libfabric
from tests.support.listening import Socket, listening
from tests.support.listening_programs import listeners
from tests.support.worlds import real, registry

pytestmark = pytest.mark.proc

PROGRAM = f"{listeners.__module__}:{listeners.__name__}"
# what else of a component opens sockets; a rank of it has some, or none at all
CHOICES: dict[str, list[dict[str, str]]] = {
    "ofi": [{"btl_ofi_nic": "ofi_emulated"}],
    "openib": [{}],
    "usnic": [{}],
    "tcp": [{}],
    "sm": [{}],
}
LIBRARY = [
    {"btl": "self,ofi", "btl_ofi_provider_include": "tcp;ofi_rxm"},
    {"btl": "self,ofi", "btl_ofi_provider_include": "net"},
    {"btl": "self,ofi", "btl_ofi_provider_include": "udp;ofi_rxd"},
    {"btl": "self,ofi", "btl_ofi_provider_include": "sockets"},
    {"btl": "self,usnic", "btl_usnic_nic": "libfabric"},
]
SOCKETLESS = {"sm"}


def check(settings: dict[str, str], *, opens: bool) -> None:
    for own, above in real(2, PROGRAM, settings=settings):
        assert bool(own) is opens, "the test looks at the wrong processes, or the BTL has changed"
        assert above, "the agent asks over UDP"
        for found in (*own, *above):
            assert Socket(*found).on_loopback, (settings, found)


@pytest.fixture(autouse=True)
def _ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LISTENING_TEST", str(os.getpid()))


def test_every_btl_is_tried() -> None:
    made = registry()
    names = {record.name for record in made.records_of("btl")}
    assert {"self", *CHOICES} <= names
    assert names - {"self", *CHOICES} <= {"udplite", "template"}, "say how a new BTL is used"


@pytest.mark.parametrize(
    "settings",
    [{"btl": f"self,{name}", **more} for name, choices in CHOICES.items() for more in choices],
    ids=lambda settings: settings["btl"],
)
def test_one_host(settings: dict[str, str]) -> None:
    check(settings, opens=settings["btl"].partition(",")[2] not in SOCKETLESS)


@needs_libfabric
@pytest.mark.parametrize(
    "settings",
    LIBRARY if THOROUGH else LIBRARY[:1],
    ids=lambda settings: "-".join(settings.values()),
)
def test_one_host_over_the_library(settings: dict[str, str]) -> None:
    check(settings, opens=True)


def test_what_listens_elsewhere_is_seen() -> None:
    """The check can fail: TCP and UDP, IPv4 and IPv6."""
    with (
        socket.create_server(("", 0)) as everywhere,
        socket.create_server(("127.0.0.1", 0)) as here,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams,
        socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as six,
    ):
        datagrams.bind(("0.0.0.0", 0))
        six.bind(("::1", 0))
        ports = {one.getsockname()[1]: one for one in (everywhere, here, datagrams, six)}
        found = {one.port: one for one in listening([os.getpid()]) if one.port in ports}
    seen = {ports[port]: one for port, one in found.items()}
    assert [seen[one].on_loopback for one in (everywhere, here, datagrams, six)] == [
        False, True, False, True,
    ]  # fmt: skip
