"""What all tests share: Hypothesis minds no busy machine, and collecting garbage is cheap."""

from __future__ import annotations

import gc
import signal

import pytest
from hypothesis import HealthCheck, settings

from tests.support.forms import COMPILED
from tests.support.share import left_out

settings.register_profile(
    "shared-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("shared-machine")


def _heed_interrupts() -> None:
    """Have SIGINT raise KeyboardInterrupt, and SIGQUIT end us, as in a program that just began.

    Whoever runs us in the background of a shell ignores both, and all that we start would, too.
    Launchers that a test runs in this process leave SIGINT to the system.
    """
    if signal.getsignal(signal.SIGINT) in {signal.SIG_IGN, signal.SIG_DFL}:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGQUIT) is signal.SIG_IGN:
        signal.signal(signal.SIGQUIT, signal.SIG_DFL)


_heed_interrupts()


def pytest_runtest_teardown() -> None:
    """Let no test find what another has left of signals."""
    _heed_interrupts()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what CI takes a share of, and of a compiled run what replaces methods of ours."""
    if left := left_out(items):
        config.hook.pytest_deselected(items=[item for item in items if item in left])
        items[:] = [item for item in items if item not in left]
    skip = pytest.mark.skip(
        reason="compiled methods cannot be replaced: the interpreted run plants the defects"
    )
    for item in items if COMPILED else ():
        if item.get_closest_marker("interpreted") is not None:
            item.add_marker(skip)


def pytest_collection_finish() -> None:
    """Leave thousands of collected tests out of every later search for garbage."""
    gc.collect()
    gc.freeze()
