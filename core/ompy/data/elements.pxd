# The function of elements.py, in C, for the modules that are compiled. Keep the two alike.
#
# What lies in memory may lie anywhere: the types are aligned to a byte. Integers are added and
# multiplied without signs, so that they wrap.

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact
from cpython.memoryview cimport PyMemoryView_GET_BUFFER

cdef extern from * nogil:
    """
    #include <stddef.h>
    #include <stdint.h>
    #if defined(__GNUC__)
    #define OMPY_ANYWHERE __attribute__((aligned(1), may_alias))
    #else
    #define OMPY_ANYWHERE
    #endif
    #if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__)
    #define OMPY_LOOPS __attribute__((optimize("O3"), target_clones("avx2", "default")))
    #elif defined(__GNUC__) && !defined(__clang__)
    #define OMPY_LOOPS __attribute__((optimize("O3")))
    #else
    #define OMPY_LOOPS
    #endif
    typedef signed char ompy_b OMPY_ANYWHERE;
    typedef short ompy_h OMPY_ANYWHERE;
    typedef int ompy_i OMPY_ANYWHERE;
    typedef long ompy_l OMPY_ANYWHERE;
    typedef long long ompy_q OMPY_ANYWHERE;
    typedef unsigned char ompy_B OMPY_ANYWHERE;
    typedef unsigned short ompy_H OMPY_ANYWHERE;
    typedef unsigned int ompy_I OMPY_ANYWHERE;
    typedef unsigned long ompy_L OMPY_ANYWHERE;
    typedef unsigned long long ompy_Q OMPY_ANYWHERE;
    typedef float ompy_f OMPY_ANYWHERE;
    typedef double ompy_d OMPY_ANYWHERE;

    #define OMPY_LOOP(name, type, expression)                                        \\
        static OMPY_LOOPS void ompy_##name(                                          \\
            const char *__restrict from, char *__restrict into, ptrdiff_t bytes)     \\
        {                                                                            \\
            const type *__restrict x = (const type *)from;                           \\
            type *__restrict y = (type *)into;                                       \\
            ptrdiff_t n = bytes / (ptrdiff_t)sizeof(type), i;                        \\
            for (i = 0; i < n; i++) {                                                \\
                type a = x[i], b = y[i];                                             \\
                y[i] = (type)(expression);                                           \\
            }                                                                        \\
        }
    #define OMPY_ORDER(kind)                                                         \\
        OMPY_LOOP(max_##kind, ompy_##kind, a > b ? a : b)                            \\
        OMPY_LOOP(min_##kind, ompy_##kind, a < b ? a : b)
    #define OMPY_NUMBER(kind, wide)                                                  \\
        OMPY_LOOP(sum_##kind, ompy_##kind, (wide)a + (wide)b)                        \\
        OMPY_LOOP(prod_##kind, ompy_##kind, (wide)a * (wide)b)
    #define OMPY_WHOLE(kind, wide)                                                   \\
        OMPY_ORDER(kind) OMPY_NUMBER(kind, wide)                                     \\
        OMPY_LOOP(land_##kind, ompy_##kind, a && b)                                  \\
        OMPY_LOOP(lor_##kind, ompy_##kind, a || b)                                   \\
        OMPY_LOOP(lxor_##kind, ompy_##kind, !a != !b)                                \\
        OMPY_LOOP(band_##kind, ompy_##kind, a & b)                                   \\
        OMPY_LOOP(bor_##kind, ompy_##kind, a | b)                                    \\
        OMPY_LOOP(bxor_##kind, ompy_##kind, a ^ b)
    OMPY_WHOLE(b, unsigned) OMPY_WHOLE(h, unsigned) OMPY_WHOLE(i, unsigned)
    OMPY_WHOLE(l, unsigned long) OMPY_WHOLE(q, unsigned long long)
    OMPY_WHOLE(B, unsigned) OMPY_WHOLE(H, unsigned) OMPY_WHOLE(I, unsigned)
    OMPY_WHOLE(L, unsigned long) OMPY_WHOLE(Q, unsigned long long)
    OMPY_ORDER(f) OMPY_NUMBER(f, float)
    OMPY_ORDER(d) OMPY_NUMBER(d, double)

    typedef void (*ompy_loop)(const char *, char *, ptrdiff_t);
    #define OMPY_EVERY(name)                                                         \\
        {ompy_##name##_b, ompy_##name##_h, ompy_##name##_i, ompy_##name##_l,         \\
         ompy_##name##_q, ompy_##name##_B, ompy_##name##_H, ompy_##name##_I,         \\
         ompy_##name##_L, ompy_##name##_Q, NULL, NULL}
    #define OMPY_EVERY_FLOAT_TOO(name)                                               \\
        {ompy_##name##_b, ompy_##name##_h, ompy_##name##_i, ompy_##name##_l,         \\
         ompy_##name##_q, ompy_##name##_B, ompy_##name##_H, ompy_##name##_I,         \\
         ompy_##name##_L, ompy_##name##_Q, ompy_##name##_f, ompy_##name##_d}
    static const ompy_loop ompy_loops[10][12] = {
        OMPY_EVERY_FLOAT_TOO(max), OMPY_EVERY_FLOAT_TOO(min),
        OMPY_EVERY_FLOAT_TOO(sum), OMPY_EVERY_FLOAT_TOO(prod),
        OMPY_EVERY(land), OMPY_EVERY(band), OMPY_EVERY(lor), OMPY_EVERY(bor),
        OMPY_EVERY(lxor), OMPY_EVERY(bxor)};
    """
    ctypedef void (*Loop "ompy_loop")(const char *, char *, ptrdiff_t)
    const Loop[10][12] ompy_loops

cdef inline combine(int loop, object left, Py_ssize_t start, object right, Py_ssize_t at, Py_ssize_t size):
    cdef char *source
    if PyBytes_CheckExact(left):
        source = PyBytes_AS_STRING(left)
    else:
        source = <char *>PyMemoryView_GET_BUFFER(left).buf
    ompy_loops[loop >> 4][loop & 15](source + start, <char *>PyMemoryView_GET_BUFFER(right).buf + at, size)
