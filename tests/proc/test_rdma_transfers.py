"""Puts and gets of the conduits between real processes."""

from __future__ import annotations

import pytest

from tests.support.worlds import real

pytestmark = pytest.mark.proc

PROGRAMS = "tests.support.rdma_programs"
POSTS = {"fma_put", "rdma_put", "fma_get", "rdma_get"}


def settings(name: str, **of_the_conduit: object) -> dict[str, object]:
    own = {f"conduit_{name}_{key}": value for key, value in of_the_conduit.items()}
    return {"conduit": name, "btl": "self,sm", **own}


def test_sizes_and_alignments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over the NIC, with few resources, as a user of GASNet sets them."""
    monkeypatch.setenv("GASNET_GNI_NUM_PD", "2")
    monkeypatch.setenv("GASNET_GNI_BOUNCE_SIZE", "8K")
    monkeypatch.setenv("GASNET_GNI_MEMREG", "1")
    for found in real(2, f"{PROGRAMS}:sizes_and_alignments", settings=settings("gemini", pshm=0)):
        assert set(found) >= POSTS
        assert found["bounce"]
        assert found["register"]
        assert found["alloc_pd_stall"], "two descriptors are not enough for five gets"


def test_neighbours_put_and_get_past_the_nic() -> None:
    for found in real(2, f"{PROGRAMS}:sizes_and_alignments", settings=settings("aries", pshm=1)):
        assert not POSTS & set(found)


@pytest.mark.parametrize(("pshm", "descriptors"), [(0, 3), (1, 512)])
def test_threads(pshm: int, descriptors: int) -> None:
    chosen = settings("gemini", pshm=pshm, num_pd=descriptors, memreg=1, bounce_size=16384)
    for found in real(2, f"{PROGRAMS}:threads", settings=chosen):
        assert bool(POSTS & set(found)) is not bool(pshm)
