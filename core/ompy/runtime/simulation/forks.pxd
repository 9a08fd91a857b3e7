# The functions of forks.py, in C, for the modules that are compiled. Keep the two alike.

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.errno cimport errno

cdef extern from * nogil:
    """
    #include <arpa/inet.h>
    #include <errno.h>
    #include <fcntl.h>
    #include <signal.h>
    #include <string.h>
    #include <sys/prctl.h>
    #include <sys/socket.h>
    #include <unistd.h>
    #define OMPY_QUESTION 64
    static struct sigaction ompy_child_before;
    static int ompy_ignores;
    static CYTHON_UNUSED int ompy_send_end(int line, pid_t process, int end) {
        unsigned int number = htonl((unsigned int)process);
        struct iovec piece = {&number, sizeof(number)};
        union {
            struct cmsghdr aligned;
            char room[CMSG_SPACE(sizeof(int))];
        } note;
        struct msghdr message;
        struct cmsghdr *head;
        memset(&message, 0, sizeof(message));
        memset(&note, 0, sizeof(note));
        message.msg_iov = &piece;
        message.msg_iovlen = 1;
        message.msg_control = note.room;
        message.msg_controllen = sizeof(note.room);
        head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(head), &end, sizeof(int));
        return sendmsg(line, &message, MSG_NOSIGNAL) < 0 ? -1 : 0;
    }
    static CYTHON_UNUSED int ompy_fork_once(int line) {
        int ends[2];
        pid_t process;
        int problem;
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) return -1;
        process = fork();
        if (process == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
            sigaction(SIGCHLD, &ompy_child_before, NULL);
            ompy_ignores = 0;
            dup3(ends[0], line, O_CLOEXEC);
            close(ends[0]);
            close(ends[1]);
            return 0;
        }
        problem = errno;
        if (process > 0) ompy_send_end(line, process, ends[1]);
        close(ends[0]);
        close(ends[1]);
        errno = problem;
        return process < 0 ? -1 : 1;
    }
    static CYTHON_UNUSED int ompy_fork_when_asked(int line, const char *asked, size_t size, long long most) {
        char here[OMPY_QUESTION];
        ssize_t came;
        long long made = 0;
        int done;
        if (!ompy_ignores) {
            struct sigaction ignored;
            memset(&ignored, 0, sizeof(ignored));
            ignored.sa_handler = SIG_IGN;
            sigaction(SIGCHLD, &ignored, &ompy_child_before);
            ompy_ignores = 1;
        }
        for (;;) {
            if ((done = ompy_fork_once(line)) <= 0) return done;
            if (++made == most) return 2;
            came = recv(line, here, size < sizeof(here) ? size : sizeof(here), MSG_PEEK);
            if (came != (ssize_t)size || memcmp(here, asked, size) != 0) return 1;
            recv(line, here, size, 0);
        }
    }
    """
    int ompy_fork_when_asked(int, const char *, size_t, long long)

cdef inline long long fork_when_asked(int line, bytes asked, long long most) except? -99:
    cdef int found = ompy_fork_when_asked(line, PyBytes_AS_STRING(asked), <size_t>PyBytes_GET_SIZE(asked), most)
    if found < 0:
        raise OSError(errno, "no room for one more process")
    return found
