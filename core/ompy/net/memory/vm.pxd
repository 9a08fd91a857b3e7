# The functions of vm.py, in C, for the modules that are compiled. Keep the two alike.

from cpython.memoryview cimport PyMemoryView_GET_BUFFER
from libc.errno cimport errno

from ompy cimport raw

cdef enum:
    PART = 32768  # bytes; arbitrary: stays in the nearest cache
    PIECES = 512  # arbitrary: the kernel takes 1024 (IOV_MAX)

cdef extern from "sys/uio.h" nogil:
    struct iovec:
        void *iov_base
        size_t iov_len
    ssize_t process_vm_readv(int, const iovec *, unsigned long, const iovec *, unsigned long, unsigned long)
    ssize_t process_vm_writev(int, const iovec *, unsigned long, const iovec *, unsigned long, unsigned long)

cdef inline unsigned long long address_of(object view):
    return <unsigned long long>PyMemoryView_GET_BUFFER(view).buf

cdef extern from * nogil:
    """
    #include <stdlib.h>
    #include <string.h>
    #include <time.h>
    #define OMPY_TRIED 16384
    #define OMPY_SLOW 3
    static double ompy_time_of_move(char *target, const char *source) {
        struct timespec from, to;
        double least = 1e9, took;
        int again;
        for (again = 0; again < 5; again++) {
            clock_gettime(CLOCK_MONOTONIC, &from);
            memcpy(target, source, OMPY_TRIED);
            clock_gettime(CLOCK_MONOTONIC, &to);
            took = (to.tv_sec - from.tv_sec) * 1e9 + (to.tv_nsec - from.tv_nsec);
            if (took < least) least = took;
        }
        return least;
    }
    static size_t ompy_crawling_places(void) {
        static long known = -1;
        char *room, *target;
        double usual;
        if (known >= 0) return (size_t)known;
        if ((room = malloc(2 * OMPY_TRIED + 3 * 4096)) == NULL) return 31;
        target = room + OMPY_TRIED + 4096;
        target -= (size_t)(target - room) % 4096;
        memset(room, 1, 2 * OMPY_TRIED + 3 * 4096);
        usual = ompy_time_of_move(target + 2048, room);
        known = 0;
        if (ompy_time_of_move(target + 1, room) > OMPY_SLOW * usual) known = 15;
        if (ompy_time_of_move(target + 16, room) > OMPY_SLOW * usual) known = 31;
        free(room);
        return (size_t)known;
    }
    """
    size_t ompy_crawling_places()

cdef inline size_t crawling_places() noexcept nogil:
    return ompy_crawling_places()

# One call of the kernel's
cdef inline ssize_t call(bint writes, int process, char *here, unsigned long long there, size_t count) noexcept nogil:
    cdef iovec own
    cdef iovec peers
    own.iov_base = here
    own.iov_len = count
    peers.iov_base = <void *>there
    peers.iov_len = count
    if writes:
        return process_vm_writev(process, &own, 1, &peers, 1, 0)
    return process_vm_readv(process, &own, 1, &peers, 1, 0)

# A part by way of memory that lies half a page apart from both: the kernel moves strings, too
cdef inline ssize_t call_apart(bint writes, int process, char *here, unsigned long long there, size_t count) noexcept nogil:
    cdef char room[PART + 4096]
    cdef size_t least = <size_t>&room[0]
    cdef char *apart = <char *>(least + ((there + 2048 - least) & (raw.PAGE - 1)))
    cdef ssize_t moved
    count = min(count, <size_t>PART)
    if writes:
        raw.copy_bytes(apart, here, count)
    moved = call(writes, process, apart, there, count)
    if moved > 0 and not writes:
        raw.copy_bytes(here, apart, moved)
    return moved

cdef inline long long move(bint writes, int process, unsigned long long address, object view, long long done):
    cdef char *here = <char *>PyMemoryView_GET_BUFFER(view).buf + done
    cdef size_t count = PyMemoryView_GET_BUFFER(view).len - done
    cdef unsigned long long there = address + <unsigned long long>done
    cdef size_t target = there if writes else <size_t>here
    cdef size_t source = <size_t>here if writes else there
    cdef ssize_t moved
    cdef int problem
    with nogil:
        if raw.crawls(target, source, count) and (target - source - 1) % raw.PAGE < crawling_places():
            moved = call_apart(writes, process, here, there, count)
        else:
            moved = call(writes, process, here, there, count)
        problem = errno
    return moved if moved >= 0 else -problem

# Where the runs are that belong to packed bytes from one on; how many, and their bytes in `total`
cdef inline int find_pieces(iovec *pieces, char *address, Py_ssize_t inner, Py_ssize_t stride, Py_ssize_t outer_stride, Py_ssize_t length, const long long *table, Py_ssize_t entries, Py_ssize_t each, Py_ssize_t extent, Py_ssize_t offset, Py_ssize_t left, size_t *total) noexcept nogil:
    cdef int found = 0
    cdef Py_ssize_t run, row, column, skip, part, element
    cdef char *at
    total[0] = 0
    if inner:
        run = offset // length
        skip = offset - run * length
        row = run // inner
        column = run - row * inner
    else:
        element = offset // each
        skip = offset - element * each
        run = 0
        while run + 1 < entries and table[3 * run + 5] <= skip:
            run += 1
        skip -= table[3 * run + 2]
    while left > 0 and found < PIECES:
        if inner:
            at = address + row * outer_stride + column * stride
            part = length - skip
            column += 1
            if column == inner:
                column = 0
                row += 1
        else:
            at = address + element * extent + table[3 * run]
            part = table[3 * run + 1] - skip
            run += 1
            if run == entries:
                run = 0
                element += 1
        if part > left:
            part = left
        pieces[found].iov_base = at + skip
        pieces[found].iov_len = part
        skip = 0
        total[0] += part
        left -= part
        found += 1
    return found

cdef inline long long move_runs(bint writes, int process, unsigned long long address, Py_ssize_t inner, Py_ssize_t stride, Py_ssize_t outer_stride, Py_ssize_t length, object table, Py_ssize_t each, Py_ssize_t extent, object view, long long done):
    cdef iovec peers[PIECES]
    cdef iovec own
    cdef const long long *entries = <const long long *>PyMemoryView_GET_BUFFER(table).buf
    cdef Py_ssize_t many = PyMemoryView_GET_BUFFER(table).len // 24
    cdef Py_ssize_t left = PyMemoryView_GET_BUFFER(view).len - done
    cdef int pieces, problem
    cdef ssize_t moved
    own.iov_base = <char *>PyMemoryView_GET_BUFFER(view).buf + done
    with nogil:
        pieces = find_pieces(peers, <char *>address, inner, stride, outer_stride, length, entries, many, each, extent, done, left, &own.iov_len)
        if writes:
            moved = process_vm_writev(process, &own, 1, peers, pieces, 0)
        else:
            moved = process_vm_readv(process, &own, 1, peers, pieces, 0)
        problem = errno
    return moved if moved >= 0 else -problem
