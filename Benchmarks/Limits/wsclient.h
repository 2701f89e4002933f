// The client's side of WebSocket in load.c: what it sends is made once, what comes is read frame by
// frame.
#pragma once
#define ZLIB_CONST
#include <zlib.h>

#include "options.h"
#include "websocket.h"

struct websocket {
    size_t request_sent;
    char head[512]; // of the response
    size_t head_count;
    unsigned char header[FRAME_HEADER_ROOM]; // of a frame, as it comes
    size_t header_count, left;               // left of its payload
    bool last, compressed;                   // the frame ends the message; the message is compressed
    size_t content;                          // of the message so far, where it is verified
    z_stream *inflater;                      // with --verify and --deflate
};

static const char request_format[] =
    "GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n%s\r\n";
static const char accepted[] = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="; // that key, RFC 6455 §1.3
static char request[320];

// Without these in a message sent, but with them when it is inflated (RFC 7692 §7.2).
static const unsigned char deflate_tail[] = {0, 0, 0xff, 0xff};

// Deflates what is sent, each message for itself. The size, or 0 on failure.
static size_t deflate_message(
    const unsigned char *message, size_t count, unsigned char *target, size_t room) {
    z_stream stream = {.next_in = message, .avail_in = count, .next_out = target, .avail_out = room};
    if (deflateInit2(&stream, 6, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) != Z_OK) return 0;
    int status = deflate(&stream, Z_SYNC_FLUSH);
    deflateEnd(&stream);
    return status == Z_OK && stream.avail_out ? stream.total_out - sizeof deflate_tail : 0;
}

// The message as a frame, with its size, and the request. NULL without memory.
static unsigned char *prepare_websocket(const unsigned char *message, size_t *frame_size) {
    snprintf(request, sizeof request, request_format,
        use_deflate ? "Sec-WebSocket-Extensions: permessage-deflate\r\n" : "");
    size_t room = *frame_size + *frame_size / 1000 + 64 + FRAME_HEADER_ROOM;
    unsigned char *bytes = malloc(room), *payload = bytes + FRAME_HEADER_ROOM;
    if (!bytes) return NULL;
    static const unsigned char mask[4] = {0x12, 0x34, 0x56, 0x78};
    struct frame frame = {FINAL | (use_text ? TEXT : BINARY), mask, *frame_size};
    if (use_deflate) {
        frame.first |= COMPRESSED;
        frame.length = deflate_message(message, *frame_size, payload, room - FRAME_HEADER_ROOM);
        if (!frame.length) return NULL;
    } else memcpy(payload, message, *frame_size);
    frame_mask(payload, frame.length, mask);
    size_t header = frame_put_header(bytes, &frame);
    memmove(bytes + header, payload, frame.length);
    *frame_size = header + frame.length;
    return bytes;
}

// Takes what came of the response: 1 once it is whole, 0 before that, -1 when it is a wrong one.
static int receive_response(struct websocket *websocket, const char *bytes, size_t count) {
    if (websocket->head_count + count >= sizeof websocket->head) return -1;
    memcpy(websocket->head + websocket->head_count, bytes, count);
    websocket->head_count += count;
    const char *end = strstr(websocket->head, "\r\n\r\n");
    if (!end) return 0;
    bool alone = end + 4 == websocket->head + websocket->head_count;
    bool agreed = strstr(websocket->head, accepted)
        && use_deflate == !!strcasestr(websocket->head, "permessage-deflate");
    return alone && agreed ? 1 : -1;
}

// Whether a part of a message's content is what was sent.
static bool is_expected(
    struct websocket *websocket, const unsigned char *bytes, size_t count,
    const unsigned char *message) {
    size_t offset = websocket->content;
    websocket->content += count;
    return websocket->content <= size && !memcmp(bytes, message + offset, count);
}

static bool is_expected_inflated(
    struct websocket *websocket, const unsigned char *bytes, size_t count,
    const unsigned char *message) {
    if (!websocket->inflater) {
        websocket->inflater = calloc(1, sizeof *websocket->inflater);
        if (!websocket->inflater || inflateInit2(websocket->inflater, -15) != Z_OK) return false;
    }
    z_stream *stream = websocket->inflater;
    stream->next_in = bytes;
    stream->avail_in = count;
    do {
        unsigned char target[16384];
        stream->next_out = target;
        stream->avail_out = sizeof target;
        int status = inflate(stream, Z_SYNC_FLUSH);
        if (status != Z_OK && status != Z_BUF_ERROR) return false;
        if (!is_expected(websocket, target, sizeof target - stream->avail_out, message)) return false;
    } while (!stream->avail_out || stream->avail_in);
    return true;
}

static bool check_content(
    struct websocket *websocket, const unsigned char *bytes, size_t count,
    const unsigned char *message) {
    if (!websocket->compressed) return is_expected(websocket, bytes, count, message);
    return is_expected_inflated(websocket, bytes, count, message);
}

// The message has come to its end: whether it is all that was sent.
static bool check_end(struct websocket *websocket, const unsigned char *message) {
    bool good = !websocket->compressed
        || is_expected_inflated(websocket, deflate_tail, sizeof deflate_tail, message);
    good = good && websocket->content == size;
    websocket->content = 0;
    return good;
}

// Whether the header is one that an echo server may send; begins the frame.
static bool begin_frame(struct websocket *websocket, const struct frame *frame) {
    int opcode = frame->first & OPCODE;
    if (frame->mask || frame->first & RESERVED || opcode >= CONTROL) return false;
    if (opcode) websocket->compressed = frame->first & COMPRESSED;
    websocket->last = frame->first & FINAL;
    websocket->left = frame->length;
    websocket->header_count = 0;
    return use_deflate || !websocket->compressed;
}

// How many messages came to their end with these bytes, or -1 when they are not those of an echo.
static long receive_frames(
    struct websocket *websocket, const unsigned char *bytes, size_t count,
    const unsigned char *message) {
    long ended = 0;
    for (size_t i = 0; i < count;) {
        if (!websocket->left) {
            struct frame frame;
            websocket->header[websocket->header_count++] = bytes[i++];
            if (!frame_header(websocket->header, websocket->header_count, &frame)) continue;
            if (!begin_frame(websocket, &frame)) return -1;
        }
        size_t part = count - i < websocket->left ? count - i : websocket->left;
        if (verify && !check_content(websocket, bytes + i, part, message)) return -1;
        i += part;
        websocket->left -= part;
        if (websocket->left || !websocket->last) continue;
        if (verify && !check_end(websocket, message)) return -1;
        ended++;
    }
    return ended;
}

static void end_websocket(struct websocket *websocket) {
    if (websocket->inflater) inflateEnd(websocket->inflater);
    free(websocket->inflater);
}
