/* Modules of one operator: see op_text.h. */
#include "tests/ir/op_text.h"

#include <stdlib.h>
#include <string.h>

#include "tests/suite.h"

enum { MOST_TEXT = 512 }; /* of a type or a statement */

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
    char type[MOST_TEXT];
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
  char own[MOST_TEXT];
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

/* The elements of a constant in nested brackets; one element fills it. */
static void put_elements(const char *type, lp_buf *out) {
  const char *at = strchr(type, '=') + 1, *dims = memchr(type, ' ', (size_t)(at - type));
  int64_t inner[LP_MAX_RANK + 1] = {0}; /* the elements of the parts that a bracket closes */
  int rank = 0;
  for (const char *dim = dims; dim && dim < at; dim = memchr(dim + 1, ',', (size_t)(at - dim - 1)))
    inner[rank++] = atoll(dim + 1);
  for (int i = rank - 2; i >= 0; i--)
    inner[i] *= inner[i + 1];
  const bool fills = !strchr(at, ',') && (rank == 0 || inner[0] != 1);
  for (int64_t i = 0; *at; i++) {
    const int length = (int)strcspn(at, ",");
    lp_buf_puts(out, i > 0 ? ", " : "");
    for (int k = 0; k < rank && !fills; k++)
      if (i % inner[k] == 0) lp_buf_puts(out, "[");
    lp_buf_printf(out, "%.*s", length, at);
    for (int k = 0; k < rank && !fills; k++)
      if ((i + 1) % inner[k] == 0) lp_buf_puts(out, "]");
    at += length + (at[length] == ',');
  }
}

static void put_constant(int index, const char *type, lp_buf *out) {
  lp_buf_printf(out, "%%a%d = \"llmpart.constant\"() {value = dense<", index);
  put_elements(type, out);
  lp_buf_puts(out, "> : ");
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

#define END_OF_MODULE                                                                                                  \
  "}) {llmpart.symbols = [\"b\", \"s\", \"p\", \"r\", \"c\", \"t\", \"batch\", \"seq\", \"rows\"]} : () -> ()\n"

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
  lp_buf_puts(out, "}) {sym_name = \"main\"} : () -> ()\n" END_OF_MODULE);
  lp_buf_free(&results);
}

/* ---- graphs ------------------------------------------------------------------------------------------------------ */

enum { MOST_VALUES = 128 };

typedef struct {
  char name[MOST_VALUES][48];
  char value[MOST_VALUES][32];       /* as in text: "%a7" or, of an operator with several results, "%a7#1" */
  char type[MOST_VALUES][MOST_TEXT]; /* as in text */
  int count;
  lp_buf args, ops, inputs; /* inputs: the arguments' names */
  char last[MOST_TEXT];     /* the names of the last operator's results */
} graph;

static int value_of(const graph *g, const char *name) {
  for (int i = 0; i < g->count; i++)
    if (lp_streq(g->name[i], name)) return i;
  ck_abort_msg("no value '%s' before its use", name);
}

static int add_value(graph *g, const char *name, const char *type) {
  ck_assert_int_lt(g->count, MOST_VALUES);
  (void)snprintf(g->name[g->count], sizeof *g->name, "%s", name);
  (void)snprintf(g->value[g->count], sizeof *g->value, "%%a%d", g->count);
  (void)snprintf(g->type[g->count], sizeof *g->type, "%s", type);
  return g->count++;
}

/* "x: TYPE" */
static void put_given(graph *g, const char *name, const char *type) {
  lp_buf text = {0};
  const int by = type[1] == ' ' ? type[0] : GIVEN;
  const char *own = by == GIVEN ? type : type + 2;
  int sizes = 1;
  for (const char *comma = strchr(own, ','); comma; comma = strchr(comma + 1, ','))
    sizes++;
  if (by == 'n' && sizes == 1) lp_buf_puts(&text, "tensor<i64>");
  if (by == 'n' && sizes > 1) lp_buf_printf(&text, "tensor<%dxi64>", sizes);
  if (by != 'n') put_own_type(own, &text);
  const int index = add_value(g, name, lp_buf_text(&text));
  if (by == GIVEN) {
    lp_buf_printf(&g->args, "%s%%a%d: %s", g->args.size ? ", " : "", index, lp_buf_text(&text));
    lp_buf_printf(&g->inputs, "%s\"%s\"", g->inputs.size ? ", " : "", name);
  }
  put_known(index, own, by, &g->ops);
  if (by == 'n') {
    lp_buf_printf(&g->ops, "%%a%d = \"op.dims\"() {values = #llmpart.polys<\"%s\">} : () -> %s", index, own,
                  lp_buf_text(&text));
  }
  lp_buf_puts(&g->ops, by == GIVEN ? "" : "\n");
  lp_buf_free(&text);
}

/* The operands in a list of names, as "%a1, %a2" and their types; the mask has a 0 for each "_". */
static void put_operands(const graph *g, char *names, lp_buf *values, lp_buf *types, lp_buf *mask) {
  for (char *at = NULL, *name = strtok_r(names, " ", &at); name; name = strtok_r(NULL, " ", &at)) {
    lp_buf_puts(mask, lp_streq(name, "_") ? "0" : "1");
    if (lp_streq(name, "_")) continue;
    const int index = value_of(g, name);
    lp_buf_printf(values, "%s%s", values->size ? ", " : "", g->value[index]);
    lp_buf_printf(types, "%s%s", types->size ? ", " : "", g->type[index]);
  }
}

static void put_return(const graph *g, char *names, lp_buf *out) {
  lp_buf values = {0}, types = {0}, mask = {0}, outputs = {0};
  for (const char *at = names; *at;) {
    const int length = (int)strcspn(at, " ");
    lp_buf_printf(&outputs, "%s\"%.*s\"", outputs.size ? ", " : "", length, at);
    at += length;
    at += strspn(at, " ");
  }
  put_operands(g, names, &values, &types, &mask);
  lp_buf_printf(out, "\"llmpart.return\"(%s) : (%s) -> ()\n", lp_buf_text(&values), lp_buf_text(&types));
  lp_buf_printf(out, "}) {inputs = [%s], outputs = [%s], sym_name = \"main\"} : () -> ()\n", lp_buf_text(&g->inputs),
                lp_buf_text(&outputs));
  lp_buf *all[] = {&values, &types, &mask, &outputs};
  for (size_t i = 0; i < LP_COUNT(all); i++)
    lp_buf_free(all[i]);
}

/* "RESULTS = KIND OPERANDS {ATTRIBUTES}" */
static void put_operator(graph *g, char *results, char *right) {
  lp_buf values = {0}, types = {0}, mask = {0}, made = {0};
  char *attrs = strchr(right, '{'), *kind = NULL;
  if (attrs) *attrs++ = 0;
  if (attrs) attrs[strcspn(attrs, "}")] = 0;
  kind = strtok_r(right, " ", &right);
  put_operands(g, right, &values, &types, &mask);
  (void)snprintf(g->last, sizeof g->last, "%s", results);
  const int first = g->count;
  for (char *at = NULL, *name = strtok_r(results, " ", &at); name; name = strtok_r(NULL, " ", &at)) {
    const int index = add_value(g, name, "tensor<*xf32>");
    if (index > first) (void)snprintf(g->value[index], sizeof *g->value, "%%a%d#%d", first, index - first);
    lp_buf_printf(&made, "%stensor<*xf32>", made.size ? ", " : "");
  }
  if (g->count > first + 1) (void)snprintf(g->value[first], sizeof *g->value, "%%a%d#0", first);
  lp_buf_printf(&g->ops, "%%a%d:%d = \"%s%s\"(%s) {%s", first, g->count - first, strchr(kind, '.') ? "" : "onnx.", kind,
                lp_buf_text(&values), attrs ? attrs : "");
  if (strchr(lp_buf_text(&mask), '0'))
    lp_buf_printf(&g->ops, "%soperand_mask = \"%s\"", attrs ? ", " : "", lp_buf_text(&mask));
  lp_buf_printf(&g->ops, "} : (%s) -> (%s)\n", lp_buf_text(&types), lp_buf_text(&made));
  lp_buf *all[] = {&values, &types, &mask, &made};
  for (size_t i = 0; i < LP_COUNT(all); i++)
    lp_buf_free(all[i]);
}

static void put_statement(graph *g, char *text) {
  char *equals = strchr(text, '='), *colon = strchr(text, ':');
  if (lp_has_prefix(text, "return ")) {
    (void)snprintf(g->last, sizeof g->last, "%s", text + 7);
  } else if (colon && (!equals || colon < equals)) {
    *colon = 0;
    put_given(g, text, colon + 2);
  } else {
    ck_assert_msg(equals, "'%s' is no statement", text);
    *equals = 0;
    put_operator(g, text, equals + 1);
  }
}

void op_put_graph(const char *text, lp_buf *out) {
  graph *g = lp_alloc(sizeof *g);
  for (const char *at = text; *at;) {
    char statement[MOST_TEXT];
    const int length = (int)strcspn(at, ";");
    ck_assert_int_lt(length, MOST_TEXT);
    (void)snprintf(statement, sizeof statement, "%.*s", length, at);
    put_statement(g, statement);
    at += length;
    at += strspn(at, "; ");
  }
  lp_buf_printf(out, "\"builtin.module\"() ({\n\"llmpart.func\"() ({\n^bb0(%s):\n%s", lp_buf_text(&g->args),
                lp_buf_text(&g->ops));
  put_return(g, g->last, out);
  lp_buf_puts(out, END_OF_MODULE);
  lp_buf_free(&g->inputs);
  lp_buf_free(&g->args);
  lp_buf_free(&g->ops);
  free(g);
}

/* ---- tables ------------------------------------------------------------------------------------------------------ */

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
