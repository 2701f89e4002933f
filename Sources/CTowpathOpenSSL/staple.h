// OCSP staples (RFC 6960, RFC 6066 §8) for Towpath.
#ifndef CTOWPATHOPENSSL_STAPLE_H
#define CTOWPATHOPENSSL_STAPLE_H

#include "shims.h"

#include <openssl/ocsp.h>

static const int OSSL_STAPLE_MISSING = 0, OSSL_STAPLE_GOOD = 1, OSSL_STAPLE_REVOKED = 2, OSSL_STAPLE_INVALID = 3;

// What the staple says about the server's certificate, once the chain is valid.
static inline int ossl_check_staple(SSL *ssl) {
    const unsigned char *bytes = NULL;
    long count = ossl_status_response(ssl, &bytes);
    if (!bytes || count <= 0) return OSSL_STAPLE_MISSING;
    STACK_OF(X509) *chain = SSL_get0_verified_chain(ssl);
    // A resumed session was judged before.
    if (!chain || sk_X509_num(chain) < 2) return OSSL_STAPLE_INVALID;
    int verdict = OSSL_STAPLE_INVALID, status, reason;
    ASN1_GENERALIZEDTIME *revoked, *begin, *end;
    OCSP_RESPONSE *response = d2i_OCSP_RESPONSE(NULL, &bytes, count);
    OCSP_BASICRESP *basic = response && OCSP_response_status(response) == OCSP_RESPONSE_STATUS_SUCCESSFUL ? OCSP_response_get1_basic(response) : NULL;
    OCSP_CERTID *id = OCSP_cert_to_id(NULL, sk_X509_value(chain, 0), sk_X509_value(chain, 1));
    if (basic && id && OCSP_basic_verify(basic, chain, SSL_CTX_get_cert_store(SSL_get_SSL_CTX(ssl)), 0) > 0
        && OCSP_resp_find_status(basic, id, &status, &reason, &revoked, &begin, &end)
        // Five minutes for clocks that differ.
        && OCSP_check_validity(begin, end, 300, -1))
        verdict = status == V_OCSP_CERTSTATUS_GOOD ? OSSL_STAPLE_GOOD : status == V_OCSP_CERTSTATUS_REVOKED ? OSSL_STAPLE_REVOKED : OSSL_STAPLE_INVALID;
    OCSP_CERTID_free(id);
    OCSP_BASICRESP_free(basic);
    OCSP_RESPONSE_free(response);
    return verdict;
}

// Whether a certificate promises a staple (RFC 7633).
static inline int ossl_must_staple(X509 *certificate) {
    TLS_FEATURE *features = X509_get_ext_d2i(certificate, NID_tlsfeature, NULL, NULL);
    if (!features) return 0;
    int promises = 0;
    for (int i = 0; i < sk_ASN1_INTEGER_num(features); i++) promises |= ASN1_INTEGER_get(sk_ASN1_INTEGER_value(features, i)) == 5;
    TLS_FEATURE_free(features);
    return promises;
}

#endif
