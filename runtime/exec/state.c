/* Memory of one side: KV caches and activations. */
#include <assert.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/poly.h"
#include "runtime/bundle/manifest.h"
#include "runtime/exec/state.h"
#include "runtime/gpu/gpu.h"

enum { STATE_ALIGNMENT = 64 };

/* The shape of a state around its append axis: outer x capacity x inner bytes. A state without one is a single row. */
typedef struct {
  size_t outer, capacity, inner;
} state_extent;

static bool extent_of(const lp_states *states, int32_t state, const int64_t *sym, state_extent *out) {
  const lp_state_desc *desc = &states->manifest->states[state];
  size_t count = (size_t)states->manifest->symbol_count;
  *out = (state_extent){.outer = 1, .capacity = 1, .inner = lp_element_size(desc->tensor.dtype)};
  for (int32_t i = 0; i < desc->tensor.rank; i++) {
    int64_t dim = lp_poly_eval(desc->tensor.shape[i], sym, count);
    if (dim < 0) return false;
    if (i == desc->append_axis)
      out->capacity = (size_t)dim;
    else if (!lp_size_mul((size_t)dim, i < desc->append_axis ? out->outer : out->inner,
                          i < desc->append_axis ? &out->outer : &out->inner))
      return false;
  }
  return true;
}

static bool stays(const lp_states *states, int32_t state) {
  return states->manifest->states[state].append_axis < 0;
}

static bool extent_bytes(state_extent extent, size_t rows, size_t *bytes) {
  return lp_size_mul(extent.outer, rows, bytes) && lp_size_mul(*bytes, extent.inner, bytes);
}

void lp_states_init(lp_states *states, const lp_manifest *manifest, lp_place side) {
  *states = (lp_states){.manifest = manifest, .side = side};
  states->pointer = lp_alloc(sizeof(void *) * ((size_t)manifest->state_count + 1));
  states->bytes = lp_alloc(sizeof(size_t) * ((size_t)manifest->state_count + 1));
}

static void unmap_region(lp_states *states) {
  if (states->apart) {
    lp_gpu_release(states->gpu, states->gpu_memory, states->region);
  } else if (states->region) {
    if (states->gpu) lp_gpu_memory_reset(states->gpu, states->gpu_memory); /* it shares the region */
    munmap(states->region, states->region_bytes);
  }
  states->region = NULL;
  states->region_bytes = states->rows_bytes = 0;
  states->rows = 0;
  states->batch = states->capacity = 0;
}

void lp_states_drop(lp_states *states) {
  unmap_region(states);
  for (int32_t i = 0; i < states->manifest->state_count; i++)
    states->pointer[i] = NULL;
}

void lp_states_free(lp_states *states) {
  unmap_region(states);
  free(states->pointer);
  free(states->bytes);
  states->pointer = NULL;
  states->bytes = NULL;
}

static size_t page_bytes(void) {
  return (size_t)sysconf(_SC_PAGESIZE);
}

/* Rounds up to where the next state may begin; false: it overflows. */
static bool align(const lp_states *states, size_t size, size_t *out) {
  size_t alignment = states->paged ? page_bytes() : STATE_ALIGNMENT;
  if (!lp_size_add(size, alignment - 1, out)) return false;
  *out = *out / alignment * alignment;
  return true;
}

bool lp_states_bytes(const lp_states *states, const int64_t *sym, size_t *bytes) {
  *bytes = 0;
  for (int32_t i = 0; i < states->manifest->state_count; i++) {
    if (!states->manifest->states[i].on[states->side]) continue;
    state_extent extent;
    size_t size = 0;
    if (!extent_of(states, i, sym, &extent) || !extent_bytes(extent, extent.capacity, &size)) return false;
    if (!align(states, size, &size) || !lp_size_add(*bytes, size, bytes)) return false;
  }
  return true;
}

/* ---- pages ------------------------------------------------------------------------------------------------------- */

static size_t greatest_divisor(size_t a, size_t b) {
  while (b > 0) {
    size_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

int64_t lp_states_whole_pages(const lp_states *states, const int64_t *sym) {
  int64_t unit = 1, capacity = sym[LP_SYM_C];
  for (int32_t i = 0; states->paged && i < states->manifest->state_count; i++) {
    state_extent extent;
    if (stays(states, i) || !states->manifest->states[i].on[states->side]) continue;
    if (!extent_of(states, i, sym, &extent) || extent.inner == 0) continue;
    int64_t rows = (int64_t)(page_bytes() / greatest_divisor(extent.inner, page_bytes())); /* a power of two */
    if (rows > unit) unit = rows;
  }
  return capacity > INT64_MAX - unit ? capacity : (capacity + unit - 1) / unit * unit;
}

/* The pages that the first `rows` rows take: of each run those with rows, and one more where runs begin within pages.
 */
static bool paged_bytes(state_extent extent, size_t rows, size_t *bytes) {
  size_t run = 0, whole = 0, page = page_bytes();
  if (rows > extent.capacity) rows = extent.capacity;
  if (!lp_size_mul(extent.capacity, extent.inner, &run) || !lp_size_mul(extent.outer, run, &whole)) return false;
  size_t pages = (rows * extent.inner + page - 1) / page + (rows > 0 && run % page != 0);
  whole = whole / page + (whole % page != 0);
  if (!lp_size_mul(extent.outer, pages, &pages)) return false;
  return lp_size_mul(pages < whole ? pages : whole, page, bytes);
}

bool lp_states_bytes_of_rows(const lp_states *states, const int64_t *sym, int64_t rows, size_t *bytes) {
  if (!states->paged) return lp_states_bytes(states, sym, bytes);
  *bytes = 0;
  for (int32_t i = 0; i < states->manifest->state_count; i++) {
    state_extent extent;
    size_t size = 0;
    if (!states->manifest->states[i].on[states->side]) continue;
    if (!extent_of(states, i, sym, &extent) || !paged_bytes(extent, stays(states, i) ? 1 : (size_t)rows, &size) ||
        !lp_size_add(*bytes, size, bytes))
      return false;
  }
  return true;
}

size_t lp_states_held(const lp_states *states) {
  return states->paged ? states->rows_bytes : states->region_bytes;
}

/* Notes that the first `rows` rows have memory. */
static void hold_rows(lp_states *states, const int64_t *sym, int64_t rows) {
  bool known = lp_states_bytes_of_rows(states, sym, rows, &states->rows_bytes);
  assert(known); /* as the size of the whole region */
  (void)known;
  states->rows = rows;
}

void lp_states_trim(lp_states *states, const int64_t *sym, int64_t rows) {
  size_t page = page_bytes();
  if (rows < states->rows) hold_rows(states, sym, rows);
  for (int32_t i = 0; i < states->manifest->state_count; i++) {
    state_extent extent;
    if (!states->pointer[i] || stays(states, i) || !extent_of(states, i, sym, &extent)) continue;
    for (size_t k = 0; k < extent.outer; k++) {
      char *run = (char *)states->pointer[i] + k * extent.capacity * extent.inner;
      size_t from = (size_t)(run - states->region) + (size_t)rows * extent.inner;
      size_t to = (size_t)(run - states->region) + extent.capacity * extent.inner;
      from = (from + page - 1) / page * page;
      to = to / page * page;
      if (from < to) (void)madvise(states->region + from, to - from, MADV_DONTNEED);
    }
  }
}

/* ---- the region -------------------------------------------------------------------------------------------------- */

/* Copies `rows` rows of each of extent.outer runs, which are `to_rows` and `from_rows` rows apart. `direction` says
 * which of `to` and `from` is in the memory of `states`. */
static lp_status copy_rows(const lp_states *states, lp_gpu_direction direction, char *to, size_t to_rows,
                           const char *from, size_t from_rows, size_t rows, state_extent extent, lp_diag *diag) {
  const lp_gpu_rows all = {.direction = direction,
                           .to = to,
                           .from = from,
                           .to_apart = to_rows * extent.inner,
                           .from_apart = from_rows * extent.inner,
                           .run = rows * extent.inner,
                           .count = extent.outer};
  if (states->apart) return lp_gpu_copy(states->gpu, states->gpu_memory, &all, diag);
  for (size_t i = 0; i < all.count; i++)
    memcpy(to + i * all.to_apart, from + i * all.from_apart, all.run);
  return LP_OK;
}

/* Lays the states out in `region`, and copies the first sym[p] rows into it when the batch is unchanged. */
static lp_status lay_out(lp_states *states, const int64_t *sym, char *region, lp_diag *diag) {
  bool keep = states->region && states->batch == sym[LP_SYM_B];
  size_t at = 0;
  for (int32_t i = 0; i < states->manifest->state_count; i++) {
    if (!states->manifest->states[i].on[states->side]) continue;
    state_extent extent;
    size_t size = 0;
    bool fits = extent_of(states, i, sym, &extent) && extent_bytes(extent, extent.capacity, &size);
    assert(fits);
    size_t rows = (size_t)sym[LP_SYM_P], old = (size_t)states->capacity;
    if (rows > old) rows = old;
    if (stays(states, i)) {
      rows = rows > 0 && states->bytes[i] == size;
      old = 1;
    }
    if (keep && rows > 0)
      LP_TRY(
          copy_rows(states, LP_GPU_WITHIN, region + at, extent.capacity, states->pointer[i], old, rows, extent, diag));
    states->pointer[i] = region + at;
    states->bytes[i] = size;
    fits = align(states, size, &size);
    assert(fits);
    (void)fits;
    at += size;
  }
  return LP_OK;
}

static lp_status make_region(const lp_states *states, const int64_t *sym, size_t bytes, void **out, lp_diag *diag) {
  if (states->apart) return lp_gpu_reserve(states->gpu, states->gpu_memory, bytes, "KV caches", out, diag);
  *out = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (*out == MAP_FAILED)
    return lp_error(diag, LP_LOC_FILE(states->manifest->file),
                    "no memory for %zu bytes of KV cache (batch %" PRId64 ", %" PRId64 " tokens)", bytes, sym[LP_SYM_B],
                    sym[LP_SYM_C]);
  if (states->paged) (void)madvise(*out, bytes, MADV_NOHUGEPAGE); /* a hint: one row would take a huge page */
  return LP_OK;
}

/* Tells whether the states without an append axis have the sizes for these symbols. Their sizes depend neither on the
 * capacity nor on earlier passes. */
static bool sizes_fit(const lp_states *states, const int64_t *sym) {
  for (int32_t i = 0; i < states->manifest->state_count; i++) {
    state_extent extent;
    size_t size = 0;
    if (!stays(states, i) || !states->manifest->states[i].on[states->side]) continue;
    if (!extent_of(states, i, sym, &extent) || !extent_bytes(extent, 1, &size) || size != states->bytes[i])
      return false;
  }
  return true;
}

/* Makes another region, unless the one that is there has the size. */
static lp_status fit_region(lp_states *states, const int64_t *sym, lp_diag *diag) {
  bool same = states->region && states->batch == sym[LP_SYM_B] && states->capacity == sym[LP_SYM_C];
  if (same && sizes_fit(states, sym)) return LP_OK;
  size_t bytes = 0;
  lp_loc loc = LP_LOC_FILE(states->manifest->file);
  if (!lp_states_bytes(states, sym, &bytes))
    return lp_error(diag, loc, "the KV cache for batch %" PRId64 " and %" PRId64 " tokens is too large", sym[LP_SYM_B],
                    sym[LP_SYM_C]);
  if (bytes == 0) return LP_OK;
  void *region = NULL;
  LP_TRY(make_region(states, sym, bytes, &region, diag));
  lp_status status = lay_out(states, sym, region, diag);
  unmap_region(states);
  states->region = region;
  states->region_bytes = bytes;
  states->batch = sym[LP_SYM_B];
  states->capacity = sym[LP_SYM_C];
  return status;
}

lp_status lp_states_reserve(lp_states *states, const int64_t *sym, lp_diag *diag) {
  LP_TRY(fit_region(states, sym, diag));
  int64_t rows = sym[LP_SYM_P] + sym[LP_SYM_S];
  if (states->paged && states->region && rows > states->rows) hold_rows(states, sym, rows);
  return LP_OK;
}

static size_t rows_of(const lp_states *states, int32_t state, const int64_t *sym) {
  return stays(states, state) ? 1 : (size_t)(sym[LP_SYM_P] + sym[LP_SYM_S]);
}

bool lp_states_rows_bytes(const lp_states *states, int32_t state, const int64_t *sym, size_t *bytes) {
  state_extent extent;
  return extent_of(states, state, sym, &extent) && extent_bytes(extent, rows_of(states, state, sym), bytes);
}

static lp_status report_extent(const lp_states *states, lp_diag *diag) {
  return lp_error(diag, LP_LOC_FILE(states->manifest->file), "a KV cache is too large to move");
}

lp_status lp_states_pack(const lp_states *states, int32_t state, const int64_t *sym, void *out, lp_diag *diag) {
  state_extent extent;
  if (!extent_of(states, state, sym, &extent)) return report_extent(states, diag);
  size_t rows = rows_of(states, state, sym);
  return copy_rows(states, LP_GPU_TO_HOST, out, rows, states->pointer[state], extent.capacity, rows, extent, diag);
}

lp_status lp_states_unpack(const lp_states *states, int32_t state, const int64_t *sym, const void *in, lp_diag *diag) {
  state_extent extent;
  if (!extent_of(states, state, sym, &extent)) return report_extent(states, diag);
  size_t rows = rows_of(states, state, sym);
  return copy_rows(states, LP_GPU_FROM_HOST, states->pointer[state], extent.capacity, in, rows, rows, extent, diag);
}

/* Two GPUs exchange data through the host. */
static lp_status copy_by_host(const lp_states *from, const lp_states *to, int32_t state, const int64_t *sym,
                              lp_diag *diag) {
  size_t bytes = 0;
  if (!lp_states_rows_bytes(from, state, sym, &bytes)) return report_extent(from, diag);
  LP_OWNED(lp_free_at) void *rows = lp_alloc(bytes + 1);
  LP_TRY(lp_states_pack(from, state, sym, rows, diag));
  return lp_states_unpack(to, state, sym, rows, diag);
}

lp_status lp_states_copy(const lp_states *from, const lp_states *to, int32_t state, const int64_t *sym, lp_diag *diag) {
  state_extent extent;
  if (from->apart && to->apart) return copy_by_host(from, to, state, sym, diag);
  if (!extent_of(from, state, sym, &extent)) return report_extent(from, diag);
  return copy_rows(from->apart ? from : to, from->apart ? LP_GPU_TO_HOST : LP_GPU_FROM_HOST, to->pointer[state],
                   extent.capacity, from->pointer[state], extent.capacity, rows_of(from, state, sym), extent, diag);
}

bool lp_states_have_rows(const lp_manifest *manifest, lp_place side) {
  for (int32_t i = 0; i < manifest->state_count; i++)
    if (manifest->states[i].on[side] && manifest->states[i].append_axis < 0) return false;
  return true;
}

lp_status lp_states_copy_rows(const lp_states *from, lp_states *to, int64_t rows, lp_diag *diag) {
  const int64_t source[LP_MAX_SYMBOLS] = {[LP_SYM_B] = 1, [LP_SYM_P] = rows, [LP_SYM_C] = from->capacity};
  const int64_t target[LP_MAX_SYMBOLS] = {[LP_SYM_B] = 1, [LP_SYM_P] = rows, [LP_SYM_C] = to->capacity};
  LP_OWNED(lp_buf_free) lp_buf packed = {0};
  lp_status status = LP_OK;
  for (int32_t i = 0; status == LP_OK && i < to->manifest->state_count; i++) {
    size_t bytes = 0;
    if (!to->manifest->states[i].on[to->side]) continue;
    if (!lp_states_rows_bytes(from, i, source, &bytes)) status = report_extent(from, diag);
    lp_buf_clear(&packed);
    if (status == LP_OK) lp_buf_reserve(&packed, bytes + 1);
    if (status == LP_OK) status = lp_states_pack(from, i, source, packed.data, diag);
    if (status == LP_OK) status = lp_states_unpack(to, i, target, packed.data, diag);
  }
  return status;
}

/* ---- activations ------------------------------------------------------------------------------------------------- */

enum { HUGE_PAGE = 2 << 20 };

/* Growing copies nothing, since activations do not outlive a pass. It maps a half more than asked for, so that a
 * context that grows by one token per pass does not map memory in each. */
bool lp_activations_reserve(lp_activations *activations, size_t bytes) {
  if (bytes <= activations->bytes) return true;
  size_t wanted = 0;
  if (!lp_size_add(bytes, bytes / 2, &wanted) || !lp_size_add(wanted, HUGE_PAGE - 1, &wanted)) return false;
  wanted = wanted / HUGE_PAGE * HUGE_PAGE;
  char *data = mmap(NULL, wanted, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) return false;
  (void)madvise(data, wanted, MADV_HUGEPAGE); /* a hint */
  lp_activations_free(activations);
  *activations = (lp_activations){.data = data, .bytes = wanted};
  return true;
}

void lp_activations_free(lp_activations *activations) {
  if (activations->data) munmap(activations->data, activations->bytes);
  *activations = (lp_activations){0};
}
