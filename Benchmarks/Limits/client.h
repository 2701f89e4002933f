// The client's side of TLS in load.c.
#pragma once
#include "options.h"
#include "tls.h"

static SSL_CTX *secure;
static SSL_SESSION *session; // the newest

static int keep_session(SSL *tls, SSL_SESSION *new) {
    (void)tls;
    SSL_SESSION_free(session);
    session = new;
    return 1;
}

static bool prepare_tls(void) {
    secure = tls_context(TLS_client_method());
    if (!secure) return false;
    SSL_CTX_set_verify(secure, SSL_VERIFY_NONE, NULL);
    if (!resume) return true;
    SSL_CTX_set_session_cache_mode(secure, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(secure, keep_session);
    return true;
}

// NULL without memory.
static SSL *tls_client(int descriptor) {
    SSL *tls = SSL_new(secure);
    if (!tls || !SSL_set_fd(tls, descriptor)) return NULL;
    SSL_set_connect_state(tls);
    SSL_set_tlsext_host_name(tls, "localhost");
    if (!session) return tls;
    // A copy: TLS 1.3 lets a session be used but once, and others may begin before the next one comes.
    SSL_SESSION *copy = SSL_SESSION_dup(session);
    if (copy) SSL_set_session(tls, copy);
    SSL_SESSION_free(copy);
    return tls;
}
