// The frames of WebSocket (RFC 6455 §5.2, §5.3), of both echo.c and load.c.
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

// The first byte of a frame, and the bit of the second.
enum { FINAL = 0x80, COMPRESSED = 0x40, RESERVED = 0x30, OPCODE = 0x0f, MASKED = 0x80 };
enum { TEXT = 1, BINARY = 2, CONTROL = 8, PING = 9, PONG = 10 };
enum { FRAME_HEADER_ROOM = 14 };

struct frame {
    unsigned char first;
    const unsigned char *mask; // none in what a server sends
    size_t length;             // of the payload
};

// The size of the header, or 0 while there is not all of it.
static inline size_t frame_header(const unsigned char *bytes, size_t count, struct frame *frame) {
    if (count < 2) return 0;
    size_t length = bytes[1] & 0x7f, size = 2;
    if (length >= 126) {
        size = length == 126 ? 4 : 10;
        if (count < size) return 0;
        length = 0;
        for (size_t i = 2; i < size; i++) length = length << 8 | bytes[i];
    }
    bool masked = bytes[1] & MASKED;
    if (count < size + (masked ? 4 : 0)) return 0;
    *frame = (struct frame){bytes[0], masked ? bytes + size : NULL, length};
    return size + (masked ? 4 : 0);
}

// Writes the header and returns its size.
static inline size_t frame_put_header(unsigned char *target, const struct frame *frame) {
    size_t bits = frame->length < 126 ? 0 : frame->length < 65536 ? 16 : 64, size = 2;
    target[0] = frame->first;
    target[1] = (frame->mask ? MASKED : 0)
        | (bits == 0 ? frame->length : bits == 16 ? 126 : 127);
    while (bits) target[size++] = (uint64_t)frame->length >> (bits -= 8);
    if (!frame->mask) return size;
    memcpy(target + size, frame->mask, 4);
    return size + 4;
}

// Masks or unmasks in place, eight bytes at a time.
static inline void frame_mask(unsigned char *bytes, size_t count, const unsigned char mask[4]) {
    uint32_t half;
    memcpy(&half, mask, sizeof half);
    uint64_t key = (uint64_t)half << 32 | half, word;
    size_t i = 0;
    for (; i + sizeof word <= count; i += sizeof word) {
        memcpy(&word, bytes + i, sizeof word);
        word ^= key;
        memcpy(bytes + i, &word, sizeof word);
    }
    for (; i < count; i++) bytes[i] ^= mask[i & 3];
}
