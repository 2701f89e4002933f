// The load: an epoll client of an echo server, one thread, loopback only, bounded in time.
//
//     load MODE --port PORT [options]
//
//     pingpong   one message in flight on each connection
//     stream     messages up to a window in flight on each connection
//     sink       messages without waiting for answers
//     connect    connect, one echo, close, over and over; with TLS a handshake and close_notify too
//     udp        one datagram in flight on each socket; a lost one is sent again after 200 ms
//     idle       one echo on each connection, then silence
//
//     --conns N        connections, or sockets (1)
//     --size BYTES     of a message (64)
//     --seconds S      measured (5), after --warmup S (0.5)
//     --trips N        pingpong only: so many round trips on each connection instead of a time
//     --window BYTES   stream and sink: in flight on each connection (1 MiB)
//     --verify         compare the bytes that come back
//     --tls            not for udp; nothing is verified
//     --resume         with --tls: take up the newest session again
//     --ws             messages of WebSocket, in one frame each; not for sink and udp
//     --text           with --ws: messages of text
//     --deflate        with --ws: compressed ones
//     --spread         connect from many source addresses, so that TIME_WAIT exhausts no ports
//     --pid PID        the server's process, whose CPU time, memory and wake-ups are reported
//
// Prints one line of key=value. Exits with 1 when nothing worked.
#define _GNU_SOURCE
#include <signal.h>
#include <sys/resource.h>

#include "process.h"
#include "traffic.h"

static const uint64_t setup_limit = 60000 * ms, trips_limit = 300000 * ms;
static struct process_sample before, after;
static double elapsed, setup_seconds, load_cpu;

static double own_cpu(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec)
        + (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

// Moves through the phases and returns when the present one ends at the latest.
static uint64_t advance(uint64_t time) {
    static uint64_t begun, end;
    if (!end) end = (begun = time) + setup_limit;
    if (phase == SETUP && (mode == CONNECT || settled + lost_connections >= connection_count)) {
        setup_seconds = (double)(time - begun) / 1e9;
        phase = WARMUP;
        end = trips ? time : time + warmup_ns;
        if (!trips) begin_traffic();
    }
    if (phase == WARMUP && time >= end) {
        phase = MEASURE;
        if (server) process_sample(server, &before);
        load_cpu = -own_cpu();
        begun = now();
        end = begun + (trips ? trips_limit : measured_ns);
        if (trips) begin_traffic();
    } else if (phase == MEASURE
        && (time >= end || (trips && finished_trips + lost_connections >= (uint64_t)connection_count))) {
        phase = OVER;
        elapsed = (double)(now() - begun) / 1e9;
        if (server) process_sample(server, &after);
        load_cpu += own_cpu();
    } else if (phase == SETUP && time >= end) {
        fprintf(stderr, "load: the connections did not open within a minute\n");
        exit(1);
    }
    return end;
}

static void run(void) {
    struct epoll_event events[EVENTS_PER_WAIT];
    for (;;) {
        uint64_t time = now(), end = advance(time);
        if (phase == OVER) return;
        if (mode != CONNECT || phase != SETUP)
            while (opened < connection_count
                && opened - settled - lost_connections < PENDING_CONNECTS)
                open_connection(&connections[opened++]);
        if (lost_connections == connection_count) {
            fprintf(stderr, "load: all connections lost\n");
            exit(1);
        }
        int wait_ms = end > time + 10 * ms ? 10 : (int)(end > time ? (end - time) / ms + 1 : 0);
        int ready = epoll_wait(epoll, events, EVENTS_PER_WAIT, wait_ms);
        for (int i = 0; i < ready; i++) handle(events[i].data.ptr, events[i].events);
        if (mode == UDP && phase != SETUP) resend_lost_datagrams(now());
    }
}

static void report(uint64_t resident_before) {
    printf("mode=%s conns=%d size=%zu secs=%.3f ops=%lu ", mode_names[mode], connection_count, size,
        elapsed, operations);
    double rate = (double)operations / elapsed;
    if (mode == STREAM || mode == SINK)
        printf("MBps=%.1f msgs=%.0f ", (double)bytes / elapsed / 1e6, rate);
    else if (mode == IDLE) printf("setup_s=%.3f ", setup_seconds);
    else printf("%s=%.0f ", mode == CONNECT ? "connps" : "rtps", rate);
    if (latencies.count)
        printf("p50_us=%.1f p99_us=%.1f p999_us=%.1f max_us=%.1f ",
            histogram_quantile(&latencies, 0.5) / 1e3, histogram_quantile(&latencies, 0.99) / 1e3,
            histogram_quantile(&latencies, 0.999) / 1e3, (double)latencies.maximum / 1e3);
    printf("errors=%lu ", errors);
    if (mode == UDP) printf("lost=%lu ", lost_datagrams);
    if (server) {
        struct process_cost cost = process_cost_between(&before, &after);
        double cpu = (double)cost.cpu_ns / 1e9;
        uint64_t resident = resident_kb(server);
        printf("srv_cpu_s=%.4f srv_cpu_pct=%.0f srv_wakeups=%lu ", cpu, 100 * cpu / elapsed,
            cost.wakeups);
        if (operations)
            printf("srv_cpu_ns_per_op=%.0f srv_cpu_s_per_100k=%.4f ",
                (double)cost.cpu_ns / (double)operations, cpu * 1e5 / (double)operations);
        if (bytes && (mode == STREAM || mode == SINK))
            printf("srv_cpu_s_per_GB=%.4f ", cpu / ((double)bytes / 1e9));
        printf("rss0_kB=%lu rss1_kB=%lu ", resident_before, resident);
        if (mode == IDLE)
            printf("bytes_per_conn=%.0f ",
                ((double)resident - (double)resident_before) * 1024 / connection_count);
    }
    printf("load_cpu_pct=%.0f\n", 100 * load_cpu / elapsed);
}

// Text is something that a program might say, and shrinks as such does.
static void write_text(unsigned char *target, size_t count) {
    uint32_t random = 1;
    for (size_t done = 0; done < count;) {
        char record[96];
        random = random * 1664525 + 1013904223;
        int length = snprintf(record, sizeof record,
            "{\"id\":%u,\"user\":\"%x\",\"price\":%u.%02u,\"open\":%s},\n", random >> 16, random,
            random % 997, random % 89, random & 64 ? "true" : "false");
        if ((size_t)length > count - done) length = (int)(count - done);
        memcpy(target + done, record, length);
        done += length;
    }
}

static bool prepare_message(void) {
    message = malloc(size);
    if (!message) return false;
    for (size_t i = 0; i < size; i++) message[i] = (unsigned char)(i * 31 + 7);
    if (use_text || use_deflate) write_text(message, size);
    outgoing = message;
    outgoing_size = size;
    if (use_websocket) outgoing = prepare_websocket(message, &outgoing_size);
    return outgoing;
}

int main(int count, char **arguments) {
    parse(count, arguments);
    signal(SIGPIPE, SIG_IGN);
    uint64_t resident_before = server ? resident_kb(server) : 0;
    if (use_tls && !prepare_tls()) fail("SSL_CTX_new");
    epoll = epoll_create1(EPOLL_CLOEXEC);
    connections = calloc(connection_count, sizeof *connections);
    if (epoll < 0 || !connections || !prepare_message()) fail("load");
    run();
    report(resident_before);
    return errors && !operations ? 1 : 0;
}
