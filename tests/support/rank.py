"""One rank of a real job started by `worlds.real`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from ompy.runtime.ranks import rank_start

from tests.support.mutants import planted
from tests.support.worlds import find


def main() -> None:
    program, folder, mutant = sys.argv[1:]
    with planted(mutant):
        process = rank_start.start()
        result = find(program)(process)
        Path(folder, str(process.context.rank)).write_text(json.dumps(result))
        process.finalize()
        process.context.wireup.finalized()


main()
