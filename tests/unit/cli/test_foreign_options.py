"""Launch lines of other MPIs as `ompy-run` has them."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from ompy.cli.command_line import parse_command_line
from ompy.cli.foreign_options import OPTIONS, translate_line
from ompy.cli.main import main

ROOT = Path(__file__).resolve().parents[3]
LINES = {
    "-n 2 python a.py -l": "-n 2 python a.py -l",
    "-np 2 --bind-to none python a": "-np 2 python a",
    "--map-by :OVERSUBSCRIBE -n 2 p": "--oversubscribe -n 2 p",
    "--map-by core:PE=1:OVERSUBSCRIBE p": "--oversubscribe p",
    "--map-by ppr:2:node:PE=1 p": "--map-by ppr:2:node p",
    "-map-by node p": "--map-by node p",
    "--map-by=socket p": "p",
    "--use-hwthread-cpus --report-bindings p": "--display-map p",
    "-l -genv K V -genvlist A,B -n 3 p": "--tag-output -x K=V -x A -x B -n 3 p",
    "-genvall -ppn 2 -f hosts p": "--npernode 2 --hostfile hosts p",
    "-hosts a,b -launcher rsh p": "--host a,b --mca plm ssh p",
    "--mca mpi_yield_when_idle 1 --mca btl tcp,self p": "--mca btl tcp,self p",
    "--mca orte_base_help_aggregate 0 --mca rmaps_base_oversubscribe 1 p": "--oversubscribe p",
    "--mca rmaps_default_mapping_policy :oversubscribe p": "--oversubscribe p",
    "--prtemca plm_rsh_agent x -x A=1 --output tag p": "-x A=1 --tag-output p",
    "--oversubscribe -n 1 -x A=1 p a : -n 2 -env B 2 q": (
        "--oversubscribe -n 1 -x A=1 p a : -n 2 -x B=2 q"
    ),
    "-H a:2 --wd d -N 1 p": "-H a:2 --wd d -N 1 p",
    "--no-such -n 2 p": "--no-such -n 2 p",
    "-n 2 --genv K": "-n 2 --genv",
}


@pytest.mark.parametrize("line", LINES)
def test_lines(line: str) -> None:
    made = translate_line(line.split())
    assert " ".join(made.words) == LINES[line]
    if "no-such" not in line and "--genv K" not in line:
        groups = parse_command_line(made.words)
        assert all(group.argv[0] in {"p", "q", "python"} for group in groups)


def test_what_is_of_no_effect_is_said() -> None:
    line = "--bind-to core --report-bindings --bind-to none --rank-by slot p"
    notes = translate_line(line.split()).notes
    assert len(notes) == 2
    assert notes[0].startswith("--bind-to core is of no effect: ")


def test_the_table_of_options_is_whole() -> None:
    text = (ROOT / "docs" / "mpiexec.md").read_text()
    for option in OPTIONS:
        assert f"`{option}" in text or f"`{option[1:]}" in text, option


def test_links(tmp_path: Path) -> None:
    there = tmp_path / "bin"
    for _ in range(2):
        done = CliRunner().invoke(main, ["mpiexec", "--link", str(there)])
        assert done.exit_code == 0, done.output
    assert sorted(path.name for path in there.iterdir()) == ["mpiexec", "mpirun"]
    (there / "mpirun").write_text("another's")
    done = CliRunner().invoke(main, ["mpiexec", "--link", str(there)])
    assert done.exit_code == 1
    assert "not ours" in done.output
    assert (there / "mpirun").read_text() == "another's"
