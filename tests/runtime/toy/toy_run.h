/* Runs toy bundles in tests: in this process and with a worker in another. */
#ifndef LP_TOY_RUN_H
#define LP_TOY_RUN_H

#include <sys/types.h>

#include "runtime/runtime.h"
#include "tests/runtime/toy/toy_bundle.h"

enum { TOY_PROMPT = 7, TOY_MADE = 20, TOY_BATCH = 4 };

typedef struct {
  pid_t pid;
  char address[32];
} toy_worker;

/* Aborts when the worker does not come up. Budget and idle time may be NULL. */
toy_worker toy_worker_start(const char *bundle, const char *budget, const char *idle_ms);
/* The same at an address of one's choice, such as where another was killed. */
toy_worker toy_worker_start_at(const char *bundle, const char *budget, const char *idle_ms, const char *address);
void toy_worker_stop(toy_worker *worker); /* kills it */
int toy_worker_end(toy_worker *worker);   /* asks it to end; its exit status */

/* Workers of all places of a bundle besides the device, at ports of their own. */
typedef struct {
  const char *path;   /* of the bundle; borrowed */
  const char *budget; /* of each worker; NULL: half of the memory */
  lp_place count;     /* of places, the device included */
  toy_worker worker[LP_PLACES_MAX];
  char port[LP_PLACES_MAX][32];
  int held[LP_PLACES_MAX];
  /* For lp_generate_options, [count - 1]; and for the workers, where a test may put a link of its own. */
  lp_place_address address[LP_PLACES_MAX], peer[LP_PLACES_MAX];
} toy_places;
/* Takes the ports, then starts the workers. `bundle` is borrowed for its names. Abort on failure. */
void toy_places_open(const char *path, const lp_bundle *bundle, toy_places *out);
void toy_places_start(toy_places *places);
void toy_places_start_one(toy_places *places, lp_place place); /* also again, after toy_worker_stop */
void toy_places_close(toy_places *places);

lp_bundle *toy_bundle_load(const char *path, unsigned sides);
/* Written to a folder of its own, loaded, and the folder removed. Aborts on failure. */
lp_bundle *toy_bundle_make(const toy_placement *placement, unsigned sides);
/* A plain connection to the worker at 127.0.0.1:PORT. Aborts when there is none. */
int toy_connect(const char *address);
void toy_prompts(int32_t out[TOY_BATCH * TOY_PROMPT]);
/* Generates TOY_MADE tokens for `batch` prompts; `cloud` NULL runs in this process. Aborts on failure. */
void toy_generate(const lp_bundle *bundle, const char *cloud, int64_t batch, lp_sampling sampling, int32_t *tokens,
                  lp_generation *totals);
/* The text of the first error, or "". */
const char *toy_error(const lp_diag *diag);

#endif
