// An echo server on libwebsockets, to compare with; loopback only. Prints "tcp PORT udp 0".
#include <libwebsockets.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct message {
    struct message *next;
    enum lws_write_protocol kind;
    size_t count, room;
    unsigned char bytes[]; // LWS_PRE of them for the header
};

struct session {
    struct message *incoming;      // not whole yet
    struct message *first, *last;  // to be sent
};

// Takes a piece of a message. Whether there is memory.
static bool take(struct session *session, struct lws *socket, const void *bytes, size_t count) {
    struct message *message = session->incoming;
    size_t old = message ? message->count : 0, left = lws_remaining_packet_payload(socket);
    if (!message || old + count > message->room) {
        size_t room = old + count + left;
        message = realloc(message, sizeof *message + LWS_PRE + room);
        if (!message) return false;
        *message = (struct message){.count = old, .room = room};
    }
    memcpy(message->bytes + LWS_PRE + old, bytes, count);
    message->count += count;
    session->incoming = message;
    if (left || !lws_is_final_fragment(socket)) return true;
    message->kind = lws_frame_is_binary(socket) ? LWS_WRITE_BINARY : LWS_WRITE_TEXT;
    if (session->first) session->last->next = message;
    else session->first = message;
    session->last = message;
    session->incoming = NULL;
    lws_callback_on_writable(socket);
    return true;
}

static int handle(
    struct lws *socket, enum lws_callback_reasons reason, void *user, void *bytes, size_t count) {
    struct session *session = user;
    struct message *message;
    switch (reason) {
    case LWS_CALLBACK_ESTABLISHED:
        *session = (struct session){0};
        return 0;
    case LWS_CALLBACK_RECEIVE:
        return take(session, socket, bytes, count) ? 0 : -1;
    case LWS_CALLBACK_SERVER_WRITEABLE:
        if (!(message = session->first)) return 0;
        session->first = message->next;
        int written = lws_write(
            socket, message->bytes + LWS_PRE, message->count, message->kind);
        bool whole = written >= (int)message->count;
        free(message);
        if (session->first) lws_callback_on_writable(socket);
        return whole ? 0 : -1;
    case LWS_CALLBACK_CLOSED:
        while ((message = session->first)) {
            session->first = message->next;
            free(message);
        }
        free(session->incoming);
        return 0;
    default:
        return 0;
    }
}

int main(void) {
    lws_set_log_level(LLL_ERR, NULL);
    const struct lws_protocols protocols[] = {
        {"echo", handle, sizeof(struct session), 64 * 1024, 0, NULL, 0}, {0}};
    struct lws_context_creation_info info = {
        .protocols = protocols,
        .iface = "127.0.0.1",
        .options = LWS_SERVER_OPTION_DISABLE_IPV6,
        .port = 0,
        .pt_serv_buf_size = 64 * 1024,
    };
    struct lws_context *context = lws_create_context(&info);
    if (!context) return 1;
    struct lws_vhost *host = lws_get_vhost_by_name(context, "default");
    printf("tcp %d udp 0\n", host ? lws_get_vhost_listen_port(host) : 0);
    fflush(stdout);
    while (lws_service(context, 0) >= 0) {
    }
    return 1;
}
