// OpenSSL's certificates and keys for Towpath: typed stacks and macros as functions.
#ifndef CTOWPATHOPENSSL_CERTIFICATES_H
#define CTOWPATHOPENSSL_CERTIFICATES_H

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>
#include <stdint.h>
#include <string.h>

// ---- stacks
static inline int ossl_certificate_count(const STACK_OF(X509) *s) { return s ? sk_X509_num(s) : 0; }
static inline X509 *ossl_certificate_at(const STACK_OF(X509) *s, int i) { return sk_X509_value(s, i); }
static inline STACK_OF(X509) *ossl_certificates_new(void) { return sk_X509_new_null(); }
// The stack gets a reference of its own.
static inline int ossl_certificates_add(STACK_OF(X509) *s, X509 *x) { return X509_up_ref(x) && sk_X509_push(s, x) > 0; }
static inline void ossl_certificates_free(STACK_OF(X509) *s) { sk_X509_pop_free(s, X509_free); }

// ---- names. GENERAL_NAMEs of the subject; NULL also where the extension is malformed.
static inline GENERAL_NAMES *ossl_alternative_names(const X509 *x) { return X509_get_ext_d2i(x, NID_subject_alt_name, NULL, NULL); }
static inline void ossl_names_free(GENERAL_NAMES *names) { GENERAL_NAMES_free(names); }
static inline int ossl_name_count(const GENERAL_NAMES *names) { return sk_GENERAL_NAME_num(names); }
// The kind (GEN_DNS, GEN_IPADD, GEN_EMAIL, GEN_URI; -1 for others) and the bytes of one.
static inline int ossl_name_at(const GENERAL_NAMES *names, int i, const uint8_t **bytes, int *count) {
    GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);
    if (name->type != GEN_DNS && name->type != GEN_IPADD && name->type != GEN_EMAIL && name->type != GEN_URI) return -1;
    const ASN1_STRING *value = name->type == GEN_IPADD ? name->d.iPAddress : name->d.ia5;
    *bytes = ASN1_STRING_get0_data(value);
    *count = ASN1_STRING_length(value);
    return name->type;
}

// RFC 4514, with letters beyond ASCII as they are.
static inline int ossl_print_name(BIO *bio, const X509_NAME *name) { return X509_NAME_print_ex(bio, name, 0, XN_FLAG_RFC2253 & ~ASN1_STRFLGS_ESC_MSB); }

// ---- times: seconds since 1970, or the other value where it is malformed
static inline int64_t ossl_seconds(const ASN1_TIME *time, int64_t otherwise) {
    int days = 0, seconds = 0;
    ASN1_TIME *epoch = ASN1_TIME_set(NULL, 0);
    int ok = epoch && ASN1_TIME_diff(&days, &seconds, epoch, time);
    ASN1_TIME_free(epoch);
    return ok ? (int64_t)days * 86400 + seconds : otherwise;
}

// ---- passwords. OpenSSL would ask on the terminal without a callback.
struct ossl_password { const char *text; size_t count; int asked; };
static int ossl_password_callback(char *target, int room, int writing, void *context) {
    (void)writing;
    struct ossl_password *password = context;
    password->asked = 1;
    if (!password->text || (int)password->count > room) return -1;
    memcpy(target, password->text, password->count);
    return (int)password->count;
}
// A private key from PEM or DER, encrypted or not.
static inline EVP_PKEY *ossl_read_key(const uint8_t *bytes, size_t count, struct ossl_password *password) {
    BIO *bio = BIO_new_mem_buf(bytes, (int)count);
    if (!bio) return NULL;
    EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, ossl_password_callback, password);
    if (!key) { (void)BIO_reset(bio); key = d2i_PrivateKey_bio(bio, NULL); }
    if (!key && !password->asked) { (void)BIO_reset(bio); key = d2i_PKCS8PrivateKey_bio(bio, NULL, ossl_password_callback, password); }
    BIO_free(bio);
    return key;
}
// The certificates of PEM, in their order; NULL if one of them is malformed.
static inline STACK_OF(X509) *ossl_read_certificates(const uint8_t *bytes, size_t count) {
    STACK_OF(X509) *list = sk_X509_new_null();
    BIO *bio = BIO_new_mem_buf(bytes, (int)count);
    X509 *next;
    while (list && bio && (next = PEM_read_bio_X509(bio, NULL, NULL, NULL))) sk_X509_push(list, next);
    BIO_free(bio);
    unsigned long error = ERR_peek_last_error();
    // The end of the file is no fault.
    if (ERR_GET_REASON(error) == PEM_R_NO_START_LINE) { ERR_clear_error(); return list; }
    ossl_certificates_free(list);
    return NULL;
}

// ---- a certificate of one's own
static inline EVP_PKEY *ossl_new_p256_key(void) { return EVP_EC_gen("P-256"); }
static inline EVP_PKEY *ossl_new_rsa_key(unsigned bits) { return EVP_RSA_gen(bits); }
static inline EVP_PKEY *ossl_new_ed25519_key(void) { return EVP_PKEY_Q_keygen(NULL, NULL, "ED25519"); }
static inline int ossl_set_validity(X509 *x, long begin, long end) { return X509_gmtime_adj(X509_getm_notBefore(x), begin) && X509_gmtime_adj(X509_getm_notAfter(x), end); }
static inline int ossl_set_serial(X509 *x) {
    uint8_t bytes[16];
    if (RAND_bytes(bytes, sizeof bytes) != 1) return 0;
    bytes[0] &= 0x7F;
    BIGNUM *number = BN_bin2bn(bytes, sizeof bytes, NULL);
    int ok = number && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(x));
    BN_free(number);
    return ok;
}
static inline int ossl_add_extension(X509 *x, X509 *issuer, int nid, const char *value) {
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer, x, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    int ok = extension && X509_add_ext(x, extension, -1);
    X509_EXTENSION_free(extension);
    return ok;
}
static inline int ossl_is_address(const char *text) { ASN1_OCTET_STRING *ip = a2i_IPADDRESS(text); ASN1_OCTET_STRING_free(ip); return ip != NULL; }

#endif
