// The shims of the host's network: netlink, namespaces, interfaces, multicast, and files that change.
#ifndef CTOWPATHLINUX_NETWORK_H
#define CTOWPATHLINUX_NETWORK_H

#include "shims.h"

// ---- netlink(7), rtnetlink(7): NETLINK_ROUTE
static inline long shim_netlink_socket(void) { return SHIM_ONCE(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE)); }
// Port 0: the kernel chooses, since another socket of the process may have the process's number.
static inline long shim_netlink_bind(int fd) {
    struct sockaddr_nl a = { .nl_family = AF_NETLINK };
    return SHIM_ONCE(bind(fd, (struct sockaddr *)&a, sizeof a));
}
static inline long shim_netlink_option(int fd, int option, int value) {
    enum { sol_netlink = 270 };
    return SHIM_ONCE(setsockopt(fd, sol_netlink, option, &value, sizeof value));
}
static inline long shim_netlink_send(int fd, const void *p, size_t n) {
    struct sockaddr_nl a = { .nl_family = AF_NETLINK };
    return SHIM_RETRY(sendto(fd, p, n, 0, (struct sockaddr *)&a, sizeof a));
}
// One datagram; *is_kernel tells whether it is the kernel's, since any process may send one.
static inline long shim_netlink_receive(int fd, void *p, size_t n, int *is_kernel) {
    struct sockaddr_nl a = { .nl_family = AF_NETLINK };
    struct iovec v = { p, n };
    struct msghdr m = { .msg_name = &a, .msg_namelen = sizeof a, .msg_iov = &v, .msg_iovlen = 1 };
    long r = SHIM_RETRY(recvmsg(fd, &m, 0));
    *is_kernel = a.nl_pid == 0;
    return r >= 0 && (m.msg_flags & MSG_TRUNC) ? -EMSGSIZE : r;
}
static const int32_t SHIM_NETLINK_ADD_MEMBERSHIP = NETLINK_ADD_MEMBERSHIP,
    SHIM_NETLINK_EXT_ACK = 11, SHIM_NETLINK_GET_STRICT_CHK = 12;
// CLONE_NEWNET of sched.h, hidden without _GNU_SOURCE.
static inline long shim_enter_network_namespace(int fd) { return SHIM_ONCE(setns(fd, 0x40000000)); }

// ---- inotify(7), symlinks
static inline long shim_inotify(void) { return SHIM_ONCE(inotify_init1(IN_CLOEXEC | IN_NONBLOCK)); }
static inline long shim_inotify_watch(int fd, const char *path) {
    return SHIM_ONCE(inotify_add_watch(fd, path, IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_CREATE | IN_DELETE | IN_ONLYDIR));
}
static inline long shim_readlink(const char *path, char *p, size_t n) { return SHIM_ONCE(readlink(path, p, n)); }
static inline int shim_exists(const char *path) { return access(path, F_OK) == 0; }

// ---- netdevice(7), where netlink is not to be had
struct shim_interface { uint32_t index, flags, mtu; };
static inline long shim_interface(int fd, const char *name, struct shim_interface *out) {
    struct ifreq r;
    memset(&r, 0, sizeof r);
    strncpy(r.ifr_name, name, IFNAMSIZ - 1);
    if (ioctl(fd, SIOCGIFINDEX, &r) < 0) return -errno;
    out->index = (uint32_t)r.ifr_ifindex;
    if (ioctl(fd, SIOCGIFFLAGS, &r) < 0) return -errno;
    out->flags = (uint16_t)r.ifr_flags;
    if (ioctl(fd, SIOCGIFMTU, &r) < 0) return -errno;
    out->mtu = (uint32_t)r.ifr_mtu;
    return 0;
}
// The IPv4 addresses, in network order, and the labels they bear; as many as there is room for.
struct shim_ipv4_address { char label[IFNAMSIZ]; uint32_t address; };
static inline long shim_ipv4_addresses(int fd, struct shim_ipv4_address *out, size_t room) {
    struct ifreq list[512];
    struct ifconf all = { .ifc_len = sizeof list, .ifc_req = list };
    if (ioctl(fd, SIOCGIFCONF, &all) < 0) return -errno;
    size_t count = (size_t)all.ifc_len / sizeof list[0];
    if (count > room) count = room;
    for (size_t i = 0; i < count; i++) {
        memcpy(out[i].label, list[i].ifr_name, IFNAMSIZ);
        out[i].address = ((struct sockaddr_in *)&list[i].ifr_addr)->sin_addr.s_addr;
    }
    return (long)count;
}

// ---- multicast, RFC 3678. A null source joins for any sender.
static inline long shim_join_group(int fd, int level, uint32_t interface, const struct sockaddr_storage *group, const struct sockaddr_storage *source) {
    if (!source) {
        struct group_req any = { .gr_interface = interface, .gr_group = *group };
        return SHIM_ONCE(setsockopt(fd, level, MCAST_JOIN_GROUP, &any, sizeof any));
    }
    struct group_source_req one = { .gsr_interface = interface, .gsr_group = *group, .gsr_source = *source };
    return SHIM_ONCE(setsockopt(fd, level, MCAST_JOIN_SOURCE_GROUP, &one, sizeof one));
}
static inline long shim_ip_multicast_if(int fd, uint32_t interface) {
    struct ip_mreqn r = { .imr_ifindex = (int)interface };
    return SHIM_ONCE(setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &r, sizeof r));
}
// The indices of the interfaces that are up and take part in multicast, at most `room`; how many.
static inline long shim_multicast_interfaces(uint32_t *indices, size_t room) {
    const unsigned wanted = IFF_UP | IFF_MULTICAST;
    struct ifaddrs *list;
    long r = SHIM_ONCE(getifaddrs(&list)), count = 0;
    if (r < 0) return r;
    for (struct ifaddrs *i = list; i; i = i->ifa_next) {
        // One entry of this family per interface.
        if (!i->ifa_addr || i->ifa_addr->sa_family != AF_PACKET || (i->ifa_flags & wanted) != wanted) continue;
        uint32_t index = if_nametoindex(i->ifa_name);
        if (index && (size_t)count < room) indices[count++] = index;
    }
    freeifaddrs(list);
    return count;
}

#endif
