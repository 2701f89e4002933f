// OpenSSL's certificates and keys for Towpath: typed stacks and macros as functions.
#ifndef CTOWPATHOPENSSL_CERTIFICATES_H
#define CTOWPATHOPENSSL_CERTIFICATES_H

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/sha.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

// ---- stacks
static inline int ossl_certificate_count(const STACK_OF(X509) *s) { return s ? sk_X509_num(s) : 0; }
static inline X509 *ossl_certificate_at(const STACK_OF(X509) *s, int i) { return sk_X509_value(s, i); }
static inline STACK_OF(X509) *ossl_certificates_new(void) { return sk_X509_new_null(); }
// The stack gets a reference of its own.
static inline int ossl_certificates_add(STACK_OF(X509) *s, X509 *x) { return X509_up_ref(x) && sk_X509_push(s, x) > 0; }
static inline void ossl_certificates_free(STACK_OF(X509) *s) { sk_X509_pop_free(s, X509_free); }

#endif
