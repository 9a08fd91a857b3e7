"""One run in an interpreter of its own: `python -m ompy.conformance.replay MODULE:OBJECT SETTINGS`.

Prints the digest of the run with seed 0. For the test that hashes of strings have no part in it.
"""

from __future__ import annotations

import importlib
import json
import sys

from ompy.conformance.btl.determinism import digest, record_run
from ompy.conformance.btl.suite import Worlds


def main() -> None:
    """Run it."""
    target, settings = sys.argv[1:]
    module, _, attribute = target.partition(":")
    component = getattr(importlib.import_module(module), attribute)
    print(digest(record_run(Worlds(component, json.loads(settings)), 0)))


if __name__ == "__main__":
    main()
