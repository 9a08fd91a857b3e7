/* What this machine can do at all, in C: prints "name value" lines. For machine_limits.py.

   shared_8      one way of 8 bytes through a shared word, two processes, spinning; us
   tcp_8         one way of 8 bytes over loopback TCP, both ends polling; us
   memcpy_64k, memcpy_8m   copy in one process, bytes that were copied before; MB/s
*/

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PARTS 40

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* the lowest tenth, as the other programs take it */
static double low(double *parts) {
    qsort(parts, PARTS, sizeof *parts, by_size);
    return parts[PARTS / 10];
}

static void turn(volatile long *mine, volatile long *other, long first, int count, int leads) {
    for (long value = first; value < first + count; value++) {
        if (leads)
            __atomic_store_n(mine, value, __ATOMIC_RELEASE);
        while (__atomic_load_n(other, __ATOMIC_ACQUIRE) < value)
            ;
        if (!leads)
            __atomic_store_n(mine, value, __ATOMIC_RELEASE);
    }
}

static void shared(void) {
    enum { COUNT = 2000 };
    long *words = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    double parts[PARTS];
    pid_t child = fork();
    for (int part = 0; part < PARTS; part++) {
        double begin = now();
        turn(words + (child ? 0 : 64), words + (child ? 64 : 0), 1 + (long)part * COUNT, COUNT, child != 0);
        parts[part] = (now() - begin) / COUNT / 2;
    }
    if (!child)
        _exit(0);
    wait(0);
    printf("shared_8 %.4f\n", low(parts) * 1e6);
}

static void move(int fd, char *bytes, size_t size, int sends) {
    while (size) {
        ssize_t done = sends ? send(fd, bytes, size, 0) : recv(fd, bytes, size, 0);
        if (done > 0)
            bytes += done, size -= done;
    }
}

static void tcp(void) {
    enum { COUNT = 300 };
    struct sockaddr_in where = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof where;
    int door = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    if (bind(door, (void *)&where, sizeof where) || listen(door, 1) || getsockname(door, (void *)&where, &length))
        exit(1);
    pid_t child = fork();
    int fd = child ? accept(door, 0, 0) : socket(AF_INET, SOCK_STREAM, 0);
    if (!child && connect(fd, (void *)&where, sizeof where))
        _exit(1);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    char bytes[8] = {0};
    double parts[PARTS];
    for (int part = 0; part < PARTS; part++) {
        double begin = now();
        for (int i = 0; i < COUNT; i++) {
            move(fd, bytes, 8, child != 0);
            move(fd, bytes, 8, child == 0);
        }
        parts[part] = (now() - begin) / COUNT / 2;
    }
    if (!child)
        _exit(0);
    wait(0);
    printf("tcp_8 %.4f\n", low(parts) * 1e6);
}

static void copy(const char *name, size_t size) {
    char *from = malloc(size), *to = malloc(size);
    int count = (int)((64 << 20) / size);
    double parts[PARTS];
    memset(from, 1, size);
    memset(to, 2, size);
    for (int part = 0; part < PARTS; part++) {
        double begin = now();
        for (int i = 0; i < count; i++) {
            memcpy(to, from, size);
            __asm__ volatile("" : : "r"(to) : "memory"); /* each of them is wanted */
        }
        parts[part] = (now() - begin) / count;
    }
    printf("%s %.0f\n", name, size / low(parts) / 1e6);
    free(from);
    free(to);
}

int main(void) {
    setvbuf(stdout, 0, _IONBF, 0);
    shared();
    tcp();
    copy("memcpy_64k", 64 << 10);
    copy("memcpy_8m", 8 << 20);
    return 0;
}
