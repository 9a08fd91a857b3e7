"""Launch lines of other MPIs as `ompy-run` has them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from ompy.cli.launch.command_line import CommandError, parse_command_line
from ompy.cli.launch.foreign_options import OPTIONS, translate_line
from ompy.cli.main import main

ROOT = Path(__file__).resolve().parents[3]
LINES = {
    "-n 2 python a.py -l": "-n 2 python a.py -l",
    "-np 2 --bind-to none python a": "-np 2 --bind-to none python a",
    "--bind-to core:overload-allowed p": "--bind-to core:overload-allowed p",
    "-bind-to core:2 p": "--bind-to core --cpus-per-rank 2 p",
    "-bind-to rr -map-by numa p": "--bind-to core --map-by numa p",
    "--map-by :OVERSUBSCRIBE -n 2 p": "--map-by :OVERSUBSCRIBE -n 2 p",
    "--map-by core:PE=1:OVERSUBSCRIBE:INHERIT p": "--map-by core:PE=1:OVERSUBSCRIBE p",
    "--map-by :HWTCPUS p": "--use-hwthread-cpus p",
    "--map-by ppr:2:node:PE=1 p": "--map-by ppr:2:node:PE=1 p",
    "-map-by node p": "--map-by node p",
    "--map-by=socket --rank-by core:span p": "--map-by socket --rank-by core p",
    "--use-hwthread-cpus --report-bindings p": "--use-hwthread-cpus --report-bindings p",
    "--mca hwloc_base_binding_policy core p": "--mca hwloc_base_binding_policy core p",
    "--mca rmaps_base_mapping_policy node p": "--mca rmaps_base_mapping_policy node p",
    "--mca hwloc_base_mem_bind_failure_action warn p": "p",
    "--output tag,dir=D,merge --display map,bind p": (
        "--tag-output --output-filename D --merge-stderr --display-map --report-bindings p"
    ),
    "-l -genv K V -genvlist A,B -n 3 p": "--tag-output -x K=V -x A -x B -n 3 p",
    "-genvall -ppn 2 -f hosts p": "--npernode 2 --hostfile hosts --oversubscribe p",
    "-hosts a,b -launcher rsh p": "--host a,b --oversubscribe --mca plm ssh p",
    "-n 1 p : -hosts a,b -n 2 q": "--oversubscribe -n 1 p : --host a,b -n 2 q",
    "-genv K=V --env=J=W -n 2 p": "-x K=V -x J=W -n 2 p",
    "-v --debug-daemons -print-all-exitcodes p": "p",
    "--bind-to-core --bysocket p": "--bind-to core --map-by package p",
    "--with-ft ulfm p": "--mca mpi_ft_enable 1 p",
    "--with-ft no p": "--mca mpi_ft_enable 0 p",
    "--mca plm rsh --mca plm_rsh_agent x p": "--mca plm ssh --mca plm_rsh_agent x p",
    "--mca rmaps_base_no_oversubscribe 1 p": "--nooversubscribe p",
    "--mca rmaps_base_oversubscribe 0 p": "--nooversubscribe p",
    "--mca rmaps_base_no_oversubscribe false p": "--oversubscribe p",
    "--map-by slot:NOOVERSUBSCRIBE p": "--map-by slot:NOOVERSUBSCRIBE p",
    "--mca btl_base_warn_component_unused 0 --mca opal_cuda_support 1 p": "p",
    "--mca pml ucx --mca osc ^ucx --mca btl self,vader p": (
        "--mca osc ^ucx --mca btl self,vader p"
    ),
    "--mca mpi_yield_when_idle 1 --mca btl tcp,self p": "--mca btl tcp,self p",
    "--mca orte_base_help_aggregate 0 --mca rmaps_base_oversubscribe 1 p": "--oversubscribe p",
    "--mca rmaps_default_mapping_policy :oversubscribe p": "--map-by :oversubscribe p",
    "--prtemca rmaps_default_mapping_policy ppr:2:node:oversubscribe p": (
        "--map-by ppr:2:node:oversubscribe p"
    ),
    "--mca orte_default_hostfile F p": "--hostfile F p",
    "--prtemca plm_rsh_agent x -x A=1 --output tag p": "-x A=1 --tag-output p",
    "--oversubscribe -n 1 -x A=1 p a : -n 2 -env B 2 q": (
        "--oversubscribe -n 1 -x A=1 p a : -n 2 -x B=2 q"
    ),
    "-H a:2 --wd d -N 1 p": "-H a:2 --wd d -N 1 p",
    "-iface eth0 -s 1 -n 2 p": "--mca btl_tcp_if_include eth0 --stdin 1 -n 2 p",
    "-usize 8 -rmk slurm -disable-x -n 2 p": "-n 2 p",
    "-launcher ssh -launcher-exec rsh -disable-auto-cleanup p": (
        "--mca plm ssh --mca plm_rsh_agent rsh --mca mpi_ft_enable 1 p"
    ),
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
    line = "--map-by numa:PE=2:INHERIT:ordered --rank-by numa:SPAN --bind-to core"
    line += " -usize 8"
    line += " --output tag,file=F --display map,topo --mca pml ucx --mca orte_x 1 --mca pml ob1 p"
    assert translate_line(line.split()).notes == [
        "of --map-by numa:PE=2:INHERIT:ordered, INHERIT, ordered is of no effect",
        "of --rank-by numa:SPAN, SPAN is of no effect",
        "-usize 8 is of no effect",
        "of --output tag,file=F, file=F is of no effect",
        "of --display map,topo, topo is of no effect",
        "--mca pml ucx is of no effect",
    ]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (
            "-genvnone p",
            "-genvnone is an option of other launchers; write env(1) in front of the line",
        ),
        ("-outfile-pattern o.%r p", "write --output-filename DIR"),
        ("-configfile c", "write its programs on the line, as in -n 1 a : -n 2 b"),
        ("--ntasks 2 p", "--ntasks is an option of other launchers; write -n N"),
        ("--cpu-bind=cores p", "write --bind-to OBJECT"),
        ("--label p", "write --tag-output"),
    ],
)
def test_options_of_others_are_known_by_name(line: str, told: str) -> None:
    with pytest.raises(CommandError, match=re.escape(told)):
        parse_command_line(translate_line(line.split()).words)


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
