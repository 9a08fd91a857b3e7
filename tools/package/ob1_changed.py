#!/usr/bin/env python3
"""Whether ob1 has changed since the state that bfo was last reviewed against.

    python tools/package ob1_changed             what has changed, exit code 1 if anything has
    python tools/package ob1_changed --accept    bfo has been reviewed: this is the state

bfo fills seams of ob1 and relies on how ob1 behaves around them, so whoever changes ob1 reads
bfo's README and its overrides (`tools/package bfo_overrides`), and accepts. Source: seed bfo (11).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PML = ROOT / "components" / "ompy_components" / "pml"
REVIEWED = PML / "bfo" / "reviewed.json"


def state(folder: Path = PML / "ob1") -> dict[str, str]:
    """A hash of every source of ob1, by file name."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()[:16]
        for path in sorted(folder.iterdir())
        if path.suffix in (".py", ".pxd")
    }


def differences(before: dict[str, str], now: dict[str, str]) -> list[str]:
    """What became of the files, a line each."""
    lines = [f"new: {name}" for name in now.keys() - before.keys()]
    lines += [f"gone: {name}" for name in before.keys() - now.keys()]
    both = now.keys() & before.keys()
    lines += [f"changed: {name}" for name in both if now[name] != before[name]]
    return sorted(lines)


def main() -> None:
    """Compare, or accept."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--accept", action="store_true", help="bfo has been reviewed")
    now = state()
    if parser.parse_args().accept:
        REVIEWED.write_text(json.dumps(now, indent=1) + "\n")
        print(f"{len(now)} files of ob1 are those that bfo was reviewed against")
        return
    found = differences(json.loads(REVIEWED.read_text()), now)
    print("\n".join(found) or "ob1 is as it was when bfo was reviewed")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
