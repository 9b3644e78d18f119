/* Text that every dialect shares: kernels, sizes, and the symbols of segments and layouts. */
#include "backend/gpu/gpu_internal.h"
#include "base/map.h"
#include "base/poly.h"

#include <ctype.h>
#include <string.h>

static const char *meaning(const gpu_dialect *dialect, const char *word, size_t length) {
  for (const gpu_word *w = dialect->words; w->word; w++)
    if (strlen(w->word) == length && strncmp(w->word, word, length) == 0) return w->means;
  return NULL;
}

void gpu_print_text(const gpu_dialect *dialect, const char *text, lp_buf *out) {
  for (const char *at = text; *at;) {
    size_t length = 0;
    while (*at == '@' && (isalnum((unsigned char)at[1 + length]) || at[1 + length] == '_'))
      length++;
    const char *means = length ? meaning(dialect, at + 1, length) : NULL;
    if (!means) {
      lp_buf_append(out, at++, 1);
      continue;
    }
    lp_buf_puts(out, means);
    at += 1 + length;
    if (!*means && *at == ' ') at++; /* a word that means nothing leaves no gap */
  }
}

void gpu_print_kernels(const gpu_plan *plan, const gpu_dialect *dialect, bool library, lp_buf *out) {
  gpu_print_text(dialect, gpu_template(dialect->prologue), out);
  if (plan->any_tensor) gpu_print_text(dialect, gpu_template(dialect->tensor), out);
  gpu_print_text(dialect, gpu_template("common"), out);
  lp_buf_puts(out, "// ---- kernels ");
  for (int i = 0; i < 105; i++)
    lp_buf_puts(out, "-");
  lp_buf_puts(out, "\n");
  for (size_t i = 0; i < lp_map_count(plan->kernels); i++) {
    const gpu_kernel *kernel = lp_map_value_at(plan->kernels, i);
    if (kernel->finishes && !library) continue;
    lp_buf_puts(out, "\n");
    gpu_print_text(dialect, kernel->text, out);
  }
}

/* ---- sizes ---------------------------------------------------------------------------------------------------------- */

static void print_symbol(const gpu_plan *plan, lp_symbol symbol, lp_buf *out) {
  enum { NAMED = 6 }; /* b s p r c t */
  if (symbol <= NAMED)
    lp_buf_printf(out, "f.%s", lp_symbols_name(&plan->module->symbols, symbol));
  else
    lp_buf_printf(out, "f.sym[%d]", symbol - 1);
}

void gpu_print_size(const gpu_plan *plan, const lp_poly *size, lp_buf *out) {
  if (size->count == 0) lp_buf_puts(out, "0");
  for (int32_t i = 0; i < size->count; i++) {
    const lp_term *term = &size->term[i];
    bool first = true;
    if (i) lp_buf_puts(out, term->coef < 0 ? " - " : " + ");
    int64_t coef = i && term->coef < 0 ? -term->coef : term->coef;
    if (coef != 1 || !term->symbol[0]) {
      lp_buf_printf(out, "%" PRId64, coef);
      first = false;
    }
    for (int k = 0; k < LP_POLY_DEGREE && term->symbol[k]; k++, first = false) {
      if (!first) lp_buf_puts(out, " * ");
      print_symbol(plan, term->symbol[k], out);
    }
  }
}

/* ---- symbols -------------------------------------------------------------------------------------------------------- */

static void segment_key(const gpu_program *program, const gpu_segment *segment, lp_buf *key) {
  lp_buf_printf(key, "%" PRId64, program->buffer_count);
  for (size_t i = 0; i < segment->calls.count; i++) {
    const gpu_call *call = &segment->calls.data[i];
    lp_buf_printf(key, "\n%s%s", call->joint ? "joint " : "", call->launcher->name);
    for (int32_t k = 0; k < call->ref_count; k++)
      lp_buf_printf(key, " %d:%" PRId64 "+%d*%" PRId64, call->ref[k].place,
                    call->ref[k].constant ? call->ref[k].constant->offset : call->ref[k].index, call->ref[k].rows,
                    call->ref[k].row_bytes);
  }
}

static void layout_key(const gpu_plan *plan, const gpu_program *program, lp_buf *key) {
  for (int64_t i = 0; i < program->buffer_count; i++)
    lp_buf_printf(key, " %" PRId64, program->slot[i]);
  LP_FOR_OPS(op, program->func->region) {
    if (lp_op_has(op, LP_CONSTANT) || !lp_streq(lp_op_side(op), plan->side)) continue;
    for (int32_t i = 0; i < op->out_count; i++) {
      lp_buf_printf(key, " %" PRId64 ":", lp_value_buffer(op->out[i], plan->side));
      const lp_poly *bytes = lp_type_bytes(plan->module, op->out[i]->type);
      if (bytes) lp_poly_print(bytes, &plan->module->symbols, key);
    }
  }
  for (size_t i = 0; i < program->scratch.count; i++) {
    lp_buf_printf(key, " scratch%s %" PRId64 " ", program->scratch.data[i].library ? " library" : "",
                  program->scratch.data[i].most);
    lp_poly_print(program->scratch.data[i].bytes, &plan->module->symbols, key);
    lp_poly_print(program->scratch.data[i].few, &plan->module->symbols, key);
  }
}

/* The symbol of what `key` describes: the same for the same. */
static const char *symbol_of(const gpu_plan *plan, lp_map *known, lp_buf *key, const char *stem) {
  const char *symbol = lp_map_get(known, lp_buf_text(key));
  if (!symbol) {
    symbol = lp_arena_format(plan->arena, "%s_%zu", stem, lp_map_count(known));
    lp_map_put(known, lp_buf_text(key), (void *)(uintptr_t)symbol);
  }
  lp_buf_clear(key);
  return symbol;
}

void gpu_symbols_assign(gpu_plan *plan) {
  lp_map *layouts = lp_map_create(), *segments = lp_map_create();
  lp_buf key = {0};
  for (size_t i = 0; i < plan->programs.count; i++) {
    gpu_program *program = &plan->programs.data[i];
    layout_key(plan, program, &key);
    program->layout = symbol_of(plan, layouts, &key, "lp_layout");
    for (size_t k = 0; k < program->segments.count; k++) {
      segment_key(program, program->segments.data[k], &key);
      program->segments.data[k]->symbol = symbol_of(plan, segments, &key, "lp_segment");
    }
  }
  lp_buf_free(&key);
  lp_map_free(layouts);
  lp_map_free(segments);
}
