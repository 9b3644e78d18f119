/* TLS between two buffers (tls.h). */
#include "runtime/link/tls.h"
#include "runtime/exec/executor.h"

#include <mbedtls/error.h>
#include <mbedtls/net_sockets.h>
#include <mbedtls/ssl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { ROOM = 32 << 10, RECORD = 16 << 10, MOST_WHY = 160 };

struct lp_tls_config {
  mbedtls_ssl_config ssl;
  mbedtls_x509_crt own, trusted;
  mbedtls_pk_context key;
  char *name;
};

struct lp_tls {
  mbedtls_ssl_context ssl;
  pthread_mutex_t mutex; /* mbedTLS does not let two threads into one connection */
  /* Under the mutex, but for the room, which belongs to who opens: */
  lp_buf waiting;  /* sealed, but not by who sends */
  lp_buf *sealing; /* where sealed bytes go */
  bool shaken, broken, distrusts;
  char why[MOST_WHY];
  size_t begin, end;      /* of what has arrived */
  uint8_t room[ROOM];     /* as it came */
  uint8_t record[RECORD]; /* where small parts are joined */
};

/* ---- what all connections of one side share ------------------------------------------------------------------------------ */

static int draw(void *user, unsigned char *out, size_t size) {
  (void)user;
  for (size_t done = 0; done < size;) {
    ssize_t got = getrandom(out + done, size - done, 0);
    if (got < 0) return MBEDTLS_ERR_SSL_INTERNAL_ERROR;
    done += (size_t)got;
  }
  return 0;
}

/* mbedTLS 2.28 computes AES by instructions on x86-64 alone; without them ChaCha20 is faster, and its time tells nothing of the key. */
static bool has_fast_aes(void) {
#ifdef __x86_64__
  return __builtin_cpu_supports("aes") != 0;
#else
  return false;
#endif
}

/* A worker takes the first of these that a device offers. Quickest first: mbedTLS 2.28 computes 400 MB/s in AES-CCM, 290 in ChaCha20-Poly1305 and
 * 200 in AES-GCM where there are instructions for AES. */
static const int suites[] = {MBEDTLS_TLS_ECDHE_ECDSA_WITH_AES_128_CCM,
                             MBEDTLS_TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
                             MBEDTLS_TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
                             MBEDTLS_TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
                             MBEDTLS_TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
                             MBEDTLS_TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
                             MBEDTLS_TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
                             0};
enum { WITHOUT_FAST_AES = 1 };

lp_tls_config *lp_tls_config_create(bool worker) {
  lp_tls_config *config = lp_alloc(sizeof(*config));
  mbedtls_ssl_config_init(&config->ssl);
  mbedtls_x509_crt_init(&config->own);
  mbedtls_x509_crt_init(&config->trusted);
  mbedtls_pk_init(&config->key);
  /* It allocates for what is left out here alone, and so cannot fail. */
  (void)mbedtls_ssl_config_defaults(&config->ssl, worker ? MBEDTLS_SSL_IS_SERVER : MBEDTLS_SSL_IS_CLIENT,
                                    MBEDTLS_SSL_TRANSPORT_STREAM, MBEDTLS_SSL_PRESET_DEFAULT);
  mbedtls_ssl_conf_rng(&config->ssl, draw, NULL);
  mbedtls_ssl_conf_min_version(&config->ssl, MBEDTLS_SSL_MAJOR_VERSION_3, MBEDTLS_SSL_MINOR_VERSION_3);
  mbedtls_ssl_conf_max_version(&config->ssl, MBEDTLS_SSL_MAJOR_VERSION_3, MBEDTLS_SSL_MINOR_VERSION_3);
  mbedtls_ssl_conf_ciphersuites(&config->ssl, worker || has_fast_aes() ? suites : suites + WITHOUT_FAST_AES);
  mbedtls_ssl_conf_authmode(&config->ssl, worker ? MBEDTLS_SSL_VERIFY_NONE : MBEDTLS_SSL_VERIFY_REQUIRED);
  return config;
}

void lp_tls_config_free(lp_tls_config *config) {
  if (config == NULL) return;
  mbedtls_ssl_config_free(&config->ssl);
  mbedtls_x509_crt_free(&config->own);
  mbedtls_x509_crt_free(&config->trusted);
  mbedtls_pk_free(&config->key);
  free(config->name);
  free(config);
}

/* All of the file's certificates, or none. */
static int parse_certificates(mbedtls_x509_crt *out, const char *pem) {
  int error = mbedtls_x509_crt_parse(out, (const unsigned char *)pem, strlen(pem) + 1);
  return error > 0 ? MBEDTLS_ERR_X509_INVALID_FORMAT : error;
}

int lp_tls_config_own(lp_tls_config *config, const char *certificate, const char *private_key) {
  int error = parse_certificates(&config->own, certificate);
  if (error == 0)
    error = mbedtls_pk_parse_key(&config->key, (const unsigned char *)private_key, strlen(private_key) + 1, NULL, 0);
  if (error == 0) error = mbedtls_pk_check_pair(&config->own.pk, &config->key);
  return error != 0 ? error : mbedtls_ssl_conf_own_cert(&config->ssl, &config->own, &config->key);
}

int lp_tls_config_trust(lp_tls_config *config, const char *certificates) {
  mbedtls_ssl_conf_authmode(&config->ssl, MBEDTLS_SSL_VERIFY_REQUIRED);
  mbedtls_ssl_conf_ca_chain(&config->ssl, &config->trusted, NULL);
  return parse_certificates(&config->trusted, certificates);
}

void lp_tls_config_name(lp_tls_config *config, const char *name) {
  free(config->name);
  config->name = lp_strdup(name);
}

void lp_tls_describe(int error, char *out, size_t size) {
  mbedtls_strerror(error, out, size);
}

/* ---- a connection ---------------------------------------------------------------------------------------------------------- */

/* For mbedTLS, which calls them in open and seal, with the mutex held. */
static int give(void *user, unsigned char *to, size_t size) {
  lp_tls *tls = user;
  size_t here = tls->end - tls->begin, count = here < size ? here : size;
  if (count == 0) return MBEDTLS_ERR_SSL_WANT_READ;
  memcpy(to, tls->room + tls->begin, count);
  tls->begin += count;
  return (int)count;
}

static int take(void *user, const unsigned char *from, size_t size) {
  lp_tls *tls = user;
  lp_buf_append(tls->sealing, from, size);
  return (int)size;
}

lp_tls *lp_tls_create(const lp_tls_config *config) {
  lp_tls *tls = lp_alloc(sizeof(*tls));
  pthread_mutex_init(&tls->mutex, NULL);
  tls->sealing = &tls->waiting;
  mbedtls_ssl_init(&tls->ssl);
  mbedtls_ssl_set_bio(&tls->ssl, tls, take, give, NULL);
  if (mbedtls_ssl_setup(&tls->ssl, &config->ssl) == 0 &&
      (config->name == NULL || mbedtls_ssl_set_hostname(&tls->ssl, config->name) == 0))
    return tls;
  lp_tls_free(tls);
  return NULL;
}

void lp_tls_free(lp_tls *tls) {
  if (tls == NULL) return;
  mbedtls_ssl_free(&tls->ssl);
  pthread_mutex_destroy(&tls->mutex);
  lp_buf_free(&tls->waiting);
  explicit_bzero(tls->record, sizeof(tls->record));
  free(tls);
}

uint8_t *lp_tls_room(lp_tls *tls, size_t *size) {
  *size = ROOM;
  return tls->room;
}

void lp_tls_arrived(lp_tls *tls, size_t size) {
  tls->begin = 0;
  tls->end = size;
}

static void note_why(lp_tls *tls, int error) {
  char text[MOST_WHY] = "";
  tls->broken = true;
  tls->distrusts = error == MBEDTLS_ERR_X509_CERT_VERIFY_FAILED;
  if (tls->distrusts)
    (void)mbedtls_x509_crt_verify_info(text, sizeof(text), "", mbedtls_ssl_get_verify_result(&tls->ssl));
  else if (error == MBEDTLS_ERR_SSL_FATAL_ALERT_MESSAGE && !tls->shaken)
    snprintf(text, sizeof(text), "the other side ended the handshake");
  else
    mbedtls_strerror(error, text, sizeof(text));
  text[strcspn(text, "\n")] = '\0'; /* of several reasons the first */
  snprintf(tls->why, sizeof(tls->why), "TLS: %s", text);
}

/* What is said in reply to what comes behind the handshake answers one who would begin it anew, or worse. */
static int read_on(lp_tls *tls, void *to, size_t size) {
  size_t waited = tls->waiting.size;
  int result;
  do
    result = mbedtls_ssl_read(&tls->ssl, to, size);
  while (result == MBEDTLS_ERR_SSL_WANT_READ && tls->begin < tls->end && tls->waiting.size == waited);
  bool good = result > 0 || result == MBEDTLS_ERR_SSL_WANT_READ;
  return good && tls->waiting.size > waited ? MBEDTLS_ERR_SSL_UNEXPECTED_MESSAGE : result;
}

static lp_tls_progress go_on(lp_tls *tls, void *to, size_t size, size_t *got) {
  if (tls->broken) return LP_TLS_BROKEN;
  int result = tls->shaken ? 0 : mbedtls_ssl_handshake(&tls->ssl);
  tls->shaken = result == 0;
  if (tls->shaken) result = read_on(tls, to, size);
  if (result > 0) *got = (size_t)result;
  if (result > 0) return LP_TLS_SOME;
  if (result == MBEDTLS_ERR_SSL_WANT_READ) return LP_TLS_MORE;
  note_why(tls, result == 0 ? MBEDTLS_ERR_SSL_CONN_EOF : result);
  return LP_TLS_BROKEN;
}

lp_tls_progress lp_tls_open(lp_tls *tls, void *to, size_t size, size_t *got) {
  *got = 0;
  pthread_mutex_lock(&tls->mutex);
  lp_tls_progress progress = go_on(tls, to, size, got);
  pthread_mutex_unlock(&tls->mutex);
  return progress;
}

bool lp_tls_is_shaken(lp_tls *tls) {
  pthread_mutex_lock(&tls->mutex);
  bool shaken = tls->shaken && !tls->broken;
  pthread_mutex_unlock(&tls->mutex);
  return shaken;
}

const char *lp_tls_why(const lp_tls *tls) {
  return tls->why;
}

bool lp_tls_distrusts(const lp_tls *tls) {
  return tls->distrusts;
}

static bool seal_record(lp_tls *tls, const uint8_t *bytes, size_t size) {
  for (size_t done = 0; done < size;) {
    int result = mbedtls_ssl_write(&tls->ssl, bytes + done, size - done);
    if (result <= 0) {
      note_why(tls, result);
      return false;
    }
    done += (size_t)result;
  }
  return true;
}

/* Small parts are joined: each record costs a header, a tag, and some time. */
static bool seal_parts(lp_tls *tls, const lp_span *part, size_t count) {
  size_t joined = 0;
  for (size_t i = 0; i < count; i++) {
    const uint8_t *bytes = part[i].data;
    for (size_t done = 0, size; done < part[i].size; done += size) {
      size = part[i].size - done;
      if (size > RECORD - joined) size = RECORD - joined;
      memcpy(tls->record + joined, bytes + done, size);
      joined += size;
      if (joined < RECORD) continue;
      if (!seal_record(tls, tls->record, joined)) return false;
      joined = 0;
    }
  }
  return seal_record(tls, tls->record, joined);
}

bool lp_tls_seal(lp_tls *tls, const lp_span *part, size_t count, lp_buf *out) {
  pthread_mutex_lock(&tls->mutex);
  if (tls->waiting.size > 0) lp_buf_append(out, tls->waiting.data, tls->waiting.size);
  lp_buf_clear(&tls->waiting);
  tls->sealing = out;
  bool good = count == 0 || (tls->shaken && !tls->broken && seal_parts(tls, part, count));
  tls->sealing = &tls->waiting;
  pthread_mutex_unlock(&tls->mutex);
  return good;
}

bool lp_tls_waits(lp_tls *tls) {
  pthread_mutex_lock(&tls->mutex);
  bool waits = tls->waiting.size > 0;
  pthread_mutex_unlock(&tls->mutex);
  return waits;
}

void lp_tls_finish(lp_tls *tls, lp_buf *out) {
  pthread_mutex_lock(&tls->mutex);
  tls->sealing = out;
  if (tls->shaken && !tls->broken) (void)mbedtls_ssl_close_notify(&tls->ssl);
  tls->sealing = &tls->waiting;
  pthread_mutex_unlock(&tls->mutex);
}
