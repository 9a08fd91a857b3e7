"""Components and frameworks of Open MPI that ompy does without: launch lines go on naming them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

# of Open MPI 4 and 5, by `ompi_info`; those that ompy has, too, are not here
COMPONENTS: Final[Mapping[str, tuple[str, ...]]] = {
    "pml": ("cm", "monitoring", "ucx", "v", "yalla"),
    "btl": ("portals4", "smcuda", "uct", "ugni"),
    "coll": ("acoll", "adapt", "cuda", "ftagree", "han", "hcoll", "libnbc", "ucc", "xhc"),
    "osc": ("monitoring", "portals4", "ucx"),
    "io": ("romio314", "romio321", "romio341"),
}
FRAMEWORKS: Final = (
    *("accelerator", "allocator", "backtrace", "crcp", "dl", "errmgr", "ess", "fbtl", "fcoll"),
    *("filem", "fs", "grpcomm", "hook", "if", "iof", "memchecker", "memcpy", "memory", "mpool"),
    *("mtl", "odls", "ompi", "oob", "op", "opal", "orte", "part", "patcher", "pmix", "plog"),
    *("prte", "psec", "ras", "rcache", "reachable", "routed", "rte", "schizo", "sharedfp"),
    *("shmem", "smsc", "spml", "state", "threads", "timer", "topo", "vprotocol"),
)
# of the MPI layer, and of components that ompy has, too: what changes no result (4 and 5, likewise)
PARAMETERS: Final = frozenset(
    f"{part}_{name}"
    for part, names in {
        "mpi": "abort_delay abort_print_stack add_procs_cutoff built_with_cuda_support "
        "comm_verbose cuda_support dynamics_enabled event_tick_rate have_sparse_group_storage "
        "hugepage_base keep_peer_hostnames leave_pinned_pipeline no_free_handles "
        "paffinity_alone param_check pmix_connect_timeout preconnect_all preconnect_mpi "
        "show_handle_leaks show_mca_params show_mca_params_file show_mpi_alloc_mem_leaks "
        "spc_attach spc_dump_enabled "
        "use_sparse_group_storage warn_on_fork yield_when_idle",
        "btl_base": "exclude include warn_component_unused warn_peer_error",
        "btl_sm": "backing_directory fbox_max fbox_size fbox_threshold free_list_inc free_list_num "
        "max_inline_send memcpy_limit segment_size use_cma use_knem",
        "btl_vader": "backing_directory fbox_max fbox_size fbox_threshold free_list_inc "
        "free_list_num max_inline_send memcpy_limit segment_size",
        "btl_tcp": "disable_family endpoint_cache free_list_inc free_list_num if_seq port_min_v6 "
        "port_range_v6 progress_thread rcvbuf sndbuf use_nagle warn_all_unfound_interfaces",
        "btl_openib": "allow_ib cpc_exclude cpc_include want_fork_support "
        "warn_default_gid_prefix warn_no_device_params_found",
        "pml_base": "bsend_allocator check_pml wrapper",
        "pml_ob1": "allocator free_list_inc free_list_max free_list_num unexpected_limit verbose",
        "bml_r2": "show_unreach_errors",
        "osc_rdma": "acc_single_intrinsic",
    }.items()
    for name in names.split()
)
KINDS: Final = tuple(f"{kind}_{name}" for kind, names in COMPONENTS.items() for name in names)


def component_elsewhere(framework: str, name: str, *, alone: bool) -> str:
    """A clause about a component that only Open MPI has; empty if it has none either.

    Args:
        framework: what it is a component of.
        name: its own.
        alone: no other is named beside it.
    """
    if name not in COMPONENTS.get(framework, ()):
        return ""
    return f"; it is Open MPI's, and ompy needs none: leave {'it' if alone else name} out"


def parameter_elsewhere(name: str) -> str:
    """A clause about a parameter that only Open MPI has; empty if it has none either."""
    parts = (*FRAMEWORKS, *KINDS)
    known = name in PARAMETERS or any(name == p or name.startswith(f"{p}_") for p in parts)
    if not known:
        return ""
    return "; it is Open MPI's, and has no meaning here: leave it out"
