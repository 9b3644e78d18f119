/* Ranks on GPUs, by NVIDIA's NCCL. */
#include "base/library.h"
#include "runtime/collective/collective.h"
#include "runtime/collective/nccl_abi.h"

struct lp_nccl {
#define MEMBER(name, returns, symbol, parameters) returns(*name) parameters;
  LP_NCCL_FUNCTIONS(MEMBER)
  LP_NCCL_NEWER_FUNCTIONS(MEMBER)
#undef MEMBER
  lp_collective base;
  void *communicator; /* NULL: not made yet, or given up */
  bool given_up;
  char name[32];  /* "NCCL 2.21.5" */
  char text[256]; /* the first error */
};

/* ---- errors ------------------------------------------------------------------------------------------------------ */

/* Keeps the text of the first error. True: there is none. */
static bool note(lp_nccl *nccl, const char *what, int result) {
  if (result == LP_NCCL_SUCCESS) return true;
  const char *why = nccl->last_error ? nccl->last_error(nccl->communicator) : NULL;
  if (nccl->text[0] == '\0')
    snprintf(nccl->text, sizeof nccl->text, "%s: %s failed (%s)%s%.120s", nccl->name, what, nccl->error_text(result),
             why && why[0] != '\0' ? ": " : "", why ? why : "");
  return false;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static bool load(lp_nccl *nccl) {
#define ENTRY(name, returns, symbol, parameters) {#symbol, &nccl->name},
  const lp_library_function functions[] = {LP_NCCL_FUNCTIONS(ENTRY)}, newer[] = {LP_NCCL_NEWER_FUNCTIONS(ENTRY)};
#undef ENTRY
  int version = 0;
  if (!lp_library_load("libnccl.so.2", functions, LP_COUNT(functions))) return false;
  (void)lp_library_load("libnccl.so.2", newer, LP_COUNT(newer));
  (void)nccl->version(&version);
  /* 2.8 and older: 1000 major + 100 minor + patch */
  const int major = version < 10000 ? version / 1000 : version / 10000,
            minor = version < 10000 ? version / 100 % 10 : version / 100 % 100;
  snprintf(nccl->name, sizeof nccl->name, "NCCL %d.%d.%d", major, minor, version % 100);
  return true;
}

/* Fails if a rank failed; `own` is whether this one has not. */
static lp_status agree(const lp_nccl *nccl, bool own, const char *what, lp_diag *diag) {
  const lp_collective *base = &nccl->base;
  char *all = lp_alloc((size_t)base->count), good = own;
  const bool heard = base->all_gather(base->self, &good, 1, all);
  int32_t failed = -1;
  for (int32_t i = base->count - 1; heard && i >= 0; i--)
    if (!all[i]) failed = i;
  free(all);
  if (heard && failed < 0) return LP_OK;
  if (!own) return LP_FAILED; /* and has been reported */
  if (!heard) return lp_error(diag, LP_LOC_FILE("NCCL"), "a rank of the sharded half has ended");
  return lp_error(diag, LP_LOC_FILE("NCCL"), "rank %" PRId32 " %s", failed, what);
}

static lp_status find_library(lp_nccl *nccl, lp_diag *diag) {
  const bool found = load(nccl);
  if (!found) {
    lp_report_error(diag, LP_LOC_FILE("libnccl.so.2"), "ranks on GPUs need NCCL 2.4 or newer, and there is none");
    lp_note(diag, LP_LOC_NONE,
            "install libnccl2, or nvidia-nccl-cu12 from PyPI with its folder in LD_LIBRARY_PATH, or compile this side "
            "with --backend-cloud=cpu");
  }
  return agree(nccl, found, "has no NCCL", diag);
}

/* What rank 0 tells the others. */
typedef struct {
  int result;
  lp_nccl_id id;
} greeting;

static lp_status join(lp_nccl *nccl, lp_diag *diag) {
  const lp_collective *base = &nccl->base;
  greeting hello = {0};
  if (base->rank == 0) hello.result = nccl->id(&hello.id);
  if (!base->broadcast(base->self, &hello, sizeof hello))
    return lp_error(diag, LP_LOC_FILE("NCCL"), "a rank of the sharded half has ended");
  bool joined =
      note(nccl, "ncclGetUniqueId", hello.result) &&
      note(nccl, "ncclCommInitRank", nccl->init(&nccl->communicator, (int)base->count, hello.id, (int)base->rank));
  if (!joined) {
    nccl->communicator = NULL;
    lp_report_error(diag, LP_LOC_FILE("NCCL"), "the GPU cannot join those of the other ranks: %s", nccl->text);
    lp_note(diag, LP_LOC_NONE, "each rank needs a GPU of its own; NCCL_DEBUG=INFO in the environment shows more");
  }
  return agree(nccl, joined, "cannot join with its GPU", diag);
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

static bool broadcast(void *self, void *data, size_t size) {
  const lp_collective *base = &((lp_nccl *)self)->base;
  return base->broadcast(base->self, data, size);
}

static bool all_gather(void *self, const void *part, size_t size, void *all) {
  const lp_collective *base = &((lp_nccl *)self)->base;
  return base->all_gather(base->self, part, size, all);
}

static void give_up(void *self) {
  lp_nccl *nccl = self;
  if (nccl->base.give_up) nccl->base.give_up(nccl->base.self);
  if (nccl->communicator) (void)nccl->abort(nccl->communicator); /* which frees it */
  nccl->communicator = NULL;
  nccl->given_up = true;
}

static bool has_ended(void *self) {
  lp_nccl *nccl = self;
  int error = LP_NCCL_SUCCESS;
  if (nccl->given_up || (nccl->base.has_ended && nccl->base.has_ended(nccl->base.self))) return true;
  int asked = nccl->async_error(nccl->communicator, &error);
  if (error == LP_NCCL_IN_PROGRESS) error = LP_NCCL_SUCCESS;
  return !note(nccl, "ncclCommGetAsyncError", asked) || !note(nccl, "a gather", error);
}

static bool gather_on_gpu(void *self, const void *part, size_t size, void *all, void *stream) {
  lp_nccl *nccl = self;
  if (!nccl->communicator) return false;
  return note(nccl, "ncclAllGather", nccl->gather(part, all, size, LP_NCCL_INT8, nccl->communicator, stream));
}

static const char *error(void *self) {
  return ((lp_nccl *)self)->text;
}

void lp_nccl_close(lp_nccl *nccl) {
  if (!nccl) return;
  const lp_collective *base = &nccl->base;
  const bool ended = base->has_ended && base->has_ended(base->self);
  if (nccl->communicator) (void)(ended ? nccl->abort : nccl->destroy)(nccl->communicator); /* the latter may wait */
  free(nccl);
}

lp_status lp_nccl_open(const lp_collective *base, lp_nccl **out, lp_collective *collective, lp_diag *diag) {
  lp_nccl *nccl = lp_alloc(sizeof *nccl);
  nccl->base = *base;
  lp_status status = find_library(nccl, diag);
  if (status == LP_OK) status = join(nccl, diag);
  if (status != LP_OK) {
    lp_nccl_close(nccl);
    *out = NULL;
    return status;
  }
  *collective = (lp_collective){.rank = base->rank,
                                .count = base->count,
                                .self = nccl,
                                .broadcast = broadcast,
                                .all_gather = all_gather,
                                .give_up = give_up,
                                .has_ended = has_ended,
                                .gather_on_gpu = gather_on_gpu,
                                .error = error};
  *out = nccl;
  return LP_OK;
}
