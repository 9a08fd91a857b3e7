from __future__ import annotations

import pytest

from tests.support.gasnet_worlds import CONDUITS, run


@pytest.mark.parametrize("under", CONDUITS.values(), ids=CONDUITS)
def test_it(under) -> None:
    def program(gasnet):
        gasnet.init()
        me, all_ = gasnet.mynode(), gasnet.nodes()
        got = []

        def ping(token, payload, *args):
            gasnet.am_reply_short(token, pong, *args)

        def pong(token, payload, *args):
            got.append(args)

        gasnet.attach([ping, pong], 8192)
        right = (me + 1) % all_
        for i in range(20):
            gasnet.am_request_short(right, ping, i, -i)
        gasnet.block_until(lambda: len(got) == 20)
        assert sorted(got) == [(i, -i) for i in range(20)]
        gasnet.put(right, 100, bytes(range(250)) * 4)
        gasnet.barrier()
        assert bytes(gasnet.segment().memory[100:1100]) == bytes(range(250)) * 4
        back = bytearray(1000)
        gasnet.get(back, right, 100)
        assert back == bytes(range(250)) * 4
        hs = [gasnet.put_nb(right, 2000 + 8 * i, bytes([i]) * 8) for i in range(50)]
        gasnet.wait_syncnb_all(hs)
        gasnet.memset(right, 3000, 7, 500)
        gasnet.barrier()
        assert bytes(gasnet.segment().memory[3000:3500]) == b"\7" * 500
        assert gasnet.get_val(right, 2008) == int.from_bytes(b"\1" * 8, "little")
        gasnet.barrier(3, 0)
        return me

    for seed in range(5):
        assert run(under, 3, program, seed=seed) == [0, 1, 2]
