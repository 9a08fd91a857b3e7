# The functions of keyed.py, in C, for the modules that are compiled. Keep the two alike.

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE

cdef extern from * nogil:
    """
    #include <string.h>
    #define OMPY_BLOCK 128
    #define OMPY_LONG 2048  /* bytes; arbitrary: from here on other threads may run meanwhile */
    typedef unsigned long long ompy_word;
    static const ompy_word ompy_first[8] = {  /* RFC 7693, 2.6 */
        0x6a09e667f3bcc908ULL, 0xbb67ae8584caa73bULL, 0x3c6ef372fe94f82bULL, 0xa54ff53a5f1d36f1ULL,
        0x510e527fade682d1ULL, 0x9b05688c2b3e6c1fULL, 0x1f83d9abfb41bd6bULL, 0x5be0cd19137e2179ULL
    };
    static const unsigned char ompy_schedule[12][16] = {  /* RFC 7693, 2.7 */
        {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
        {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
        {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
        {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
        {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
        {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
        {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
        {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
        {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
        {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0},
        {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
        {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3}
    };
    static CYTHON_UNUSED ompy_word ompy_load(const unsigned char *from) {
        return (ompy_word)from[0] | (ompy_word)from[1] << 8 | (ompy_word)from[2] << 16
            | (ompy_word)from[3] << 24 | (ompy_word)from[4] << 32 | (ompy_word)from[5] << 40
            | (ompy_word)from[6] << 48 | (ompy_word)from[7] << 56;
    }
    static CYTHON_UNUSED void ompy_store(unsigned char *to, ompy_word word) {
        int at;
        for (at = 0; at < 8; at++) to[at] = (unsigned char)(word >> 8 * at);
    }
    #define OMPY_TURN(word, by) ((word) >> (by) | (word) << (64 - (by)))
    #define OMPY_MIX(a, b, c, d, x, y) \
        a += b + (x); d = OMPY_TURN(d ^ a, 32); c += d; b = OMPY_TURN(b ^ c, 24); \
        a += b + (y); d = OMPY_TURN(d ^ a, 16); c += d; b = OMPY_TURN(b ^ c, 63);
    #define OMPY_ROUND(r) \
        OMPY_MIX(v0, v4, v8, v12, m[ompy_schedule[r][0]], m[ompy_schedule[r][1]]) \
        OMPY_MIX(v1, v5, v9, v13, m[ompy_schedule[r][2]], m[ompy_schedule[r][3]]) \
        OMPY_MIX(v2, v6, v10, v14, m[ompy_schedule[r][4]], m[ompy_schedule[r][5]]) \
        OMPY_MIX(v3, v7, v11, v15, m[ompy_schedule[r][6]], m[ompy_schedule[r][7]]) \
        OMPY_MIX(v0, v5, v10, v15, m[ompy_schedule[r][8]], m[ompy_schedule[r][9]]) \
        OMPY_MIX(v1, v6, v11, v12, m[ompy_schedule[r][10]], m[ompy_schedule[r][11]]) \
        OMPY_MIX(v2, v7, v8, v13, m[ompy_schedule[r][12]], m[ompy_schedule[r][13]]) \
        OMPY_MIX(v3, v4, v9, v14, m[ompy_schedule[r][14]], m[ompy_schedule[r][15]])
    /* RFC 7693, 3.2: one block, of which the last byte is the `count`th of all */
    static CYTHON_UNUSED void ompy_compress(ompy_word *h, const unsigned char *block, ompy_word count, int last) {
        ompy_word m[16];
        ompy_word v0 = h[0], v1 = h[1], v2 = h[2], v3 = h[3], v4 = h[4], v5 = h[5], v6 = h[6], v7 = h[7];
        ompy_word v8 = ompy_first[0], v9 = ompy_first[1], v10 = ompy_first[2], v11 = ompy_first[3];
        ompy_word v12 = ompy_first[4] ^ count, v13 = ompy_first[5], v15 = ompy_first[7];
        ompy_word v14 = last ? ~ompy_first[6] : ompy_first[6];
        int at;
        for (at = 0; at < 16; at++) m[at] = ompy_load(block + 8 * at);
        OMPY_ROUND(0) OMPY_ROUND(1) OMPY_ROUND(2) OMPY_ROUND(3) OMPY_ROUND(4) OMPY_ROUND(5)
        OMPY_ROUND(6) OMPY_ROUND(7) OMPY_ROUND(8) OMPY_ROUND(9) OMPY_ROUND(10) OMPY_ROUND(11)
        h[0] ^= v0 ^ v8; h[1] ^= v1 ^ v9; h[2] ^= v2 ^ v10; h[3] ^= v3 ^ v11;
        h[4] ^= v4 ^ v12; h[5] ^= v5 ^ v13; h[6] ^= v6 ^ v14; h[7] ^= v7 ^ v15;
    }
    /* the state behind the key, and behind that the digest of no data */
    static CYTHON_UNUSED void ompy_begin(ompy_word *h, const char *key, size_t length, const char *salt, size_t salted) {
        unsigned char block[OMPY_BLOCK];
        ompy_word empty[8];
        int at;
        memset(block, 0, sizeof(block));
        memcpy(block, salt, salted);
        for (at = 0; at < 8; at++) h[at] = ompy_first[at];
        h[0] ^= 16 | (ompy_word)length << 8 | 1 << 16 | 1 << 24;  /* RFC 7693, 2.5 */
        h[4] ^= ompy_load(block);
        h[5] ^= ompy_load(block + 8);
        memset(block, 0, 16);
        memcpy(block, key, length);
        memcpy(empty, h, sizeof(empty));
        ompy_compress(empty, block, OMPY_BLOCK, 1);
        ompy_compress(h, block, OMPY_BLOCK, 0);
        h[8] = empty[0];
        h[9] = empty[1];
    }
    static CYTHON_UNUSED void ompy_digest(const ompy_word *begun, const unsigned char *data, size_t left, unsigned char *into) {
        unsigned char block[OMPY_BLOCK];
        ompy_word h[8];
        ompy_word count = OMPY_BLOCK;
        memcpy(h, begun, sizeof(h));
        if (!left) {
            ompy_store(into, begun[8]);
            ompy_store(into + 8, begun[9]);
            return;
        }
        for (; left > OMPY_BLOCK; left -= OMPY_BLOCK, data += OMPY_BLOCK)
            ompy_compress(h, data, count += OMPY_BLOCK, 0);
        memset(block, 0, sizeof(block));
        memcpy(block, data, left);
        ompy_compress(h, block, count + left, 1);
        ompy_store(into, h[0]);
        ompy_store(into + 8, h[1]);
    }
    """
    ctypedef unsigned long long ompy_word
    size_t LONG "OMPY_LONG"
    void ompy_begin(ompy_word *, const char *, size_t, const char *, size_t)
    void ompy_digest(const ompy_word *, const unsigned char *, size_t, unsigned char *)

cdef inline bytes begin_hash(bytes key, bytes salt):
    cdef ompy_word[10] begun
    if PyBytes_GET_SIZE(key) > 64 or PyBytes_GET_SIZE(salt) > 16:
        raise ValueError("a key has 64 bytes at most, and a salt 16")
    ompy_begin(begun, PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key), PyBytes_AS_STRING(salt), PyBytes_GET_SIZE(salt))
    return PyBytes_FromStringAndSize(<char *>begun, sizeof(begun))

cdef inline bytes digest(object begun, object data, Py_ssize_t at):
    cdef unsigned char[16] made
    cdef Py_buffer lent
    cdef ompy_word[10] words
    (<bytes?>begun)
    for place in range(10):
        words[place] = (<ompy_word *>PyBytes_AS_STRING(begun))[place]
    PyObject_GetBuffer(data, &lent, PyBUF_SIMPLE)
    at = min(at, lent.len)
    if lent.len < <Py_ssize_t>LONG:
        ompy_digest(words, <unsigned char *>lent.buf + at, lent.len - at, made)
    else:
        with nogil:
            ompy_digest(words, <unsigned char *>lent.buf + at, lent.len - at, made)
    PyBuffer_Release(&lent)
    return PyBytes_FromStringAndSize(<char *>made, 16)
