/* The workers to which conversations were sent, kept in Redis or Valkey for all servers that share the workers: a
 * server sends a conversation to the worker that has it, whichever server had it before. The database has digests of
 * the beginnings of prompts, with no text or token, for ten minutes after the last request. Any number of threads may
 * use one. While the database is away, nothing is known. */
#ifndef LP_SERVE_VISITS_H
#define LP_SERVE_VISITS_H

#include "runtime/serve/serve.h"

/* The longest address of a worker that is read. */
enum { LP_MOST_ADDRESS = 1024 };

/* The beginnings of a prompt that have an entry: of 32, 64, 128, .. tokens. */
enum { LP_MOST_VISITS = 16 };
typedef struct {
  int64_t rows;
  char digest[65];
} lp_visit;
/* Fills out[LP_MOST_VISITS], the shortest beginning first; returns their number. `model` is the bundle's name. Pure. */
int lp_visits_of(const char *model, const int32_t *prompt, size_t length, lp_visit *out);

typedef struct lp_visits lp_visits;
/* Borrows both. Fails if llmpart was built without hiredis or the address is none. */
LP_MUST_USE lp_status lp_visits_open(const lp_serve_fleet *config, const char *model, lp_visits **out, lp_diag *diag);
void lp_visits_close(lp_visits *visits); /* NULL is allowed */
/* Finds the longest beginning of the prompt that was sent to a worker; fills its address and returns its rows; 0: none
 * is known. Waits for the database for at most 0.1 s, and after a failure does not ask it for two seconds. */
int64_t lp_visits_find(lp_visits *visits, const int32_t *prompt, size_t length, char address[LP_MOST_ADDRESS]);
/* Notes where a prompt is sent. */
void lp_visits_note(lp_visits *visits, const int32_t *prompt, size_t length, const char *address);

#endif
