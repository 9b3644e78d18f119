/* Modules of one operator: see op_text.h. */
#include "tests/ir/op_text.h"

#include <stdlib.h>
#include <string.h>

#include "tests/suite.h"

/* A type "f32 b,s,8" as in text: tensor<?x?x8xf32, ["b", "s"]>; "f32 *" has no known rank. */
static void put_type(const char *type, lp_buf *out) {
  const char *dims = strchr(type, ' ');
  lp_buf names = {0};
  lp_buf_puts(out, "tensor<");
  for (const char *at = dims ? dims + 1 : ""; *at;) {
    const int length = (int)strcspn(at, ",");
    const bool known = *at >= '0' && *at <= '9' && strspn(at, "0123456789") == (size_t)length;
    if (*at == '*' || known) {
      lp_buf_printf(out, "%.*sx", length, at);
    } else {
      lp_buf_puts(out, "?x");
      lp_buf_printf(&names, "%s\"%.*s\"", names.size ? ", " : "", length, at);
    }
    at += length + (at[length] == ',');
  }
  lp_buf_printf(out, "%.*s", (int)strcspn(type, " "), type);
  if (names.size) lp_buf_printf(out, ", [%s]", lp_buf_text(&names));
  lp_buf_puts(out, ">");
  lp_buf_free(&names);
}

/* Calls `put` for each type of a list "f32 2,3; w i8 3; k i64 2=0,1"; returns their number. A letter before a type says
 * what gives the operand; without one it is an argument. */
enum { GIVEN = 0, WEIGHT = 'w', CONSTANT = 'k' };
typedef void put_function(int index, const char *type, int by, lp_buf *out);
static int put_list(const char *list, put_function *put, lp_buf *out) {
  int count = 0;
  for (const char *at = list; *at; count++) {
    char type[64];
    const int length = (int)strcspn(at, ";");
    (void)snprintf(type, sizeof type, "%.*s", length, at);
    const int by = lp_has_prefix(type, "w ") || lp_has_prefix(type, "k ") ? type[0] : GIVEN;
    put(count, type + (by == GIVEN ? 0 : 2), by, out);
    at += length;
    at += strspn(at, "; ");
  }
  return count;
}

/* The type without a constant's elements. */
static void put_own_type(const char *type, lp_buf *out) {
  char own[64];
  (void)snprintf(own, sizeof own, "%.*s", (int)strcspn(type, "="), type);
  put_type(own, out);
}

static void put_plain(int index, const char *type, int by, lp_buf *out) {
  (void)by;
  lp_buf_puts(out, index ? ", " : "");
  put_own_type(type, out);
}

static void put_argument(int index, const char *type, int by, lp_buf *out) {
  if (by != GIVEN) return;
  lp_buf_printf(out, "%s%%a%d: ", lp_buf_text(out)[out->size - 1] == '(' ? "" : ", ", index);
  put_type(type, out);
}

static void put_weight(int index, const char *type, lp_buf *out) {
  int64_t bytes = type[0] == 'f' ? 4 : 1;
  for (const char *at = strchr(type, ' '); at; at = strchr(at + 1, ','))
    bytes *= atoll(at + 1);
  lp_buf_printf(out, "%%a%d = \"llmpart.weight\"() {file = \"w\", length = %d : i64, offset = 0 : i64} : () -> ", index,
                (int)bytes);
  put_type(type, out);
  lp_buf_puts(out, " ");
}

static void put_constant(int index, const char *type, lp_buf *out) {
  const char *elements = strchr(type, '=') + 1;
  const bool vector = memchr(type, ' ', (size_t)(elements - type)) != NULL;
  lp_buf_printf(out, "%%a%d = \"llmpart.constant\"() {value = dense<%s%s%s> : ", index, vector ? "[" : "", elements,
                vector ? "]" : "");
  put_own_type(type, out);
  lp_buf_puts(out, "} : () -> ");
  put_own_type(type, out);
  lp_buf_puts(out, " ");
}

static void put_known(int index, const char *type, int by, lp_buf *out) {
  if (by == WEIGHT) put_weight(index, type, out);
  if (by == CONSTANT) put_constant(index, type, out);
}

static void put_operand(int index, const char *type, int by, lp_buf *out) {
  (void)type;
  (void)by;
  lp_buf_printf(out, "%s%%a%d", index ? ", " : "", index);
}

void op_put_module(const op_row *r, lp_buf *out) {
  lp_buf results = {0};
  const int made = put_list(r->out, put_plain, &results);
  lp_buf_puts(out, "\"builtin.module\"() ({\n\"llmpart.func\"() ({\n^bb0(");
  (void)put_list(r->in, put_argument, out);
  lp_buf_puts(out, "):\n");
  (void)put_list(r->in, put_known, out);
  lp_buf_printf(out, "%%r:%d = \"%s\"(", made, r->op);
  (void)put_list(r->in, put_operand, out);
  lp_buf_printf(out, ") {%s} : (", r->attrs);
  (void)put_list(r->in, put_plain, out);
  lp_buf_printf(out, ") -> (%s)\n", lp_buf_text(&results));
  lp_buf_puts(out, "\"llmpart.return\"(");
  for (int i = 0; i < made; i++)
    lp_buf_printf(out, "%s%%r#%d", i ? ", " : "", i);
  lp_buf_printf(out, ") : (%s) -> ()\n", lp_buf_text(&results));
  lp_buf_puts(out, "}) {sym_name = \"main\"} : () -> ()\n"
                   "}) {llmpart.symbols = [\"b\", \"s\", \"p\", \"r\", \"c\", \"t\"]} : () -> ()\n");
  lp_buf_free(&results);
}

static void check(const op_row *r, op_act *act) {
  lp_buf text = {0}, said = {0};
  lp_diag *diag = lp_diag_create();
  lp_module *module = NULL;
  op_put_module(r, &text);
  lp_status status = lp_module_parse("t.mlir", text.data, text.size, &module, diag);
  if (status == LP_OK) status = lp_module_verify(module, diag);
  if (status == LP_OK && act) status = act(module, diag);
  for (size_t i = 0; i < lp_diag_count(diag); i++)
    lp_diag_format(lp_diag_get(diag, i), &said);
  const char *found = lp_buf_text(&said);
  if (!r->refusal)
    ck_assert_msg(status == LP_OK, "%s\n%s", lp_buf_text(&text), found);
  else
    ck_assert_msg(status == LP_FAILED && lp_diag_error_count(diag) == 1 && strstr(found, r->refusal) &&
                      lp_has_prefix(found, "t.mlir:4:"),
                  "%s\nwanted: %s\nfound: %s", lp_buf_text(&text), r->refusal, found);
  lp_module_free(module);
  lp_diag_free(diag);
  lp_buf_free(&text);
  lp_buf_free(&said);
}

void op_check_rows(const op_row *rows, size_t count, op_act *act) {
  for (size_t i = 0; i < count; i++)
    check(&rows[i], act);
}
