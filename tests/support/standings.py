"""How the ranks of a virtual world stand at a moment, as real ones say it to the launcher."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from typing import Any

import pytest
from ompy.data.request import Waitable
from ompy.runtime.diagnosis import standing
from ompy.runtime.machines.diagnosis.deadlock import Said
from ompy.runtime.ranks.process import RankProcess
from ompy.runtime.simulation.virtual_job import VirtualJob


def alone_in_process(patch: pytest.MonkeyPatch) -> None:
    """Threads and alarms of the test runner are none of the ranks'."""
    patch.setattr(standing, "_why_live", lambda *_: "")


def standings(job: VirtualJob, processes: Mapping[int, RankProcess]) -> dict[int, Said]:
    """By rank, what those say that wait; of those that run, only who waits for their locks."""
    found: dict[int, Any] = {}
    for engine in job.scheduler._engines:
        reason = engine._reason
        process = processes.get(engine.rank)
        if engine._done or process is None:
            continue
        if isinstance(reason, Waitable):
            said = standing.standing_of(process, {threading.get_ident(): (reason, 0)})
        else:
            said = {"live": "it runs", "queued": standing._Account(process).queued()}
        found[engine.rank] = json.loads(json.dumps(said))
    return found
