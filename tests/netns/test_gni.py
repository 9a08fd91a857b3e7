"""Emulated Gemini and Aries NICs between hosts, over Ethernet."""

import json
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.proc, pytest.mark.netns]


def test_ranks_of_two_hosts_put_into_each_other(lab, tmp_path):
    words = (sys.executable, "-m", "tests.support.rank", "tests.support.gni_ranks:both_nics")
    process = lab.ompy_run("--host", "h1,h2", "--mca", "btl", "self,tcp", *words, tmp_path, "")
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, out + err
    found = [json.loads(Path(tmp_path, str(rank)).read_text()) for rank in range(2)]
    assert found == [["gemini 1", "aries 1"], ["gemini 0", "aries 0"]]
