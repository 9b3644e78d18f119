/* Signatures of bundles: only the owner's key makes one, and any change of the manifest or of the signature ends it. */
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "runtime/bundle/bundle.h"
#include "runtime/bundle/signature.h"
#include "runtime/runtime.h"
#include "tests/runtime/toy/toy_run.h"
#include "tests/suite.h"

static char *dir, *path, *signature;

static void setup(void) {
  dir = toy_dir_create();
  path = toy_bundle_write(dir, "toy", &(toy_placement){.prefill = "ddccdd"});
  signature = lp_path_join(path, "manifest.sig");
}

static void teardown(void) {
  free(path);
  free(signature);
  toy_dir_remove(dir);
}

LP_CASE(.setup = setup, .teardown = teardown);

typedef struct {
  char *secret, *open; /* files */
} key_pair;

static key_pair make_keys(const char *name, const char *kind) {
  key_pair made = {0};
  lp_buf file = {0};
  lp_buf_printf(&file, "%s.pem", name);
  made.secret = lp_path_join(dir, file.data);
  lp_buf_puts(&file, ".pub");
  made.open = lp_path_join(dir, file.data);
  EVP_PKEY *key = EVP_PKEY_Q_keygen(NULL, NULL, kind);
  FILE *secret = fopen(made.secret, "w"), *open = fopen(made.open, "w");
  ck_assert(key && secret && open);
  ck_assert_int_eq(PEM_write_PrivateKey(secret, key, NULL, NULL, 0, NULL, NULL), 1);
  ck_assert_int_eq(PEM_write_PUBKEY(open, key), 1);
  fclose(secret);
  fclose(open);
  EVP_PKEY_free(key);
  lp_buf_free(&file);
  return made;
}

static void free_keys(key_pair *keys) {
  free(keys->secret);
  free(keys->open);
}

/* Loads the bundle with this public key; `text` NULL: it is trusted. */
static void expect(const char *key, const char *text) {
  lp_bundle_options options = {.load = LP_LOAD_DEVICE | LP_LOAD_CLOUD, .trust = key};
  lp_bundle *bundle = NULL;
  lp_diag *diag = lp_diag_create();
  lp_status status = lp_bundle_load(path, &options, &bundle, diag);
  if (status == LP_OK) status = lp_bundle_await_check(bundle, diag);
  ck_assert_msg((status == LP_OK) == (text == NULL), "%s", toy_error(diag));
  if (text) ck_assert_msg(strstr(toy_error(diag), text), "wanted '%s' in '%s'", text, toy_error(diag));
  lp_bundle_free(bundle);
  lp_diag_free(diag);
}

/* Adds `change` to a byte of a file; `at` counts from its end. */
static void change_byte(const char *file, size_t at, int change) {
  char *text = NULL;
  size_t size = 0;
  ck_assert_int_eq(lp_file_read(file, &text, &size, NULL), LP_OK);
  text[size - at] = (char)(text[size - at] + change);
  ck_assert_int_eq(lp_file_write(file, text, size, NULL), LP_OK);
  free(text);
}

/* A bundle of another user is warned of; only the superuser can give one away. */
LP_TEST(owners_are_compared) {
  char *file = lp_path_join(path, "manifest.json");
  lp_diag *diag = lp_diag_create();
  lp_signature_warn(file, diag);
  lp_signature_warn("/nonexistent/manifest.json", diag);
  ck_assert_uint_eq(lp_diag_count(diag), 0);
  if (geteuid() == 0) {
    ck_assert_int_eq(chown(file, 1, (gid_t)-1), 0);
    lp_signature_warn(file, diag);
    ck_assert_uint_eq(lp_diag_count(diag), 1);
    ck_assert_uint_eq(lp_diag_error_count(diag), 0);
    ck_assert_ptr_nonnull(strstr(lp_diag_get(diag, 0)->text, "another user owns this bundle"));
  }
  lp_diag_free(diag);
  free(file);
}

LP_TEST(only_the_owner_signs) {
  key_pair ours = make_keys("ours", "ED25519"), others = make_keys("others", "ED25519");
  expect(ours.open, "the bundle is not signed");
  ck_assert_int_eq(lp_bundle_sign(path, ours.secret, NULL), LP_OK);
  expect(ours.open, NULL);
  expect(NULL, NULL);
  expect(others.open, "is not a signature of this bundle");
  change_byte(signature, 1, 1);
  expect(ours.open, "is not a signature of this bundle");
  change_byte(signature, 1, -1);
  expect(ours.open, NULL);
  ck_assert_int_eq(lp_bundle_sign(path, others.secret, NULL), LP_OK);
  expect(ours.open, "is not a signature of this bundle");
  expect(others.open, NULL);
  free_keys(&ours);
  free_keys(&others);
}

/* The signature has 64 bytes, neither fewer nor more, and is one of the whole manifest. */
LP_TEST(what_it_covers) {
  key_pair ours = make_keys("ours", "ED25519");
  char *manifest = lp_path_join(path, "manifest.json"), *text = NULL;
  size_t size = 0;
  ck_assert_int_eq(lp_bundle_sign(path, ours.secret, NULL), LP_OK);
  ck_assert_int_eq(lp_file_read(signature, &text, &size, NULL), LP_OK);
  ck_assert_uint_eq(size, 64);
  ck_assert_int_eq(lp_file_write(signature, text, 63, NULL), LP_OK);
  expect(ours.open, "is not a signature of this bundle");
  text[size] = '\n';
  ck_assert_int_eq(lp_file_write(signature, text, 65, NULL), LP_OK);
  expect(ours.open, "is not a signature of this bundle");
  ck_assert_int_eq(lp_file_write(signature, text, 64, NULL), LP_OK);
  expect(ours.open, NULL);
  change_byte(manifest, 1, 1);
  expect(ours.open, "is not a signature of this bundle");
  free(text);
  free(manifest);
  free_keys(&ours);
}

LP_TEST(keys_of_other_kinds) {
  key_pair ours = make_keys("ours", "ED25519"), others = make_keys("others", "X25519");
  ck_assert_int_eq(lp_bundle_check_key(ours.secret, NULL), LP_OK);
  const char *bad[] = {others.secret, ours.open, "/nowhere/key.pem", path};
  for (size_t i = 0; i < LP_COUNT(bad); i++) {
    ck_assert_int_eq(lp_bundle_check_key(bad[i], NULL), LP_FAILED);
    ck_assert_int_eq(lp_bundle_sign(path, bad[i], NULL), LP_FAILED);
    ck_assert(!lp_path_exists(signature));
  }
  ck_assert_int_eq(lp_bundle_sign(path, ours.secret, NULL), LP_OK);
  expect(others.open, "holds no Ed25519 public key");
  expect(ours.secret, "holds no Ed25519 public key");
  free_keys(&ours);
  free_keys(&others);
}
