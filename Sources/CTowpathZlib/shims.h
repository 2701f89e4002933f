// zlib's initializers are macros. Negative window bits mean raw deflate (RFC 1951).
#ifndef TOWPATH_ZLIB_SHIMS_H
#define TOWPATH_ZLIB_SHIMS_H
#include <zlib.h>

static inline int zlib_deflate_init(z_stream *stream, int level, int window_bits, int memory_level) {
    return deflateInit2(stream, level, Z_DEFLATED, -window_bits, memory_level, Z_DEFAULT_STRATEGY);
}
static inline int zlib_inflate_init(z_stream *stream, int window_bits) {
    return inflateInit2(stream, -window_bits);
}
#endif
