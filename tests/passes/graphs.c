/* See graphs.h. */
#include "tests/passes/graphs.h"

#include <stdlib.h>
#include <string.h>

#include "passes/passes.h"
#include "tests/ir/op_text.h"
#include "tests/passes/values.h"
#include "tests/suite.h"

static bool has_wanted(const graph_row *r, const char *found) {
  bool good = true;
  for (const char *at = r->wanted; *at;) {
    char text[200];
    const int length = (int)strcspn(at, "|");
    const bool lacks = *at == '!', marked = lacks || *at == '?';
    (void)snprintf(text, sizeof text, "%.*s", length - marked, at + marked);
    if ((strstr(found, text) == NULL) != lacks) {
      fprintf(stderr, "%s\n%s: %s\n%s\n", r->graph, lacks ? "not wanted" : "wanted", text, found);
      good = false;
    }
    at += length + (at[length] == '|');
  }
  return good;
}

static bool is_row(const graph_row *r, const char *text, size_t size, const char *passes) {
  lp_diag *diag = lp_diag_create();
  lp_module *module = NULL;
  lp_buf found = {0};
  bool good = lp_module_parse("t.mlir", text, size, &module, diag) == LP_OK &&
              lp_block_infer(module, lp_module_find_func(module, "main")->region, diag) == LP_OK &&
              lp_module_verify(module, diag) == LP_OK;
  const bool made = good && lp_passes_run(module, passes, NULL, NULL, diag) == LP_OK;
  if (made) lp_module_print(module, false, &found);
  for (size_t i = 0; i < lp_diag_count(diag); i++)
    lp_diag_format(lp_diag_get(diag, i), &found);
  if (!good || made != (r->wanted[0] != '?')) {
    fprintf(stderr, "%s\n%s\n%s\n", r->graph, text, lp_buf_text(&found));
    good = false;
  }
  good = good && has_wanted(r, lp_buf_text(&found));
  lp_buf_free(&found);
  lp_diag_free(diag);
  lp_module_free(module);
  return good;
}

void graph_check_rows(const graph_row *rows, size_t count, const char *passes, graph_checks checks) {
  values_tally t = {0};
  int bad = 0;
  values_begin();
  for (size_t i = 0; i < count; i++) {
    lp_buf text = {0};
    op_put_graph(rows[i].graph, &text);
    bad += !is_row(&rows[i], lp_buf_text(&text), text.size, passes);
    if (checks == GRAPH_VALUES) values_try_module(rows[i].graph, (int)i, lp_buf_text(&text), text.size, &t);
    lp_buf_free(&text);
  }
  ck_assert_int_eq(bad + t.wrong, 0);
  values_end();
}
