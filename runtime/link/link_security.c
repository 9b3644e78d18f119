/* Who may talk to whom: certificates for TLS, and the proof that both sides hold the same key. docs/protocol.md. */
#include "runtime/link/link_security.h"
#include "base/digest.h"
#include "base/file.h"
#include "base/side.h"
#include "runtime/exec/executor.h"
#include "runtime/link/link.h"
#include "runtime/runtime.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "runtime/link/tls.h"

enum { LEAST_KEY = 16, MOST_KEY = 4096, MOST_PEM = 1 << 20, BLOCK = 64 };

/* ---- files ------------------------------------------------------------------------------------------------------- */

static lp_status read_text(const char *path, size_t most, char **out, size_t *size, lp_diag *diag) {
  LP_TRY(lp_file_read(path, out, size, diag));
  if (*size <= most) return LP_OK;
  free(*out);
  *out = NULL;
  return lp_error(diag, LP_LOC_FILE(path), "%zu bytes; at most %zu are read", *size, most);
}

/* A secret that others can read is none. */
static lp_status check_private(const char *path, lp_diag *diag) {
  struct stat info;
  if (stat(path, &info) != 0 || (info.st_mode & (S_IRWXG | S_IRWXO)) == 0) return LP_OK;
  lp_status status = lp_error(diag, LP_LOC_FILE(path), "other users may read this secret");
  lp_note(diag, LP_LOC_FILE(path), "chmod 600 %s", path);
  return status;
}

static lp_status read_key(const char *path, lp_security *out, lp_diag *diag) {
  char *text = NULL;
  LP_TRY(check_private(path, diag));
  LP_TRY(read_text(path, MOST_KEY, &text, &out->key_size, diag));
  while (out->key_size > 0 && (text[out->key_size - 1] == '\n' || text[out->key_size - 1] == '\r'))
    out->key_size--;
  out->key = (uint8_t *)text;
  if (out->key_size >= LEAST_KEY) return LP_OK;
  lp_status status =
      lp_error(diag, LP_LOC_FILE(path), "a key of %zu bytes; wanted %d or more", out->key_size, LEAST_KEY);
  lp_note(diag, LP_LOC_FILE(path), "openssl rand -hex 32 >%s makes one", path);
  return status;
}

static lp_status no_tls(const char *path, const char *what, int error, lp_diag *diag) {
  char why[128];
  lp_tls_describe(error, why, sizeof(why));
  return lp_error(diag, LP_LOC_FILE(path), "no %s for TLS: %s", what, why);
}

static lp_status read_own_certificate(const lp_link_security *from, lp_security *out, lp_diag *diag) {
  char *certificate = NULL, *key = NULL;
  size_t size = 0;
  LP_TRY(check_private(from->cert_key_file, diag));
  LP_TRY(read_text(from->cert_file, MOST_PEM, &certificate, &size, diag));
  lp_status status = read_text(from->cert_key_file, MOST_PEM, &key, &size, diag);
  int error = status == LP_OK ? lp_tls_config_own(out->tls, certificate, key) : 0;
  if (error != 0) status = no_tls(from->cert_file, "certificate and private key", error, diag);
  free(certificate);
  if (key != NULL) explicit_bzero(key, size);
  free(key);
  return status;
}

/* The other side must show one of these certificates, or one that they signed. */
static lp_status read_trusted(const char *path, lp_security *out, lp_diag *diag) {
  char *chain = NULL;
  size_t size = 0;
  LP_TRY(read_text(path, MOST_PEM, &chain, &size, diag));
  int error = lp_tls_config_trust(out->tls, chain);
  free(chain);
  return error == 0 ? LP_OK : no_tls(path, "certificate", error, diag);
}

static lp_status open_tls(const lp_link_security *from, bool worker, lp_security *out, lp_diag *diag) {
  const char *own = from->cert_file, *trusted = worker ? from->client_ca_file : from->ca_file;
  out->tls = lp_tls_config_create(worker);
  if (!worker && from->server_name != NULL) lp_tls_config_name(out->tls, from->server_name);
  if (own != NULL) LP_TRY(read_own_certificate(from, out, diag));
  if (trusted != NULL) LP_TRY(read_trusted(trusted, out, diag));
  out->certified = own != NULL && trusted != NULL;
  return LP_OK;
}

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

static lp_status check_files(const lp_link_security *from, bool worker, bool loopback, lp_diag *diag) {
  const char *tls = worker ? from->cert_file : from->ca_file, *device = worker ? from->client_ca_file : from->cert_file;
  if (!loopback && (tls == NULL || (from->key_file == NULL && device == NULL))) {
    lp_status status = lp_error(diag, LP_LOC_NONE, "off loopback a key and TLS are required: %s",
                                worker ? "--key-file (or --client-ca) and --cert, --cert-key"
                                       : "--key-file (or --cert, --cert-key) and --ca");
    lp_note(diag, LP_LOC_NONE, "or bring the port over through a tunnel, such as ssh -L, and use 127.0.0.1");
    return status;
  }
  if ((from->cert_file == NULL) != (from->cert_key_file == NULL))
    return lp_error(diag, LP_LOC_NONE, "--cert and --cert-key belong together");
  if (tls != NULL || device == NULL) return LP_OK;
  return lp_error(diag, LP_LOC_NONE, "%s",
                  worker ? "--client-ca wants TLS: --cert and --cert-key" : "--cert wants TLS: --ca");
}

lp_status lp_security_open(const lp_link_security *from, lp_side side, bool loopback, lp_security *out, lp_diag *diag) {
  *out = (lp_security){0};
  bool worker = side == LP_SIDE_CLOUD;
  LP_TRY(check_files(from, worker, loopback, diag));
  if (from->key_file != NULL) LP_TRY(read_key(from->key_file, out, diag));
  return (worker ? from->cert_file : from->ca_file) == NULL ? LP_OK : open_tls(from, worker, out, diag);
}

void lp_security_close(lp_security *security) {
  if (security->key != NULL) explicit_bzero(security->key, security->key_size);
  free(security->key);
  lp_tls_config_free(security->tls);
  *security = (lp_security){0};
}

/* ---- proofs ------------------------------------------------------------------------------------------------------ */

/* HMAC-SHA256 (RFC 2104) over the parts. */
static void authenticate(const lp_security *security, const lp_span *part, size_t count, uint8_t out[LP_PROOF_BYTES]) {
  uint8_t block[BLOCK] = {0}, pad[BLOCK];
  lp_sha256 sha;
  if (security->key_size > BLOCK) {
    lp_sha256_init(&sha);
    lp_sha256_update(&sha, security->key, security->key_size);
    lp_sha256_bytes(&sha, block);
  } else {
    memcpy(block, security->key, security->key_size);
  }
  for (int i = 0; i < BLOCK; i++)
    pad[i] = block[i] ^ 0x36;
  lp_sha256_init(&sha);
  lp_sha256_update(&sha, pad, BLOCK);
  for (size_t i = 0; i < count; i++)
    lp_sha256_update(&sha, part[i].data, part[i].size);
  lp_sha256_bytes(&sha, out);
  for (int i = 0; i < BLOCK; i++)
    pad[i] = block[i] ^ 0x5c;
  lp_sha256_init(&sha);
  lp_sha256_update(&sha, pad, BLOCK);
  lp_sha256_update(&sha, out, LP_PROOF_BYTES);
  lp_sha256_bytes(&sha, out);
  explicit_bzero(block, sizeof(block));
  explicit_bzero(pad, sizeof(pad));
}

void lp_security_prove(const lp_security *security, lp_side who, const lp_nonces *nonces, const char *bundle_hash,
                       uint8_t out[LP_PROOF_BYTES]) {
  char label[] = "llmpart/3 device";
  if (who == LP_SIDE_CLOUD) memcpy(label, "llmpart/3 worker", sizeof(label));
  const lp_span part[] = {{label, sizeof(label)},
                          {(void *)(uintptr_t)nonces->device, LP_PROOF_BYTES},
                          {(void *)(uintptr_t)nonces->worker, LP_PROOF_BYTES},
                          {(void *)(uintptr_t)bundle_hash, strlen(bundle_hash)}};
  authenticate(security, part, LP_COUNT(part), out);
}

bool lp_security_holds(const lp_security *security, lp_side who, const lp_nonces *nonces, const char *bundle_hash,
                       const void *proof, size_t size) {
  uint8_t want[LP_PROOF_BYTES], differs = 0;
  if (security->key == NULL) return true;
  if (size != LP_PROOF_BYTES) return false;
  lp_security_prove(security, who, nonces, bundle_hash, want);
  for (int i = 0; i < LP_PROOF_BYTES; i++) /* as long for every wrong proof */
    differs |= (uint8_t)(want[i] ^ ((const uint8_t *)proof)[i]);
  return differs == 0;
}
