// Requests to the kernel over rtnetlink(7), and the walk through its answers.
#pragma once
#include <arpa/inet.h>
#include <errno.h>
#include <linux/fib_rules.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { ATTRIBUTES = 256, SKIP_STATISTICS = 8, FIB_MATCH = 0x2000, LOOKUP_TABLE = 0x1000 };

struct request {
    struct nlmsghdr header;
    unsigned char body[112];
};

static unsigned char buffer[64 * 1024];
static const struct rtattr *attributes[ATTRIBUTES]; // of the message walked last, by type

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void set_option(int descriptor, int level, int option, int value) {
    if (setsockopt(descriptor, level, option, &value, sizeof value) < 0) fail("setsockopt");
}

static int open_netlink(void) {
    int descriptor = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    struct sockaddr_nl address = {.nl_family = AF_NETLINK};
    if (descriptor < 0) fail("socket");
    if (bind(descriptor, (struct sockaddr *)&address, sizeof address) < 0) fail("bind");
    set_option(descriptor, SOL_NETLINK, NETLINK_GET_STRICT_CHK, 1);
    return descriptor;
}

static int open_announcements(void) {
    static const int groups[] = {
        RTNLGRP_LINK, RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV4_ROUTE, RTNLGRP_IPV4_RULE,
        RTNLGRP_IPV6_IFADDR, RTNLGRP_IPV6_ROUTE, RTNLGRP_IPV6_RULE, RTNLGRP_NEXTHOP};
    int descriptor = open_netlink();
    set_option(descriptor, SOL_SOCKET, SO_RCVBUF, 1 << 20);
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
        set_option(descriptor, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, groups[i]);
    return descriptor;
}

static struct request request(uint16_t type, uint16_t flags, const void *body, size_t length) {
    struct request request = {
        .header = {.nlmsg_len = NLMSG_LENGTH(length), .nlmsg_type = type,
            .nlmsg_flags = NLM_F_REQUEST | flags}};
    memcpy(request.body, body, length);
    return request;
}

static void add(struct request *request, uint16_t type, const void *value, size_t length) {
    struct rtattr *attribute = (void *)((char *)request + NLMSG_ALIGN(request->header.nlmsg_len));
    attribute->rta_type = type;
    attribute->rta_len = RTA_LENGTH(length);
    memcpy(RTA_DATA(attribute), value, length);
    request->header.nlmsg_len += RTA_SPACE(length);
}

static size_t body_size(uint16_t type) {
    if (type <= RTM_SETLINK) return sizeof(struct ifinfomsg);
    if (type <= RTM_GETADDR) return sizeof(struct ifaddrmsg);
    return type <= RTM_GETROUTE ? sizeof(struct rtmsg) : sizeof(struct fib_rule_hdr);
}

static void walk(const struct nlmsghdr *message) {
    size_t body = body_size(message->nlmsg_type);
    memset(attributes, 0, sizeof attributes);
    const struct rtattr *attribute = (void *)((char *)NLMSG_DATA(message) + NLMSG_ALIGN(body));
    int length = (int)NLMSG_PAYLOAD(message, NLMSG_ALIGN(body));
    for (; RTA_OK(attribute, length); attribute = RTA_NEXT(attribute, length))
        if ((attribute->rta_type & NLA_TYPE_MASK) < ATTRIBUTES)
            attributes[attribute->rta_type & NLA_TYPE_MASK] = attribute;
}

// Sends a request and walks through the whole answer. An error is an answer too: no way there.
static void ask(int descriptor, const struct request *request) {
    if (send(descriptor, request, request->header.nlmsg_len, 0) < 0) fail("send");
    for (;;) {
        int length = (int)recv(descriptor, buffer, sizeof buffer, 0);
        if (length < 0) fail("recv");
        const struct nlmsghdr *message = (void *)buffer;
        for (; NLMSG_OK(message, length); message = NLMSG_NEXT(message, length)) {
            if (message->nlmsg_type == NLMSG_DONE || message->nlmsg_type == NLMSG_ERROR) return;
            walk(message);
            if (!(message->nlmsg_flags & NLM_F_MULTI)) return;
        }
    }
}

// Whether the way there is asked for as the table has it, or as a packet would take it.
static void ask_way(int descriptor, const char *destination, bool table) {
    unsigned char address[16];
    bool six = strchr(destination, ':');
    inet_pton(six ? AF_INET6 : AF_INET, destination, address);
    struct rtmsg body = {
        .rtm_family = six ? AF_INET6 : AF_INET, .rtm_dst_len = six ? 128 : 32,
        .rtm_flags = (table ? FIB_MATCH : 0) | (six ? 0 : LOOKUP_TABLE)};
    struct request way = request(RTM_GETROUTE, 0, &body, sizeof body);
    add(&way, RTA_DST, address, six ? 16 : 4);
    ask(descriptor, &way);
}

static void list_routes(int descriptor, int family) {
    struct rtmsg body = {.rtm_family = family, .rtm_table = RT_TABLE_MAIN};
    struct request routes = request(RTM_GETROUTE, NLM_F_DUMP, &body, sizeof body);
    ask(descriptor, &routes);
}

// The ways to everywhere: the routes of both families, then what the kernel makes of them.
static void ask_everywhere(int descriptor) {
    static const char *const destinations[] = {"1.1.1.1", "2001:7fd::1"};
    list_routes(descriptor, AF_INET);
    list_routes(descriptor, AF_INET6);
    for (int i = 0; i < 2; i++)
        for (int table = 0; table < 2; table++) ask_way(descriptor, destinations[i], table);
}

static void list_rules(int descriptor, int family) {
    struct fib_rule_hdr body = {.family = family};
    struct request rules = request(RTM_GETRULE, NLM_F_DUMP, &body, sizeof body);
    ask(descriptor, &rules);
}

static void list_everything(int descriptor) {
    uint32_t mask = SKIP_STATISTICS;
    struct ifinfomsg link = {.ifi_family = AF_UNSPEC};
    struct request links = request(RTM_GETLINK, NLM_F_DUMP, &link, sizeof link);
    add(&links, IFLA_EXT_MASK, &mask, sizeof mask);
    ask(descriptor, &links);
    struct ifaddrmsg address = {.ifa_family = AF_UNSPEC};
    struct request addresses = request(RTM_GETADDR, NLM_F_DUMP, &address, sizeof address);
    ask(descriptor, &addresses);
    list_rules(descriptor, AF_INET);
    list_rules(descriptor, AF_INET6);
    ask_everywhere(descriptor);
}
