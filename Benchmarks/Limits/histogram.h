// A histogram of nanoseconds: 64 buckets per power of two, so within 1.6 % of the truth.
#pragma once
#include <stdint.h>

enum { BUCKETS = 64 * 59 }; // every 64-bit value has one

struct histogram {
    uint64_t buckets[BUCKETS], count, maximum;
};

static inline void histogram_add(struct histogram *histogram, uint64_t value) {
    histogram->count++;
    if (value > histogram->maximum) histogram->maximum = value;
    int bucket = (int)value;
    if (value >= 64) {
        int exponent = 63 - __builtin_clzll(value);
        bucket = (exponent - 5) * 64 + (int)((value >> (exponent - 6)) & 63);
    }
    histogram->buckets[bucket]++;
}

static inline double histogram_quantile(const struct histogram *histogram, double quantile) {
    if (!histogram->count) return 0;
    uint64_t target = (uint64_t)(quantile * (double)histogram->count), passed = 0;
    if (target >= histogram->count) target = histogram->count - 1;
    for (int bucket = 0; bucket < BUCKETS; bucket++) {
        passed += histogram->buckets[bucket];
        if (passed <= target) continue;
        if (bucket < 64) return bucket;
        int exponent = bucket / 64 + 5;
        double width = (double)(1ull << (exponent - 6));
        return (64 + bucket % 64) * width + width / 2; // the middle of the bucket
    }
    return (double)histogram->maximum;
}
