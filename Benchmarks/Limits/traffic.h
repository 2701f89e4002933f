// What the connections of load.c send and receive.
#pragma once
#include "connection.h"
#include "histogram.h"

// Each must let the others, and the clock, have their turn.
enum { EVENTS_PER_WAIT = 512, READS_PER_TURN = 64, SINK_MESSAGES_PER_TURN = 16 };
static const uint64_t datagram_timeout = 200 * ms;

static unsigned char *message, incoming[256 * 1024];
static unsigned char *outgoing; // the message as it is sent
static size_t outgoing_size;
static uint64_t operations, bytes, lost_datagrams, finished_trips;
static struct histogram latencies;

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
            connection->descriptor, connection->tls, outgoing + connection->offset,
            outgoing_size - connection->offset);
        if (taken < 0 && errno != EAGAIN) return false;
        if (taken < 0) {
            arm(connection, EPOLLIN | EPOLLOUT);
            return true;
        }
        connection->offset += taken;
        if (connection->offset < outgoing_size) continue;
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

// How many answers came to their end with these bytes, or -1 when they are not what was sent.
static long answers_in(struct connection *connection, size_t count) {
    if (use_websocket) return receive_frames(connection->websocket, incoming, count, message);
    if (verify) check_bytes(connection, count);
    connection->received += count;
    return (long)(connection->received / size - connection->answered);
}

// False when the connection is broken.
static bool receive_answers(struct connection *connection) {
    for (int i = 0; i < READS_PER_TURN; i++) {
        ssize_t count = stream_receive(
            connection->descriptor, connection->tls, incoming, sizeof incoming);
        if (count < 0 && errno == EAGAIN) return true;
        if (count == 0) errno = ECONNRESET;
        if (count <= 0) return false;
        if (phase == MEASURE && mode != SINK) bytes += count;
        long answers = answers_in(connection, count);
        if (answers < 0) errno = EPROTO;
        if (answers < 0) return false;
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
        if (use_websocket && !(connection->websocket = calloc(1, sizeof *connection->websocket)))
            fail("calloc");
    }
    if (!connection->ready) {
        int progress = go_on_with_handshakes(connection);
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
