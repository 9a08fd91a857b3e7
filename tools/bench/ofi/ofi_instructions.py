#!/usr/bin/env python3
"""Count the instructions of a put, a get and a fragment of btl/ofi, layer by layer.

    python tools/bench ofi_instructions --tree build/compiled [--provider shm]

Two ranks over libfabric, rank 0 under valgrind's callgrind: it puts and gets 8 bytes, one after the
other, then both send each other fragments of 8 bytes (`tests/support/ofi_loops.py`). Unlike times,
the counts are the same on a busy machine. `--tree` is what `tools/package compile_hot` made;
`valgrind` is a package of most distributions.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.support.ofi_loops import COUNTED, counted
from tools.repository import ROOT

PROGRAM: Final = f"{counted.__module__}:{counted.__name__}"
# ends of the names of functions in C, and what they do; what is within another is indented
LAYERS: Final = (
    ("OfiModule_put", "put: check, record, post"),
    ("LibfabricEndpoint_write", "    nic/libfabric and libfabric"),
    ("OfiModule_get", "get: check, record, post"),
    ("LibfabricEndpoint_read", "    nic/libfabric and libfabric"),
    ("TransferEngine_done", "completion of a put or get (two are counted)"),
    ("CompletionCallback_completed", "    the callback, in Python"),
    ("OfiModule_alloc", "fragment: memory and record"),
    ("OfiModule_send", "fragment: number, seal, post"),
    ("LibfabricEndpoint_inject", "    nic/libfabric and libfabric"),
    ("ReceiveEngine_deliver", "fragment that arrived: proof, number, callback"),
    ("ReceiveCallback_received", "    the callback, in Python"),
    ("ReceiveEngine_repost", "its buffer, posted again"),
    ("LibfabricEndpoint_receive", "    nic/libfabric and libfabric"),
)
COLLECTED: Final = ("put", "get", "alloc", "send", "poll")
FIGURE: Final = re.compile(r"^\s*([\d,]+) .*?__pyx_f_\w*_\d+([A-Za-z]\w*) \[")


def run(tree: Path, provider: str, into: Path) -> None:
    """Run both ranks, rank 0 under callgrind.

    Raises:
        subprocess.CalledProcessError: the job failed.
    """
    toggles = " ".join(f"--toggle-collect='*9OfiModule_{name}'" for name in COLLECTED)
    wrapper = into.with_name("rank.sh")
    wrapper.write_text(
        f'[ "$OMPY_RANK" = 0 ] || exec {sys.executable} "$@"\n'
        f"exec valgrind -q --tool=callgrind --collect-atstart=no {toggles} "
        f'--callgrind-out-file={into} {sys.executable} "$@"\n'
    )
    words = [sys.executable, "-m", "ompy.cli.run", "-n", "2", "--mca", "btl", "self,ofi"]
    words += ["--mca", "btl_ofi_provider_include", provider, "sh", str(wrapper)]
    words += ["-m", "tests.support.rank", PROGRAM, str(into.parent), ""]
    path = os.pathsep.join([str(tree.resolve()), str(ROOT)])
    subprocess.run(words, cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, check=True)


def figures(counts: Path) -> dict[str, int]:
    """Instructions by the function's class and name, with what it calls."""
    words = ["callgrind_annotate", "--inclusive=yes", "--threshold=100", str(counts)]
    text = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    found: dict[str, int] = {}
    for line in text.splitlines():
        match = FIGURE.match(line)
        if match:
            found.setdefault(match[2], int(match[1].replace(",", "")))
    return found


def main() -> None:
    """Count, and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tree", type=Path, required=True, help="as compile_hot makes it")
    parser.add_argument("--provider", default="shm")
    options = parser.parse_args()
    if shutil.which("valgrind") is None:
        sys.exit("ofi_instructions: valgrind is missing")
    with tempfile.TemporaryDirectory() as folder:
        counts = Path(folder, "counts")
        run(options.tree, options.provider, counts)
        found = figures(counts)
    print(f"{'instructions':>12}  of one operation over {options.provider}")
    for name, text in LAYERS:
        print(f"{found.get(name, 0) / COUNTED:12.0f}  {text}")


if __name__ == "__main__":
    main()
