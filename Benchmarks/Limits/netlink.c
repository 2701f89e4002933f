// The limit of the path monitor: one thread that reads rtnetlink(7) and keeps nothing. In the network
// namespace that it is started in:
//
//     netlink watch COUNT     reads announcements until the change with that number
//     netlink quiet COUNT     the same; COUNT is 0, which is never
//     netlink ask COUNT       the same as watch, and asks after each for the ways to everywhere
//     netlink list TIMES      lists interfaces, addresses and rules, and asks for the ways
//     netlink change COUNT    gives the IPv4 default route another gateway, over and over
//     netlink measure WARMUP SECONDS PID... [-- COMMAND...]
//
// The gateway 10.99.1.0 + N is change N, a few milliseconds after the one before. `change` prints
// "NUMBER TIME" for each, just before it asks the kernel for it; `watch` and `ask` print "ready", and
// at their end "NUMBER TIME" for each that they heard of; all times are nanoseconds of
// CLOCK_MONOTONIC. `list` prints how many nanoseconds each took. `measure` prints "CPU WAKEUPS" for each
// process, from the warm-up's end until the command has ended and the seconds have passed.
#define _GNU_SOURCE
#include "netlink.h"

#include <sys/wait.h>

#include "process.h"

enum { FIRST_GATEWAY = 0x0a630100, CHANGES = 10000, WATCHED = 8, GAP_US = 1000, GAP_SPREAD_US = 4000 };

struct change {
    unsigned number;
    uint64_t time;
};

static struct change changes[CHANGES];
static int change_count;

static void note(unsigned number, uint64_t time) {
    if (change_count < CHANGES) changes[change_count++] = (struct change){number, time};
}

static void print_changes(void) {
    for (int i = 0; i < change_count; i++) printf("%u %lu ", changes[i].number, changes[i].time);
    printf("\n");
}

// The gateway's number, of the announcement in the buffer; 0 when it is none of ours.
static unsigned announced_number(int length) {
    const struct nlmsghdr *message = (void *)buffer;
    unsigned number = 0;
    for (; NLMSG_OK(message, length); message = NLMSG_NEXT(message, length)) {
        walk(message);
        const struct rtattr *gateway = attributes[RTA_GATEWAY];
        if (message->nlmsg_type != RTM_NEWROUTE || !gateway || RTA_PAYLOAD(gateway) != 4) continue;
        number = ntohl(*(uint32_t *)RTA_DATA(gateway)) - FIRST_GATEWAY;
    }
    return number;
}

static void watch(unsigned last, bool asks) {
    int announcements = open_announcements(), questions = open_netlink();
    printf("ready\n");
    fflush(stdout);
    for (;;) {
        int length = (int)recv(announcements, buffer, sizeof buffer, 0);
        if (length < 0 && errno == ENOBUFS) {
            fprintf(stderr, "netlink: announcements were lost\n");
            continue;
        }
        if (length < 0) fail("recv");
        unsigned number = announced_number(length);
        if (asks) ask_everywhere(questions);
        if (!number) continue;
        note(number, now());
        if (number == last) return print_changes();
    }
}

static void list(int times) {
    while (times--) {
        uint64_t begun = now();
        int descriptor = open_netlink();
        list_everything(descriptor);
        close(descriptor);
        printf("%lu ", now() - begun);
    }
    printf("\n");
}

static void change(unsigned count) {
    int descriptor = open_netlink();
    struct rtmsg route = {
        .rtm_family = AF_INET, .rtm_table = RT_TABLE_MAIN, .rtm_protocol = RTPROT_BOOT,
        .rtm_type = RTN_UNICAST};
    for (unsigned number = 1; number <= count; number++) {
        usleep(GAP_US + rand() % GAP_SPREAD_US);
        uint32_t gateway = htonl(FIRST_GATEWAY + number);
        struct request change = request(
            RTM_NEWROUTE, NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE, &route, sizeof route);
        add(&change, RTA_GATEWAY, &gateway, sizeof gateway);
        note(number, now());
        ask(descriptor, &change);
    }
    print_changes();
}

static void run(char **command) {
    int child = fork(), status = 0;
    if (!child) {
        execvp(*command, command);
        fail(*command);
    }
    if (child < 0 || waitpid(child, &status, 0) < 0 || status) fail(*command);
}

static void measure(double warmup, double seconds, char **arguments) {
    static struct process_sample before[WATCHED], after[WATCHED];
    int pids[WATCHED], count = 0;
    while (*arguments && strcmp(*arguments, "--") && count < WATCHED) pids[count++] = atoi(*arguments++);
    usleep((useconds_t)(warmup * 1e6));
    for (int i = 0; i < count; i++) process_sample(pids[i], &before[i]);
    if (*arguments && arguments[1]) run(arguments + 1);
    usleep((useconds_t)(seconds * 1e6));
    for (int i = 0; i < count; i++) process_sample(pids[i], &after[i]);
    for (int i = 0; i < count; i++) {
        struct process_cost cost = process_cost_between(&before[i], &after[i]);
        printf("%lu %lu ", cost.cpu_ns, cost.wakeups);
    }
    printf("\n");
}

int main(int count, char **arguments) {
    const char *mode = count > 2 ? arguments[1] : "";
    int number = count > 2 ? atoi(arguments[2]) : 0;
    if (!strcmp(mode, "watch") || !strcmp(mode, "quiet") || !strcmp(mode, "ask")) watch(number, *mode == 'a');
    else if (!strcmp(mode, "list")) list(number);
    else if (!strcmp(mode, "change") && number < CHANGES) change(number);
    else if (!strcmp(mode, "measure") && count > 4)
        measure(atof(arguments[2]), atof(arguments[3]), arguments + 4);
    else {
        fprintf(stderr, "usage: netlink watch|quiet|ask|list|change COUNT\n"
                        "       netlink measure WARMUP SECONDS PID... [-- COMMAND...]\n");
        return 2;
    }
    return 0;
}
