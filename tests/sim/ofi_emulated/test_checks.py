"""libfabric's functional tests in our own words, over the twin: what is so there is so here."""

from __future__ import annotations

import pytest

from tests.support.effort import THOROUGH
from tests.support.fabric_checks import CHECKS
from tests.support.fabric_job import both, run

PROVIDERS = ("emulated;offset_prov_key", "emulated") if THOROUGH else ("emulated;offset_prov_key",)


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("name", CHECKS)
def test_as_libfabric_does(name: str, provider: str) -> None:
    run(both(CHECKS[name], provider))
