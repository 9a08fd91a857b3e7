"""What all tests share: Hypothesis minds no busy machine, and collecting garbage is cheap."""

from __future__ import annotations

import gc

from hypothesis import HealthCheck, settings

settings.register_profile(
    "shared-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("shared-machine")


def pytest_collection_finish() -> None:
    """Leave thousands of collected tests out of every later search for garbage."""
    gc.collect()
    gc.freeze()
