"""One message of each protocol, and one fault."""

from __future__ import annotations

import pytest

from tests.sim.ob1.programs import one_message
from tests.support.failing_rails import FailingRail, Fault, failing_world

RAILS = (FailingRail(), FailingRail())


@pytest.mark.parametrize("size", [10, 900, 9000, 60_000])
@pytest.mark.parametrize("fragment", ["MATCH", "RNDV", "RGET", "ACK", "PUT", "FRAG", "FIN", "RDMA write", "RDMA read"])
@pytest.mark.parametrize("what", ["lost", "error", "late", "twice", "refused"])
def test_x(size, fragment, what):
    job = failing_world([one_message(size)] * 2, RAILS, [Fault(what, fragment)])
    print(job.net.log, job.net.delivered)
