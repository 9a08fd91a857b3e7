"""Methods without a row of their own, with the reason: what is neither here nor there fails.

A name is that of a method of every class, or of one, as `Win.Test`.
"""

from __future__ import annotations

from typing import Final

UNTIMED: Final[dict[str, str]] = {
    "a part of another row: what begins, ends or completes it": (
        "Commit Complete Detach Detach_buffer Free Free_keyval Post Start Startall Unlock "
        "Unlock_all Wait wait free "
        "Flush Flush_buffer Attach_buffer Disconnect Pready Pready_list Pready_range Parrived "
        "Iflush_buffer Pack_size Pack_external_size Close Seek Seek_shared Read_all_end "
        "Read_at_all_end Read_ordered_end Write_all_end Write_at_all_end Write_ordered_end "
        "Grequest.complete Session.Finalize Win.Test"
    ),
    "the same as another row by other names": (
        "improbe iprobe probe test testall testany testsome waitall waitany waitsome cancel "
        "get_status get_status_all get_status_any get_status_some Idup_with_info Flush_local_all "
        "Get_status Get_status_all Get_status_any Get_status_some Create_indexed_block "
        "Create_hindexed Create_hindexed_block Create_hvector Create_contiguous Create_dup "
        "Create_resized Resized Create_struct Create_darray Create_dist_graph Create_graph "
        "Difference Excl Intersect Intersection Range_excl Range_incl Create_from_group "
        "Create_from_groups Create_intercomm Merge Message.Probe Message.Iprobe Message.recv "
        "Message.irecv Info.get Info.items Info.keys Info.values Info.pop Info.popitem "
        "Info.update Info.clear Info.copy"
    ),
    "the same of other kinds of handles as of communicators, whose rows are in local_calls.py": (
        "Create_keyval Delete_attr Set_attr Set_errhandler Set_info Set_name f2py py2f fromhandle "
        "fromint toint"
    ),
    "bookkeeping of one process, which no program does often": (
        "Abort Call_errhandler Create_errhandler free tomemory Get_remote_group Get_remote_size "
        "Get_value_index File.Delete"
    ),
    "of processes that come, go or fail: the time is theirs": (
        "Accept Connect Join Spawn Spawn_multiple Ack_failed Agree Get_failed Iagree Is_revoked "
        "Ishrink Revoke Shrink"
    ),
}


def untimed_names() -> frozenset[str]:
    """All of them."""
    return frozenset(name for names in UNTIMED.values() for name in names.split())
