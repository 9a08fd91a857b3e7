"""GASNet: active messages, and reading and writing of each other's memory.

    from ompy import gasnet

    gasnet.init()
    greet, = gasnet.attach([greeted], segment_size=1 << 20)
    gasnet.put(1, 0, b"hello")
    gasnet.am_request_short(1, greet, 42)
    gasnet.barrier()

The functions are the methods of one `Gasnet`, this interpreter's rank. docs/gasnet.md shows how to
use them, and what differs from the C interface.

Source: reference gasnet.md 1, 2.
"""

from __future__ import annotations

from typing import Final

from ompy.frameworks.conduit import SegmentInfo, ThreadMode, Token
from ompy.gasnet.atomic_words import Datatype, Op
from ompy.gasnet.atomics import AtomicDomain
from ompy.gasnet.collective.coll_calls import CollFlag
from ompy.gasnet.collective.collectives import COLL_INVALID_HANDLE, CollHandle
from ompy.gasnet.collective.teams import TEAM_ALL, Team
from ompy.gasnet.dissemination import ANONYMOUS, MISMATCH
from ompy.gasnet.errors import (
    ERR_BAD_ARG,
    ERR_BARRIER_MISMATCH,
    ERR_NOT_INIT,
    ERR_NOT_READY,
    ERR_RESOURCE,
    OK,
    BadArgument,
    BarrierMismatch,
    CollectiveMismatch,
    GasnetError,
    NotInitialised,
    NotReady,
    ResourceError,
    error_desc,
    error_name,
)
from ompy.gasnet.handles import HANDLES_MAX, INVALID_HANDLE, Handle
from ompy.gasnet.here import rank as _rank
from ompy.gasnet.life import PAGE_SIZE, Gasnet, NodeInfo
from ompy.gasnet.locks import Hsl
from ompy.gasnet.segment import Segment
from ompy.gasnet.values import VALUE_MAX, ValueHandle
from ompy.gasnet.waiting import WaitMode

BARRIERFLAG_ANONYMOUS: Final = ANONYMOUS
BARRIERFLAG_MISMATCH: Final = MISMATCH
WAIT_SPIN: Final = WaitMode.SPIN
WAIT_BLOCK: Final = WaitMode.BLOCK
WAIT_SPINBLOCK: Final = WaitMode.SPINBLOCK

# words that atomic operations change, and what they do
DT_I32: Final = Datatype.I32
DT_U32: Final = Datatype.U32
DT_I64: Final = Datatype.I64
DT_U64: Final = Datatype.U64
DT_FLT: Final = Datatype.FLT
DT_DBL: Final = Datatype.DBL
OP_AND: Final = Op.AND
OP_OR: Final = Op.OR
OP_XOR: Final = Op.XOR
OP_ADD: Final = Op.ADD
OP_SUB: Final = Op.SUB
OP_MULT: Final = Op.MULT
OP_MIN: Final = Op.MIN
OP_MAX: Final = Op.MAX
OP_INC: Final = Op.INC
OP_DEC: Final = Op.DEC
OP_SET: Final = Op.SET
OP_CAS: Final = Op.CAS
OP_FAND: Final = Op.FAND
OP_FOR: Final = Op.FOR
OP_FXOR: Final = Op.FXOR
OP_FADD: Final = Op.FADD
OP_FSUB: Final = Op.FSUB
OP_FMULT: Final = Op.FMULT
OP_FMIN: Final = Op.FMIN
OP_FMAX: Final = Op.FMAX
OP_FINC: Final = Op.FINC
OP_FDEC: Final = Op.FDEC
OP_SWAP: Final = Op.SWAP
OP_FCAS: Final = Op.FCAS
OP_GET: Final = Op.GET

# flags of collectives
COLL_IN_NOSYNC: Final = CollFlag.IN_NOSYNC
COLL_IN_MYSYNC: Final = CollFlag.IN_MYSYNC
COLL_IN_ALLSYNC: Final = CollFlag.IN_ALLSYNC
COLL_OUT_NOSYNC: Final = CollFlag.OUT_NOSYNC
COLL_OUT_MYSYNC: Final = CollFlag.OUT_MYSYNC
COLL_OUT_ALLSYNC: Final = CollFlag.OUT_ALLSYNC
COLL_SINGLE: Final = CollFlag.SINGLE
COLL_LOCAL: Final = CollFlag.LOCAL
COLL_AGGREGATE: Final = CollFlag.AGGREGATE
COLL_DST_IN_SEGMENT: Final = CollFlag.DST_IN_SEGMENT
COLL_SRC_IN_SEGMENT: Final = CollFlag.SRC_IN_SEGMENT

# the job
init = _rank.init
attach = _rank.attach
exit = _rank.exit  # noqa: A001 - GASNet's own name
is_init = _rank.is_init
mynode = _rank.mynode
nodes = _rank.nodes
neighbours = _rank.neighbours
get_node_info = _rank.get_node_info
getenv = _rank.getenv
conduit_name = _rank.conduit_name
counters = _rank.counters
explain = _rank.explain
waiting = _rank.waiting
set_waitmode = _rank.set_waitmode

# segments
get_max_local_segment_size = _rank.get_max_local_segment_size
get_max_global_segment_size = _rank.get_max_global_segment_size
get_segment_info = _rank.get_segment_info
segment = _rank.segment

# active messages
am_request_short = _rank.am_request_short
am_request_medium = _rank.am_request_medium
am_request_long = _rank.am_request_long
am_request_long_async = _rank.am_request_long_async
am_reply_short = _rank.am_reply_short
am_reply_medium = _rank.am_reply_medium
am_reply_long = _rank.am_reply_long
am_poll = _rank.am_poll
am_get_msg_source = _rank.am_get_msg_source
am_max_args = _rank.am_max_args
am_max_medium = _rank.am_max_medium
am_max_long_request = _rank.am_max_long_request
am_max_long_reply = _rank.am_max_long_reply
block_until = _rank.block_until
hsl = _rank.hsl
hold_interrupts = _rank.hold_interrupts
resume_interrupts = _rank.resume_interrupts

# put and get
put = _rank.put
put_bulk = _rank.put_bulk
put_nb = _rank.put_nb
put_nb_bulk = _rank.put_nb_bulk
put_nbi = _rank.put_nbi
put_nbi_bulk = _rank.put_nbi_bulk
put_val = _rank.put_val
put_nb_val = _rank.put_nb_val
put_nbi_val = _rank.put_nbi_val
get = _rank.get
get_bulk = _rank.get_bulk
get_nb = _rank.get_nb
get_nb_bulk = _rank.get_nb_bulk
get_nbi = _rank.get_nbi
get_nbi_bulk = _rank.get_nbi_bulk
get_val = _rank.get_val
get_nb_val = _rank.get_nb_val
wait_syncnb_valget = _rank.wait_syncnb_valget
memset = _rank.memset
memset_nb = _rank.memset_nb
memset_nbi = _rank.memset_nbi

# several pieces of memory
putv_bulk = _rank.putv_bulk
putv_nb_bulk = _rank.putv_nb_bulk
putv_nbi_bulk = _rank.putv_nbi_bulk
puti_bulk = _rank.puti_bulk
puti_nb_bulk = _rank.puti_nb_bulk
puti_nbi_bulk = _rank.puti_nbi_bulk
puts_bulk = _rank.puts_bulk
puts_nb_bulk = _rank.puts_nb_bulk
puts_nbi_bulk = _rank.puts_nbi_bulk
getv_bulk = _rank.getv_bulk
getv_nb_bulk = _rank.getv_nb_bulk
getv_nbi_bulk = _rank.getv_nbi_bulk
geti_bulk = _rank.geti_bulk
geti_nb_bulk = _rank.geti_nb_bulk
geti_nbi_bulk = _rank.geti_nbi_bulk
gets_bulk = _rank.gets_bulk
gets_nb_bulk = _rank.gets_nb_bulk
gets_nbi_bulk = _rank.gets_nbi_bulk

# atomic operations
ad_create = _rank.ad_create

# collectives, teams
coll_init = _rank.coll_init
coll_broadcast = _rank.coll_broadcast
coll_broadcast_nb = _rank.coll_broadcast_nb
coll_scatter = _rank.coll_scatter
coll_scatter_nb = _rank.coll_scatter_nb
coll_gather = _rank.coll_gather
coll_gather_nb = _rank.coll_gather_nb
coll_gather_all = _rank.coll_gather_all
coll_gather_all_nb = _rank.coll_gather_all_nb
coll_exchange = _rank.coll_exchange
coll_exchange_nb = _rank.coll_exchange_nb
coll_wait_sync = _rank.coll_wait_sync
coll_wait_sync_all = _rank.coll_wait_sync_all
coll_wait_sync_some = _rank.coll_wait_sync_some
coll_try_sync = _rank.coll_try_sync
coll_try_sync_all = _rank.coll_try_sync_all
coll_try_sync_some = _rank.coll_try_sync_some
coll_team_create = _rank.coll_team_create
coll_team_split = _rank.coll_team_split
coll_team_free = _rank.coll_team_free
coll_team_size = _rank.coll_team_size
coll_team_rank = _rank.coll_team_rank
coll_team_rank2node = _rank.coll_team_rank2node
coll_team_node2rank = _rank.coll_team_node2rank
coll_barrier = _rank.coll_barrier
coll_barrier_notify = _rank.coll_barrier_notify
coll_barrier_wait = _rank.coll_barrier_wait
coll_barrier_try = _rank.coll_barrier_try

# what ends them
wait_syncnb = _rank.wait_syncnb
wait_syncnb_all = _rank.wait_syncnb_all
wait_syncnb_some = _rank.wait_syncnb_some
try_syncnb = _rank.try_syncnb
try_syncnb_all = _rank.try_syncnb_all
try_syncnb_some = _rank.try_syncnb_some
wait_syncnbi_gets = _rank.wait_syncnbi_gets
wait_syncnbi_puts = _rank.wait_syncnbi_puts
wait_syncnbi_all = _rank.wait_syncnbi_all
try_syncnbi_gets = _rank.try_syncnbi_gets
try_syncnbi_puts = _rank.try_syncnbi_puts
try_syncnbi_all = _rank.try_syncnbi_all
begin_nbi_accessregion = _rank.begin_nbi_accessregion
end_nbi_accessregion = _rank.end_nbi_accessregion

# barriers
barrier = _rank.barrier
barrier_notify = _rank.barrier_notify
barrier_wait = _rank.barrier_wait
barrier_try = _rank.barrier_try

__all__ = [
    "BARRIERFLAG_ANONYMOUS",
    "BARRIERFLAG_MISMATCH",
    "COLL_AGGREGATE",
    "COLL_DST_IN_SEGMENT",
    "COLL_INVALID_HANDLE",
    "COLL_IN_ALLSYNC",
    "COLL_IN_MYSYNC",
    "COLL_IN_NOSYNC",
    "COLL_LOCAL",
    "COLL_OUT_ALLSYNC",
    "COLL_OUT_MYSYNC",
    "COLL_OUT_NOSYNC",
    "COLL_SINGLE",
    "COLL_SRC_IN_SEGMENT",
    "DT_DBL",
    "DT_FLT",
    "DT_I32",
    "DT_I64",
    "DT_U32",
    "DT_U64",
    "ERR_BAD_ARG",
    "ERR_BARRIER_MISMATCH",
    "ERR_NOT_INIT",
    "ERR_NOT_READY",
    "ERR_RESOURCE",
    "HANDLES_MAX",
    "INVALID_HANDLE",
    "OK",
    "OP_ADD",
    "OP_AND",
    "OP_CAS",
    "OP_DEC",
    "OP_FADD",
    "OP_FAND",
    "OP_FCAS",
    "OP_FDEC",
    "OP_FINC",
    "OP_FMAX",
    "OP_FMIN",
    "OP_FMULT",
    "OP_FOR",
    "OP_FSUB",
    "OP_FXOR",
    "OP_GET",
    "OP_INC",
    "OP_MAX",
    "OP_MIN",
    "OP_MULT",
    "OP_OR",
    "OP_SET",
    "OP_SUB",
    "OP_SWAP",
    "OP_XOR",
    "PAGE_SIZE",
    "TEAM_ALL",
    "VALUE_MAX",
    "WAIT_BLOCK",
    "WAIT_SPIN",
    "WAIT_SPINBLOCK",
    "AtomicDomain",
    "BadArgument",
    "BarrierMismatch",
    "CollFlag",
    "CollHandle",
    "CollectiveMismatch",
    "Datatype",
    "Gasnet",
    "GasnetError",
    "Handle",
    "Hsl",
    "NodeInfo",
    "NotInitialised",
    "NotReady",
    "Op",
    "ResourceError",
    "Segment",
    "SegmentInfo",
    "Team",
    "ThreadMode",
    "Token",
    "ValueHandle",
    "error_desc",
    "error_name",
]
