/* The workers to which conversations were sent, kept in Redis or Valkey for all servers that share the workers: a
 * server sends a conversation to the worker that has it, whichever server had it before. The database has digests of
 * the beginnings of prompts, with no text or token, for ten minutes after the last request. Any number of threads may
 * use one. While the database is away, nothing is known. */
#pragma once

#include "runtime/serve/place/site.h"
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

/* ---- the choice of a worker -------------------------------------------------------------------------------------- */

/* A request goes to a worker that has computed the beginning of its prompt, unless too many requests wait there. Pure;
 * any thread. A worker that may be chosen: */
typedef struct {
  int64_t rows;    /* the first rows of the prompt that it has in KV caches */
  int64_t visited; /* those that the same conversation had when another server sent it there last */
  int requests;    /* of all servers, as far as is known */
} lp_worker_offer;

/* Tells whether a worker is a better choice than another one. Each row that needs no computing counts, and each request
 * there as many as ROWS_OF_REQUEST rows that it lacks. Among equal workers the one with fewer requests is better. */
bool lp_worker_is_better(const lp_worker_offer *a, const lp_worker_offer *b);
/* Why `chosen` of offer[count] was chosen. */
lp_choice_reason lp_worker_reason(const lp_worker_offer *offer, const bool *may, int count, int chosen);
