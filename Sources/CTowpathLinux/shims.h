// The Linux of Towpath: what Swift's Glibc module does not import (epoll, eventfd, accept4, the
// mmsg calls, macros), and each system call that blocks or fails as a function that returns its
// result or -errno. EINTR is retried here and nowhere else: a signal never reaches Swift.
//
// _GNU_SOURCE is not defined here: it changes fd_set, and the module then clashes with Glibc's.
#ifndef CTOWPATHLINUX_SHIMS_H
#define CTOWPATHLINUX_SHIMS_H

#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// Declared by glibc only under _GNU_SOURCE.
extern int accept4(int, struct sockaddr *, socklen_t *, int);
struct shim_mmsghdr { struct msghdr msg_hdr; unsigned int msg_len; };
extern int shim_raw_recvmmsg(int, struct shim_mmsghdr *, unsigned int, int, struct timespec *) __asm__("recvmmsg");
extern int shim_raw_sendmmsg(int, struct shim_mmsghdr *, unsigned int, int) __asm__("sendmmsg");
extern int shim_raw_sched_getaffinity(int, size_t, void *) __asm__("sched_getaffinity");
extern int setns(int, int);
extern int shim_raw_setname(pthread_t, const char *) __asm__("pthread_setname_np");

#define SHIM_RETRY(call) ({ long shim_r; do { shim_r = (long)(call); } while (shim_r < 0 && errno == EINTR); shim_r < 0 ? -(long)errno : shim_r; })
#define SHIM_ONCE(call) ({ long shim_r = (long)(call); shim_r < 0 ? -(long)errno : shim_r; })

static inline int shim_errno(void) { return errno; }

// ---- descriptors
// close(2) is never retried: on Linux the number is free after EINTR and may be another thread's.
static inline long shim_close(int fd) { return SHIM_ONCE(close(fd)); }
static inline long shim_dup(int fd) { return SHIM_RETRY(fcntl(fd, F_DUPFD_CLOEXEC, 0)); }
static inline long shim_set_nonblocking_cloexec(int fd) {
    long flags = SHIM_RETRY(fcntl(fd, F_GETFL));
    if (flags < 0) return flags;
    if (!(flags & O_NONBLOCK)) { long r = SHIM_RETRY(fcntl(fd, F_SETFL, (int)flags | O_NONBLOCK)); if (r < 0) return r; }
    return SHIM_RETRY(fcntl(fd, F_SETFD, FD_CLOEXEC));
}
static inline long shim_set_cloexec(int fd) { return SHIM_RETRY(fcntl(fd, F_SETFD, FD_CLOEXEC)); }
static inline long shim_open_read(const char *path) { return SHIM_RETRY(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)); }
static inline long shim_read(int fd, void *p, size_t n) { return SHIM_RETRY(read(fd, p, n)); }
static inline long shim_pread(int fd, void *p, size_t n, off_t at) { return SHIM_RETRY(pread(fd, p, n, at)); }
static inline long shim_file_size(int fd) { struct stat s; long r = SHIM_RETRY(fstat(fd, &s)); return r < 0 ? r : (long)s.st_size; }
static inline int shim_is_regular(int fd) { struct stat s; return fstat(fd, &s) == 0 && S_ISREG(s.st_mode); }

// ---- epoll(7), eventfd(2)
static inline long shim_epoll_create(void) { return SHIM_ONCE(epoll_create1(EPOLL_CLOEXEC)); }
static inline long shim_epoll_ctl(int ep, int op, int fd, uint32_t events, uint64_t token) {
    struct epoll_event e = { .events = events, .data = { .u64 = token } };
    return SHIM_ONCE(epoll_ctl(ep, op, fd, &e));
}
// EINTR is reported: the loop recomputes its timeout and waits again.
static inline long shim_epoll_wait(int ep, struct epoll_event *e, int n, int ms) { return SHIM_ONCE(epoll_wait(ep, e, n, ms)); }
static inline uint64_t shim_epoll_token(const struct epoll_event *e) { return e->data.u64; }
static inline long shim_eventfd(void) { return SHIM_ONCE(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)); }
static inline void shim_eventfd_signal(int fd) { uint64_t one = 1; (void)SHIM_RETRY(write(fd, &one, sizeof one)); }

// EPOLL* are enum constants or casts that Swift does not import uniformly.
static const uint32_t SHIM_EPOLLIN = EPOLLIN, SHIM_EPOLLOUT = EPOLLOUT, SHIM_EPOLLRDHUP = EPOLLRDHUP,
                      SHIM_EPOLLHUP = EPOLLHUP, SHIM_EPOLLPRI = EPOLLPRI, SHIM_EPOLLERR = EPOLLERR, SHIM_EPOLLET = EPOLLET;

// ---- sockets. MSG_NOSIGNAL everywhere: a peer that went away is an error, never a signal.
static inline long shim_socket(int domain, int type, int protocol) { return SHIM_ONCE(socket(domain, type | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol)); }
static inline long shim_socketpair(int type, int fds[2]) { return SHIM_ONCE(socketpair(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds)); }
static inline long shim_bind(int fd, const struct sockaddr_storage *a, socklen_t n) { return SHIM_ONCE(bind(fd, (const struct sockaddr *)a, n)); }
static inline long shim_listen(int fd, int backlog) { return SHIM_ONCE(listen(fd, backlog)); }
// connect(2) after EINTR goes on in the background, which is what EINPROGRESS means.
static inline long shim_connect(int fd, const struct sockaddr_storage *a, socklen_t n) {
    long r = SHIM_ONCE(connect(fd, (const struct sockaddr *)a, n));
    return r == -EINTR ? -EINPROGRESS : r;
}
static inline long shim_accept(int fd, struct sockaddr_storage *a, socklen_t *n) { return SHIM_RETRY(accept4(fd, (struct sockaddr *)a, n, SOCK_CLOEXEC | SOCK_NONBLOCK)); }
static inline long shim_recv(int fd, void *p, size_t n) { return SHIM_RETRY(recv(fd, p, n, 0)); }
static inline long shim_send(int fd, const void *p, size_t n) { return SHIM_RETRY(send(fd, p, n, MSG_NOSIGNAL)); }
static inline long shim_sendv(int fd, struct iovec *v, size_t count) {
    struct msghdr m = { .msg_iov = v, .msg_iovlen = count };
    return SHIM_RETRY(sendmsg(fd, &m, MSG_NOSIGNAL));
}
static inline long shim_sendmsg(int fd, const struct msghdr *m) { return SHIM_RETRY(sendmsg(fd, m, MSG_NOSIGNAL)); }
static inline long shim_recvmsg(int fd, struct msghdr *m) { return SHIM_RETRY(recvmsg(fd, m, MSG_CMSG_CLOEXEC)); }
static inline long shim_recvmmsg(int fd, struct shim_mmsghdr *m, unsigned n) { return SHIM_RETRY(shim_raw_recvmmsg(fd, m, n, MSG_CMSG_CLOEXEC, NULL)); }
static inline long shim_sendmmsg(int fd, struct shim_mmsghdr *m, unsigned n) { return SHIM_RETRY(shim_raw_sendmmsg(fd, m, n, MSG_NOSIGNAL)); }
// sendfile(2) has no MSG_NOSIGNAL: its callers block SIGPIPE (the blocking pool does).
static inline long shim_sendfile(int out, int in, off_t *offset, size_t n) { return SHIM_RETRY(sendfile(out, in, offset, n)); }
static inline long shim_shutdown(int fd, int how) { return SHIM_ONCE(shutdown(fd, how)); }
static inline long shim_getsockname(int fd, struct sockaddr_storage *a, socklen_t *n) { return SHIM_ONCE(getsockname(fd, (struct sockaddr *)a, n)); }
static inline long shim_getpeername(int fd, struct sockaddr_storage *a, socklen_t *n) { return SHIM_ONCE(getpeername(fd, (struct sockaddr *)a, n)); }
static inline long shim_setsockopt(int fd, int level, int name, const void *p, socklen_t n) { return SHIM_ONCE(setsockopt(fd, level, name, p, n)); }
static inline long shim_getsockopt(int fd, int level, int name, void *p, socklen_t *n) { return SHIM_ONCE(getsockopt(fd, level, name, p, n)); }
static inline long shim_ioctl_int(int fd, unsigned long request) { int v = 0; long r = SHIM_RETRY(ioctl(fd, request, &v)); return r < 0 ? r : v; }
static const unsigned long SHIM_SIOCINQ = FIONREAD, SHIM_SIOCOUTQ = TIOCOUTQ;
// poll(2) for the blocking pool's threads only.
static inline long shim_poll_one(int fd, short events, int ms) { struct pollfd p = { .fd = fd, .events = events }; long r = SHIM_RETRY(poll(&p, 1, ms)); return r <= 0 ? r : p.revents; }

// A Unix listener's file. The mode of a socket before bind(2) becomes its file's, less the umask.
static inline long shim_fchmod(int fd, uint32_t mode) { return SHIM_ONCE(fchmod(fd, (mode_t)mode)); }
static inline long shim_chmod(const char *path, uint32_t mode) { return SHIM_ONCE(chmod(path, (mode_t)mode)); }
static inline long shim_unlink(const char *path) { return SHIM_ONCE(unlink(path)); }
struct shim_identity { uint64_t device, inode; int is_socket; };
static inline long shim_identify(const char *path, struct shim_identity *out) {
    struct stat s;
    long r = SHIM_ONCE(lstat(path, &s));
    if (r == 0) { out->device = s.st_dev; out->inode = s.st_ino; out->is_socket = S_ISSOCK(s.st_mode); }
    return r;
}

// ---- control messages, cmsg(3)
static inline struct cmsghdr *shim_CMSG_FIRSTHDR(const struct msghdr *m) { return CMSG_FIRSTHDR(m); }
static inline struct cmsghdr *shim_CMSG_NXTHDR(struct msghdr *m, struct cmsghdr *c) { return CMSG_NXTHDR(m, c); }
static inline void *shim_CMSG_DATA(struct cmsghdr *c) { return CMSG_DATA(c); }
static inline size_t shim_CMSG_SPACE(size_t n) { return CMSG_SPACE(n); }
static inline size_t shim_CMSG_LEN(size_t n) { return CMSG_LEN(n); }

// ---- constants that the headers hide without _GNU_SOURCE, or spell as enums (uapi, stable)
static const int32_t
    SHIM_MSG_TRUNC = MSG_TRUNC, SHIM_SOCK_STREAM = SOCK_STREAM, SHIM_SOCK_DGRAM = SOCK_DGRAM,
    SHIM_IPPROTO_MPTCP = 262,
    SHIM_SO_REUSEPORT = 15, SHIM_SO_PEERCRED = 17, SHIM_SO_BINDTODEVICE = 25,
    SHIM_SO_TIMESTAMPNS = 35, SHIM_SO_MARK = 36, SHIM_SO_PROTOCOL = 38, SHIM_SO_DOMAIN = 39,
    SHIM_SO_RXQ_OVFL = 40, SHIM_SO_NO_CHECK = 11, SHIM_SO_PRIORITY = 12,
    SHIM_TCP_NOTSENT_LOWAT = 25, SHIM_TCP_FASTOPEN = 23, SHIM_TCP_FASTOPEN_CONNECT = 30,
    SHIM_TCP_USER_TIMEOUT = 18, SHIM_TCP_INFO = 11,
    SHIM_SCM_RIGHTS = SCM_RIGHTS, SHIM_UDP_SEGMENT = 103, SHIM_UDP_GRO = 104, SHIM_SOL_UDP = 17,
    SHIM_IP_MTU_DISCOVER = 10, SHIM_IP_MTU = 14, SHIM_IP_PKTINFO = 8, SHIM_IP_RECVTOS = 13,
    SHIM_IP_TOS = 1, SHIM_IP_TTL = 2, SHIM_IP_MULTICAST_ALL = 49, SHIM_IP_BIND_ADDRESS_NO_PORT = 24,
    SHIM_IPV6_MTU_DISCOVER = 23, SHIM_IPV6_MTU = 24, SHIM_IPV6_RECVPKTINFO = 49, SHIM_IPV6_PKTINFO = 50,
    SHIM_IPV6_RECVTCLASS = 66, SHIM_IPV6_TCLASS = 67, SHIM_IPV6_UNICAST_HOPS = 16, SHIM_IPV6_V6ONLY = 26,
    SHIM_IP_MULTICAST_TTL = 33, SHIM_IP_MULTICAST_LOOP = 34,
    SHIM_IPV6_MULTICAST_IF = 17, SHIM_IPV6_MULTICAST_HOPS = 18, SHIM_IPV6_MULTICAST_LOOP = 19,
    SHIM_IPV6_MULTICAST_ALL = 29,
    SHIM_PMTUDISC_DONT = 0, SHIM_PMTUDISC_WANT = 1, SHIM_PMTUDISC_DO = 2, SHIM_PMTUDISC_PROBE = 3;
struct shim_in_pktinfo { int ifindex; struct in_addr spec_dst, addr; };
struct shim_in6_pktinfo { struct in6_addr addr; unsigned int ifindex; };
struct shim_ucred { pid_t pid; uid_t uid; gid_t gid; };

// struct tcp_info of <linux/tcp.h>, to the fields used here; the kernel only appends to it, and
// <netinet/tcp.h> has an older prefix under the same name.
struct shim_tcp_info {
    uint8_t state, ca_state, retransmits, probes, backoff, options, wscale, flags;
    uint32_t rto, ato, snd_mss, rcv_mss, unacked, sacked, lost, retrans, fackets;
    uint32_t last_data_sent, last_ack_sent, last_data_recv, last_ack_recv;
    uint32_t pmtu, rcv_ssthresh, rtt, rttvar, snd_ssthresh, snd_cwnd, advmss, reordering;
    uint32_t rcv_rtt, rcv_space, total_retrans;
    uint64_t pacing_rate, max_pacing_rate, bytes_acked, bytes_received;
    uint32_t segs_out, segs_in, notsent_bytes, min_rtt, data_segs_in, data_segs_out;
    uint64_t delivery_rate, busy_time, rwnd_limited, sndbuf_limited;
    uint32_t delivered, delivered_ce;
    uint64_t bytes_sent, bytes_retrans;
    uint32_t dsack_dups, reord_seen, rcv_ooopack, snd_wnd;
};

// ---- threads
static inline void shim_block_all_signals(void) { sigset_t s; sigfillset(&s); pthread_sigmask(SIG_SETMASK, &s, NULL); }
// pthread_setname_np(3) refuses more than 15 bytes: cut there.
static inline void shim_name_thread(const char *name) {
    char cut[16] = { 0 };
    strncpy(cut, name, sizeof cut - 1);
    (void)shim_raw_setname(pthread_self(), cut);
}
static inline uint64_t shim_now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec; }
static inline int shim_affinity_count(void) {
    unsigned long mask[1024 / (8 * sizeof(unsigned long)) * 8];
    memset(mask, 0, sizeof mask);
    if (shim_raw_sched_getaffinity(0, sizeof mask, mask) < 0) return 1;
    int n = 0;
    for (size_t i = 0; i < sizeof mask / sizeof mask[0]; i++) n += __builtin_popcountl(mask[i]);
    return n > 0 ? n : 1;
}

// sockaddr_storage <-> the families, without pointer casts in Swift.
static inline void shim_make_in(struct sockaddr_storage *s, uint32_t host_order, uint16_t port) {
    struct sockaddr_in *a = (struct sockaddr_in *)s;
    memset(s, 0, sizeof *s);
    a->sin_family = AF_INET; a->sin_port = htons(port); a->sin_addr.s_addr = htonl(host_order);
}
static inline void shim_make_in6(struct sockaddr_storage *s, uint64_t high, uint64_t low, uint32_t scope, uint16_t port) {
    struct sockaddr_in6 *a = (struct sockaddr_in6 *)s;
    memset(s, 0, sizeof *s);
    a->sin6_family = AF_INET6; a->sin6_port = htons(port); a->sin6_scope_id = scope;
    high = __builtin_bswap64(high); low = __builtin_bswap64(low);
    memcpy(a->sin6_addr.s6_addr, &high, 8); memcpy(a->sin6_addr.s6_addr + 8, &low, 8);
}
// 0 = it does not fit. An abstract name (unix(7)) begins with a NUL byte and has no terminator.
static inline socklen_t shim_make_un(struct sockaddr_storage *s, const uint8_t *name, size_t n, int abstract) {
    struct sockaddr_un *a = (struct sockaddr_un *)s;
    memset(s, 0, sizeof *s);
    if (n == 0 || n + 1 > sizeof a->sun_path) return 0;
    a->sun_family = AF_UNIX;
    memcpy(a->sun_path + (abstract ? 1 : 0), name, n);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + 1);
}
static inline uint16_t shim_port(const struct sockaddr_storage *s) {
    if (s->ss_family == AF_INET) return ntohs(((const struct sockaddr_in *)s)->sin_port);
    if (s->ss_family == AF_INET6) return ntohs(((const struct sockaddr_in6 *)s)->sin6_port);
    return 0;
}
static inline uint32_t shim_in_address(const struct sockaddr_storage *s) { return ntohl(((const struct sockaddr_in *)s)->sin_addr.s_addr); }
static inline uint64_t shim_in6_high(const struct sockaddr_storage *s) { uint64_t v; memcpy(&v, ((const struct sockaddr_in6 *)s)->sin6_addr.s6_addr, 8); return __builtin_bswap64(v); }
static inline uint64_t shim_in6_low(const struct sockaddr_storage *s) { uint64_t v; memcpy(&v, ((const struct sockaddr_in6 *)s)->sin6_addr.s6_addr + 8, 8); return __builtin_bswap64(v); }
static inline uint32_t shim_in6_scope(const struct sockaddr_storage *s) { return ((const struct sockaddr_in6 *)s)->sin6_scope_id; }
static inline const uint8_t *shim_un_path(const struct sockaddr_storage *s) { return (const uint8_t *)((const struct sockaddr_un *)s)->sun_path; }

#endif
