"""Parameters of where ranks run, as Open MPI has them: frameworks hwloc and rmaps.

They have no components here: mapping is `ompy.cli.launch.mapping`, binding `ompy.runtime.place`.
"""

from __future__ import annotations

from typing import Final

from ompy.mca.groups import FrameworkInfo
from ompy.mca.parameter import Parameter, Synonym

BINDING: Final = "hwloc_base_binding_policy"
REPORT: Final = "hwloc_base_report_bindings"
HWTHREADS: Final = "hwloc_base_use_hwthreads_as_cpus"
CPU_SET: Final = "hwloc_base_cpu_set"
TOPOLOGY: Final = "hwloc_base_topology"
MAPPING: Final = "rmaps_base_mapping_policy"
RANKING: Final = "rmaps_base_ranking_policy"
PER_RANK: Final = "rmaps_base_cpus_per_rank"

# names and meanings: reference openmpi.md 2.4 and 2.7; PRRTE's are synonyms
FRAMEWORKS: Final = (
    FrameworkInfo(
        "hwloc",
        "Which processors of its host a rank is bound to.",
        None,
        (
            Parameter(
                "binding_policy",
                "string",
                "",
                "What each rank is bound to: none, hwthread, core, l1cache, l2cache, l3cache, numa "
                "or package (socket), with :overload-allowed or :if-supported behind it; empty for "
                "none, or for cores where each rank takes several. The same as --bind-to.",
                level=3,
                synonyms=(Synonym("hwloc_default_binding_policy"),),
            ),
            Parameter(
                "report_bindings",
                "bool",
                False,
                "Whether the launcher shows what each rank is bound to. The same as "
                "--report-bindings.",
                level=4,
            ),
            Parameter(
                "use_hwthreads_as_cpus",
                "bool",
                False,
                "Whether a rank takes a hardware thread, not a core. The same as "
                "--use-hwthread-cpus.",
                level=5,
            ),
            Parameter(
                "cpu_set",
                "string",
                "",
                "The only hardware threads that ranks are bound to, by the system's numbers, as "
                "0-3,8; empty for all that may be used. The same as --cpu-set.",
                level=5,
            ),
            Parameter(
                "topology",
                "string",
                "",
                "A topology in place of each host's own, for a look with --do-not-launch: a "
                "description as pack:2 numa:1 core:4 pu:2, or the path of a copied /sys tree.",
                level=6,
            ),
        ),
    ),
    FrameworkInfo(
        "rmaps",
        "Which rank runs where.",
        None,
        (
            Parameter(
                "mapping_policy",
                "string",
                "slot",
                "Which rank runs where: slot, node, seq, ppr:N:OBJECT, rankfile:FILE=PATH, "
                "hwthread, core, a cache, numa or package (socket), with modifiers behind it. The "
                "same as --map-by.",
                level=3,
                synonyms=(Synonym("rmaps_default_mapping_policy"),),
            ),
            Parameter(
                "ranking_policy",
                "string",
                "slot",
                "In which order ranks are numbered: slot, node, fill, hwthread, core, a cache, "
                "numa or package (socket). The same as --rank-by.",
                level=3,
                synonyms=(Synonym("rmaps_default_ranking_policy"),),
            ),
            Parameter(
                "cpus_per_rank",
                "int",
                1,
                "How many cores, or hardware threads, each rank takes. The same as :PE=N.",
                level=5,
                unit="processors",
                minimum=1,
            ),
        ),
    ),
)
