#include "tools/session_setup.h"
#include "base/clock.h"

lp_status lp_setup_begin(const lp_setup_flags *flags, lp_setup *out, lp_diag *diag) {
  *out = (lp_setup){.worker = {.ready_fd = -1}, .cloud = flags->cloud};
  lp_bundle_options load = {.load = LP_LOAD_DEVICE, .check_hashes = flags->check};
  if (flags->in_process) load.load |= LP_LOAD_CLOUD;
  double begin = lp_now_ms();
  LP_TRY(lp_bundle_load(flags->bundle, &load, &out->bundle, diag));
  out->load_ms = lp_now_ms() - begin;
  if (flags->in_process || flags->alone || flags->cloud || !lp_bundle_is_split(out->bundle)) return LP_OK;
  LP_TRY(lp_worker_spawn(NULL, flags->bundle, (int32_t)flags->threads, &out->worker, diag));
  LP_TRY(lp_worker_await(&out->worker, diag));
  out->cloud = out->worker.address;
  return LP_OK;
}

void lp_setup_end(lp_setup *setup) {
  lp_bundle_free(setup->bundle);
  lp_worker_stop(&setup->worker);
}
