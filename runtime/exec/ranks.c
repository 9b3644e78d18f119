/* Rank 0's words to the other ranks, and the gathers of all. */
#include "runtime/exec/ranks.h"

#include "base/poly.h"

lp_ranks *lp_ranks_of(const lp_bundle *bundle, lp_place side) {
  return bundle->manifest.side[side].ranks > 1 ? bundle->ranks : NULL;
}

lp_status lp_ranks_check(const lp_bundle *bundle, lp_place side, lp_diag *diag) {
  if (bundle->manifest.side[side].ranks < 2 || bundle->ranks) return LP_OK;
  return lp_error(diag, LP_LOC_FILE(bundle->manifest.file),
                  "the %s's half is cut for %" PRId32 " ranks: only `llmpart run`, `bench` and `worker` run it",
                  bundle->manifest.place_name[side], bundle->manifest.side[side].ranks);
}

void lp_ranks_set_symbol(const lp_bundle *bundle, lp_place side, int64_t *sym) {
  if (bundle->manifest.side[side].ranks > 1) sym[bundle->manifest.rank_symbol] = bundle->rank;
}

bool lp_ranks_have_ended(const lp_bundle *bundle) {
  const lp_ranks *ranks = bundle->ranks;
  return ranks &&
         (ranks->ended || (ranks->collective.has_ended && ranks->collective.has_ended(ranks->collective.self)));
}

static lp_status lost(lp_ranks *ranks, lp_diag *diag) {
  ranks->ended = true;
  return lp_error(diag, LP_LOC_NONE, "a rank of the sharded half has ended");
}

lp_status lp_ranks_tell(lp_ranks *ranks, rank_order order, const void *payload, lp_diag *diag) {
  if (!ranks || ranks->collective.rank > 0) return LP_OK;
  lp_collective *all = &ranks->collective;
  if (!all->broadcast(all->self, &order, sizeof order)) return lost(ranks, diag);
  if (order.size == 0 || all->broadcast(all->self, (void *)(uintptr_t)payload, order.size)) return LP_OK;
  return lost(ranks, diag);
}

static bool goes_on(const lp_step *step, const lp_step *other) {
  if (other->side != step->side && other->to != step->side) return true; /* a step of the other side */
  return other->kind == LP_STEP_RUN || other->kind == LP_STEP_GATHER;
}

lp_status lp_ranks_tell_run(lp_ranks *ranks, uint32_t id, const lp_program *program, const lp_step *step, int32_t *told,
                            lp_diag *diag) {
  int32_t from = (int32_t)(step - program->step), until = from + 1;
  if (!ranks || ranks->collective.rank > 0 || from < *told) return LP_OK;
  while (until < program->step_count && goes_on(step, &program->step[until]))
    until++;
  *told = until;
  return lp_ranks_tell(ranks, (rank_order){.kind = LP_TELL_RUN, .id = id, .step = from, .until = until}, NULL, diag);
}

static void *room_for(lp_ranks *ranks, size_t size) {
  size_t bytes = size * (size_t)ranks->collective.count;
  if (bytes > ranks->gathered_bytes) {
    ranks->gathered = lp_realloc(ranks->gathered, bytes);
    ranks->gathered_bytes = bytes;
  }
  return ranks->gathered;
}

lp_status lp_ranks_agree(lp_ranks *ranks, lp_status own, lp_diag *diag) {
  if (!ranks) return own;
  lp_collective *all = &ranks->collective;
  char good = own == LP_OK, *others = room_for(ranks, 1);
  if (!all->all_gather(all->self, &good, 1, others)) return lost(ranks, diag);
  for (int32_t i = 0; i < all->count && own == LP_OK; i++)
    if (!others[i]) own = lp_error(diag, LP_LOC_NONE, "rank %" PRId32 " has no memory for the pass", i);
  return own;
}

bool lp_ranks_extent(const lp_step *step, const int64_t *sym, int32_t symbol_count, size_t *outer, size_t *inner) {
  size_t bytes;
  *outer = 1;
  for (int32_t i = 0; i < step->axis; i++) {
    int64_t size = lp_poly_eval(step->tensor.shape[i], sym, (size_t)symbol_count);
    if (size < 0 || !lp_size_mul(*outer, (size_t)size, outer)) return false;
  }
  if (!lp_tensor_bytes(&step->tensor, sym, symbol_count, &bytes)) return false;
  *inner = *outer > 0 ? bytes / *outer / (size_t)step->parts : 0;
  return true;
}

size_t lp_ranks_room_at(size_t bytes) {
  enum { ALIGNMENT = 256 };
  return bytes > SIZE_MAX - ALIGNMENT ? SIZE_MAX : (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

size_t lp_ranks_room(const lp_ranks *ranks, const lp_manifest *manifest, const lp_program *program, lp_place side,
                     const int64_t *sym) {
  size_t most = 0, outer, inner, size, all;
  for (int32_t i = 0; ranks && ranks->nccl && i < program->step_count; i++) {
    const lp_step *step = &program->step[i];
    if (step->kind != LP_STEP_GATHER || step->side != side) continue;
    if (!lp_ranks_extent(step, sym, manifest->symbol_count, &outer, &inner) || !lp_size_mul(outer, inner, &size) ||
        !lp_size_mul(size, (size_t)ranks->collective.count, &all))
      return SIZE_MAX;
    if (all > most) most = all;
  }
  return most;
}

lp_status lp_ranks_keep_up(lp_ranks *ranks, lp_status status) {
  if (status == LP_OK || !ranks) return status;
  ranks->ended = true;
  if (ranks->collective.give_up) ranks->collective.give_up(ranks->collective.self);
  return status;
}

lp_status lp_ranks_gather(lp_ranks *ranks, const lp_step *step, const void *part, size_t outer, size_t inner,
                          void *whole, lp_diag *diag) {
  lp_collective *all = &ranks->collective;
  bool direct = outer == 1 && step->parts == all->count; /* the parts of the ranks are the result */
  void *to = direct ? whole : room_for(ranks, outer * inner);
  if (outer * inner == 0) return LP_OK;
  if (!all->all_gather(all->self, part, outer * inner, to)) return lost(ranks, diag);
  if (!direct) lp_collective_join(to, all->count, step->parts, outer, inner, whole);
  return LP_OK;
}
