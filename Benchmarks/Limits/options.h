// The command line of load.c.
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum mode { PINGPONG, STREAM, SINK, CONNECT, UDP, IDLE, MODES };
static const char *const mode_names[MODES] = {
    "pingpong", "stream", "sink", "connect", "udp", "idle"};

static const uint64_t ms = 1000000;

static enum mode mode = MODES;
static int connection_count = 1, port, server;
static size_t size = 64, window = 1 << 20;
static uint64_t measured_ns = 5000 * ms, warmup_ns = 500 * ms, trips;
static bool verify, spread, use_tls, resume, use_websocket, use_text, use_deflate;

static void usage(void) {
    fprintf(stderr,
        "usage: load pingpong|stream|sink|connect|udp|idle --port PORT [--conns N] [--size BYTES]\n"
        "            [--seconds S] [--warmup S] [--trips N] [--window BYTES] [--verify] [--spread]\n"
        "            [--tls] [--resume] [--ws] [--text] [--deflate] [--pid PID]\n");
    exit(2);
}

static void parse(int count, char **arguments) {
    for (int i = 1; i < count; i++) {
        const char *name = arguments[i];
        if (name[0] != '-') {
            for (int m = 0; m < MODES; m++) if (!strcmp(name, mode_names[m])) mode = m;
            continue;
        }
        bool *flag = !strcmp(name, "--verify") ? &verify
            : !strcmp(name, "--spread") ? &spread
            : !strcmp(name, "--tls") ? &use_tls
            : !strcmp(name, "--ws") ? &use_websocket
            : !strcmp(name, "--text") ? &use_text
            : !strcmp(name, "--deflate") ? &use_deflate
            : !strcmp(name, "--resume") ? &resume : NULL;
        if (flag) {
            *flag = true;
            continue;
        }
        if (i + 1 == count) usage();
        const char *value = arguments[++i];
        if (!strcmp(name, "--port")) port = atoi(value);
        else if (!strcmp(name, "--conns")) connection_count = atoi(value);
        else if (!strcmp(name, "--size")) size = strtoull(value, NULL, 10);
        else if (!strcmp(name, "--seconds")) measured_ns = (uint64_t)(atof(value) * 1e9);
        else if (!strcmp(name, "--warmup")) warmup_ns = (uint64_t)(atof(value) * 1e9);
        else if (!strcmp(name, "--trips")) trips = strtoull(value, NULL, 10);
        else if (!strcmp(name, "--window")) window = strtoull(value, NULL, 10);
        else if (!strcmp(name, "--pid")) server = atoi(value);
        else usage();
    }
    if (mode == MODES || !port || connection_count < 1 || !size) usage();
    if (trips && mode != PINGPONG) usage();
    if ((use_tls && mode == UDP) || (resume && !use_tls)) usage();
    if (use_websocket ? mode == UDP || mode == SINK : use_text || use_deflate) usage();
    if (mode == UDP && (size < 4 || size > 65000)) usage(); // a datagram starts with its number
}
