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
    #if defined(__GNUC__) && !defined(__clang__)
    #define OMPY_ROUNDED __attribute__((optimize("O2", "fp-contract=off")))
    #elif defined(__clang__)
    #define OMPY_ROUNDED
    #pragma STDC FP_CONTRACT OFF
    #else
    #define OMPY_ROUNDED
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
    typedef long double ompy_g OMPY_ANYWHERE;

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
    OMPY_ORDER(g) OMPY_NUMBER(g, long double)

    /* A complex product: every operation is rounded by itself. */
    #define OMPY_COMPLEX(kind, type)                                                 \\
        static OMPY_ROUNDED void ompy_prod_##kind(                                   \\
            const char *__restrict from, char *__restrict into, ptrdiff_t bytes)     \\
        {                                                                            \\
            const type *__restrict x = (const type *)from;                           \\
            type *__restrict y = (type *)into;                                       \\
            ptrdiff_t n = bytes / (ptrdiff_t)sizeof(type), i;                        \\
            for (i = 0; i < n; i += 2) {                                             \\
                type real = x[i] * y[i] - x[i + 1] * y[i + 1];                       \\
                y[i + 1] = x[i] * y[i + 1] + x[i + 1] * y[i];                        \\
                y[i] = real;                                                         \\
            }                                                                        \\
        }
    OMPY_COMPLEX(F, ompy_f) OMPY_COMPLEX(D, ompy_d) OMPY_COMPLEX(G, ompy_g)
    #define ompy_sum_F ompy_sum_f
    #define ompy_sum_D ompy_sum_d
    #define ompy_sum_G ompy_sum_g

    /* Half precision: computed as float, and rounded to the nearest, of two the even one. */
    static float ompy_half_value(ompy_H half)
    {
        union {uint32_t bits; float value;} it;
        uint32_t sign = (uint32_t)(half & 0x8000) << 16, rest = half & 0x7fff;
        if (rest >= 0x7c00) it.bits = sign | 0x7f800000 | (rest & 0x3ff) << 13;
        else if (rest >= 0x400) it.bits = sign | (rest << 13) + ((127 - 15) << 23);
        else {
            it.value = (float)rest / 16777216.0f;
            it.bits |= sign;
        }
        return it.value;
    }
    static unsigned short ompy_half_of(float value)
    {
        union {float value; uint32_t bits;} it;
        uint32_t sign, rest, gone, half, shift;
        it.value = value;
        sign = it.bits >> 16 & 0x8000;
        rest = it.bits & 0x7fffffff;
        if (rest > 0x7f800000) return (unsigned short)(sign | 0x7e00 | (rest >> 13 & 0x3ff));
        if (rest >= 0x477ff000) return (unsigned short)(sign | 0x7c00);
        if (rest < 0x33000000) return (unsigned short)sign;
        if (rest < 0x38800000) {
            shift = 126 - (rest >> 23);
            rest = (rest & 0x7fffff) | 0x800000;
            half = rest >> shift;
        } else {
            shift = 13;
            half = (rest >> 13) - ((127 - 15) << 10);
        }
        gone = rest & ((1u << shift) - 1);
        if (gone > 1u << (shift - 1) || (gone == 1u << (shift - 1) && half & 1)) half++;
        return (unsigned short)(sign | half);
    }
    #define OMPY_HALF(name, expression)                                              \\
        static void ompy_##name##_e(const char *from, char *into, ptrdiff_t bytes)   \\
        {                                                                            \\
            const ompy_H *x = (const ompy_H *)from;                                  \\
            ompy_H *y = (ompy_H *)into;                                              \\
            ptrdiff_t n = bytes / 2, i;                                              \\
            for (i = 0; i < n; i++) {                                                \\
                float a = ompy_half_value(x[i]), b = ompy_half_value(y[i]);          \\
                y[i] = expression;                                                   \\
            }                                                                        \\
        }
    OMPY_HALF(max, a > b ? x[i] : y[i]) OMPY_HALF(min, a < b ? x[i] : y[i])
    OMPY_HALF(sum, ompy_half_of(a + b)) OMPY_HALF(prod, ompy_half_of(a * b))

    /* A value and an index, of pairs so far apart. Of equal values the lower index counts. */
    #define OMPY_LOCATION(name, kind, type, better)                                  \\
        static void ompy_##name##_##kind##_apart(                                    \\
            const char *from, char *into, ptrdiff_t bytes, ptrdiff_t pair, ptrdiff_t index) \\
        {                                                                            \\
            ptrdiff_t at;                                                            \\
            for (at = 0; at < bytes; at += pair) {                                   \\
                const type *x = (const type *)(from + at);                           \\
                type *y = (type *)(into + at);                                       \\
                const ompy_i *i = (const ompy_i *)(from + at + index);               \\
                ompy_i *j = (ompy_i *)(into + at + index);                           \\
                if (*x better *y) {                                                  \\
                    *y = *x;                                                         \\
                    *j = *i;                                                         \\
                } else if (*x == *y && *i < *j) *j = *i;                             \\
            }                                                                        \\
        }                                                                            \\
        static void ompy_##name##_##kind(                                            \\
            const char *from, char *into, ptrdiff_t bytes)                           \\
        {                                                                            \\
            ompy_##name##_##kind##_apart(                                            \\
                from, into, bytes, sizeof(type) + sizeof(int), sizeof(type));        \\
        }
    #define OMPY_PAIR(kind, type)                                                    \\
        OMPY_LOCATION(maxloc, kind, type, >) OMPY_LOCATION(minloc, kind, type, <)
    OMPY_PAIR(fi, ompy_f) OMPY_PAIR(di, ompy_d) OMPY_PAIR(li, ompy_l)
    OMPY_PAIR(ii, ompy_i) OMPY_PAIR(hi, ompy_h) OMPY_PAIR(gi, ompy_g)

    typedef void (*ompy_loop)(const char *, char *, ptrdiff_t);
    #define OMPY_EVERY(name)                                                         \\
        ompy_##name##_b, ompy_##name##_h, ompy_##name##_i, ompy_##name##_l,          \\
        ompy_##name##_q, ompy_##name##_B, ompy_##name##_H, ompy_##name##_I,          \\
        ompy_##name##_L, ompy_##name##_Q
    #define OMPY_REAL(name) ompy_##name##_f, ompy_##name##_d, ompy_##name##_g, ompy_##name##_e
    #define OMPY_PAIRS(name)                                                         \\
        ompy_##name##_fi, ompy_##name##_di, ompy_##name##_li, ompy_##name##_ii,      \\
        ompy_##name##_hi, ompy_##name##_gi
    #define OMPY_NONE_4 NULL, NULL, NULL, NULL
    /* the rows and columns of OPERATIONS and KINDS; logical values and bytes are bytes of C */
    #define OMPY_ORDERED(name) {OMPY_EVERY(name), OMPY_REAL(name)}
    #define OMPY_ARITHMETIC(name)                                                    \\
        {OMPY_EVERY(name), OMPY_REAL(name),                                          \\
         ompy_##name##_F, ompy_##name##_D, ompy_##name##_G}
    #define OMPY_TRUTH(name)                                                         \\
        {OMPY_EVERY(name), OMPY_NONE_4, NULL, NULL, NULL, ompy_##name##_B}
    #define OMPY_BITS(name)                                                          \\
        {OMPY_EVERY(name), OMPY_NONE_4, NULL, NULL, NULL, NULL, ompy_##name##_B}
    #define OMPY_PLACES(name)                                                        \\
        {OMPY_NONE_4, OMPY_NONE_4, NULL, NULL, OMPY_NONE_4, NULL, NULL, NULL, NULL, NULL, \\
         OMPY_PAIRS(name)}
    static const ompy_loop ompy_loops[12][32] = {
        OMPY_ORDERED(max), OMPY_ORDERED(min), OMPY_ARITHMETIC(sum), OMPY_ARITHMETIC(prod),
        OMPY_TRUTH(land), OMPY_BITS(band), OMPY_TRUTH(lor), OMPY_BITS(bor),
        OMPY_TRUTH(lxor), OMPY_BITS(bxor), OMPY_PLACES(maxloc), OMPY_PLACES(minloc)};
    typedef void (*ompy_apart_loop)(const char *, char *, ptrdiff_t, ptrdiff_t, ptrdiff_t);
    #define OMPY_APART(name)                                                         \\
        {ompy_##name##_fi_apart, ompy_##name##_di_apart, ompy_##name##_li_apart,     \\
         ompy_##name##_ii_apart, ompy_##name##_hi_apart, ompy_##name##_gi_apart}
    static const ompy_apart_loop ompy_apart[2][6] = {OMPY_APART(maxloc), OMPY_APART(minloc)};
    """
    ctypedef void (*ApartLoop "ompy_apart_loop")(const char *, char *, ptrdiff_t, ptrdiff_t, ptrdiff_t)
    const ApartLoop[2][6] ompy_apart
    ctypedef void (*Loop "ompy_loop")(const char *, char *, ptrdiff_t)
    const Loop[12][32] ompy_loops

cdef inline combine(int loop, object left, Py_ssize_t start, object right, Py_ssize_t at, Py_ssize_t size):
    cdef char *source
    if PyBytes_CheckExact(left):
        source = PyBytes_AS_STRING(left)
    else:
        source = <char *>PyMemoryView_GET_BUFFER(left).buf
    ompy_loops[loop >> 5][loop & 31](source + start, <char *>PyMemoryView_GET_BUFFER(right).buf + at, size)

# loops of pairs begin at row 10 and column 19: those of OPERATIONS and KINDS
cdef inline combine_pairs(int loop, object left, Py_ssize_t start, object right, Py_ssize_t at, Py_ssize_t count, Py_ssize_t extent, Py_ssize_t index):
    cdef char *source = <char *>PyMemoryView_GET_BUFFER(left).buf + start
    cdef char *target = <char *>PyMemoryView_GET_BUFFER(right).buf + at
    ompy_apart[(loop >> 5) - 10][(loop & 31) - 19](source, target, count * extent, extent, index)
