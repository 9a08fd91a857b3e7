"""An agent whose guard dies ends, whatever it is doing."""

import signal
import subprocess
import sys

# what Python raises in a weak reference's callback it drops, and imports make such calls
IN_A_CALLBACK = """
import signal, sys, time, weakref
from ompy.runtime.agents.remote_agent import end_at_once
signal.signal(signal.SIGTERM, end_at_once)
class Module: pass
def gone(_):
    print("in it", flush=True)
    end = time.monotonic() + 20
    while time.monotonic() < end: pass
module = Module()
there = weakref.ref(module, gone)
del module
print("went on", flush=True)
"""


def test_sigterm_is_not_lost_in_a_callback():
    command = [sys.executable, "-c", IN_A_CALLBACK]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "in it\n"
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=20)
    assert (process.returncode, out) == (1, "")
