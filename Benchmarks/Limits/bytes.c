// The limit of what is done to each byte of WebSocket: `bytes mask|copy|utf8-ascii|utf8-mixed SECONDS`.
//
// Works on 16 KiB over and over and prints ns_per_GB=NUMBER, the processor time for 10⁹ bytes. The checks of
// UTF-8 do what Towpath's do: ASCII eight at a time, the rest byte by byte.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "websocket.h"

enum { SIZE = 16384, TURNS = 64 };
static unsigned char bytes[SIZE], target[SIZE];

static bool is_ascii(const unsigned char *eight) {
    uint64_t word;
    memcpy(&word, eight, sizeof word);
    return !(word & 0x8080808080808080);
}

static bool is_utf8(const unsigned char *text, size_t count) {
    unsigned char low = 0x80, high = 0xbf; // what the next byte of a character may be
    int needed = 0;
    for (size_t i = 0; i < count;) {
        while (!needed && i + 8 <= count && is_ascii(text + i)) i += 8;
        if (i == count) break;
        unsigned char byte = text[i++];
        if (needed) {
            if (byte < low || byte > high) return false;
            low = 0x80, high = 0xbf;
            needed--;
            continue;
        }
        if (byte < 0x80) continue;
        if (byte < 0xc2 || byte > 0xf4) return false;
        needed = byte < 0xe0 ? 1 : byte < 0xf0 ? 2 : 3;
        if (byte == 0xe0) low = 0xa0;
        else if (byte == 0xed) high = 0x9f;
        else if (byte == 0xf0) low = 0x90;
        else if (byte == 0xf4) high = 0x8f;
    }
    return !needed;
}

static void fill(const char *pattern) {
    size_t length = strlen(pattern), count = 0;
    for (; count + length <= SIZE; count += length) memcpy(bytes + count, pattern, length);
    memset(bytes + count, ' ', SIZE - count);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int main(int count, char **arguments) {
    const char *mode = count == 3 ? arguments[1] : "";
    bool mask = !strcmp(mode, "mask"), copy = !strcmp(mode, "copy");
    if (!mask && !copy && strncmp(mode, "utf8", 4)) {
        fprintf(stderr, "usage: bytes mask|copy|utf8-ascii|utf8-mixed SECONDS\n");
        return 2;
    }
    bool mixed = !strcmp(mode, "utf8-mixed");
    fill(mixed ? "Der Treidelpfad läuft übers Ufer, 曳舟道. " : "The towpath runs along. ");
    const unsigned char key[4] = {0x12, 0x34, 0x56, 0x78};
    double begin = now(), end = begin + atof(arguments[2]), time;
    uint64_t done = 0;
    do {
        for (int turn = 0; turn < TURNS; turn++) {
            if (mask) frame_mask(bytes, SIZE, key);
            else if (copy) memcpy(target, bytes, SIZE);
            else if (!is_utf8(bytes, SIZE)) return 1;
            __asm__ volatile("" : : "r"(bytes), "r"(target) : "memory"); // none is left out
        }
        done += SIZE * TURNS;
        time = now();
    } while (time < end);
    printf("ns_per_GB=%.0f\n", (time - begin) / (double)done * 1e18);
}
