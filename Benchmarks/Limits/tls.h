// A stream that may go through TLS, with OpenSSL's own socket BIO. Without an SSL it is a plain one.
#pragma once
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

static SSL_CTX *tls_context(const SSL_METHOD *method) {
    SSL_CTX *context = SSL_CTX_new(method);
    if (context)
        SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER
            | SSL_MODE_RELEASE_BUFFERS);
    return context;
}

// What recv(2) and send(2) would return, with EAGAIN wherever TLS has to wait.
static ssize_t tls_result(SSL *tls, int result) {
    if (result > 0) return result;
    int error = SSL_get_error(tls, result);
    if (error == SSL_ERROR_ZERO_RETURN) return 0;
    if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) {
        errno = EAGAIN;
        return -1;
    }
    if (error != SSL_ERROR_SYSCALL || !errno) errno = EPROTO;
    ERR_clear_error();
    return -1;
}

static ssize_t stream_receive(int descriptor, SSL *tls, void *target, size_t room) {
    if (tls) return tls_result(tls, SSL_read(tls, target, (int)room));
    return recv(descriptor, target, room, 0);
}

static ssize_t stream_send(int descriptor, SSL *tls, const void *bytes, size_t count) {
    if (tls) return tls_result(tls, SSL_write(tls, bytes, (int)count));
    return send(descriptor, bytes, count, MSG_NOSIGNAL);
}
