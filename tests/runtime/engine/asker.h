/* Requests of an engine in tests, each a thread that can be asked, and the same prompt in a session of its own. */
#ifndef LP_TESTS_ENGINE_ASKER_H
#define LP_TESTS_ENGINE_ASKER_H

#include "runtime/engine/engine.h"
#include "tests/runtime/toy/toy_bundle.h"

enum { THREADS = 12, MOST_PROMPT = 90, MADE = 24, MOST_MADE = 90, LONG_BEGUN = 30 };
enum { ALIKE = 70, SHARED = 64 }; /* equal tokens of prompts that begin alike; of these rows, in whole grains */

typedef struct {
  const lp_bundle *bundle;
  lp_engine *engine;
  lp_sampling sampling;
  int32_t prompt[MOST_PROMPT], made[MOST_MADE + 1], choices;
  size_t length, answered;
  uint64_t tenant;
  int64_t most; /* tokens */
  int64_t count;
  int64_t limit; /* tokens after which the sink wants no more; 0: none */
  bool abandons;
  double theta;           /* of the engine; 0: its bundle's exits are not used */
  int64_t exits;          /* tokens of these */
  const lp_decoding *how; /* NULL: only `sampling` */
  lp_status status;
  lp_engine_outcome outcome[4];
} asker;

/* A bundle of the toy model whose layers have these sides, and engines of it. Abort on failure. */
lp_bundle *asker_bundle(const char *sides);
lp_engine *asker_engine_with(const lp_bundle *bundle, const lp_engine_options *options);
lp_engine *asker_engine(const lp_bundle *bundle, int64_t kv_bytes); /* of two threads */

/* Prompts of many lengths: some take several passes. */
void asker_set_up(asker *a, const lp_bundle *bundle, lp_engine *engine, int index);
/* Prompts whose first ALIKE tokens are equal. */
void asker_set_up_alike(asker *a, const lp_bundle *bundle, lp_engine *engine, int index);

/* Splits with one worker: the cloud draws, the device draws, the cloud reads the tokens, the sides alternate, the cloud
 * has all and draws ahead (two), and one with exits. */
enum { SPLITS = 7, ON_DEVICE = 4 /* the first ones, of which the device has layers */ };
extern const toy_placement asker_splits[SPLITS];

/* Asks the engine; the asker then has the answer. A thread's function: `user` is the asker, and NULL returns. */
void *asker_run(void *user);
/* Requires the tokens of a session without others. */
void asker_check(const asker *a);

/* Asks and checks THREADS prompts at the same time. The first returns the tokens that exits gave, of an engine with
 * this theta; the second has no exits. */
int64_t askers_run_at(const lp_bundle *bundle, lp_engine *engine, double theta);
void askers_run(const lp_bundle *bundle, lp_engine *engine);

/* Asks THREADS prompts of LONG_BEGUN tokens for several answers of MOST_MADE tokens each, all at the same time, and
 * checks the first answers. Meanwhile the engine may hold `budget` bytes of KV caches; 0: any. Returns the most answers
 * that ran at a time. */
int32_t askers_run_long(const lp_bundle *bundle, lp_engine *engine, double theta, int64_t budget);

#endif
