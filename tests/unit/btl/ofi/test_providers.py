"""Which provider is taken, and why another is not."""

from __future__ import annotations

import pytest
from ompy.frameworks.nic.fabric import Caps, FabricInfo, Mode, MrMode, Progress
from ompy_components.btl.ofi.selection import providers
from ompy_components.btl.ofi.selection.providers import BtlMode

ALL = Caps.MSG | Caps.RMA | Caps.ATOMIC
# as libfabric 1.17 lists them on a host without a fabric: reference ofi.md C1
ORDINARY = ("tcp;ofi_rxm", "net", "net;ofi_rxm", "udp;ofi_rxd", "shm", "sockets")
NOBODY = providers.wishes("", "")


def info(name: str, **more: object) -> FabricInfo:
    values: dict[str, object] = {
        "provider": name,
        "fabric": "fabric",
        "domain": "lo",
        "caps": ALL,
        "mode": Mode(0),
        "mr_mode": MrMode(0),
        "op_flags": Caps.DELIVERY_COMPLETE,
        "delivery_complete": not name.startswith("net"),
        "inject_size": 64,
        "tx_size": 1,
        "rx_size": 1,
        "max_message": 1 << 30,
        "tx_contexts_max": 1,
        "progress": Progress.MANUAL,
        "version": "1.17",
        "source": b"",
        "native": None,
    }
    return FabricInfo(**{**values, **more})  # type: ignore[arg-type]


def _order(one_host: bool) -> list[str]:
    infos = [info(name) for name in ("verbs;ofi_rxm", *ORDINARY)]
    return [one.provider for one in providers.ordered(infos, one_host=one_host)]


def test_the_default_works_on_an_ordinary_host() -> None:
    for mode in BtlMode:
        assert all(not providers.refusal(info(name), mode, NOBODY) for name in ORDINARY)
    assert _order(True)[:3] == ["shm", "verbs;ofi_rxm", "tcp;ofi_rxm"]
    assert _order(False)[:2] == ["verbs;ofi_rxm", "tcp;ofi_rxm"]
    assert _order(False)[-1] == "shm"


def test_the_slow_ones_come_last() -> None:
    for one_host in (True, False):
        order = [name for name in _order(one_host) if name != "shm"]
        assert set(order[-2:]) == {"udp;ofi_rxd", "sockets"}


def test_the_stock_list_leaves_nothing_of_it() -> None:
    stock = providers.wishes("", "stock")
    for name in (*ORDINARY, "SOCKETS", "verbs;ofi_rxm"):
        assert "exclude" in providers.refusal(info(name), BtlMode.BOTH, stock)
    assert not providers.refusal(info("psm2"), BtlMode.BOTH, stock)


@pytest.mark.parametrize("mode", BtlMode)
def test_what_strangers_can_crash_is_taken_by_name_only(mode: BtlMode) -> None:
    unreliable = info("udp;ofi_rxd", exposed="junk crashes it")
    for wished in (NOBODY, providers.wishes("", "shm"), providers.wishes("", "", "lo")):
        why = providers.refusal(unreliable, mode, wished)
        assert why == "it is off unless btl_ofi_provider_include names it: junk crashes it"
    for named in ("udp;ofi_rxd", "UDP", "shm,udp"):
        assert not providers.refusal(unreliable, mode, providers.wishes(named, ""))
    assert "exclude" in providers.refusal(unreliable, mode, providers.wishes("", "udp"))
    assert "include" in providers.refusal(unreliable, mode, providers.wishes("tcp", ""))


def test_lists_are_prefixes_in_any_case() -> None:
    only = providers.wishes("TCP, shm", "")
    assert not providers.refusal(info("tcp;ofi_rxm"), BtlMode.BOTH, only)
    assert "include" in providers.refusal(info("sockets"), BtlMode.BOTH, only)
    without = providers.wishes("", "udp")
    assert "exclude" in providers.refusal(info("udp;ofi_rxd"), BtlMode.BOTH, without)
    here = providers.wishes("", "", "eth0")
    assert "domain" in providers.refusal(info("shm"), BtlMode.BOTH, here)


@pytest.mark.parametrize(
    ("mode", "caps"),
    [
        (BtlMode.ONE_SIDED, Caps.RMA),
        (BtlMode.TWO_SIDED, Caps.RMA | Caps.ATOMIC),
        (BtlMode.BOTH, Caps.MSG | Caps.RMA),
    ],
)
def test_a_capability_that_is_missing(mode: BtlMode, caps: Caps) -> None:
    assert "has no" in providers.refusal(info("shm", caps=caps), mode, NOBODY)
    assert not providers.refusal(info("shm", caps=providers.NEEDED[mode]), mode, NOBODY)


@pytest.mark.parametrize(
    "mr_mode", [MrMode.LOCAL, MrMode.MMU_NOTIFY, MrMode.RMA_EVENT, MrMode.ENDPOINT]
)
def test_modes_of_registration_that_are_refused(mr_mode: MrMode) -> None:
    assert not providers.OFFERED & mr_mode
    wanted = info("psm2", mr_mode=mr_mode | MrMode.VIRT_ADDR)
    assert "registering" in providers.refusal(wanted, BtlMode.BOTH, NOBODY)


@pytest.mark.parametrize(
    "mr_mode",
    [
        MrMode(0),
        MrMode.BASIC,
        MrMode.SCALABLE,
        MrMode.VIRT_ADDR,
        MrMode.ALLOCATED | MrMode.PROV_KEY,
        MrMode.VIRT_ADDR | MrMode.ALLOCATED | MrMode.PROV_KEY,
    ],
)
def test_modes_of_registration_that_are_supported(mr_mode: MrMode) -> None:
    assert not providers.refusal(info("psm2", mr_mode=mr_mode), BtlMode.BOTH, NOBODY)


def test_what_else_a_provider_may_ask() -> None:
    assert not providers.refusal(info("a", mode=Mode.CONTEXT | Mode.CONTEXT2), BtlMode.BOTH, NOBODY)
    assert "MSG_PREFIX" in providers.refusal(info("a", mode=Mode.MSG_PREFIX), BtlMode.BOTH, NOBODY)


def test_who_does_not_honour_delivery_complete_comes_later() -> None:
    assert _order(False).index("net") > _order(False).index("tcp;ofi_rxm")
    asked = providers.hints(BtlMode.BOTH, Progress.UNSPEC, delivery=True)
    assert asked.op_flags == Caps.DELIVERY_COMPLETE
    assert not providers.hints(BtlMode.BOTH, Progress.UNSPEC, delivery=False).op_flags
