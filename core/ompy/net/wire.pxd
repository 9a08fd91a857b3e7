# The functions of wire.py, in C, for the modules that are compiled. Keep the two alike.

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.memoryview cimport PyMemoryView_GET_BUFFER
from libc.errno cimport EINVAL, errno

cdef extern from "sys/socket.h" nogil:
    int MSG_DONTWAIT
    int MSG_NOSIGNAL
    ssize_t c_receive "recv"(int, void *, size_t, int)
    ssize_t c_send "send"(int, const void *, size_t, int)

cdef inline long long receive(int descriptor, object view):
    cdef Py_buffer *inside = PyMemoryView_GET_BUFFER(view)
    cdef ssize_t count
    cdef int problem
    with nogil:
        count = c_receive(descriptor, inside.buf, <size_t>inside.len, MSG_DONTWAIT)
        problem = errno
    return count if count >= 0 else -problem

cdef inline long long send(int descriptor, object view):
    cdef Py_buffer *inside = PyMemoryView_GET_BUFFER(view)
    cdef ssize_t count
    cdef int problem
    with nogil:
        count = c_send(descriptor, inside.buf, <size_t>inside.len, MSG_DONTWAIT | MSG_NOSIGNAL)
        problem = errno
    return count if count >= 0 else -problem

cdef extern from * nogil:
    """
    #include <errno.h>
    #include <netinet/in.h>
    #include <string.h>
    #include <sys/socket.h>
    #include <sys/uio.h>
    #define OMPY_PACKETS 64  /* Linux: UDP_MAX_SEGMENTS */
    #define OMPY_SOL_UDP 17
    #define OMPY_UDP_SEGMENT 103
    #define OMPY_UDP_GRO 104
    union ompy_note {
        struct cmsghdr aligned;
        char room[64];
    };
    static CYTHON_UNUSED int ompy_send_packets(int descriptor, struct iovec *pieces, int count, const char *to) {
        struct sockaddr_in address;
        struct msghdr message;
        union ompy_note note;
        memset(&address, 0, sizeof(address));
        memset(&message, 0, sizeof(message));
        address.sin_family = AF_INET;
        memcpy(&address.sin_addr, to, 4);
        memcpy(&address.sin_port, to + 4, 2);
        message.msg_name = &address;
        message.msg_namelen = sizeof(address);
        message.msg_iov = pieces;
        message.msg_iovlen = count;
        if (count > 1) {
            unsigned short size = (unsigned short)pieces[0].iov_len;
            struct cmsghdr *head;
            memset(&note, 0, sizeof(note));
            message.msg_control = &note;
            message.msg_controllen = CMSG_SPACE(sizeof(size));
            head = CMSG_FIRSTHDR(&message);
            head->cmsg_level = OMPY_SOL_UDP;
            head->cmsg_type = OMPY_UDP_SEGMENT;
            head->cmsg_len = CMSG_LEN(sizeof(size));
            memcpy(CMSG_DATA(head), &size, sizeof(size));
        }
        return sendmsg(descriptor, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
    }
    static CYTHON_UNUSED ssize_t ompy_send_pieces(int descriptor, struct iovec *pieces, int count) {
        struct msghdr message;
        memset(&message, 0, sizeof(message));
        message.msg_iov = pieces;
        message.msg_iovlen = count;
        return sendmsg(descriptor, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    static CYTHON_UNUSED long ompy_receive_packets(int descriptor, void *room, size_t length, int *size, char *from) {
        struct sockaddr_in address;
        struct msghdr message;
        struct iovec piece;
        union ompy_note note;
        struct cmsghdr *head;
        long count;
        memset(&message, 0, sizeof(message));
        piece.iov_base = room;
        piece.iov_len = length;
        message.msg_name = &address;
        message.msg_namelen = sizeof(address);
        message.msg_iov = &piece;
        message.msg_iovlen = 1;
        message.msg_control = &note;
        message.msg_controllen = sizeof(note);
        count = (long)recvmsg(descriptor, &message, MSG_DONTWAIT);
        if (count < 0) return -errno;
        memcpy(from, &address.sin_addr, 4);
        memcpy(from + 4, &address.sin_port, 2);
        *size = (int)count;
        for (head = CMSG_FIRSTHDR(&message); head != NULL; head = CMSG_NXTHDR(&message, head))
            if (head->cmsg_level == OMPY_SOL_UDP && head->cmsg_type == OMPY_UDP_GRO)
                memcpy(size, CMSG_DATA(head), sizeof(*size));
        return count;
    }
    """
    struct iovec:
        void *iov_base
        size_t iov_len
    int PACKETS "OMPY_PACKETS"
    ssize_t ompy_send_pieces(int, iovec *, int)
    int ompy_send_packets(int, iovec *, int, const char *)
    long ompy_receive_packets(int, void *, size_t, int *, char *)

cdef inline long long send_pieces(int descriptor, object pieces):
    cdef iovec[64] places
    cdef Py_buffer *inside
    cdef int count = 0
    cdef ssize_t taken
    cdef int problem
    for piece in pieces:
        if count == PACKETS:
            break
        inside = PyMemoryView_GET_BUFFER(piece)
        places[count].iov_base = inside.buf
        places[count].iov_len = <size_t>inside.len
        count += 1
    with nogil:
        taken = ompy_send_pieces(descriptor, places, count)
        problem = errno
    return taken if taken >= 0 else -problem

cdef inline long long send_packets(object sock, int descriptor, object packets, object address, object known) except? 99:
    cdef iovec[64] pieces
    cdef Py_buffer *inside
    cdef int count = 0
    cdef int taken
    cdef bytes to = known[address]
    cdef const char *name = PyBytes_AS_STRING(to)
    if len(packets) > PACKETS:
        return -EINVAL
    for packet in packets:
        inside = PyMemoryView_GET_BUFFER(packet)
        pieces[count].iov_base = inside.buf
        pieces[count].iov_len = <size_t>inside.len
        count += 1
    with nogil:
        taken = ompy_send_packets(descriptor, pieces, count, name)
    return taken

cdef inline tuple receive_packets(object sock, int descriptor, object view):
    cdef Py_buffer *inside = PyMemoryView_GET_BUFFER(view)
    cdef int size = 0
    cdef char[6] sender
    cdef long count
    with nogil:
        count = ompy_receive_packets(descriptor, inside.buf, <size_t>inside.len, &size, sender)
    if count < 0:
        return count, 0, None
    return count, size, PyBytes_FromStringAndSize(sender, 6)
