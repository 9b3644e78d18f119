/* Signs bundles, and checks their signatures, with Ed25519 of OpenSSL. */
#include "runtime/bundle/signature.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "runtime/bundle/bundle_file.h"

enum { SIGNATURE = 64 };
static const char file_name[] = "manifest.sig";

/* ---- keys -------------------------------------------------------------------------------------------------------- */

/* A password would be asked for on the terminal. */
static int no_password(char *buffer, int size, int writing, void *user) {
  (void)buffer, (void)size, (void)writing, (void)user;
  return -1;
}

/* Reads an Ed25519 key in PEM form. */
static lp_status read_key(const char *path, bool is_private, EVP_PKEY **out, lp_diag *diag) {
  const char *kind = is_private ? "private" : "public";
  char *text = NULL;
  size_t size = 0;
  LP_TRY(lp_file_read(path, &text, &size, diag));
  BIO *bio = BIO_new_mem_buf(text, (int)size);
  *out = is_private ? PEM_read_bio_PrivateKey(bio, NULL, no_password, NULL)
                    : PEM_read_bio_PUBKEY(bio, NULL, no_password, NULL);
  BIO_free(bio);
  OPENSSL_cleanse(text, size);
  free(text);
  if (*out && EVP_PKEY_is_a(*out, "ED25519")) return LP_OK;
  EVP_PKEY_free(*out);
  *out = NULL;
  lp_status status = lp_error(diag, LP_LOC_FILE(path), "holds no Ed25519 %s key in PEM form without a password", kind);
  lp_note(diag, LP_LOC_NONE,
          "'openssl genpkey -algorithm ed25519 -out key.pem' makes a key, 'openssl pkey -in key.pem "
          "-pubout' prints its public part");
  return status;
}

/* ---- signing ----------------------------------------------------------------------------------------------------- */

static lp_status write_signature(const char *folder, EVP_PKEY *key, const char *text, size_t size, lp_diag *diag) {
  unsigned char signature[SIGNATURE];
  size_t length = sizeof signature;
  EVP_MD_CTX *context = EVP_MD_CTX_new();
  bool made = context && EVP_DigestSignInit(context, NULL, NULL, NULL, key) == 1 &&
              EVP_DigestSign(context, signature, &length, (const unsigned char *)text, size) == 1;
  EVP_MD_CTX_free(context);
  LP_OWNED(lp_free_at) char *path = lp_path_join(folder, file_name);
  lp_status status = LP_FAILED;
  if (made && length == SIGNATURE)
    status = lp_file_write(path, signature, length, diag);
  else
    lp_report_error(diag, LP_LOC_FILE(path), "OpenSSL cannot sign");
  return status;
}

lp_status lp_bundle_sign(const char *folder, const char *key_path, lp_diag *diag) {
  EVP_PKEY *key = NULL;
  LP_OWNED(lp_free_at) char *text = NULL, *path = lp_path_join(folder, "manifest.json");
  size_t size = 0;
  lp_status status = read_key(key_path, true, &key, diag);
  if (status == LP_OK) status = lp_file_read(path, &text, &size, diag);
  if (status == LP_OK) status = write_signature(folder, key, text, size, diag);
  EVP_PKEY_free(key);
  return status;
}

lp_status lp_bundle_check_key(const char *key_path, lp_diag *diag) {
  EVP_PKEY *key = NULL;
  LP_TRY(read_key(key_path, true, &key, diag));
  EVP_PKEY_free(key);
  return LP_OK;
}

/* ---- checking ---------------------------------------------------------------------------------------------------- */

static bool is_signed(EVP_PKEY *key, const lp_mapping *signature, const lp_mapping *manifest) {
  EVP_MD_CTX *context = EVP_MD_CTX_new();
  bool holds = context && signature->size == SIGNATURE && EVP_DigestVerifyInit(context, NULL, NULL, NULL, key) == 1 &&
               EVP_DigestVerify(context, (const unsigned char *)signature->data, signature->size,
                                (const unsigned char *)manifest->data, manifest->size) == 1;
  EVP_MD_CTX_free(context);
  return holds;
}

static lp_status check_signature(const char *root, const char *path, const char *key_path, const lp_mapping *manifest,
                                 lp_diag *diag) {
  EVP_PKEY *key = NULL;
  lp_mapping signature = {0};
  if (!lp_path_exists(path))
    return lp_error(diag, LP_LOC_FILE(root), "the bundle is not signed: it has no %s", file_name);
  LP_TRY(read_key(key_path, false, &key, diag));
  lp_status status = lp_bundle_file_map(root, file_name, path, &signature, diag);
  if (status == LP_OK && !is_signed(key, &signature, manifest))
    status = lp_error(diag, LP_LOC_FILE(path), "is not a signature of this bundle by the owner of '%s'", key_path);
  lp_file_unmap(&signature);
  EVP_PKEY_free(key);
  return status;
}

lp_status lp_signature_check(const char *root, const char *key, const lp_mapping *manifest, lp_diag *diag) {
  LP_OWNED(lp_free_at) char *path = lp_path_join(root, file_name);
  return check_signature(root, path, key, manifest, diag);
}

void lp_signature_warn(const char *path, lp_diag *diag) {
  struct stat found;
  if (stat(path, &found) != 0 || found.st_uid == geteuid() || found.st_uid == 0) return;
  lp_warning(diag, LP_LOC_FILE(path),
             "another user owns this bundle, which is a program: --trust=KEY checks its signature");
}
