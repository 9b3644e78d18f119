#include "tests/runtime/worker/bare_worker.h"
#include "base/side.h"
#include "runtime/bundle/bundle.h"
#include "runtime/exec/batch.h"
#include "runtime/exec/pool.h"
#include "runtime/worker/held.h"
#include "runtime/worker/pass.h"
#include "runtime/worker/share.h"
#include "runtime/worker/store.h"

#include <stdlib.h>

bare_worker *bare_worker_create(lp_bundle *bundle, const char *context_dir, const lp_transport *sent) {
  bare_worker *bare = lp_alloc(sizeof *bare);
  lp_worker *worker = &bare->worker;
  bare->options = (lp_worker_options){.threads = 1, .context_dir = context_dir};
  bare->wire = (lp_wire){.transport = sent};
  *worker = (lp_worker){.bundle = bundle,
                        .place = LP_SIDE_CLOUD,
                        .options = &bare->options,
                        .wire = &bare->wire,
                        .pool = lp_pool_create(1)};
  worker->self = (lp_endpoint){.bundle_hash = bundle->manifest.hash, .security = &worker->security};
  if (lp_halves_find(bundle, &worker->halves, &worker->whole)) worker->whole = NULL;
  if (worker_store_open(worker, NULL) != LP_OK) abort();
  worker->batch = lp_batch_create(bundle, LP_SIDE_CLOUD, worker->pool);
  if (!worker->batch) abort();
  worker->code = lp_alloc(((size_t)bundle->manifest.program_count + 1) * sizeof *worker->code);
  for (int32_t i = 0; i < bundle->manifest.program_count; i++)
    worker->code[i] = lp_program_code(bundle, LP_SIDE_CLOUD, i);
  lp_pace_note(&worker->pace, 1, 30); /* rows take no time, so that passes are as long as without other devices */
  lp_pace_note(&worker->pace, LP_PASS_ROWS, 30);
  return bare;
}

void bare_worker_free(bare_worker *bare) {
  lp_worker *worker = &bare->worker;
  while (worker->sessions.count > 0)
    worker_session_close(worker, worker->sessions.data[0]);
  worker_context_close_all(worker);
  lp_vec_free(&worker->sessions);
  lp_vec_free(&worker->contexts);
  lp_vec_free(&worker->peers);
  worker_pass_free(worker);
  lp_batch_free(worker->batch);
  lp_pool_free(worker->pool);
  free(worker->code);
  free(worker->sample);
  lp_buf_free(&worker->scratch);
  lp_buf_free(&worker->rows);
  lp_buf_free(&bare->wire.head);
  free(bare);
}
