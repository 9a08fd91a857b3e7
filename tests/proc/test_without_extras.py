"""Every command where a package that only an extra brings is not installed: all of them, and each.

What needs it says so in a line, with the way to get it; nothing else notices, and nothing ends in a
traceback. CI has all at once: simulated worlds here, the rest in the gate `wheel`, where they are
really not installed. All commands without one at a time are `tools/nightly.py`'s.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import click
import pytest
from ompy.cli.main import main

from tests.support.effort import THOROUGH
from tests.support.uninstalled import optional, without

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
OPTIONAL = optional()
ALL = "all of them"
NO_LIBRARY = "libfabric"  # no distribution: a simulated world has none
ASKED = "COMPLETE=bash_complete"
# what is run, and what it is refused without
COMMANDS = {
    "ompy sim -n 2 ring.py": "",
    "ompy sim -n 2 --mca btl self,ofi ring.py": "",
    "ompy sim -n 2 --seeds 2 ring.py": "",
    "ompy sim -n 2 --mca btl_usnic_nic libfabric ring.py": NO_LIBRARY,
    "ompy-run -n 2 --trace run1 python ring.py": "",
    "ompy-run -n 2 --mca btl_base_seal encrypt python ring.py": "cryptography",
    "ompy sim -n 2 --mca btl_base_seal encrypt ring.py": "cryptography",
    "ompy trace run1": "",
    "ompy-run -n 2 --record run2 --record-data python ring.py": "",
    "ompy replay run2": "",
    "ompy replay run2 --rank 1": "",
    "ompy trace --otf2 archive run1": "otf2",
    "ompy trace --chrome run1.json --play run1.html --dissector ompy.lua run1": "",
    "ompy explain --size 1m --peer 1": "",
    "ompy-info --all": "",
    "ompy-info --plugins": "",
    "ompy-info --why nic": "",
    "ompy completion bash": "",
    "ompy ps": "",
    "ompy top --help": "",
    "ompy mpiexec --link links": "",
    "ompy new coll mine": "",
    "ompy k8s manifest -n 2 --image image python ring.py": "",
    "ompy agent --help": "",
    f"_OMPY_INFO_{ASKED} COMP_WORDS='ompy-info --why nic_l' COMP_CWORD=2 ompy-info": "",
    f"_OMPY_{ASKED} COMP_WORDS='ompy sim --mca btl_' COMP_CWORD=3 ompy": "",
    "ompy conformance btl self --test test_names": "pytest",
    "ompy conformance osc sm --test test_names": "pytest",
    "ompy bench gasnet --sizes 8 --rounds 1 --plot picture.svg": "matplotlib",
    "ompy bench object --rounds 1": "",
    "ompy bench gasnet --sizes 8 --rounds 1": "",
}

pytestmark = pytest.mark.proc


def test_each_command_of_ours_is_tried() -> None:
    assert isinstance(main, click.Group)
    for name in main.commands.keys() - {"build"}:  # the gate `wheel` builds
        assert any(f"ompy {name}" in command for command in COMMANDS), name


@pytest.mark.parametrize("missing", [ALL, *(OPTIONAL if THOROUGH else ())])
def test_every_command(missing: str, tmp_path: Path) -> None:
    shutil.copy(ROOT / "examples" / "ring.py", tmp_path)
    gone = set(OPTIONAL) if missing == ALL else {missing}
    environment = without(tmp_path / "hidden", *gone)
    environment["PATH"] = f"{BIN}:{environment['PATH']}"
    tried = COMMANDS if THOROUGH else [line for line in COMMANDS if "ompy sim" in line]
    for command in tried:
        needed = COMMANDS[command]
        done = subprocess.run(
            command, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        said = done.stdout + done.stderr
        assert "Traceback" not in said, f"{command}: {said}"
        gone_too = needed == "cryptography" and "cffi" in gone  # which that cannot do without
        if needed == NO_LIBRARY or needed in gone or gone_too or (needed and not installed(needed)):
            assert done.returncode in (1, 2), f"{command}: {said}"
            assert needed == NO_LIBRARY or f"ompy[{OPTIONAL[needed]}]" in said, command
        else:
            assert done.returncode == 0, f"{command}: {said}"


def installed(distribution: str) -> bool:
    return any(distribution in names for names in metadata.packages_distributions().values())
