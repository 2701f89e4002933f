// OpenSSL's TLS for Towpath: its macros as functions, each call that can fail together with what
// SSL_get_error says about it, and a BIO over memory that Swift lends.
//
// The error queue belongs to the thread and Swift's tasks change threads: it is emptied before each call,
// and read after it, in the one function that makes the call.
#ifndef CTOWPATHOPENSSL_SHIMS_H
#define CTOWPATHOPENSSL_SHIMS_H

#include <dirent.h>
#include <fcntl.h>
#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

// ---- errors

// The reasons in the queue, the first one first, "reason; reason"; the queue is empty then. Returns the
// number of the first.
static inline unsigned long ossl_take_errors(char *text, size_t room) {
    unsigned long first = 0, code;
    size_t used = 0;
    text[0] = 0;
    while ((code = ERR_get_error())) {
        if (!first) first = code;
        const char *reason = ERR_reason_error_string(code);
        char number[32];
        if (!reason) { ERR_error_string_n(code, number, sizeof number); reason = number; }
        size_t length = strlen(reason);
        if (used + length + 3 > room) continue;
        if (used) { memcpy(text + used, "; ", 2); used += 2; }
        memcpy(text + used, reason, length + 1);
        used += length;
    }
    return first;
}
static inline int ossl_reason(unsigned long code) { return ERR_GET_REASON(code); }
static inline int ossl_library(unsigned long code) { return ERR_GET_LIB(code); }

// ---- the transport: ciphertext in memory

// `in` is lent for the time of a call. `out` is lent too, until it is too small: then it is the
// transport's own.
struct ossl_transport {
    const uint8_t *in;
    size_t in_count;
    uint8_t *out;
    size_t out_count, out_room;
    uint8_t *own;
    int ended;
};

// From about 2 KiB on memcpy is `rep movsb`, which AMD's processors do thirty times slower where the
// target lies less than 64 bytes behind the source, counted within a page. Smaller pieces never are.
static inline void ossl_copy(uint8_t *target, const uint8_t *source, size_t count) {
    for (; count > 1024; target += 1024, source += 1024, count -= 1024) memcpy(target, source, 1024);
    memcpy(target, source, count);
}

static int ossl_transport_read(BIO *bio, char *target, size_t count, size_t *taken) {
    struct ossl_transport *t = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    if (!t->in_count) {
        *taken = 0;
        if (!t->ended) BIO_set_retry_read(bio);
        return 0;
    }
    if (count > t->in_count) count = t->in_count;
    ossl_copy((uint8_t *)target, t->in, count);
    t->in += count;
    t->in_count -= count;
    *taken = count;
    return 1;
}
static int ossl_transport_write(BIO *bio, const char *source, size_t count, size_t *taken) {
    struct ossl_transport *t = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    if (t->out_count + count > t->out_room) {
        size_t room = (t->out_count + count) * 2;
        uint8_t *larger = malloc(room);
        if (!larger) return 0;
        if (t->out_count) memcpy(larger, t->out, t->out_count);
        free(t->own);
        t->own = t->out = larger;
        t->out_room = room;
    }
    ossl_copy(t->out + t->out_count, (const uint8_t *)source, count);
    t->out_count += count;
    *taken = count;
    return 1;
}
static long ossl_transport_ctrl(BIO *bio, int command, long number, void *pointer) {
    (void)number; (void)pointer;
    struct ossl_transport *t = BIO_get_data(bio);
    switch (command) {
    case BIO_CTRL_FLUSH: return 1;
    case BIO_CTRL_EOF: return t->ended && !t->in_count;
    default: return 0;
    }
}
static inline BIO_METHOD *ossl_transport_method(void) {
    BIO_METHOD *method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "towpath");
    if (!method) return NULL;
    BIO_meth_set_read_ex(method, ossl_transport_read);
    BIO_meth_set_write_ex(method, ossl_transport_write);
    BIO_meth_set_ctrl(method, ossl_transport_ctrl);
    return method;
}
// 1, or 0 without memory.
static inline int ossl_attach(SSL *ssl, BIO_METHOD *method, struct ossl_transport *transport) {
    BIO *bio = BIO_new(method);
    if (!bio) return 0;
    BIO_set_data(bio, transport);
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl, bio, bio);
    return 1;
}

// ---- calls that move bytes. `status` is what SSL_get_error says, 0 for success.
struct ossl_result { size_t count; int status; };

static inline struct ossl_result ossl_result_of(SSL *ssl, int value, size_t count) {
    struct ossl_result r = { count, value > 0 ? SSL_ERROR_NONE : SSL_get_error(ssl, value) };
    return r;
}
static inline struct ossl_result ossl_handshake(SSL *ssl) {
    ERR_clear_error();
    return ossl_result_of(ssl, SSL_do_handshake(ssl), 0);
}
static inline struct ossl_result ossl_read(SSL *ssl, void *target, size_t room) {
    size_t count = 0;
    ERR_clear_error();
    int value = SSL_read_ex(ssl, target, room, &count);
    return ossl_result_of(ssl, value, count);
}
static inline struct ossl_result ossl_peek(SSL *ssl) {
    size_t count = 0;
    uint8_t byte;
    ERR_clear_error();
    int value = SSL_peek_ex(ssl, &byte, 1, &count);
    return ossl_result_of(ssl, value, count);
}
static inline struct ossl_result ossl_write(SSL *ssl, const void *source, size_t length) {
    size_t count = 0;
    ERR_clear_error();
    int value = SSL_write_ex(ssl, source, length, &count);
    return ossl_result_of(ssl, value, count);
}
// Sends close_notify; that the peer's has not come yet is no failure.
static inline struct ossl_result ossl_shutdown(SSL *ssl) {
    ERR_clear_error();
    int value = SSL_shutdown(ssl);
    return ossl_result_of(ssl, value == 0 ? 1 : value, 0);
}

// ---- the host's trust
static inline int ossl_store_count(X509_STORE *store) { return sk_X509_OBJECT_num(X509_STORE_get0_objects(store)); }
static inline int ossl_has_certificate_directory(void) {
    const char *path = getenv(X509_get_default_cert_dir_env());
    DIR *directory = opendir(path ? path : X509_get_default_cert_dir());
    if (!directory) return 0;
    int found = 0;
    for (struct dirent *entry; !found && (entry = readdir(directory));) {
        // Files are named by a hash of eight digits and a number.
        const char *dot = strchr(entry->d_name, '.');
        found = dot && dot - entry->d_name == 8;
    }
    closedir(directory);
    return found;
}

// A list of revocations in DER or PEM.
static inline X509_CRL *ossl_read_revocations(const uint8_t *bytes, size_t count) {
    BIO *bio = BIO_new_mem_buf(bytes, (int)count);
    if (!bio) return NULL;
    X509_CRL *list = count && bytes[0] == 0x30 ? d2i_X509_CRL_bio(bio, NULL) : PEM_read_bio_X509_CRL(bio, NULL, NULL, NULL);
    BIO_free(bio);
    return list;
}
static inline time_t ossl_now(void) { return time(NULL); }

// ---- a key log, by explicit wish only: appended to, never through a symlink, read by its owner alone
static inline int ossl_key_log_descriptor(const char *path) { return open(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600); }
static inline int ossl_key_log_open(const char *path) { int fd = ossl_key_log_descriptor(path); if (fd >= 0) close(fd); return fd; }
static inline void ossl_key_log_append(const char *path, const char *line) {
    int fd = ossl_key_log_descriptor(path);
    if (fd < 0) return;
    // In one write, so that lines of several connections do not mix.
    size_t length = strlen(line);
    char *whole = malloc(length + 1);
    if (whole) {
        memcpy(whole, line, length);
        whole[length] = '\n';
        ssize_t written = write(fd, whole, length + 1);
        (void)written;
        free(whole);
    }
    close(fd);
}

// ---- macros of the context and the connection
static inline long ossl_set_minimum_version(SSL_CTX *c, int v) { return SSL_CTX_set_min_proto_version(c, v); }
static inline long ossl_set_maximum_version(SSL_CTX *c, int v) { return SSL_CTX_set_max_proto_version(c, v); }
static inline uint64_t ossl_set_options(SSL_CTX *c, uint64_t o) { return SSL_CTX_set_options(c, o); }
static inline long ossl_set_mode(SSL_CTX *c, long m) { return SSL_CTX_set_mode(c, m); }
static inline long ossl_set_groups(SSL_CTX *c, const char *list) { return SSL_CTX_set1_groups_list(c, list); }
static inline long ossl_set_session_cache_mode(SSL_CTX *c, long m) { return SSL_CTX_set_session_cache_mode(c, m); }
static inline long ossl_set_server_name(SSL *s, const char *name) { return SSL_set_tlsext_host_name(s, name); }
static inline long ossl_retry_verify(SSL *s) { return SSL_set_retry_verify(s); }
static inline long ossl_request_status(SSL *s) { return SSL_set_tlsext_status_type(s, TLSEXT_STATUSTYPE_ocsp); }
static inline long ossl_status_response(SSL *s, const unsigned char **bytes) { return SSL_get_tlsext_status_ocsp_resp(s, bytes); }
static inline long ossl_set_status_callback(SSL_CTX *c, int (*callback)(SSL *, void *)) { return SSL_CTX_set_tlsext_status_cb(c, callback); }
static inline long ossl_set_status_response(SSL *s, const uint8_t *bytes, long count) {
    uint8_t *copy = OPENSSL_memdup(bytes, (size_t)count);
    return copy ? SSL_set_tlsext_status_ocsp_resp(s, copy, count) : 0;
}
static inline int ossl_add_chain(SSL_CTX *c, X509 *x) { return (int)SSL_CTX_add1_chain_cert(c, x); }
static inline int ossl_use_identity(SSL *s, X509 *leaf, EVP_PKEY *key, STACK_OF(X509) *chain) { return SSL_use_cert_and_key(s, leaf, key, chain, 1); }
static inline int ossl_negotiated_group(SSL *s) { return (int)SSL_get_negotiated_group(s); }
static inline const char *ossl_group_name(SSL *s) { int n = ossl_negotiated_group(s); return n ? OBJ_nid2sn(n & 0xFFFF) : NULL; }
static const uint64_t
    OSSL_OP_NO_RENEGOTIATION = SSL_OP_NO_RENEGOTIATION, OSSL_OP_NO_COMPRESSION = SSL_OP_NO_COMPRESSION,
    OSSL_OP_CIPHER_SERVER_PREFERENCE = SSL_OP_CIPHER_SERVER_PREFERENCE,
    OSSL_OP_PRIORITIZE_CHACHA = SSL_OP_PRIORITIZE_CHACHA, OSSL_OP_NO_TICKET = SSL_OP_NO_TICKET;
static const long
    OSSL_MODE = SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS | SSL_MODE_AUTO_RETRY,
    OSSL_CACHE_CLIENT = SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL,
    OSSL_CACHE_OFF = SSL_SESS_CACHE_OFF;

#endif
