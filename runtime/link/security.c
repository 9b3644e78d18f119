/* Authenticates the peers of a link: turns the key file and the certificates into OpenSSL's configuration for TLS 1.3
 * and into proofs above it (docs/protocol.md#handshake). */
#include "runtime/link/security.h"
#include "base/digest.h"
#include "base/file.h"
#include "base/side.h"
#include "runtime/link/address.h"

#include <openssl/err.h>
#include <openssl/hmac.h>
#include <openssl/kdf.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/auxv.h>
#include <sys/stat.h>

enum { LEAST_KEY = 16, MOST_KEY_FILE = 64 << 10, MOST_KEY = 4096, MOST_PEM = 1 << 20 };

/* ---- files ------------------------------------------------------------------------------------------------------- */

static lp_status check_size(const char *path, size_t size, size_t most, lp_diag *diag) {
  return size <= most ? LP_OK : lp_error(diag, LP_LOC_FILE(path), "%zu bytes; at most %zu are read", size, most);
}

/* A credential of this service: root's file directly in $CREDENTIALS_DIRECTORY. systemd lets the service read it by an
 * access control list, which the mode shows as rights of the group. */
static bool is_credential(const char *path, const struct stat *info) {
  const char *folder = getenv("CREDENTIALS_DIRECTORY");
  size_t size = folder ? strlen(folder) : 0;
  if (size == 0 || strncmp(path, folder, size) != 0 || path[size] != '/' || strchr(path + size + 1, '/')) return false;
  return info->st_uid == 0 && (info->st_mode & (S_IWGRP | S_IXGRP | S_IRWXO)) == 0;
}

/* Refuses a secret that other users can read. */
static lp_status check_private(const char *path, lp_diag *diag) {
  struct stat info;
  if (stat(path, &info) != 0 || (info.st_mode & (S_IRWXG | S_IRWXO)) == 0 || is_credential(path, &info)) return LP_OK;
  lp_status status = lp_error(diag, LP_LOC_FILE(path), "other users may read this secret");
  lp_note(diag, LP_LOC_FILE(path), "chmod 600 %s", path);
  return status;
}

/* Hashes a label with its zero byte, and the key. */
static void hash_key(const char *label, const lp_key *key, uint8_t out[LP_PSK_BYTES]) {
  lp_sha256 sha;
  lp_sha256_init(&sha);
  lp_sha256_update(&sha, label, strlen(label) + 1);
  lp_sha256_update(&sha, key->bytes, key->size);
  lp_sha256_bytes(&sha, out);
}

static void add_key(lp_security *to, const uint8_t *bytes, size_t size) {
  uint8_t hash[LP_PSK_BYTES];
  to->key = lp_realloc(to->key, (to->key_count + 2) * sizeof *to->key);
  lp_key *made = &to->key[to->key_count++];
  *made = (lp_key){.bytes = bytes, .size = size};
  made[1] = (lp_key){0};
  hash_key("llmpart/4 pre-shared key", made, made->psk);
  hash_key("llmpart/4 key name", made, hash);
  size_t at = (size_t)snprintf(made->name, sizeof made->name, "llmpart/");
  for (size_t i = 0; i < 8; i++)
    at += (size_t)snprintf(made->name + at, sizeof made->name - at, "%02x", hash[i]);
}

/* The size of the key in the line at `text`; 0: the line holds no key, since it is short or has other characters than
 * printable ones. */
static size_t line_of(const uint8_t *text, size_t size) {
  size_t length = 0;
  while (length < size && text[length] > ' ' && text[length] < 127)
    length++;
  bool ends = length == size || text[length] == '\n' || (text[length] == '\r' && text[length + 1] == '\n');
  return ends && length >= LEAST_KEY ? length : 0;
}

/* Takes a key from each line if all lines hold one; false: the file as a whole is one key, in bytes of any value. */
static bool split_keys(lp_security *out) {
  const uint8_t *text = out->key_file;
  for (size_t at = 0, length = 0; at < out->key_file_size; at += length + 1) {
    length = line_of(text + at, out->key_file_size - at);
    if (length == 0) {
      out->key_count = 0;
      return false;
    }
    add_key(out, text + at, length);
    if (text[at + length] == '\r') at++;
  }
  return true;
}

/* `text` has a zero byte at its end. */
static lp_status read_keys(const char *path, bool worker, lp_security *out, lp_diag *diag) {
  char *text = NULL;
  LP_TRY(check_private(path, diag));
  LP_TRY(lp_file_read(path, &text, &out->key_file_size, diag));
  out->key_file = (uint8_t *)text;
  LP_TRY(check_size(path, out->key_file_size, worker ? MOST_KEY_FILE : MOST_KEY, diag));
  while (out->key_file_size > 0 && (text[out->key_file_size - 1] == '\n' || text[out->key_file_size - 1] == '\r'))
    out->key_file_size--;
  if (out->key_file_size < LEAST_KEY) {
    lp_status status =
        lp_error(diag, LP_LOC_FILE(path), "a key of %zu bytes; wanted %d or more", out->key_file_size, LEAST_KEY);
    lp_note(diag, LP_LOC_FILE(path), "openssl rand -hex 32 >%s makes one", path);
    return status;
  }
  if (!split_keys(out)) add_key(out, out->key_file, out->key_file_size);
  if (worker || out->key_count == 1) return LP_OK;
  return lp_error(diag, LP_LOC_FILE(path), "%zu keys, a line each; a device holds one", out->key_count);
}

static lp_status check_pem(const char *path, lp_diag *diag) {
  struct stat info;
  return stat(path, &info) != 0 ? LP_OK : check_size(path, (size_t)info.st_size, MOST_PEM, diag);
}

static lp_status no_tls(const char *path, const char *what, lp_diag *diag) {
  unsigned long error = ERR_peek_last_error();
  const char *why = ERR_SYSTEM_ERROR(error) ? strerror(ERR_GET_REASON(error)) : ERR_reason_error_string(error);
  return lp_error(diag, LP_LOC_FILE(path), "no %s for TLS: %s", what, why ? why : "it cannot be read");
}

/* A private key with a passphrase is refused: there is no prompt to enter it. */
static int give_no_passphrase(char *to, int size, int writes, void *user) {
  (void)to, (void)size, (void)writes, (void)user;
  return -1;
}

static lp_status read_own_certificate(const lp_link_security *from, SSL_CTX *tls, lp_diag *diag) {
  LP_TRY(check_private(from->cert_key_file, diag));
  LP_TRY(check_pem(from->cert_file, diag));
  LP_TRY(check_pem(from->cert_key_file, diag));
  if (SSL_CTX_use_certificate_chain_file(tls, from->cert_file) == 1 &&
      SSL_CTX_use_PrivateKey_file(tls, from->cert_key_file, SSL_FILETYPE_PEM) == 1 &&
      SSL_CTX_check_private_key(tls) == 1)
    return LP_OK;
  return no_tls(from->cert_file, "certificate and private key", diag);
}

/* Makes OpenSSL read and cache a certificate's extensions now, before connections on several threads share it. */
static void read_extensions(const SSL_CTX *tls) {
  STACK_OF(X509_OBJECT) *all = X509_STORE_get0_objects(SSL_CTX_get_cert_store(tls));
  for (int i = 0; i < sk_X509_OBJECT_num(all); i++) {
    X509 *certificate = X509_OBJECT_get0_X509(sk_X509_OBJECT_value(all, i));
    if (certificate) (void)X509_check_purpose(certificate, -1, 0);
  }
}

/* The other side must show one of these certificates, or one that they signed. */
static lp_status read_trusted(const char *path, SSL_CTX *tls, lp_diag *diag) {
  LP_TRY(check_pem(path, diag));
  SSL_CTX_set_verify(tls, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
  if (SSL_CTX_load_verify_file(tls, path) != 1) return no_tls(path, "certificate", diag);
  read_extensions(tls);
  return LP_OK;
}

/* ---- TLS --------------------------------------------------------------------------------------------------------- */

/* These callbacks are OpenSSL's for older versions of TLS. In TLS 1.3 it uses their key as an external pre-shared key
 * (RFC 8446, 4.2.11) of TLS_AES_128_GCM_SHA256. */
static unsigned give_key(SSL *tls, const lp_key *key, unsigned char *psk) {
  (void)SSL_set_ex_data(tls, 0, (void *)(uintptr_t)key); /* SSL_get_app_data of lp_security_identify; only read */
  memcpy(psk, key->psk, LP_PSK_BYTES);
  return LP_PSK_BYTES;
}

static const lp_key *keys_of(const SSL *tls) {
  return SSL_CTX_get_app_data(SSL_get_SSL_CTX(tls));
}

static unsigned offer_key(SSL *tls, const char *hint, char *identity, unsigned room, unsigned char *psk,
                          unsigned most) {
  (void)hint, (void)most;
  const lp_key *key = keys_of(tls);
  snprintf(identity, room, "%s", key->name);
  return give_key(tls, key, psk);
}

/* A device with another key is refused by the first one, because the handshake's hashes differ. */
static unsigned find_key(SSL *tls, const char *identity, unsigned char *psk, unsigned most) {
  (void)most;
  for (const lp_key *key = keys_of(tls); key->bytes; key++)
    if (lp_streq(identity, key->name)) return give_key(tls, key, psk);
  return give_key(tls, keys_of(tls), psk);
}

/* In TLS 1.3 a handshake uses either a pre-shared key or certificates. */
static void use_keys(lp_security *out, bool worker) {
  SSL_CTX_set_app_data(out->tls, out->key);
  if (worker)
    SSL_CTX_set_psk_server_callback(out->tls, find_key);
  else
    SSL_CTX_set_psk_client_callback(out->tls, offer_key);
}

/* ---- clients ----------------------------------------------------------------------------------------------------- */

static uint64_t number_of(const uint8_t *hash) {
  uint64_t number = 0;
  memcpy(&number, hash, sizeof number);
  return number | 1; /* 0 is nobody's */
}

static uint64_t holder_of(const lp_key *all, const lp_key *key) {
  return all && key && all[1].bytes ? number_of(key->psk) : 0;
}

uint64_t lp_security_holder(const lp_security *security, const lp_key *key) {
  return holder_of(security->key, key);
}

uint64_t lp_security_identify(SSL *tls) {
  uint8_t hash[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  X509 *certificate = SSL_get0_peer_certificate(tls);
  if (certificate) return X509_digest(certificate, EVP_sha256(), hash, &size) == 1 ? number_of(hash) : 0;
  return holder_of(keys_of(tls), SSL_get_app_data(tls));
}

/* ---- the configuration ------------------------------------------------------------------------------------------- */

/* On CPUs without AES instructions ChaCha20 is faster, and its time does not depend on the key. */
static bool has_fast_aes(void) {
#if defined(__x86_64__)
  return __builtin_cpu_supports("aes") != 0;
#elif defined(__aarch64__)
  return (getauxval(AT_HWCAP) & 8 /* HWCAP_AES */) != 0;
#else
  return false;
#endif
}

/* OpenSSL looks an algorithm up when it first needs it. If memory is short then, it takes the algorithm for one that
 * does not exist, for ever: so those of a handshake are looked up before the first one. */
static bool find_algorithms(void) {
  unsigned char byte;
  EVP_MAC *mac = EVP_MAC_fetch(NULL, "HMAC", NULL);
  EVP_KDF *kdf = EVP_KDF_fetch(NULL, "TLS13-KDF", NULL);
  EVP_KEYMGMT *keys = EVP_KEYMGMT_fetch(NULL, "X25519", NULL);
  EVP_KEYEXCH *exchange = EVP_KEYEXCH_fetch(NULL, "X25519", NULL);
  EVP_SIGNATURE *signature = EVP_SIGNATURE_fetch(NULL, "ECDSA", NULL);
  bool found =
      mac && kdf && keys && exchange && signature && RAND_bytes(&byte, 1) == 1 && RAND_priv_bytes(&byte, 1) == 1;
  EVP_MAC_free(mac);
  EVP_KDF_free(kdf);
  EVP_KEYMGMT_free(keys);
  EVP_KEYEXCH_free(exchange);
  EVP_SIGNATURE_free(signature);
  return found;
}

/* TLS 1.3 only, without tickets: a broken connection is replaced by a full handshake. The device's order of cipher
 * suites decides. */
static lp_status create_tls(bool worker, lp_security *out, lp_diag *diag) {
  ERR_clear_error();
  out->tls = SSL_CTX_new(worker ? TLS_server_method() : TLS_client_method());
  const char *suites = has_fast_aes() ? "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256"
                                      : "TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256";
  if (!find_algorithms() || !out->tls || SSL_CTX_set_min_proto_version(out->tls, TLS1_3_VERSION) != 1 ||
      SSL_CTX_set_ciphersuites(out->tls, suites) != 1 || SSL_CTX_set_num_tickets(out->tls, 0) != 1)
    return lp_error(diag, LP_LOC_NONE, "cannot set up TLS");
  SSL_CTX_set_mode(out->tls, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_session_cache_mode(out->tls, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_default_passwd_cb(out->tls, give_no_passphrase);
  SSL_CTX_set_read_ahead(out->tls, 1);
  SSL_CTX_set_default_read_buffer_len(out->tls, 32 << 10);
  X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(out->tls),
                              X509_V_FLAG_PARTIAL_CHAIN); /* a pinned certificate need not be self-signed */
  SSL_CTX_set_verify(out->tls, worker ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, NULL);
  return LP_OK;
}

static void expect_name(SSL_CTX *tls, const char *name) {
  X509_VERIFY_PARAM *check = SSL_CTX_get0_param(tls);
  if (X509_VERIFY_PARAM_set1_ip_asc(check, name) != 1) (void)X509_VERIFY_PARAM_set1_host(check, name, 0);
  ERR_clear_error();
}

static lp_status open_certified(const lp_link_security *from, bool worker, lp_security *out, lp_diag *diag) {
  const char *own = from->cert_file, *trusted = worker ? from->client_ca_file : from->ca_file;
  if (!worker && from->server_name) expect_name(out->tls, from->server_name);
  if (own) LP_TRY(read_own_certificate(from, out->tls, diag));
  if (trusted) LP_TRY(read_trusted(trusted, out->tls, diag));
  out->certified = own && trusted;
  out->proves = out->key_count > 0;
  return LP_OK;
}

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

static lp_status check_files(const lp_link_security *from, bool worker, bool loopback, lp_diag *diag) {
  const char *tls = worker ? from->cert_file : from->ca_file, *device = worker ? from->client_ca_file : from->cert_file;
  if (!loopback && !from->key_file && (!tls || !device)) {
    lp_status status = lp_error(diag, LP_LOC_NONE, "off loopback a key or certificates are required: %s",
                                worker ? "--key-file, or --cert, --cert-key and --client-ca"
                                       : "--key-file, or --ca, --cert and --cert-key");
    lp_note(diag, LP_LOC_NONE, "or bring the port over through a tunnel, such as ssh -L, and use 127.0.0.1");
    return status;
  }
  if (!from->cert_file != !from->cert_key_file)
    return lp_error(diag, LP_LOC_NONE, "--cert and --cert-key belong together");
  if (tls || !device) return LP_OK;
  return lp_error(diag, LP_LOC_NONE, "%s",
                  worker ? "--client-ca needs --cert and --cert-key" : "--cert needs the worker's certificate: --ca");
}

lp_status lp_security_open(const lp_link_security *from, lp_side side, bool loopback, lp_security *out, lp_diag *diag) {
  *out = (lp_security){0};
  bool worker = side == LP_SIDE_CLOUD, certificates = (worker ? from->cert_file : from->ca_file) != NULL;
  LP_TRY(check_files(from, worker, loopback, diag));
  if (from->key_file) LP_TRY(read_keys(from->key_file, worker, out, diag));
  if (out->key_count == 0 && !certificates) return LP_OK;
  LP_TRY(create_tls(worker, out, diag));
  if (certificates) return open_certified(from, worker, out, diag);
  use_keys(out, worker);
  return LP_OK;
}

lp_status lp_security_for(const char *address, const lp_link_security *from, lp_security *out, lp_diag *diag) {
  char *host = NULL;
  int port = 0;
  *out = (lp_security){0};
  LP_TRY(lp_address_split(address, &host, &port, diag));
  bool loopback = lp_address_is_loopback(host);
  free(host);
  return lp_security_open(from, LP_SIDE_DEVICE, loopback, out, diag);
}

void lp_security_close(lp_security *security) {
  if (security->key_file) explicit_bzero(security->key_file, security->key_file_size);
  if (security->key) explicit_bzero(security->key, security->key_count * sizeof *security->key);
  SSL_CTX_free(security->tls);
  free(security->key_file);
  free(security->key);
  *security = (lp_security){0};
}

/* ---- proofs ------------------------------------------------------------------------------------------------------ */

/* HMAC-SHA256 under the key over "llmpart/4 " and the side's name with its zero byte, the binding, and the bundle's
 * hash. */
void lp_security_prove(const lp_key *key, lp_side who, const uint8_t binding[LP_BINDING_BYTES], const char *bundle_hash,
                       uint8_t out[LP_PROOF_BYTES]) {
  const char *label = who == LP_SIDE_CLOUD ? "llmpart/4 worker" : "llmpart/4 device";
  LP_OWNED(lp_buf_free) lp_buf message = {0};
  unsigned size = LP_PROOF_BYTES;
  lp_buf_append(&message, label, strlen(label) + 1);
  lp_buf_append(&message, binding, LP_BINDING_BYTES);
  lp_buf_append(&message, bundle_hash, strlen(bundle_hash));
  if (HMAC(EVP_sha256(), key->bytes, (int)key->size, (const uint8_t *)message.data, message.size, out, &size) == NULL)
    abort(); /* no memory */
}
