#!/usr/bin/env python3
"""Let mpi4py's own test suite judge the drop-in package.

    python tools/sweep oracle [--judge DIR] [--tier T1.env,T1.obj,...] [-n 1,2,3]
    python tools/sweep oracle --tree DIR       a copy that `tools/package compile_hot DIR` has made
    python tools/sweep oracle --floor          fail when a tier passes fewer tests than it did
    python tools/sweep oracle --write-floor    note what passes now, where it is more

DIR holds the judge (`run_oracle.py` and its expected results): by default what OMPY_JUDGE names, or
`../shared/oracle` beside the project. The suite is mpi4py's source distribution, fetched by pip; it
asks everything only where numpy, dill and PyYAML are installed, as the extra `dev` does. The floor
is `tests/interop/mpi4py_floor.json`: tests passed, of those that the references pass, by tier and
number of ranks. All of it takes more than a quarter of an hour on two idle cores.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.bench.peer.peer_sources import Unavailable, fetch

ROOT = Path(__file__).resolve().parents[3]
FLOOR = ROOT / "tests" / "interop" / "mpi4py_floor.json"
TIERS = (
    "T1.env,T1.obj,T1.req,T1.buf,T1.mem,T2.obj,T2.op,T2.buf,T2.nb,T2.comm,T2.inter,T2.type,T2.err,"
    "T2.model,T3.dyn,T3.io,T3.mpi4,T3.rma,T3.session,T3.topo,T3.util"
)
# tier, ranks, tests, ok, skip, not ok, asked, passed
SCORE = re.compile(r"^(T\d\.\w+) +(\d+)(?: +\d+){4} +(\d+) +(\d+) ", re.MULTILINE)

Passed = dict[str, dict[str, int]]  # tests by tier and number of ranks


def main() -> None:
    """Run the judge; exit 1 below the floor, 2 when it cannot be run."""
    beside = ROOT.parent / "shared" / "oracle"
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--judge", type=Path, default=Path(os.environ.get("OMPY_JUDGE", beside)))
    parser.add_argument("--tier", default=TIERS)
    parser.add_argument("-n", default="1,2,3")
    parser.add_argument("--tree", type=Path, default=ROOT / "core", help="with the package ompy")
    parser.add_argument("--floor", action="store_true")
    parser.add_argument("--write-floor", action="store_true")
    options = parser.parse_args()
    if not (options.judge / "run_oracle.py").exists():
        print(
            f"oracle: no run_oracle.py in {options.judge}; name its folder by --judge or OMPY_JUDGE"
        )
        sys.exit(2)
    try:
        suite = fetch()
    except Unavailable as problem:
        print(f"oracle: the suite cannot be fetched: {problem}", file=sys.stderr)
        sys.exit(2)
    passed = judged(options.judge.resolve(), suite, options.tier, options.n, options.tree.resolve())
    if not passed:
        sys.exit(2)
    if options.write_floor:
        _raise_floor(passed)
    below = _below_floor(passed) if options.floor else []
    print("\n".join(below))
    sys.exit(1 if below else 0)


def judged(judge: Path, suite: Path, tiers: str, sizes: str, tree: Path) -> Passed:
    """What passes, of what every reference passes; the judge's table is printed."""
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, str(judge / "run_oracle.py"), "--suite", str(suite), "-n", sizes]
        # without the parameter a rank's death ends the job, and test_ulfm's calls are not available
        launcher = f"{Path(sys.executable).parent}/ompy-run --mca mpi_ft_enable 1 -n {{n}}"
        command += ["--launcher", launcher]
        command += ["--shim", str(tree / "ompy" / "dropin"), "--tier", tiers]
        command += ["--confirm", "--require-under", str(tree / "ompy")]
        # for busy machines: windows of three ranks on two cores wait for each other 40,000 times
        command += ["--test-timeout", "600", "--timeout", "1800"]
        for path in sorted((judge / "expected").glob("*.json")):
            command += ["--expected", str(path)]
        done = subprocess.run(
            command, capture_output=True, text=True, cwd=folder, env=environment, check=False
        )
    table = done.stdout.rpartition("\ntier ")
    print("".join(table[1:]).strip() or done.stdout[-3000:] + done.stderr[-3000:], flush=True)
    passed: Passed = {}
    for tier, ranks, _, number in SCORE.findall(table[2]):
        if tier in tiers.split(","):  # a file may hold tests of other tiers
            passed.setdefault(tier, {})[ranks] = int(number)
    return passed


def _below_floor(passed: Passed) -> list[str]:
    floor = json.loads(FLOOR.read_text())["judge"]
    return [
        f"BELOW THE FLOOR: {tier} with {ranks} ranks passes {number} tests, was {least}"
        for tier, by_ranks in passed.items()
        for ranks, number in by_ranks.items()
        if number < (least := floor.get(tier, {}).get(ranks, 0))
    ]


def _raise_floor(passed: Passed) -> None:
    kept = json.loads(FLOOR.read_text()) if FLOOR.exists() else {"judge": {}, "files": {}}
    for tier, by_ranks in passed.items():
        for ranks, number in by_ranks.items():
            least = kept["judge"].setdefault(tier, {})
            least[ranks] = max(number, least.get(ranks, 0))
    FLOOR.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
