// What echo.c answers to a client of WebSocket: no fragments, no compression, no check of UTF-8.
#pragma once
#include <openssl/evp.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>

#include "websocket.h"

// Grows as needed, and is given back when it is empty and large.
struct bytes {
    unsigned char *data;
    size_t count, room;
};

enum { BYTES_KEPT = 128 * 1024 };

static void bytes_append(struct bytes *bytes, const void *source, size_t count) {
    if (bytes->count + count > bytes->room) {
        bytes->room = (bytes->count + count) * 2;
        bytes->data = realloc(bytes->data, bytes->room);
        if (!bytes->data) abort();
    }
    memcpy(bytes->data + bytes->count, source, count);
    bytes->count += count;
}

static void bytes_drop_first(struct bytes *bytes, size_t count) {
    bytes->count -= count;
    memmove(bytes->data, bytes->data + count, bytes->count);
    if (bytes->count || bytes->room <= BYTES_KEPT) return;
    free(bytes->data);
    *bytes = (struct bytes){0};
}

struct websocket {
    bool upgraded;
    struct bytes unread; // the beginning of a request or of a frame
};

static const char accept_suffix[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

// Answers the request (RFC 6455 §4.2.2) and returns its size; 0 while it is not whole, -1 if it is
// no such.
static ssize_t answer_request(const struct bytes *request, struct bytes *answer) {
    const unsigned char *end = memmem(request->data, request->count, "\r\n\r\n", 4);
    if (!end) return 0;
    static const char name[] = "\r\nSec-WebSocket-Key: ";
    const unsigned char *key = memmem(
        request->data, end - request->data, name, sizeof name - 1);
    if (!key || end - (key += sizeof name - 1) < 24) return -1;
    unsigned char text[24 + sizeof accept_suffix - 1], digest[SHA_DIGEST_LENGTH], accept[29];
    memcpy(text, key, 24);
    memcpy(text + 24, accept_suffix, sizeof accept_suffix - 1);
    SHA1(text, sizeof text, digest);
    EVP_EncodeBlock(accept, digest, sizeof digest);
    char head[160];
    int count = snprintf(head, sizeof head,
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Accept: %s\r\n\r\n", accept);
    bytes_append(answer, head, count);
    return end + 4 - request->data;
}

// Puts the answer to what came into `answer`. False when that is not WebSocket.
static bool answer_websocket(
    struct websocket *websocket, const unsigned char *bytes, size_t count, struct bytes *answer) {
    struct bytes *unread = &websocket->unread;
    bytes_append(unread, bytes, count);
    size_t offset = 0;
    if (!websocket->upgraded) {
        ssize_t taken = answer_request(unread, answer);
        if (taken <= 0) return taken == 0;
        websocket->upgraded = true;
        offset = taken;
    }
    struct frame frame;
    size_t header;
    while ((header = frame_header(unread->data + offset, unread->count - offset, &frame))) {
        if (!frame.mask) return false;
        if (unread->count - offset - header < frame.length) break;
        unsigned char *payload = unread->data + offset + header, target[FRAME_HEADER_ROOM];
        frame_mask(payload, frame.length, frame.mask);
        if ((frame.first & OPCODE) == PING) frame.first = FINAL | PONG;
        frame.mask = NULL;
        bytes_append(answer, target, frame_put_header(target, &frame));
        bytes_append(answer, payload, frame.length);
        offset += header + frame.length;
    }
    bytes_drop_first(unread, offset);
    return true;
}
