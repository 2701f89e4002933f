// The connections of load.c: how they open and end.
#pragma once
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "client.h"
#include "options.h"
#include "wsclient.h"

enum phase { SETUP, WARMUP, MEASURE, OVER };
// Fewer than a listener's backlog.
enum { PENDING_CONNECTS = 100 };

struct connection {
    int descriptor; // -1 once closed
    SSL *tls;       // none for a plain one
    struct websocket *websocket; // none for a plain one
    bool established, secured, ready; // ready for bytes: after each handshake
    uint32_t armed;          // the epoll events asked for
    size_t offset;           // into the message being sent
    uint64_t sent, answered; // messages
    uint64_t received;       // bytes
    uint64_t started;        // when the message, or the connect, was begun
};

static int epoll;
static enum phase phase = SETUP;
static struct connection *connections;
static int opened, settled, lost_connections;
static uint64_t errors;

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

// The same for WebSocket.
static int go_on_with_websocket(struct connection *connection) {
    struct websocket *websocket = connection->websocket;
    while (request[websocket->request_sent]) {
        const char *rest = request + websocket->request_sent;
        ssize_t count = stream_send(connection->descriptor, connection->tls, rest, strlen(rest));
        if (count < 0) return errno == EAGAIN ? 0 : -1; // armed for writing since the beginning
        websocket->request_sent += count;
    }
    arm(connection, EPOLLIN);
    char bytes[sizeof websocket->head];
    ssize_t count = stream_receive(connection->descriptor, connection->tls, bytes, sizeof bytes);
    if (count < 0 && errno == EAGAIN) return 0;
    if (count <= 0) return -1;
    errno = EPROTO;
    return receive_response(websocket, bytes, count);
}

// 1 once every layer stands, 0 while one waits, -1 when it failed.
static int go_on_with_handshakes(struct connection *connection) {
    if (use_tls && !connection->secured) {
        int progress = go_on_with_tls(connection);
        if (progress <= 0) return progress;
        connection->secured = true;
    }
    return use_websocket ? go_on_with_websocket(connection) : 1;
}

static void end(struct connection *connection) {
    if (connection->websocket) end_websocket(connection->websocket);
    free(connection->websocket);
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
