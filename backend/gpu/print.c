/* Text that every dialect shares: kernels and sizes. */
#include "backend/gpu/print.h"

#include "base/map.h"
#include "base/poly.h"

#include <ctype.h>

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
    if (!*means && *at == ' ') at++; /* an empty meaning leaves no gap */
  }
}

void gpu_print_kernels(const gpu_launch_list *list, const gpu_dialect *dialect, bool library, lp_buf *out) {
  gpu_print_text(dialect, gpu_template(dialect->prologue), out);
  if (list->any_rounded) {
    gpu_print_text(dialect, gpu_template("rounded"), out);
    gpu_print_text(dialect, gpu_template(dialect->rounded), out);
    if (list->halves != GPU_HALVES_NEVER) gpu_print_text(dialect, gpu_template("halves"), out);
  }
  if (list->any_tensor) gpu_print_text(dialect, gpu_template(dialect->tensor), out);
  gpu_print_text(dialect, gpu_template("common"), out);
  lp_buf_puts(out, "// ---- kernels ");
  for (int i = 0; i < 105; i++)
    lp_buf_puts(out, "-");
  lp_buf_puts(out, "\n");
  for (size_t i = 0; i < lp_map_count(list->kernels); i++) {
    const gpu_kernel *kernel = lp_map_value_at(list->kernels, i);
    if (kernel->finishes && !library) continue;
    lp_buf_puts(out, "\n");
    gpu_print_text(dialect, kernel->text, out);
  }
}

/* ---- sizes ------------------------------------------------------------------------------------------------------- */

static void print_symbol(const gpu_launch_list *list, lp_symbol symbol, lp_buf *out) {
  enum { NAMED = 6 }; /* b s p r c t */
  if (symbol <= NAMED)
    lp_buf_printf(out, "f.%s", lp_symbols_name(&list->module->symbols, symbol));
  else
    lp_buf_printf(out, "f.sym[%d]", symbol - 1);
}

void gpu_print_size(const gpu_launch_list *list, const lp_poly *size, lp_buf *out) {
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
      print_symbol(list, term->symbol[k], out);
    }
  }
}
