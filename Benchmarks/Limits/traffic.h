// The connections of load.c: how they open, send, receive and end.
#pragma once
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "client.h"
#include "histogram.h"
#include "options.h"

enum phase { SETUP, WARMUP, MEASURE, OVER };
// Fewer than a listener's backlog; and each must let the others, and the clock, have their turn.
enum {
    PENDING_CONNECTS = 100,
    EVENTS_PER_WAIT = 512,
    READS_PER_TURN = 64,
    SINK_MESSAGES_PER_TURN = 16,
};
static const uint64_t datagram_timeout = 200 * ms;

struct connection {
    int descriptor; // -1 once closed
    SSL *tls;       // none for a plain one
    bool established, ready; // ready for bytes: with TLS, after the handshake
    uint32_t armed;          // the epoll events asked for
    size_t offset;           // into the message being sent
    uint64_t sent, answered; // messages
    uint64_t received;       // bytes
    uint64_t started;        // when the message, or the connect, was begun
};

static int epoll;
static enum phase phase = SETUP;
static struct connection *connections;
static unsigned char *message, incoming[256 * 1024];
static int opened, settled, lost_connections;
static uint64_t operations, bytes, errors, lost_datagrams, finished_trips;
static struct histogram latencies;

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000 * ms + (uint64_t)time.tv_nsec;
}

static void arm(struct connection *connection, uint32_t events) {
    if (connection->armed == events) return;
    struct epoll_event event = {.events = events, .data.ptr = connection};
    int operation = connection->armed ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
    if (epoll_ctl(epoll, operation, connection->descriptor, &event) < 0) fail("epoll_ctl");
    connection->armed = events;
}

static void bind_to_spread_source(int descriptor) {
    static uint32_t next;
    uint32_t host = next % 200, network = next / 200 % 200;
    next++;
    int on = 1;
    setsockopt(descriptor, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    struct sockaddr_in source = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000101u + host + (network << 8))};
    if (bind(descriptor, (struct sockaddr *)&source, sizeof source) < 0) fail("bind");
}

static void open_connection(struct connection *connection) {
    int type = mode == UDP ? SOCK_DGRAM : SOCK_STREAM, on = 1;
    int descriptor = socket(AF_INET, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (descriptor < 0) fail("socket");
    *connection = (struct connection){.descriptor = descriptor, .started = now()};
    if (mode != UDP) setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (spread || mode == CONNECT) bind_to_spread_source(descriptor);
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons(port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    int result = connect(descriptor, (struct sockaddr *)&address, sizeof address);
    if (result < 0 && errno != EINPROGRESS) fail("connect");
    if (mode == UDP) settled++;
    arm(connection, mode == UDP ? EPOLLIN : EPOLLIN | EPOLLOUT);
}

// 1 once TLS stands, 0 while it waits, -1 when it failed.
static int go_on_with_tls(struct connection *connection) {
    ssize_t result = tls_result(connection->tls, SSL_do_handshake(connection->tls));
    if (result > 0) {
        // A session that the server did not take up.
        if (phase == MEASURE && resume && !SSL_session_reused(connection->tls)) errors++;
        return 1;
    }
    arm(connection, SSL_want_write(connection->tls) ? EPOLLIN | EPOLLOUT : EPOLLIN);
    return result < 0 && errno == EAGAIN ? 0 : -1;
}

static void end(struct connection *connection) {
    if (connection->ready && connection->tls) {
        SSL_shutdown(connection->tls);
        ERR_clear_error();
    }
    SSL_free(connection->tls);
    close(connection->descriptor);
}

static void close_connection(struct connection *connection) {
    end(connection);
    connection->descriptor = -1;
    lost_connections++;
}

static void reopen(struct connection *connection) {
    end(connection);
    open_connection(connection);
}

static void give_up(struct connection *connection, const char *why) {
    if (++errors <= 3) fprintf(stderr, "load: %s: %s\n", why, strerror(errno));
    if (errors >= 1000) exit(1);
    if (mode == CONNECT) reopen(connection);
    else close_connection(connection);
}

static bool may_begin_message(const struct connection *connection) {
    if (mode == SINK) return true;
    uint64_t in_flight = mode == STREAM && window > size ? window / size : 1;
    return connection->sent - connection->answered < in_flight;
}

// Sends what the mode allows now. False when the connection is broken.
static bool send_more(struct connection *connection) {
    for (int begun = 0; connection->offset || may_begin_message(connection);) {
        if (!connection->offset) {
            // Without an answer to wait for, epoll gives the others a turn.
            if (mode == SINK && begun++ == SINK_MESSAGES_PER_TURN) {
                arm(connection, EPOLLIN | EPOLLOUT);
                return true;
            }
            if (mode != CONNECT) connection->started = now();
        }
        ssize_t taken = stream_send(
            connection->descriptor, connection->tls, message + connection->offset,
            size - connection->offset);
        if (taken < 0 && errno != EAGAIN) return false;
        if (taken < 0) {
            arm(connection, EPOLLIN | EPOLLOUT);
            return true;
        }
        connection->offset += taken;
        if (connection->offset < size) continue;
        connection->offset = 0;
        connection->sent++;
        if (mode == SINK && phase == MEASURE) operations++, bytes += size;
    }
    arm(connection, EPOLLIN);
    return true;
}

static void check_bytes(const struct connection *connection, size_t count) {
    size_t offset = connection->received % size;
    for (size_t checked = 0; checked < count;) {
        size_t length = size - offset < count - checked ? size - offset : count - checked;
        if (memcmp(incoming + checked, message + offset, length) && errors++ < 3)
            fprintf(stderr, "load: the echo differs\n");
        checked += length;
        offset = 0;
    }
}

static void count_answers(struct connection *connection, uint64_t count) {
    connection->answered += count;
    if (phase != MEASURE || mode == SINK) return;
    operations += count;
    if (mode != STREAM) histogram_add(&latencies, now() - connection->started);
    if (trips && connection->answered == trips) finished_trips++;
}

// False when the connection is broken.
static bool receive_answers(struct connection *connection) {
    for (int i = 0; i < READS_PER_TURN; i++) {
        ssize_t count = stream_receive(
            connection->descriptor, connection->tls, incoming, sizeof incoming);
        if (count < 0 && errno == EAGAIN) return true;
        if (count == 0) errno = ECONNRESET;
        if (count <= 0) return false;
        if (verify) check_bytes(connection, count);
        if (phase == MEASURE && mode != SINK) bytes += count;
        connection->received += count;
        uint64_t answers = connection->received / size - connection->answered;
        if (answers) {
            count_answers(connection, answers);
            if (mode == IDLE) settled++;
            if (mode == CONNECT) {
                reopen(connection);
                return true;
            }
            bool more = mode == STREAM || (mode == PINGPONG && connection->answered != trips);
            if (more && !send_more(connection)) return false;
        }
        if (!connection->tls && count < (ssize_t)sizeof incoming) return true;
    }
    return true;
}

static void send_datagram(struct connection *connection) {
    uint32_t sequence = (uint32_t)++connection->sent;
    memcpy(message, &sequence, sizeof sequence);
    connection->started = now();
    if (send(connection->descriptor, message, size, 0) < 0) errors++;
}

static void receive_datagrams(struct connection *connection) {
    ssize_t count;
    while ((count = recv(connection->descriptor, incoming, sizeof incoming, 0)) >= 0) {
        uint32_t sequence;
        memcpy(&sequence, incoming, sizeof sequence);
        if (count != (ssize_t)size) errors++;
        else if (sequence == (uint32_t)connection->sent) {
            if (verify && memcmp(incoming + 4, message + 4, size - 4)) errors++;
            if (phase == MEASURE) bytes += size;
            count_answers(connection, 1);
            send_datagram(connection);
            return;
        }
    }
    if (errno != EAGAIN) errors++;
}

static void resend_lost_datagrams(uint64_t time) {
    static uint64_t last;
    if (time - last < datagram_timeout / 4) return;
    last = time;
    for (int i = 0; i < connection_count; i++) {
        if (time - connections[i].started < datagram_timeout) continue;
        lost_datagrams++;
        send_datagram(&connections[i]);
    }
}

static void handle(struct connection *connection, uint32_t events) {
    if (connection->descriptor < 0) return;
    if (mode == UDP) {
        receive_datagrams(connection);
        return;
    }
    if (!connection->established) {
        int error = 0;
        socklen_t length = sizeof error;
        getsockopt(connection->descriptor, SOL_SOCKET, SO_ERROR, &error, &length);
        errno = error;
        if (error) {
            give_up(connection, "connect");
            return;
        }
        if (!(events & EPOLLOUT)) return;
        connection->established = true;
        if (use_tls && !(connection->tls = tls_client(connection->descriptor))) fail("SSL_new");
    }
    if (!connection->ready) {
        int progress = use_tls ? go_on_with_tls(connection) : 1;
        if (progress < 0) give_up(connection, "handshake");
        if (progress <= 0) return;
        connection->ready = true;
        events |= EPOLLOUT;
        if (mode != IDLE) settled++;
        if (phase == SETUP && mode != IDLE) {
            arm(connection, EPOLLIN);
            return;
        }
    }
    bool alive = !(events & EPOLLOUT) || send_more(connection);
    if (alive && events & (EPOLLIN | EPOLLHUP | EPOLLERR)) alive = receive_answers(connection);
    if (!alive) give_up(connection, "connection lost");
}

static void begin_traffic(void) {
    for (int i = 0; i < connection_count; i++) {
        struct connection *connection = &connections[i];
        if (connection->descriptor < 0) continue;
        if (mode == UDP) send_datagram(connection);
        else if (mode == PINGPONG || mode == STREAM || mode == SINK) {
            if (!send_more(connection)) give_up(connection, "send");
        }
    }
}
