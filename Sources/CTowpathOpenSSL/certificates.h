// OpenSSL's certificates and keys for Towpath: typed stacks, macros as functions, and readers that never
// ask a terminal for a password.
#ifndef CTOWPATHOPENSSL_CERTIFICATES_H
#define CTOWPATHOPENSSL_CERTIFICATES_H

#include <errno.h>
#include <limits.h>
#include <openssl/asn1.h>
#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/rand.h>
#include <openssl/rsa.h>
#include <openssl/sha.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>
#include <string.h>
#include <time.h>

// ---- stacks
static inline int ossl_certificate_count(const STACK_OF(X509) *s) { return s ? sk_X509_num(s) : 0; }
static inline X509 *ossl_certificate_at(const STACK_OF(X509) *s, int i) { return sk_X509_value(s, i); }
static inline STACK_OF(X509) *ossl_certificates_new(void) { return sk_X509_new_null(); }
// The stack gets a reference of its own.
static inline int ossl_certificates_add(STACK_OF(X509) *s, X509 *x) { return X509_up_ref(x) && sk_X509_push(s, x) > 0; }
static inline void ossl_certificates_free(STACK_OF(X509) *s) { sk_X509_pop_free(s, X509_free); }

// ---- bytes in memory, which a BIO wipes when it is freed
static inline BIO *ossl_memory_new(void) { return BIO_new(BIO_s_mem()); }
static inline size_t ossl_memory_count(BIO *memory) { return BIO_ctrl_pending(memory); }
static inline long ossl_memory_bytes(BIO *memory, const uint8_t **bytes) { return BIO_get_mem_data(memory, bytes); }

// Another BIO over the same bytes, to read them more than once; without a byte order mark.
static inline BIO *ossl_memory_again(BIO *memory) {
    const uint8_t *bytes;
    long count = ossl_memory_bytes(memory, &bytes);
    if (count >= 3 && !memcmp(bytes, "\xEF\xBB\xBF", 3)) { bytes += 3; count -= 3; }
    return count <= INT_MAX ? BIO_new_mem_buf(bytes, (int)count) : NULL;
}
static inline int ossl_is_pem(BIO *memory) {
    static const char start[] = "-----BEGIN ";
    const uint8_t *bytes;
    long count = ossl_memory_bytes(memory, &bytes), i;
    for (i = 0; i + (long)sizeof start - 1 <= count; i++)
        if (!memcmp(bytes + i, start, sizeof start - 1)) return 1;
    return 0;
}

static inline int ossl_system_error(void) {
    unsigned long code = ERR_peek_error();
    ERR_clear_error();
    return ERR_SYSTEM_ERROR(code) ? ERR_GET_REASON(code) : EIO;
}
// Puts a file into memory. Returns 0 or an errno; EFBIG for more than the limit.
static inline int ossl_read_file(const char *path, BIO *memory, size_t limit) {
    char block[4096];
    int count, result = 0;
    size_t total = 0;
    ERR_clear_error();
    BIO *file = BIO_new_file(path, "rb");
    if (!file) return ossl_system_error();
    while ((count = BIO_read(file, block, sizeof block)) > 0) {
        total += (size_t)count;
        if (total > limit) { result = EFBIG; break; }
        if (BIO_write(memory, block, count) != count) { result = ENOMEM; break; }
    }
    if (count < 0) result = ossl_system_error();
    BIO_free(file);
    OPENSSL_cleanse(block, sizeof block);
    return result;
}
static inline const char *ossl_file_problem(int error) {
    switch (error) {
    case ENOENT: case ENOTDIR: return "there is no such file";
    case EACCES: case EPERM: return "this process may not read it";
    case EISDIR: return "it is a folder";
    case EFBIG: return "it is too large";
    default: return NULL;
    }
}

// ---- reading certificates
static inline int ossl_give_password(char *target, int room, int writing, void *password) {
    (void)writing;
    size_t count = password ? strlen(password) : 0;
    if (!password || count > (size_t)room) return -1;
    memcpy(target, password, count);
    return (int)count;
}
// Whether the reader came to the end of a PEM text, rather than to something malformed.
static inline int ossl_pem_ended(void) {
    unsigned long code = ERR_peek_last_error();
    if (ERR_GET_LIB(code) != ERR_LIB_PEM || ERR_GET_REASON(code) != PEM_R_NO_START_LINE) return 0;
    ERR_clear_error();
    return 1;
}
// Adds the certificates of a PEM text, until one is malformed: then it returns 0.
static inline int ossl_read_pem_certificates(BIO *memory, STACK_OF(X509) *into) {
    ERR_clear_error();
    BIO *text = ossl_memory_again(memory);
    X509 *x;
    if (!text) return 0;
    while ((x = PEM_read_bio_X509(text, NULL, ossl_give_password, NULL)))
        if (sk_X509_push(into, x) <= 0) { X509_free(x); break; }
    BIO_free(text);
    return !x && ossl_pem_ended();
}
static inline X509 *ossl_read_der_certificate(BIO *memory, int *has_trailing_bytes) {
    const uint8_t *bytes;
    long count = ossl_memory_bytes(memory, &bytes);
    const uint8_t *end = bytes + count;
    ERR_clear_error();
    X509 *x = d2i_X509(NULL, &bytes, count);
    *has_trailing_bytes = x && bytes != end;
    if (*has_trailing_bytes) { X509_free(x); return NULL; }
    return x;
}

// ---- reading keys
enum ossl_key_problem { OSSL_KEY_FINE, OSSL_KEY_MISSING, OSSL_KEY_MALFORMED, OSSL_KEY_LOCKED, OSSL_KEY_WRONG_PASSWORD, OSSL_KEY_OPENSSH };

static inline EVP_PKEY *ossl_key_of_der(const uint8_t *der, long count, const char *password, int *problem) {
    const uint8_t *bytes = der;
    EVP_PKEY *key = NULL;
    ERR_clear_error();
    X509_SIG *locked = d2i_X509_SIG(NULL, &bytes, count);
    if (!locked) {
        ERR_clear_error();
        bytes = der;
        key = d2i_AutoPrivateKey(NULL, &bytes, count);
        *problem = key ? OSSL_KEY_FINE : OSSL_KEY_MALFORMED;
    } else if (!password) {
        *problem = OSSL_KEY_LOCKED;
    } else {
        PKCS8_PRIV_KEY_INFO *plain = PKCS8_decrypt(locked, password, (int)strlen(password));
        if (plain) key = EVP_PKCS82PKEY(plain);
        PKCS8_PRIV_KEY_INFO_free(plain);
        *problem = key ? OSSL_KEY_FINE : OSSL_KEY_WRONG_PASSWORD;
    }
    X509_SIG_free(locked);
    return key;
}
static inline EVP_PKEY *ossl_key_of_pem(char *header, uint8_t *data, long count, const char *password, int *problem) {
    EVP_CIPHER_INFO cipher;
    ERR_clear_error();
    if (!PEM_get_EVP_CIPHER_INFO(header, &cipher)) { *problem = OSSL_KEY_MALFORMED; return NULL; }
    if (cipher.cipher && !password) { *problem = OSSL_KEY_LOCKED; return NULL; }
    *problem = OSSL_KEY_WRONG_PASSWORD;
    if (!PEM_do_header(&cipher, data, &count, ossl_give_password, (void *)password)) return NULL;
    EVP_PKEY *key = ossl_key_of_der(data, count, password, problem);
    // One wrong password in 256 decrypts to something with the right padding.
    if (!key && cipher.cipher) *problem = OSSL_KEY_WRONG_PASSWORD;
    return key;
}
static inline int ossl_ends_in(const char *text, const char *end) {
    size_t count = strlen(text), end_count = strlen(end);
    return count >= end_count && !strcmp(text + count - end_count, end);
}
// The first private key: in PEM between whatever else, or in DER.
static inline EVP_PKEY *ossl_read_key(BIO *memory, const char *password, int *problem) {
    if (!ossl_is_pem(memory)) {
        const uint8_t *bytes;
        long count = ossl_memory_bytes(memory, &bytes);
        return ossl_key_of_der(bytes, count, password, problem);
    }
    EVP_PKEY *key = NULL;
    BIO *text = ossl_memory_again(memory);
    int is_done = 0;
    *problem = OSSL_KEY_MISSING;
    ERR_clear_error();
    while (text && !is_done) {
        char *name = NULL, *header = NULL;
        uint8_t *data = NULL;
        long count = 0;
        if (!PEM_read_bio(text, &name, &header, &data, &count)) {
            if (!ossl_pem_ended()) *problem = OSSL_KEY_MALFORMED;
            break;
        }
        is_done = ossl_ends_in(name, "PRIVATE KEY");
        if (!strcmp(name, "OPENSSH PRIVATE KEY")) *problem = OSSL_KEY_OPENSSH;
        else if (is_done) key = ossl_key_of_pem(header, data, count, password, problem);
        OPENSSL_free(name);
        OPENSSL_free(header);
        OPENSSL_clear_free(data, (size_t)count);
    }
    BIO_free(text);
    return key;
}
// The key, its certificate and the others of a PKCS #12 file.
static inline int ossl_read_pkcs12(BIO *memory, const char *password, EVP_PKEY **key, X509 **leaf, STACK_OF(X509) *others) {
    const uint8_t *bytes;
    long count = ossl_memory_bytes(memory, &bytes);
    STACK_OF(X509) *found = NULL;
    ERR_clear_error();
    PKCS12 *file = d2i_PKCS12(NULL, &bytes, count);
    if (!file) return OSSL_KEY_MALFORMED;
    int is_read = PKCS12_parse(file, password, key, leaf, &found);
    PKCS12_free(file);
    if (!is_read) return password ? OSSL_KEY_WRONG_PASSWORD : OSSL_KEY_LOCKED;
    X509 *x;
    while (found && (x = sk_X509_shift(found)))
        if (sk_X509_push(others, x) <= 0) X509_free(x);
    sk_X509_free(found);
    return *key && *leaf ? OSSL_KEY_FINE : OSSL_KEY_MISSING;
}

// ---- what a certificate says; texts go into a BIO
static inline int ossl_write_subject(BIO *to, const X509 *x) { return X509_NAME_print_ex(to, X509_get_subject_name(x), 0, XN_FLAG_RFC2253) >= 0; }
static inline int ossl_write_issuer(BIO *to, const X509 *x) { return X509_NAME_print_ex(to, X509_get_issuer_name(x), 0, XN_FLAG_RFC2253) >= 0; }
static inline int ossl_write_der(BIO *to, X509 *x) { return i2d_X509_bio(to, x); }
static inline int ossl_write_pem(BIO *to, X509 *x) { return PEM_write_bio_X509(to, x); }
static inline int ossl_write_key(BIO *to, EVP_PKEY *key) { return PEM_write_bio_PKCS8PrivateKey(to, key, NULL, NULL, 0, NULL, NULL); }
static inline int ossl_write_serial(BIO *to, X509 *x) {
    BIGNUM *number = ASN1_INTEGER_to_BN(X509_get0_serialNumber(x), NULL);
    char *text = number ? BN_bn2hex(number) : NULL;
    int result = text && BIO_puts(to, text) > 0;
    OPENSSL_free(text);
    BN_free(number);
    return result;
}
// Seconds since 1970; `otherwise` if the time is malformed.
static inline int64_t ossl_seconds(const ASN1_TIME *time, int64_t otherwise) {
    int days = 0, seconds = 0;
    ASN1_TIME *epoch = ASN1_TIME_set(NULL, 0);
    int result = epoch && ASN1_TIME_diff(&days, &seconds, epoch, time);
    ASN1_TIME_free(epoch);
    return result ? (int64_t)days * 86400 + seconds : otherwise;
}
static inline int64_t ossl_not_before(const X509 *x) { return ossl_seconds(X509_get0_notBefore(x), INT64_MAX); }
static inline int64_t ossl_not_after(const X509 *x) { return ossl_seconds(X509_get0_notAfter(x), INT64_MIN); }

// Alternative names; NULL if there are none, or if they are malformed.
static inline GENERAL_NAMES *ossl_names(X509 *x) { return X509_get_ext_d2i(x, NID_subject_alt_name, NULL, NULL); }
static inline int ossl_name_count(const GENERAL_NAMES *names) { return sk_GENERAL_NAME_num(names); }
static inline int ossl_name_type(const GENERAL_NAMES *names, int i) { return sk_GENERAL_NAME_value(names, i)->type; }
static inline int ossl_write_name(BIO *to, const GENERAL_NAMES *names, int i) {
    int type;
    const ASN1_STRING *value = GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(names, i), &type);
    if (!value || (type != GEN_DNS && type != GEN_EMAIL && type != GEN_URI && type != GEN_IPADD)) return 0;
    int count = ASN1_STRING_length(value);
    return count > 0 && BIO_write(to, ASN1_STRING_get0_data(value), count) == count;
}
static inline int ossl_write_octets(BIO *to, const ASN1_OCTET_STRING *octets) { return BIO_write(to, octets->data, octets->length); }
static inline void ossl_names_free(GENERAL_NAMES *names) { GENERAL_NAMES_free(names); }

// The SHA-256 of the SubjectPublicKeyInfo, of any type of key.
static inline int ossl_pin(const X509 *x, uint8_t *digest) {
    uint8_t *der = NULL;
    int count = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(x), &der);
    int result = count > 0 && SHA256(der, (size_t)count, digest);
    OPENSSL_free(der);
    return result;
}
static inline const char *ossl_key_type(EVP_PKEY *key) { return EVP_PKEY_get0_type_name(key); }
static inline int ossl_key_bits(EVP_PKEY *key) { return EVP_PKEY_get_bits(key); }
// P-256 where NIST has a name, else OpenSSL's.
static inline int ossl_write_curve(BIO *to, EVP_PKEY *key) {
    char name[64];
    if (!EVP_PKEY_get_group_name(key, name, sizeof name, NULL)) return 0;
    const char *nist = EC_curve_nid2nist(OBJ_sn2nid(name));
    return BIO_puts(to, nist ? nist : name) > 0;
}
// The name or number of an algorithm whose keys OpenSSL does not know.
static inline int ossl_write_key_algorithm(BIO *to, const X509 *x) {
    ASN1_OBJECT *algorithm;
    if (!X509_PUBKEY_get0_param(&algorithm, NULL, NULL, NULL, X509_get_X509_PUBKEY(x))) return 0;
    return i2a_ASN1_OBJECT(to, algorithm) > 0;
}

// ---- issuing; the serial number is random, text is as in openssl.cnf
static inline EVP_PKEY *ossl_new_key(const char *type) { return EVP_PKEY_Q_keygen(NULL, NULL, type); }
static inline EVP_PKEY *ossl_new_ec_key(const char *curve) { return EVP_PKEY_Q_keygen(NULL, NULL, "EC", curve); }
static inline EVP_PKEY *ossl_new_rsa_key(const char *type, int bits) {
    EVP_PKEY *key = NULL;
    EVP_PKEY_CTX *c = EVP_PKEY_CTX_new_from_name(NULL, type, NULL);
    if (c && EVP_PKEY_keygen_init(c) > 0 && EVP_PKEY_CTX_set_rsa_keygen_bits(c, bits) > 0) EVP_PKEY_generate(c, &key);
    EVP_PKEY_CTX_free(c);
    return key;
}
static inline int ossl_add_extension(X509 *x, X509 *issuer, const char *name, const char *text) {
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer, x, NULL, NULL, 0);
    X509V3_set_ctx_nodb(&context);
    X509_EXTENSION *extension = X509V3_EXT_nconf(NULL, &context, name, text);
    int result = extension && X509_add_ext(x, extension, -1);
    X509_EXTENSION_free(extension);
    return result;
}

#endif
