// The limit: a TCP and UDP echo server on raw epoll, one thread, loopback only.
//
//     echo [--tcp PORT] [--udp PORT] [--sink] [--ws] [--tls CERTIFICATE KEY]
//
// Prints "tcp PORT udp PORT" once both are bound. Port 0, the default, lets the kernel choose.
// --sink reads TCP without answering; --ws speaks WebSocket over it; with --tls, what is TCP goes
// through TLS.
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "answer.h"
#include "tls.h"

// Work per wake-up is bounded, so that one busy descriptor cannot starve the others.
enum { ACCEPTS_PER_TURN = 64, DATAGRAMS_PER_TURN = 32, READS_PER_TURN = 16, EVENTS_PER_WAIT = 256 };

struct connection {
    int descriptor;
    SSL *tls;              // none for a plain one
    struct websocket websocket;
    unsigned char *unsent; // what the kernel has not taken yet; nothing is read meanwhile
    size_t unsent_offset, unsent_length;
};

static int epoll;
static bool sink, speaks_websocket;
static SSL_CTX *secure; // none without --tls
static unsigned char buffer[64 * 1024];

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static void watch(int operation, int descriptor, uint32_t events, void *token) {
    struct epoll_event event = {.events = events, .data.ptr = token};
    if (epoll_ctl(epoll, operation, descriptor, &event) < 0) fail("epoll_ctl");
}

static int bound_socket(int type, int port) {
    int descriptor = socket(AF_INET, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1;
    if (descriptor < 0) fail("socket");
    if (type == SOCK_STREAM) setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons(port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    if (bind(descriptor, (struct sockaddr *)&address, sizeof address) < 0) fail("bind");
    return descriptor;
}

static int port_of(int descriptor) {
    struct sockaddr_in address;
    socklen_t length = sizeof address;
    if (getsockname(descriptor, (struct sockaddr *)&address, &length) < 0) fail("getsockname");
    return ntohs(address.sin_port);
}

static void drop(struct connection *connection) {
    SSL_free(connection->tls);
    close(connection->descriptor);
    free(connection->unsent);
    free(connection->websocket.unread.data);
    free(connection);
}

static void accept_waiting(int listener) {
    for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
        int descriptor = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC), on = 1;
        if (descriptor < 0) return;
        setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        struct connection *connection = calloc(1, sizeof *connection);
        if (!connection) fail("calloc");
        connection->descriptor = descriptor;
        if (secure) {
            connection->tls = SSL_new(secure);
            if (!connection->tls || !SSL_set_fd(connection->tls, descriptor)) fail("SSL_new");
            SSL_set_accept_state(connection->tls);
        }
        watch(EPOLL_CTL_ADD, descriptor, EPOLLIN, connection);
    }
}

static void echo_datagrams(int descriptor) {
    for (int i = 0; i < DATAGRAMS_PER_TURN; i++) {
        struct sockaddr_in peer;
        socklen_t length = sizeof peer;
        ssize_t count = recvfrom(
            descriptor, buffer, sizeof buffer, 0, (struct sockaddr *)&peer, &length);
        if (count < 0) return;
        sendto(descriptor, buffer, count, 0, (struct sockaddr *)&peer, length);
    }
}

// Sends as much as the kernel takes: the count, or -1 when the connection is broken.
static ssize_t send_some(
    const struct connection *connection, const unsigned char *bytes, size_t count) {
    size_t sent = 0;
    while (sent < count) {
        ssize_t taken = stream_send(
            connection->descriptor, connection->tls, bytes + sent, count - sent);
        if (taken < 0) return errno == EAGAIN ? (ssize_t)sent : -1;
        sent += taken;
    }
    return sent;
}

// Whether nothing is left unsent; false with nothing unsent means the connection is broken.
static bool flush_unsent(struct connection *connection) {
    ssize_t sent = send_some(
        connection, connection->unsent + connection->unsent_offset,
        connection->unsent_length - connection->unsent_offset);
    if (sent >= 0) connection->unsent_offset += sent;
    bool done = connection->unsent_offset == connection->unsent_length;
    if (sent < 0 || done) {
        free(connection->unsent);
        connection->unsent = NULL;
    }
    if (sent >= 0 && done) watch(EPOLL_CTL_MOD, connection->descriptor, EPOLLIN, connection);
    return sent >= 0 && done;
}

static void keep_unsent(struct connection *connection, const unsigned char *bytes, size_t count) {
    connection->unsent = malloc(count);
    if (!connection->unsent) fail("malloc");
    memcpy(connection->unsent, bytes, count);
    connection->unsent_offset = 0;
    connection->unsent_length = count;
    watch(EPOLL_CTL_MOD, connection->descriptor, EPOLLOUT, connection);
}

// Replaces what came by the answer to it, which lies here until the next one.
static bool make_answer(struct connection *connection, struct bytes *bytes) {
    static struct bytes answer;
    answer.count = 0;
    if (!answer_websocket(&connection->websocket, bytes->data, bytes->count, &answer)) return false;
    *bytes = answer;
    return true;
}

// Whether the connection lives on. TLS does its handshake within the first reads.
static bool echo_stream(struct connection *connection) {
    if (connection->unsent && !flush_unsent(connection)) return connection->unsent != NULL;
    for (int i = 0; i < READS_PER_TURN; i++) {
        ssize_t count = stream_receive(
            connection->descriptor, connection->tls, buffer, sizeof buffer);
        if (count <= 0) return count < 0 && errno == EAGAIN;
        if (!sink) {
            struct bytes answer = {buffer, count, 0};
            if (speaks_websocket && !make_answer(connection, &answer)) return false;
            ssize_t sent = send_some(connection, answer.data, answer.count);
            if (sent < 0) return false;
            if (sent < (ssize_t)answer.count) {
                keep_unsent(connection, answer.data + sent, answer.count - sent);
                return true;
            }
        }
        // Short: the socket is empty. With TLS it is a record.
        if (!connection->tls && count < (ssize_t)sizeof buffer) return true;
    }
    return true;
}

static void load_identity(const char *certificate, const char *key) {
    secure = tls_context(TLS_server_method());
    if (secure) SSL_CTX_set_num_tickets(secure, 1); // as ours
    if (secure && SSL_CTX_use_certificate_chain_file(secure, certificate) == 1
        && SSL_CTX_use_PrivateKey_file(secure, key, SSL_FILETYPE_PEM) == 1) return;
    ERR_print_errors_fp(stderr);
    exit(1);
}

int main(int count, char **arguments) {
    int tcp_port = 0, udp_port = 0;
    for (int i = 1; i < count; i++) {
        if (!strcmp(arguments[i], "--sink")) sink = true;
        else if (!strcmp(arguments[i], "--ws")) speaks_websocket = true;
        else if (!strcmp(arguments[i], "--tcp") && i + 1 < count) tcp_port = atoi(arguments[++i]);
        else if (!strcmp(arguments[i], "--udp") && i + 1 < count) udp_port = atoi(arguments[++i]);
        else if (!strcmp(arguments[i], "--tls") && i + 2 < count) {
            load_identity(arguments[i + 1], arguments[i + 2]);
            i += 2;
        } else {
            fprintf(stderr,
                "usage: echo [--tcp PORT] [--udp PORT] [--sink] [--ws] [--tls CERTIFICATE KEY]\n");
            return 2;
        }
    }
    signal(SIGPIPE, SIG_IGN);
    epoll = epoll_create1(EPOLL_CLOEXEC);
    if (epoll < 0) fail("epoll_create1");
    int tcp = bound_socket(SOCK_STREAM, tcp_port), udp = bound_socket(SOCK_DGRAM, udp_port);
    if (listen(tcp, 4096) < 0) fail("listen");
    int receive_buffer = 4 << 20; // a burst of every peer at once fits; the kernel caps it
    setsockopt(udp, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    watch(EPOLL_CTL_ADD, tcp, EPOLLIN, &tcp);
    watch(EPOLL_CTL_ADD, udp, EPOLLIN, &udp);
    printf("tcp %d udp %d\n", port_of(tcp), port_of(udp));
    fflush(stdout);

    struct epoll_event events[EVENTS_PER_WAIT];
    for (;;) {
        int ready = epoll_wait(epoll, events, EVENTS_PER_WAIT, -1);
        for (int i = 0; i < ready; i++) {
            void *token = events[i].data.ptr;
            if (token == &tcp) accept_waiting(tcp);
            else if (token == &udp) echo_datagrams(udp);
            else if (!echo_stream(token)) drop(token);
        }
    }
}
