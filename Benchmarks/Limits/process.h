// What /proc says about another process: CPU time, memory, wake-ups.
#pragma once
#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 256 };

struct process_sample {
    int thread_count, threads[THREADS];
    uint64_t cpu_ns[THREADS];  // time on a processor, user and system
    uint64_t wakeups[THREADS]; // times it slept of its own accord, and so was woken
};

static inline bool read_number(const char *path, const char *format, uint64_t *value) {
    FILE *file = fopen(path, "r");
    if (!file) return false;
    char line[256];
    bool found = false;
    while (!found && fgets(line, sizeof line, file)) found = sscanf(line, format, value) == 1;
    fclose(file);
    return found;
}

// schedstat counts nanoseconds where stat counts ticks of 10 ms. A thread that is running now is
// up to date only to its last tick, an error of some milliseconds at most over the whole run.
static inline void process_sample(int pid, struct process_sample *sample) {
    char path[96];
    sample->thread_count = 0;
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *directory = opendir(path);
    if (!directory) return;
    struct dirent *entry;
    while ((entry = readdir(directory)) && sample->thread_count < THREADS) {
        int thread = atoi(entry->d_name), slot = sample->thread_count;
        if (thread <= 0) continue;
        snprintf(path, sizeof path, "/proc/%d/task/%d/schedstat", pid, thread);
        if (!read_number(path, "%lu", &sample->cpu_ns[slot])) continue;
        snprintf(path, sizeof path, "/proc/%d/task/%d/status", pid, thread);
        if (!read_number(path, "voluntary_ctxt_switches: %lu", &sample->wakeups[slot])) continue;
        sample->threads[slot] = thread;
        sample->thread_count++;
    }
    closedir(directory);
}

struct process_cost {
    uint64_t cpu_ns, wakeups;
};

// The difference, thread by thread. What a thread did that ended in between is lost, but its
// ending counts as one wake-up.
static inline struct process_cost process_cost_between(
    const struct process_sample *before, const struct process_sample *after) {
    struct process_cost cost = {0, 0};
    int survivors = 0;
    for (int i = 0; i < after->thread_count; i++) {
        uint64_t cpu_ns = 0, wakeups = 0;
        for (int j = 0; j < before->thread_count; j++) {
            if (before->threads[j] != after->threads[i]) continue;
            cpu_ns = before->cpu_ns[j];
            wakeups = before->wakeups[j];
            survivors++;
        }
        cost.cpu_ns += after->cpu_ns[i] - cpu_ns;
        cost.wakeups += after->wakeups[i] - wakeups;
    }
    cost.wakeups += before->thread_count - survivors;
    return cost;
}

static inline uint64_t resident_kb(int pid) {
    char path[96];
    uint64_t kb = 0;
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    read_number(path, "VmRSS: %lu", &kb);
    return kb;
}
