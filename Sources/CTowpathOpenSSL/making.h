// Certificates of any kind, also wrong ones: for tests.
#ifndef CTOWPATHOPENSSL_MAKING_H
#define CTOWPATHOPENSSL_MAKING_H

#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <stdint.h>
#include <string.h>

static inline EVP_PKEY *ossl_make_key(const char *type, unsigned bits) {
    if (bits) return EVP_RSA_gen(bits);
    return strcmp(type, "EC") ? EVP_PKEY_Q_keygen(NULL, NULL, type) : EVP_EC_gen("P-256");
}
static inline int ossl_make_validity(X509 *x, long begin, long end) { return X509_gmtime_adj(X509_getm_notBefore(x), begin) && X509_gmtime_adj(X509_getm_notAfter(x), end); }
static inline int ossl_make_serial(X509 *x) {
    uint8_t bytes[16];
    if (RAND_bytes(bytes, sizeof bytes) != 1) return 0;
    bytes[0] &= 0x7F;
    BIGNUM *number = BN_bin2bn(bytes, sizeof bytes, NULL);
    int ok = number && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(x));
    BN_free(number);
    return ok;
}
static inline int ossl_make_extension(X509 *x, X509 *issuer, int nid, const char *value) {
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer, x, NULL, NULL, 0);
    X509V3_set_ctx_nodb(&context);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    int ok = extension && X509_add_ext(x, extension, -1);
    X509_EXTENSION_free(extension);
    return ok;
}

#endif
