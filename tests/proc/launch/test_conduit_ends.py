"""Jobs with a conduit that end at random: by an exit, or by a signal. All ranks end, at once.

`OMPY_EXIT_TRIALS` says how many trials there are; a trial's name is its seed.
"""

import os
import random
import signal
import sys
import time
from pathlib import Path

import pytest

from tests.support.conduit_end import plan

from .conftest import assert_gone

pytestmark = pytest.mark.proc

ROOT = Path(__file__).parents[3]
TRIALS = int(os.environ.get("OMPY_EXIT_TRIALS", "2"))
WAYS = [
    ("gemini", "smsg", 0),
    ("aries", "mailboxes", 0),
    ("gemini", "mailboxes", 1),
    ("aries", "smsg", 1),
]


def start(launch, seed, ranks):
    conduit, messages, pshm = WAYS[seed % len(WAYS)]
    settings = {
        "conduit": conduit,
        f"conduit_{conduit}_messages": messages,
        f"conduit_{conduit}_pshm": pshm,
        f"conduit_{conduit}_networkdepth": 1 + seed % 3,
    }
    options = [word for pair in settings.items() for word in ("--mca", *pair)]
    program = [sys.executable, "-m", "tests.support.conduit_end", seed]
    environment = {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    return launch.start("-n", ranks, *options, *program, env=environment)


@pytest.mark.parametrize("seed", range(TRIALS))
def test_exit_trial(launch, seed):
    """The code is that of a rank that has ended the job; if there is one only, its."""
    ranks = random.Random(seed).choice((2, 3, 5))
    ended = start(launch, seed, ranks).end()
    plans = [plan(seed, rank, ranks) for rank in range(ranks)]
    assert ended.code in {code for when, code, _ in plans if when}, ended
    assert "Traceback" not in ended.err, ended


@pytest.mark.parametrize("seed", range(TRIALS // 2))
def test_kill_trial(launch, processes, seed):
    """A rank is killed while the job comes up, works or ends."""
    chance = random.Random(seed)
    running = start(launch, seed, 3)
    if chance.random() < 0.8:
        running.line()
        time.sleep(chance.random() * 0.05)
    else:
        time.sleep(chance.random() * 0.5)
    found = processes()
    if found:
        os.kill(chance.choice(sorted(found)), signal.SIGKILL)
    ended = running.end()
    assert_gone(launch.environment["OMPY_TEST_TOKEN"])
    assert ended.code, ended
