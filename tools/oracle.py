#!/usr/bin/env python3
"""Let mpi4py's own test suite judge the drop-in package.

    python tools/oracle.py --judge DIR [--tier T1.env,T1.obj,...] [-n 1,2,3]

DIR holds the judge (`run_oracle.py` and its expected results); by default `../shared/oracle`
beside the project, where there is one. The suite is mpi4py's source distribution, fetched by
pip. Prints a line per tier: passed of asked.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from peer_sources import Unavailable, fetch

ROOT = Path(__file__).resolve().parent.parent
TIERS = "T1.env,T1.obj,T1.req,T1.buf,T1.mem,T2.obj,T2.op,T2.buf,T2.comm,T2.type,T2.err,T2.model"


def main() -> None:
    """Run the judge tier by tier; exit 2 when it cannot be run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--judge", type=Path, default=ROOT.parent / "shared" / "oracle")
    parser.add_argument("--tier", default=TIERS)
    parser.add_argument("-n", default="1,2,3")
    options = parser.parse_args()
    if not (options.judge / "run_oracle.py").exists():
        sys.exit(f"oracle: no run_oracle.py in {options.judge}; name its folder by --judge")
    try:
        suite = fetch()
    except Unavailable as problem:
        print(f"oracle: the suite cannot be fetched: {problem}", file=sys.stderr)
        sys.exit(2)
    for tier in options.tier.split(","):
        _judge(options.judge, suite, tier, options.n)


def _judge(judge: Path, suite: Path, tier: str, sizes: str) -> None:
    expected = sorted((judge / "expected").glob("*.json"))
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, str(judge / "run_oracle.py"), "--suite", str(suite), "-n", sizes]
        command += ["--launcher", f"{Path(sys.executable).parent}/ompy-run -n {{n}}"]
        command += ["--shim", str(ROOT / "core" / "ompy" / "dropin"), "--tier", tier]
        for path in expected:
            command += ["--expected", str(path)]
        command += ["--out", str(Path(folder) / "result.json")]
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
    print(f"== {tier}", flush=True)
    scores = re.search(r"^tier +n +tests.*?\n\n", done.stdout, re.MULTILINE | re.DOTALL)
    if scores:
        print(scores.group())
    print(done.stdout[-1500:] or done.stderr[-1500:], flush=True)


if __name__ == "__main__":
    main()
