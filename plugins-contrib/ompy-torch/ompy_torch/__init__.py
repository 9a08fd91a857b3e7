"""A back end of torch.distributed: `init_process_group("ompy")`.

`register` is the entry point of the group `torch.backends`, so `import torch` calls it. It imports
nothing of ompy: that is for the first group of this back end.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ompy_torch.group import OmpyProcessGroup

NAME: Final = "ompy"
_DEVICES: Final = ["cpu"]


def register() -> None:
    """Tell torch of the back end and of where its ranks come from; twice is as once.

    Without `torch.distributed` in this torch there is nothing to tell.
    """
    import torch.distributed as dist

    if not dist.is_available() or NAME in dist.Backend.backend_list:
        return
    from ompy_torch.rendezvous import register_rendezvous

    dist.Backend.register_backend(NAME, _create, extended_api=True, devices=_DEVICES)
    register_rendezvous()


def _create(options: Any, backend_options: object) -> OmpyProcessGroup:
    """A group, asked for by `init_process_group` or `new_group`.

    Args:
        options: torch's `_DistributedBackendOptions`.
        backend_options: what the user gave as `pg_options`; this back end has none.

    Raises:
        ValueError: there are options, or torch's ranks are not the job's.
    """
    from ompy_torch.group import OmpyProcessGroup
    from ompy_torch.membership import communicator_of

    if backend_options is not None:
        raise ValueError("pg_options: the back end ompy has no options; leave them out")
    members = list(options.global_ranks_in_group)
    timeout: timedelta = options.timeout
    comm = communicator_of(options.group_id, members, options.group_rank, options.group_size)
    return OmpyProcessGroup(options.store, comm, timeout)


register()
