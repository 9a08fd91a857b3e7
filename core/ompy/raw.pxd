# The functions of raw.py, in C, for the modules that are compiled. Keep the two alike.

from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_CheckExact, PyByteArray_FromStringAndSize
from cpython.buffer cimport PyBUF_ANY_CONTIGUOUS, PyBUF_READ, PyBUF_WRITE, PyBuffer_IsContiguous, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_FromStringAndSize
from cpython.memoryview cimport PyMemoryView_FromMemory, PyMemoryView_FromObject, PyMemoryView_GET_BUFFER
from cpython.long cimport PyLong_AsLongLongAndOverflow, PyLong_CheckExact
from cpython.object cimport PyObject, PyTypeObject
from cpython.pythread cimport PyThread_get_thread_ident
from libc.string cimport memchr, memcpy, strchr

cdef extern from * nogil:
    """
    #include <string.h>
    #define OMPY_PAGE 4096
    #define OMPY_LONG_MOVE 2048  /* glibc moves strings from here on, or from twice that */
    #define OMPY_CRAWLING 31
    #if defined(__SSE2__)
    #include <emmintrin.h>
    #endif
    static CYTHON_UNUSED void ompy_stream(char *target, const char *source, size_t count) {
    #if defined(__SSE2__)
        size_t begin = (0 - (size_t)target) & 63;
        if (count >= begin + 64) {
            memcpy(target, source, begin);
            for (target += begin, source += begin, count -= begin; count >= 64; count -= 64) {
                __m128i a = _mm_loadu_si128((const __m128i *)source);
                __m128i b = _mm_loadu_si128((const __m128i *)(source + 16));
                __m128i c = _mm_loadu_si128((const __m128i *)(source + 32));
                __m128i d = _mm_loadu_si128((const __m128i *)(source + 48));
                _mm_stream_si128((__m128i *)target, a);
                _mm_stream_si128((__m128i *)(target + 16), b);
                _mm_stream_si128((__m128i *)(target + 32), c);
                _mm_stream_si128((__m128i *)(target + 48), d);
                target += 64;
                source += 64;
            }
            _mm_sfence();  /* what is stored next must not be seen before these */
        }
    #endif
        memcpy(target, source, count);
    }
    static CYTHON_UNUSED void ompy_copy_in_short_moves(char *target, const char *source, size_t count) {
        volatile size_t hidden = 2000;  /* of a size it knows the compiler makes a string move */
        size_t part = hidden;
        for (; count > part; count -= part, target += part, source += part)
            memcpy(target, source, part);
        memcpy(target, source, count);
    }
    """
    size_t PAGE "OMPY_PAGE"
    size_t LONG_MOVE "OMPY_LONG_MOVE"
    size_t CRAWLING "OMPY_CRAWLING"
    void stream_bytes "ompy_stream"(char *, const char *, size_t)
    void copy_in_short_moves "ompy_copy_in_short_moves"(char *, const char *, size_t)

cdef extern from "Python.h":
    bint PyUnicode_IS_COMPACT_ASCII(object)
    Py_ssize_t PyUnicode_GET_LENGTH(object)
    void *PyUnicode_DATA(object)
    str PyUnicode_DecodeUTF8(const char *, Py_ssize_t, const char *)

cdef extern from "time.h" nogil:
    struct timespec:
        long tv_sec
        long tv_nsec
    int CLOCK_MONOTONIC
    int clock_gettime(int, timespec *)
    int nanosleep(const timespec *, timespec *)

cdef extern from "sched.h" nogil:
    int sched_yield()

cdef extern from * nogil:
    """
    #if defined(__x86_64__) || defined(__i386__)
    #define OMPY_PAUSE() __builtin_ia32_pause()
    #elif defined(__aarch64__)
    #define OMPY_PAUSE() __asm__ __volatile__("yield")
    #else
    #define OMPY_PAUSE() ((void)0)
    #endif
    #if defined(__GNUC__)
    #define OMPY_FETCH(place) __builtin_prefetch(place)
    #else
    #define OMPY_FETCH(place) ((void)(place))
    #endif
    #if defined(__GNUC__)
    #define OMPY_FENCE() __atomic_thread_fence(__ATOMIC_SEQ_CST)
    #define OMPY_LOAD_FENCE() __atomic_thread_fence(__ATOMIC_ACQUIRE)
    #define OMPY_ATOMICS 1
    #define OMPY_PUT(place, value) __atomic_store_n(place, value, __ATOMIC_RELEASE)
    static inline int ompy_swap_if(unsigned long long *place, unsigned long long expected, unsigned long long value) {
        return __atomic_compare_exchange_n(place, &expected, value, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    }
    #else
    #define OMPY_FENCE() ((void)0)
    #define OMPY_LOAD_FENCE() ((void)0)
    #define OMPY_ATOMICS 0
    #define OMPY_PUT(place, value) (*(place) = (value))
    static inline int ompy_swap_if(unsigned long long *place, unsigned long long expected, unsigned long long value) {
        return *place == expected ? (*place = value, 1) : 0;
    }
    #endif
    """
    int OMPY_ATOMICS
    void OMPY_FENCE()
    void OMPY_LOAD_FENCE()
    void OMPY_PAUSE()
    void OMPY_FETCH(const char *)
    void OMPY_PUT(unsigned long long *, unsigned long long)
    int ompy_swap_if(unsigned long long *, unsigned long long, unsigned long long)

cdef inline void pause(int times) noexcept:
    cdef int each
    for each in range(times):
        OMPY_PAUSE()

# cache lines of 64 bytes; from 32 on a processor sees by itself where this goes
cdef inline void fetch_ahead(object view, Py_ssize_t at, Py_ssize_t size) noexcept:
    cdef const char *place = begin(view) + at
    cdef Py_ssize_t each
    for each in range(0, size if size < 2048 else 2048, 64):
        OMPY_FETCH(place + each)

cdef inline long long clock() noexcept:
    cdef timespec now
    clock_gettime(CLOCK_MONOTONIC, &now)
    return <long long>now.tv_sec * 1000000000 + now.tv_nsec

cdef extern from * nogil:
    """
    #if defined(__x86_64__) && defined(__GNUC__)
    #include <cpuid.h>
    /* whether the processor's counter runs at one rate, also while a core sleeps */
    static CYTHON_INLINE int ompy_counter_is_even(void) {
        static int even = -1;
        unsigned a, b, c, d;
        if (even < 0) even = __get_cpuid(0x80000007u, &a, &b, &c, &d) && (d >> 8 & 1);
        return even;
    }
    #define OMPY_COUNTER() ((long long)__builtin_ia32_rdtsc())
    #else
    #define ompy_counter_is_even() 0
    #define OMPY_COUNTER() 0LL
    #endif
    """
    bint ompy_counter_is_even()
    long long OMPY_COUNTER()

cdef inline long long ticks() noexcept:
    return OMPY_COUNTER() if ompy_counter_is_even() else clock()

cdef inline char *begin(object memory) except NULL:
    if PyBytes_CheckExact(memory):
        return PyBytes_AS_STRING(memory)
    if PyByteArray_CheckExact(memory):
        return PyByteArray_AS_STRING(memory)
    return <char *>PyMemoryView_GET_BUFFER(memory).buf

cdef inline bytes one_word(unsigned long long value):
    return PyBytes_FromStringAndSize(<char *>&value, 8)

cdef inline bytes two_words(unsigned long long first, unsigned long long second):
    cdef unsigned long long[2] both
    both[0] = first
    both[1] = second
    return PyBytes_FromStringAndSize(<char *>both, 16)

cdef inline bytes three_words(unsigned long long first, unsigned long long second, unsigned long long third):
    cdef unsigned long long[3] words
    words[0] = first
    words[1] = second
    words[2] = third
    return PyBytes_FromStringAndSize(<char *>words, 24)

cdef inline bytes four_words(unsigned long long first, unsigned long long second, unsigned long long third, unsigned long long fourth):
    cdef unsigned long long[4] words
    words[0] = first
    words[1] = second
    words[2] = third
    words[3] = fourth
    return PyBytes_FromStringAndSize(<char *>words, 32)

cdef inline bytes five_words(unsigned long long first, unsigned long long second, unsigned long long third, unsigned long long fourth, unsigned long long fifth):
    cdef unsigned long long[5] words
    words[0] = first
    words[1] = second
    words[2] = third
    words[3] = fourth
    words[4] = fifth
    return PyBytes_FromStringAndSize(<char *>words, 40)

cdef inline bytes six_words(unsigned long long first, unsigned long long second, unsigned long long third, unsigned long long fourth, unsigned long long fifth, unsigned long long sixth):
    cdef unsigned long long[6] words
    words[0] = first
    words[1] = second
    words[2] = third
    words[3] = fourth
    words[4] = fifth
    words[5] = sixth
    return PyBytes_FromStringAndSize(<char *>words, 48)

cdef inline bytes seven_words(unsigned long long first, unsigned long long second, unsigned long long third, unsigned long long fourth, unsigned long long fifth, unsigned long long sixth, unsigned long long seventh):
    cdef unsigned long long[7] words
    words[0] = first
    words[1] = second
    words[2] = third
    words[3] = fourth
    words[4] = fifth
    words[5] = sixth
    words[6] = seventh
    return PyBytes_FromStringAndSize(<char *>words, 56)

cdef inline unsigned long long word(object view, Py_ssize_t at):
    return (<unsigned long long *>(begin(view) + at))[0]

cdef inline long long signed_word(object view, Py_ssize_t at):
    return (<long long *>(begin(view) + at))[0]

# A word, then bytes
cdef inline bytes headed(unsigned long long head, const char *rest, Py_ssize_t count):
    cdef bytes made = PyBytes_FromStringAndSize(NULL, 8 + count)
    cdef char *target = PyBytes_AS_STRING(made)
    memcpy(target, &head, 8)
    memcpy(target + 8, rest, count)
    return made

cdef inline bytes headed_bytes(unsigned long long head, bytes rest):
    return headed(head, PyBytes_AS_STRING(rest), len(rest))

cdef inline bytes headed_text(unsigned long long head, str text):
    if PyUnicode_IS_COMPACT_ASCII(text):  # its own memory is its UTF-8
        return headed(head, <const char *>PyUnicode_DATA(text), PyUnicode_GET_LENGTH(text))
    cdef bytes encoded = text.encode()
    return headed_bytes(head, encoded)

cdef inline str text(object view, Py_ssize_t at, Py_ssize_t count):
    return PyUnicode_DecodeUTF8(begin(view) + at, count, NULL)

cdef inline bytes headed_real(unsigned long long head, double value):
    return headed(head, <const char *>&value, 8)

cdef inline double real(object view, Py_ssize_t at):
    return (<double *>(begin(view) + at))[0]

cdef inline bytes part(object view, Py_ssize_t at, Py_ssize_t count):
    return PyBytes_FromStringAndSize(begin(view) + at, count)

# Whether a string move crawls: AMD's take five to ten times as long where the target begins 1 to 31
# bytes behind the source, counted within pages (EPYC with fsrm; net/README.md has figures). Two
# arrays of whole pages that follow each other on the heap lie so
cdef inline bint crawls(size_t target, size_t source, size_t count) noexcept nogil:
    return count >= LONG_MOVE and ((target - source - 1) & (PAGE - 1)) < CRAWLING

# memcpy, which moves strings from 2 or 4 KiB on; short ones go through vector registers
cdef inline void copy_bytes(char *target, const char *source, size_t count) noexcept nogil:
    if crawls(<size_t>target, <size_t>source, count):
        copy_in_short_moves(target, source, count)
    else:
        memcpy(target, source, count)

cdef inline void copy(object target, Py_ssize_t at, object source, Py_ssize_t start, Py_ssize_t count):
    copy_bytes(begin(target) + at, begin(source) + start, count)

cdef inline void stream(object target, Py_ssize_t at, object source, Py_ssize_t start, Py_ssize_t count):
    stream_bytes(begin(target) + at, begin(source) + start, count)

cdef extern from *:
    """
    static CYTHON_INLINE int ompy_references(PyObject *object) { return (int)Py_REFCNT(object); }
    """
    int ompy_references(object one)

# its attribute, and this call
cdef inline object moved(object view, object memory, Py_ssize_t at, Py_ssize_t count):
    cdef Py_buffer *inside
    if ompy_references(view) > 2:
        return memory[at:at + count]
    inside = PyMemoryView_GET_BUFFER(view)
    inside.buf = <char *>PyMemoryView_GET_BUFFER(memory).buf + at
    inside.len = count
    inside.shape[0] = count
    return view

cdef extern from * nogil:
    """
    #define OMPY_THIS_ORDER (PY_BIG_ENDIAN ? '>' : '<')
    """
    char OMPY_THIS_ORDER

cdef inline bint are_numbers(const Py_buffer *inside) noexcept:
    cdef const char *format = inside.format
    if not PyBuffer_IsContiguous(<Py_buffer *>inside, b"C"):
        return False
    if format == NULL or (format[0] == b"B" and format[1] == 0):
        return inside.ndim == 1 or inside.len
    return format[0] and not format[1] and inside.len and strchr(b"cbB?hHiIlLqQnNfdP", format[0]) != NULL

# bytes that lie together in one dimension, whatever they are of: records, text; no Python objects
cdef inline bint are_bytes(const Py_buffer *inside) noexcept:
    if inside.ndim != 1 or inside.shape == NULL or inside.strides == NULL:
        return False
    if not PyBuffer_IsContiguous(<Py_buffer *>inside, b"C"):
        return False
    return inside.format == NULL or strchr(inside.format, b"O") == NULL

# the character of complex numbers, halves, long doubles and those of ctypes in one dimension, which
# Python's own views cannot turn into bytes; 0 for whatever else
cdef inline char odd_number(const Py_buffer *inside) noexcept:
    cdef const char *format = inside.format
    if format == NULL or inside.ndim != 1 or not inside.len or not PyBuffer_IsContiguous(<Py_buffer *>inside, b"C"):
        return 0
    if format[0] == b"Z" and format[1] and not format[2]:
        return b"F" if format[1] == b"f" else b"D" if format[1] == b"d" else b"G" if format[1] == b"g" else 0
    if format[0] == OMPY_THIS_ORDER and format[1] and not format[2]:  # C's long may have another size
        return format[1] if strchr(b"bB?hHiIqQfdg", format[1]) != NULL else 0
    return format[0] if (format[0] == b"e" or format[0] == b"g") and not format[1] else 0

cdef inline object flat(object view):
    cdef Py_buffer *inside = PyMemoryView_GET_BUFFER(view)
    if inside.ndim == 1 and inside.format != NULL and inside.format[0] == b"B" and inside.format[1] == 0:
        return view
    return view.cast("B")

# a view has its own room for shape and strides, as many as it has dimensions
cdef inline object as_bytes(object view):
    cdef Py_buffer *inside = PyMemoryView_GET_BUFFER(view)
    if inside.ndim != 1 or inside.shape == NULL or inside.strides == NULL:
        return flat(view)
    inside.format = <char *>b"B"
    inside.itemsize = 1
    inside.shape[0] = inside.len
    inside.strides[0] = 1
    return view

# An array of NumPy, by the fields that its binary interface has fixed for extension modules. Asked for
# its buffer, NumPy makes shape, strides and a text of its type each time: some 600 instructions. The
# first array shows whether the fields are there: they have to say what its buffer says
cdef extern from *:
    """
    #include <string.h>
    typedef struct { PyObject_HEAD PyTypeObject *typeobj; char kind, type, byteorder, former_flags; int type_num; } ompy_dtype;
    typedef struct {
        PyObject_HEAD
        char *data; int nd; Py_ssize_t *dimensions; Py_ssize_t *strides; PyObject *base; ompy_dtype *descr; int flags;
    } ompy_array;
    #define OMPY_ARRAY_TOGETHER 0x3  /* in the order of C or of Fortran */
    #define OMPY_ARRAY_WRITABLE 0x400
    #define OMPY_NUMBERS 17  /* from bool to complex long double, as NumPy numbers its types */
    #define OMPY_HALF_NUMBER 23
    static const char ompy_formats[OMPY_NUMBERS + 1][3] = {
        "?", "b", "B", "h", "H", "i", "I", "l", "L", "q", "Q", "f", "d", "g", "Zf", "Zd", "Zg", "e"};
    static const unsigned char ompy_sizes[OMPY_NUMBERS + 1] = {
        1, 1, 1, sizeof(short), sizeof(short), sizeof(int), sizeof(int), sizeof(long), sizeof(long),
        sizeof(long long), sizeof(long long), sizeof(float), sizeof(double), sizeof(long double),
        2 * sizeof(float), 2 * sizeof(double), 2 * sizeof(long double), 2};
    static PyTypeObject *ompy_array_type = NULL;
    static int ompy_arrays_differ = 0;

    /* the buffer of an array of numbers that lie together; 0 for whatever else it may be */
    static CYTHON_INLINE int ompy_look_at_array(PyObject *object, Py_buffer *seen) {
        ompy_array *array = (ompy_array *)object;
        ompy_dtype *dtype = array->descr;
        unsigned type = (unsigned)dtype->type_num;
        int each;
        if (array->flags < 0 || !(array->flags & OMPY_ARRAY_TOGETHER)) return 0;
        if (type == OMPY_HALF_NUMBER) type = OMPY_NUMBERS;
        else if (type >= OMPY_NUMBERS) return 0;
        if (dtype->byteorder != '=' && dtype->byteorder != '|') return 0;
        seen->itemsize = seen->len = ompy_sizes[type];
        for (each = 0; each < array->nd; each++) seen->len *= array->dimensions[each];
        seen->buf = array->data;
        seen->obj = object;
        seen->readonly = !(array->flags & OMPY_ARRAY_WRITABLE);
        seen->ndim = 1;
        seen->format = (char *)ompy_formats[type];
        seen->shape = seen->strides = seen->suboffsets = NULL;
        seen->internal = NULL;
        return 1;
    }
    static CYTHON_UNUSED int ompy_meet_array(PyObject *array) {
        PyObject *modules = PyImport_GetModuleDict();
        PyObject *numpy = modules ? PyDict_GetItemString(modules, "numpy") : NULL;
        PyObject *type = numpy ? PyObject_GetAttrString(numpy, "ndarray") : NULL;
        PyBufferProcs *slots = Py_TYPE(array)->tp_as_buffer;
        Py_buffer here, there;
        int same;
        Py_XDECREF(type);
        if (type != (PyObject *)Py_TYPE(array) || !slots || slots->bf_releasebuffer
            || PyObject_GetBuffer(array, &there, PyBUF_FULL_RO) < 0) {
            PyErr_Clear();
            return 0;
        }
        if (((ompy_array *)array)->data != there.buf || ((ompy_array *)array)->nd != there.ndim) {
            ompy_arrays_differ = 1;
        } else if (ompy_look_at_array(array, &here)) {
            same = here.len == there.len && here.itemsize == there.itemsize && here.readonly == there.readonly;
            if (same && there.format && !strcmp(here.format, there.format)) ompy_array_type = Py_TYPE(array);
            else ompy_arrays_differ = 1;
        }
        PyBuffer_Release(&there);
        return ompy_array_type != NULL;
    }
    static CYTHON_INLINE int ompy_is_array(PyObject *object) {
        return object && Py_TYPE(object) == ompy_array_type;
    }
    static CYTHON_INLINE int ompy_see_array(PyObject *object, Py_buffer *seen) {
        PyTypeObject *type = Py_TYPE(object);
        if (type != ompy_array_type) {
            if (ompy_array_type || ompy_arrays_differ || strcmp(type->tp_name, "numpy.ndarray")) return 0;
            if (!ompy_meet_array(object)) return 0;
        }
        return ompy_look_at_array(object, seen);
    }
    /* a view of one dimension, as numbers or as bytes; None for whatever else it may be */
    static CYTHON_UNUSED PyObject *ompy_view_of_array(PyObject *array, int as_bytes) {
        Py_buffer seen;
        Py_ssize_t count;
        PyMemoryViewObject *view;
        if (!ompy_see_array(array, &seen)) Py_RETURN_NONE;
        if (as_bytes) {
            seen.format = (char *)"B";
            seen.itemsize = 1;
        }
        count = seen.len / seen.itemsize;
        seen.shape = &count;
        seen.strides = &seen.itemsize;
        if (!(view = (PyMemoryViewObject *)PyMemoryView_FromBuffer(&seen))) return NULL;
        /* it has its own room for shape and strides; a view owns what it is of */
        view->mbuf->master.shape = view->mbuf->master.strides = NULL;
        Py_INCREF(array);
        view->mbuf->master.obj = view->view.obj = array;
        return (PyObject *)view;
    }
    """
    bint ompy_see_array(object array, Py_buffer *seen)
    bint ompy_is_array(PyObject *)
    object ompy_view_of_array(object array, bint as_bytes)

# as memoryview(), but an array of numbers has one dimension
cdef inline object look_at_buffer(object buffer):
    view = ompy_view_of_array(buffer, False)
    return PyMemoryView_FromObject(buffer) if view is None else view

# whether a buffer is taken: of numbers; of anything where its datatype is given apart
cdef inline bint is_taken(const Py_buffer *inside, bint anything) noexcept:
    if are_numbers(inside):
        return True
    return are_bytes(inside) if anything else odd_number(inside) != 0

cdef inline object view_taken(object buffer, bint bytewise, bint anything):
    view = ompy_view_of_array(buffer, bytewise)
    if view is not None:
        return view
    try:
        view = PyMemoryView_FromObject(buffer)
    except (TypeError, ValueError):
        return None
    if not is_taken(PyMemoryView_GET_BUFFER(view), anything):
        return None
    return as_bytes(view) if bytewise else view

cdef inline object numbers(object buffer):
    return view_taken(buffer, True, False)

cdef inline object any_bytes(object buffer):
    return view_taken(buffer, True, True)

cdef inline object shaped(object buffer):
    return view_taken(buffer, False, False)

cdef inline object bare(object view):
    return view

cdef inline bint overlaps(object one, object other):
    cdef Py_buffer *here = PyMemoryView_GET_BUFFER(one)
    cdef Py_buffer *there = PyMemoryView_GET_BUFFER(other)
    cdef char *begin = <char *>here.buf
    cdef char *start = <char *>there.buf
    return begin < start + there.len and start < begin + here.len

cdef inline int first(object memory) except -1:
    return <unsigned char>begin(memory)[0]

cdef inline long long code(object view) noexcept:
    cdef Py_buffer *inside = PyMemoryView_GET_BUFFER(view)
    if inside.format == NULL or inside.format[0] == 0 or not inside.ndim:
        return 0
    if not inside.len and not ompy_is_array(<PyObject *>inside.obj):
        return 0  # an empty array of Python's that is held cannot be assigned to
    if inside.format[1] != 0 or strchr(b"cbB?hHiIlLqQnNfdP", inside.format[0]) == NULL:
        return odd_number(inside)
    return inside.format[0] if PyBuffer_IsContiguous(inside, b"C") else 0

cdef inline str kind(object view):
    cdef long long found = code(view)
    return chr(found) if found else ""

cdef inline bytearray room(Py_ssize_t length):
    return PyByteArray_FromStringAndSize(NULL, length)

cdef inline Py_ssize_t size(object view):
    return PyMemoryView_GET_BUFFER(view).len

cdef inline object instance(type base, type kind):
    return (<PyTypeObject *>base).tp_new(kind, <PyObject *>(), NULL)

cdef inline void nap():
    cdef timespec moment
    moment.tv_sec = 0
    moment.tv_nsec = 1000
    with nogil:
        nanosleep(&moment, NULL)

cdef inline void fence() noexcept:
    OMPY_FENCE()

cdef inline void load_fence() noexcept:
    OMPY_LOAD_FENCE()

cdef inline bint has_atomics() noexcept:
    return OMPY_ATOMICS

cdef inline bint swap_if(object view, Py_ssize_t at, unsigned long long expected, unsigned long long new):
    return ompy_swap_if(<unsigned long long *>(begin(view) + at), expected, new)

cdef inline void put_word(object view, Py_ssize_t at, unsigned long long value):
    OMPY_PUT(<unsigned long long *>(begin(view) + at), value)

cdef inline void give_way():
    with nogil:
        sched_yield()

cdef inline bint is_writable(object view):
    return not PyMemoryView_GET_BUFFER(view).readonly

cdef inline unsigned long thread():
    return <unsigned long>PyThread_get_thread_ident()

cdef extern from *:
    """
    static CYTHON_INLINE int ompy_is_at(PyObject *code, long long at) {
        PyFrameObject *frame = PyEval_GetFrame();
        PyCodeObject *found;
        if (!frame) return 0;
        found = PyFrame_GetCode(frame);
        Py_DECREF(found);  /* the frame has it */
        return (PyObject *)found == code && PyFrame_GetLasti(frame) == at;
    }
    """
    bint ompy_is_at(object code, long long at)

cdef inline bint is_at(object code, long long at):
    return ompy_is_at(code, at)

cdef extern from *:
    """
    static CYTHON_INLINE int ompy_compact(PyObject *number, long long *value) {
    #if !CYTHON_COMPILING_IN_CPYTHON || PY_VERSION_HEX >= 0x030C0000
        return 0;
    #else
        Py_ssize_t size = Py_SIZE(number);
        if (size < -1 || size > 1) return 0;
        *value = size * (long long)((PyLongObject *)number)->ob_digit[0];
        return 1;
    #endif
    }
    """
    bint ompy_compact(object number, long long *value)

cdef inline bint plain_text(object value) noexcept:
    if type(value) is not str or not PyUnicode_IS_COMPACT_ASCII(value):
        return False
    return memchr(PyUnicode_DATA(value), 0, PyUnicode_GET_LENGTH(value)) == NULL

cdef inline long long address(object memory) except -1:
    cdef Py_buffer seen
    PyObject_GetBuffer(memory, &seen, PyBUF_ANY_CONTIGUOUS)
    found = <long long>seen.buf
    PyBuffer_Release(&seen)
    return found

cdef inline object memory_at(size_t address, Py_ssize_t count, bint readonly):
    return PyMemoryView_FromMemory(<char *>address, count, PyBUF_READ if readonly else PyBUF_WRITE)

cdef inline long long small(object number) noexcept:
    cdef int over = 0
    cdef long long value
    if not PyLong_CheckExact(number):
        return 1 << 40
    if ompy_compact(number, &value):
        return value
    value = PyLong_AsLongLongAndOverflow(number, &over)
    return value if not over and -(1 << 40) < value < (1 << 40) else 1 << 40
