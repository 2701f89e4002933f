// Extensions of certificates that X509_verify_cert(3) does not look at closely enough, for Towpath.
#ifndef CTOWPATHOPENSSL_CONSTRAINTS_H
#define CTOWPATHOPENSSL_CONSTRAINTS_H

#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <stdint.h>

static inline int ossl_has_extension(const X509 *x, int nid) { return X509_get_ext_by_NID(x, nid, -1) >= 0; }
// Whether AuthorityInfoAccess is there, and cannot be read or stands there twice.
static inline int ossl_has_malformed_access(const X509 *x) {
    int critical = -1;
    AUTHORITY_INFO_ACCESS *access = X509_get_ext_d2i(x, NID_info_access, &critical, NULL);
    AUTHORITY_INFO_ACCESS_free(access);
    return !access && critical != -1;
}
static inline NAME_CONSTRAINTS *ossl_name_constraints(const X509 *x) { return X509_get_ext_d2i(x, NID_name_constraints, NULL, NULL); }
static inline int ossl_excluded_count(const NAME_CONSTRAINTS *c) { return c->excludedSubtrees ? sk_GENERAL_SUBTREE_num(c->excludedSubtrees) : 0; }
static inline int ossl_permitted_count(const NAME_CONSTRAINTS *c) { return c->permittedSubtrees ? sk_GENERAL_SUBTREE_num(c->permittedSubtrees) : 0; }
// The host names of one excluded subtree; 0 for one of another kind.
static inline int ossl_excluded_host(const NAME_CONSTRAINTS *c, int i, const uint8_t **bytes, int *count) {
    const GENERAL_NAME *name = sk_GENERAL_SUBTREE_value(c->excludedSubtrees, i)->base;
    if (name->type != GEN_DNS) return 0;
    *bytes = ASN1_STRING_get0_data(name->d.ia5);
    *count = ASN1_STRING_length(name->d.ia5);
    return 1;
}

#endif
