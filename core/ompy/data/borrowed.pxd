# The functions of borrowed.py, in C, for the modules that are compiled. Keep the two alike.

from cpython.buffer cimport Py_buffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.memoryview cimport PyMemoryView_GET_BUFFER
from libc.string cimport memcpy, memset

from ompy cimport raw

cdef extern from * nogil:
    """
    #if defined(__GNUC__)
    #define OMPY_TURN_EIGHT __builtin_bswap64
    #define OMPY_TURN_FOUR __builtin_bswap32
    #else
    static unsigned int OMPY_TURN_FOUR(unsigned int x) {
        return x >> 24 | (x >> 8 & 0xff00) | (x << 8 & 0xff0000) | x << 24;
    }
    static unsigned long long OMPY_TURN_EIGHT(unsigned long long x) {
        return (unsigned long long)OMPY_TURN_FOUR((unsigned int)x) << 32 | OMPY_TURN_FOUR((unsigned int)(x >> 32));
    }
    #endif
    """
    unsigned long long OMPY_TURN_EIGHT(unsigned long long)
    unsigned int OMPY_TURN_FOUR(unsigned int)

cdef extern from *:
    """
    static int ompy_export_view(PyObject *exporter, Py_buffer *view, int flags) {
        static PyObject *name = NULL;
        PyObject *memory;
        int done = -1;
        if (name == NULL && (name = PyUnicode_InternFromString("_view")) == NULL) return -1;
        if ((memory = PyObject_GetAttr(exporter, name)) == NULL) {
            view->obj = NULL;
            return -1;
        }
        if (PyMemoryView_Check(memory)) {
            Py_buffer *inside = PyMemoryView_GET_BUFFER(memory);
            done = PyBuffer_FillInfo(view, exporter, inside->buf, inside->len, inside->readonly, flags);
        } else {
            view->obj = NULL;
            PyErr_SetString(PyExc_BufferError, "there is no memory to look at");
        }
        Py_DECREF(memory);
        return done;
    }
    static int ompy_export_views(PyObject *kind) {
        PyTypeObject *type = (PyTypeObject *)kind;
        PyBufferProcs *slots = &((PyHeapTypeObject *)kind)->as_buffer;
        if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE)) return 0;
        slots->bf_getbuffer = ompy_export_view;
        slots->bf_releasebuffer = NULL;
        type->tp_as_buffer = slots;
        PyType_Modified(type);
        return 1;
    }
    """
    bint ompy_export_views(object kind)

cdef inline bint export_views(object kind):
    return ompy_export_views(kind)

# Cython's own declaration has the exporter as an object, which it would count
cdef extern from "Python.h":
    int PyBUF_FULL_RO
    ctypedef struct Lent "Py_buffer":
        void *buf
        void *obj
        Py_ssize_t len
        int readonly
        int ndim
        char *format
    bint PyObject_CheckBuffer(object exporter)
    void Py_INCREF(object)
    int PyObject_GetBuffer(object exporter, Lent *view, int flags) noexcept
    void PyErr_Clear() noexcept
    void PyBuffer_Release(Lent *view)

cdef inline Lent borrow(object buffer, bint writable):
    return borrow_as(buffer, writable, False)

cdef inline Lent borrow_bytes(object buffer, bint writable):
    return borrow_as(buffer, writable, True)

cdef inline Lent borrow_as(object buffer, bint writable, bint anything):
    cdef Lent lent
    if raw.ompy_see_array(buffer, <Py_buffer *>&lent):
        if writable and lent.readonly:
            lent.obj = NULL
        else:
            Py_INCREF(buffer)
        return lent
    memset(&lent, 0, sizeof(lent))
    if not PyObject_CheckBuffer(buffer):
        return lent
    if PyObject_GetBuffer(buffer, &lent, PyBUF_FULL_RO) < 0:
        PyErr_Clear()  # the longer way says what is wrong, or takes it: dates of NumPy have no format
        memset(&lent, 0, sizeof(lent))
        return lent
    if (writable and lent.readonly) or not raw.is_taken(<Py_buffer *>&lent, anything):
        PyBuffer_Release(&lent)
    return lent

cdef inline Lent nothing() noexcept:
    cdef Lent lent
    memset(&lent, 0, sizeof(lent))
    return lent

cdef inline bint is_lent(Lent lent) noexcept:
    return lent.obj != NULL

cdef inline Py_ssize_t size(Lent lent) noexcept:
    return lent.len

cdef inline object view_of(Lent lent, object owner):
    return raw.any_bytes(owner)

cdef inline void copy_out(Lent lent, object target, Py_ssize_t at, Py_ssize_t count):
    raw.copy_bytes(raw.begin(target) + at, <const char *>lent.buf, count)

cdef inline void stream_out(Lent lent, object target, Py_ssize_t at, Py_ssize_t count):
    raw.stream_bytes(raw.begin(target) + at, <const char *>lent.buf, count)

cdef inline void copy_in(Lent lent, object source, Py_ssize_t start, Py_ssize_t count):
    raw.copy_bytes(<char *>lent.buf, raw.begin(source) + start, count)

cdef inline void give_back(Lent lent):
    PyBuffer_Release(&lent)

# `part` bytes, or as many as a number is large
cdef inline void move_run(char *target, const char *source, Py_ssize_t part) noexcept nogil:
    if part == 8:
        memcpy(target, source, 8)
    elif part == 16:
        memcpy(target, source, 16)
    elif part == 4:
        memcpy(target, source, 4)
    elif part == 12:
        memcpy(target, source, 12)
    elif part == 32:
        memcpy(target, source, 32)
    elif part == 2:
        memcpy(target, source, 2)
    else:
        raw.copy_bytes(target, source, part)

# `count` bytes of runs in loops between memory with gaps and packed bytes, from packed byte `offset` on
cdef inline void move_loops(char *packed, char *memory, Py_ssize_t inner, Py_ssize_t stride, Py_ssize_t outer_stride, Py_ssize_t length, Py_ssize_t offset, Py_ssize_t count, bint into_memory) noexcept nogil:
    cdef Py_ssize_t run = offset // length if offset else 0
    cdef Py_ssize_t skip = offset - run * length
    cdef Py_ssize_t row = run // inner if run else 0
    cdef Py_ssize_t column = run - row * inner
    cdef Py_ssize_t whole, each, part
    cdef char *place
    while count > 0:
        place = memory + row * outer_stride + column * stride
        if skip == 0 and count >= length:
            whole = inner - column
            if whole * length > count:
                whole = count // length
            if length == 8 and into_memory:
                for each in range(whole):
                    memcpy(place, packed, 8)
                    place += stride
                    packed += 8
            elif length == 8:
                for each in range(whole):
                    memcpy(packed, place, 8)
                    place += stride
                    packed += 8
            elif into_memory:
                for each in range(whole):
                    move_run(place, packed, length)
                    place += stride
                    packed += length
            else:
                for each in range(whole):
                    move_run(packed, place, length)
                    place += stride
                    packed += length
            count -= whole * length
            column += whole
        else:
            part = length - skip
            if part > count:
                part = count
            if into_memory:
                memcpy(place + skip, packed, part)
            else:
                memcpy(packed, place + skip, part)
            packed += part
            count -= part
            skip = 0
            column += 1
        if column == inner:
            column = 0
            row += 1

# the same of runs of one element in a table: displacement, bytes and place in the packed bytes of each
cdef inline void move_table(char *packed, char *memory, const long long *table, Py_ssize_t runs, Py_ssize_t offset, Py_ssize_t count, bint into_memory) noexcept nogil:
    cdef Py_ssize_t run = 0
    cdef Py_ssize_t beyond = runs
    cdef Py_ssize_t middle, skip, part
    cdef const long long *entry
    while offset and beyond - run > 1:
        middle = (run + beyond) // 2
        if table[3 * middle + 2] <= offset:
            run = middle
        else:
            beyond = middle
    entry = table + 3 * run
    skip = offset - entry[2]
    while count > 0:
        part = entry[1] - skip
        if part > count:
            part = count
        if into_memory:
            move_run(memory + entry[0] + skip, packed, part)
        else:
            move_run(packed, memory + entry[0] + skip, part)
        packed += part
        count -= part
        skip = 0
        entry += 3

# the arguments are those of `gather_runs` in borrowed.py
cdef inline void move_runs(char *packed, char *memory, Py_ssize_t inner, Py_ssize_t stride, Py_ssize_t outer_stride, Py_ssize_t length, object table, Py_ssize_t each, Py_ssize_t extent, Py_ssize_t offset, Py_ssize_t count, bint into_memory):
    cdef const long long *entries
    cdef Py_ssize_t runs, part, element
    if inner:
        move_loops(packed, memory, inner, stride, outer_stride, length, offset, count, into_memory)
        return
    entries = <const long long *>PyMemoryView_GET_BUFFER(table).buf
    runs = PyMemoryView_GET_BUFFER(table).len // 24
    element = offset // each
    memory += element * extent
    offset -= element * each
    while count > 0:
        part = each - offset
        if part > count:
            part = count
        move_table(packed, memory, entries, runs, offset, part, into_memory)
        packed += part
        count -= part
        offset = 0
        memory += extent

cdef inline void gather_runs(Lent lent, Py_ssize_t start, Py_ssize_t inner, Py_ssize_t stride, Py_ssize_t outer_stride, Py_ssize_t length, object table, Py_ssize_t each, Py_ssize_t extent, object target, Py_ssize_t at, Py_ssize_t offset, Py_ssize_t count):
    move_runs(raw.begin(target) + at, <char *>lent.buf + start, inner, stride, outer_stride, length, table, each, extent, offset, count, False)

cdef inline void scatter_runs(Lent lent, Py_ssize_t start, Py_ssize_t inner, Py_ssize_t stride, Py_ssize_t outer_stride, Py_ssize_t length, object table, Py_ssize_t each, Py_ssize_t extent, object source, Py_ssize_t at, Py_ssize_t offset, Py_ssize_t count):
    move_runs(raw.begin(source) + at, <char *>lent.buf + start, inner, stride, outer_stride, length, table, each, extent, offset, count, True)

cdef inline void gather_viewed(object memory, Py_ssize_t start, Py_ssize_t inner, Py_ssize_t stride, Py_ssize_t outer_stride, Py_ssize_t length, object table, Py_ssize_t each, Py_ssize_t extent, object packed, Py_ssize_t at, Py_ssize_t offset, Py_ssize_t count):
    move_runs(raw.begin(packed) + at, raw.begin(memory) + start, inner, stride, outer_stride, length, table, each, extent, offset, count, False)

cdef inline void scatter_viewed(object memory, Py_ssize_t start, Py_ssize_t inner, Py_ssize_t stride, Py_ssize_t outer_stride, Py_ssize_t length, object table, Py_ssize_t each, Py_ssize_t extent, object packed, Py_ssize_t at, Py_ssize_t offset, Py_ssize_t count):
    move_runs(raw.begin(packed) + at, raw.begin(memory) + start, inner, stride, outer_stride, length, table, each, extent, offset, count, True)

# the bytes of numbers the other way round, as the pairs of a pattern say: bytes of each, and how many
cdef inline void turn_numbers(char *numbers, Py_ssize_t count, const long long *pattern, Py_ssize_t pairs) noexcept nogil:
    cdef Py_ssize_t pair, each, low, length
    cdef char byte
    cdef unsigned long long eight
    cdef unsigned int four
    while count > 0:
        for pair in range(pairs):
            length = pattern[2 * pair]
            count -= length * pattern[2 * pair + 1]
            if length == 8:
                for each in range(pattern[2 * pair + 1]):
                    memcpy(&eight, numbers, 8)
                    eight = OMPY_TURN_EIGHT(eight)
                    memcpy(numbers, &eight, 8)
                    numbers += 8
            elif length == 4:
                for each in range(pattern[2 * pair + 1]):
                    memcpy(&four, numbers, 4)
                    four = OMPY_TURN_FOUR(four)
                    memcpy(numbers, &four, 4)
                    numbers += 4
            else:
                for each in range(pattern[2 * pair + 1]):
                    for low in range(length // 2):
                        byte = numbers[low]
                        numbers[low] = numbers[length - 1 - low]
                        numbers[length - 1 - low] = byte
                    numbers += length

cdef inline void exchange_runs(Lent lent, Py_ssize_t start, Py_ssize_t inner, Py_ssize_t stride, Py_ssize_t outer_stride, Py_ssize_t length, object table, Py_ssize_t each, Py_ssize_t extent, Lent packed, Py_ssize_t at, Py_ssize_t count, bint unpacks, object pattern):
    cdef char *place = <char *>packed.buf + at
    cdef Py_ssize_t pairs = PyBytes_GET_SIZE(pattern) // 16
    cdef const long long *words = <const long long *>PyBytes_AS_STRING(pattern)
    cdef bytes copy
    if pairs and unpacks:
        copy = PyBytes_FromStringAndSize(place, count)
        place = PyBytes_AS_STRING(copy)
        turn_numbers(place, count, words, pairs)
    move_runs(place, <char *>lent.buf + start, inner, stride, outer_stride, length, table, each, extent, 0, count, unpacks)
    if pairs and not unpacks:
        turn_numbers(place, count, words, pairs)
