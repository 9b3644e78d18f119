/* Parses the generic MLIR assembly that printer.c writes. Values must be defined before they are used, in text order;
 * every error is located at file:line:col. Nesting is bounded, so that no text overflows the stack. */
#include "base/map.h"
#include "base/poly.h"
#include "base/units.h"
#include "ir/ir.h"
#include "ir/ir_internal.h"
#include "ir/text/lexer.h"
#include "ir/text/parse_attr.h"

enum { MAX_NESTING = 64 };

typedef struct {
  lp_value **values;
  int32_t count;
} value_group;

/* ---- values ------------------------------------------------------------------------------------------------------ */

static lp_status define_value(lp_parser *p, const char *name, lp_loc loc, lp_value **values, int32_t count) {
  if (lp_map_get(p->values, name)) return lp_error(p->diag, loc, "value '%%%s' is defined twice", name);
  value_group *group = LP_NEW(p->scratch, value_group);
  *group = (value_group){values, count};
  lp_map_put(p->values, name, group);
  lp_vec_push(&p->visible, name);
  return LP_OK;
}

static lp_status find_value(lp_parser *p, lp_value **out) {
  const char *word = p->lexer.word, *hash = strchr(word, '#');
  char *name = lp_arena_strndup(p->scratch, word, hash ? (size_t)(hash - word) : strlen(word));
  const value_group *group = lp_map_get(p->values, name);
  if (!group) return lp_error(p->diag, p->lexer.loc, "value '%%%s' is not defined", name);
  int64_t index = 0;
  if (hash) LP_TRY(lp_parse_i64(hash + 1, 0, INT32_MAX, &index, p->diag, p->lexer.loc));
  if (index >= group->count) return lp_error(p->diag, p->lexer.loc, "value '%%%s' has %d results", name, group->count);
  *out = group->values[index];
  return LP_OK;
}

/* ---- operators --------------------------------------------------------------------------------------------------- */

typedef struct {
  const char *result; /* NULL when the operator has none */
  int64_t result_count;
  lp_loc loc;
  lp_kind kind;
  LP_VEC(lp_value *) in;
  LP_VEC(lp_loc) in_loc;
  LP_VEC(lp_type) out;
  lp_op *op;
} pending;

static lp_status parse_results(lp_parser *p, pending *op) {
  if (p->lexer.kind != LP_TOK_VALUE) return LP_OK;
  op->result = p->lexer.word;
  op->loc = p->lexer.loc;
  op->result_count = 1;
  if (strchr(op->result, '#')) return lp_parse_unexpected(p, "a result name");
  lp_lexer_next(&p->lexer);
  if (lp_parse_accept(p, ":")) {
    if (p->lexer.kind != LP_TOK_NUMBER) return lp_parse_unexpected(p, "a number of results");
    LP_TRY(lp_parse_i64(p->lexer.word, 1, 4096, &op->result_count, p->diag, p->lexer.loc));
    lp_lexer_next(&p->lexer);
  }
  return lp_parse_expect(p, "=");
}

static lp_status parse_name(lp_parser *p, pending *op) {
  if (p->lexer.kind != LP_TOK_STRING) return lp_parse_unexpected(p, "an operator name in quotes");
  if (!lp_op_info_find(p->lexer.word, &op->kind)) {
    const char *const *names;
    size_t count = lp_op_names(&names);
    return lp_error_near(p->diag, p->lexer.loc, p->lexer.word, names, count, "unknown operator '%s'", p->lexer.word);
  }
  lp_lexer_next(&p->lexer);
  return LP_OK;
}

static lp_status parse_operands(lp_parser *p, pending *op) {
  LP_TRY(lp_parse_expect(p, "("));
  while (!lp_parse_accept(p, ")")) {
    if (op->in.count > 0) LP_TRY(lp_parse_expect(p, ","));
    if (p->lexer.kind != LP_TOK_VALUE) return lp_parse_unexpected(p, "an operand");
    lp_value *value = NULL;
    LP_TRY(find_value(p, &value));
    lp_vec_push(&op->in, value);
    lp_vec_push(&op->in_loc, p->lexer.loc);
    lp_lexer_next(&p->lexer);
  }
  return LP_OK;
}

static lp_status parse_ops(lp_parser *p, lp_block *block);

static lp_status parse_block_args(lp_parser *p, lp_block *block) {
  if (p->lexer.kind != LP_TOK_BLOCK) return LP_OK;
  lp_lexer_next(&p->lexer);
  if (lp_parse_accept(p, "(")) {
    while (!lp_parse_accept(p, ")")) {
      if (block->arg_count > 0) LP_TRY(lp_parse_expect(p, ","));
      if (p->lexer.kind != LP_TOK_VALUE) return lp_parse_unexpected(p, "a block argument");
      const char *name = p->lexer.word;
      lp_loc loc = p->lexer.loc;
      lp_type type;
      lp_lexer_next(&p->lexer);
      LP_TRY(lp_parse_expect(p, ":"));
      LP_TRY(lp_parse_type(p, &type));
      lp_value **group = LP_NEW_ARRAY(p->scratch, lp_value *, 1);
      group[0] = lp_block_add_arg(block, type);
      LP_TRY(define_value(p, name, loc, group, 1));
    }
  }
  return lp_parse_expect(p, ":");
}

/* Names defined inside a region are not visible after it. */
static void leave_scope(lp_parser *p, size_t mark) {
  while (p->visible.count > mark)
    lp_map_put(p->values, p->visible.data[--p->visible.count], NULL);
}

static lp_status parse_region(lp_parser *p, lp_op *op) {
  size_t mark = p->visible.count;
  LP_TRY(lp_parse_expect(p, "("));
  LP_TRY(lp_parse_expect(p, "{"));
  if (++p->nesting > MAX_NESTING) return lp_error(p->diag, p->lexer.loc, "regions nest deeper than %d", MAX_NESTING);
  lp_block *block = op->kind == LP_OP_MODULE ? op->region : lp_op_add_region(p->module, op, 0, NULL);
  LP_TRY(parse_block_args(p, block));
  LP_TRY(parse_ops(p, block));
  p->nesting--;
  leave_scope(p, mark);
  LP_TRY(lp_parse_expect(p, "}"));
  return lp_parse_expect(p, ")");
}

static lp_status parse_attr_dict(lp_parser *p, lp_op *op) {
  if (!lp_parse_accept(p, "{")) return LP_OK;
  for (bool first = true; !lp_parse_accept(p, "}"); first = false) {
    if (!first) LP_TRY(lp_parse_expect(p, ","));
    if (p->lexer.kind != LP_TOK_WORD) return lp_parse_unexpected(p, "an attribute name");
    lp_attr attr = {.name = lp_arena_strdup(p->module->arena, p->lexer.word)};
    if (lp_op_attr(op, attr.name)) return lp_error(p->diag, p->lexer.loc, "attribute '%s' is given twice", attr.name);
    lp_lexer_next(&p->lexer);
    LP_TRY(lp_parse_expect(p, "="));
    LP_TRY(lp_parse_attr(p, &attr));
    lp_op_set_attr(p->module, op, &attr);
  }
  return LP_OK;
}

static lp_status parse_type_list(lp_parser *p, pending *op, bool results) {
  size_t index = 0;
  if (results && !lp_parse_at(p, "(")) {
    lp_type type;
    LP_TRY(lp_parse_type(p, &type));
    lp_vec_push(&op->out, type);
    return LP_OK;
  }
  LP_TRY(lp_parse_expect(p, "("));
  for (; !lp_parse_accept(p, ")"); index++) {
    if (index > 0) LP_TRY(lp_parse_expect(p, ","));
    lp_loc loc = p->lexer.loc;
    lp_type type;
    LP_TRY(lp_parse_type(p, &type));
    if (results)
      lp_vec_push(&op->out, type);
    else if (index >= op->in.count)
      return lp_error(p->diag, loc, "%zu operands, but more types", op->in.count);
    else if (!lp_type_equal(type, op->in.data[index]->type))
      return lp_error(p->diag, loc, "type of operand %zu differs from its definition", index);
  }
  if (!results && index != op->in.count)
    return lp_error(p->diag, p->lexer.loc, "%zu operands, but %zu types", op->in.count, index);
  return LP_OK;
}

/* loc("file":1:2) or loc("node (Op)"("file":0:0)) */
static lp_status parse_location(lp_parser *p, lp_op *op) {
  if (p->lexer.kind != LP_TOK_WORD || strcmp(p->lexer.word, "loc") != 0) return LP_OK;
  lp_lexer_next(&p->lexer);
  LP_TRY(lp_parse_expect(p, "("));
  if (p->lexer.kind != LP_TOK_STRING) return lp_parse_unexpected(p, "a location in quotes");
  char *text = lp_arena_strdup(p->module->arena, p->lexer.word);
  int64_t number[2] = {0, 0};
  lp_lexer_next(&p->lexer);
  bool named = lp_parse_accept(p, "(");
  if (named) {
    char *open = strrchr(text, '(');
    if (!open || open == text || open[-1] != ' ' || !lp_has_suffix(open, ")"))
      return lp_error(p->diag, p->lexer.loc, "expected a location \"node (Op)\", found \"%s\"", text);
    open[strlen(open) - 1] = open[-1] = '\0';
    op->loc = (lp_loc){.node = text, .op = open + 1};
    if (p->lexer.kind != LP_TOK_STRING) return lp_parse_unexpected(p, "a file name in quotes");
    text = lp_arena_strdup(p->module->arena, p->lexer.word);
    lp_lexer_next(&p->lexer);
  }
  for (int i = 0; i < 2; i++) {
    LP_TRY(lp_parse_expect(p, ":"));
    if (p->lexer.kind != LP_TOK_NUMBER) return lp_parse_unexpected(p, "a number");
    LP_TRY(lp_parse_i64(p->lexer.word, 0, INT32_MAX, &number[i], p->diag, p->lexer.loc));
    lp_lexer_next(&p->lexer);
  }
  op->loc.file = text[0] ? text : NULL;
  op->loc.line = (int32_t)number[0];
  op->loc.col = (int32_t)number[1];
  if (named) LP_TRY(lp_parse_expect(p, ")"));
  return lp_parse_expect(p, ")");
}

/* Puts absent operands back where `operand_mask` says. */
static lp_status apply_mask(lp_parser *p, lp_op *op, pending *from) {
  const char *mask = lp_op_str(op, LP_MASK_ATTR, NULL);
  if (!mask) {
    lp_op_set_ins(p->module, op, (int32_t)from->in.count, from->in.data);
    return LP_OK;
  }
  size_t length = strlen(mask), present = 0;
  lp_value **in = LP_NEW_ARRAY(p->scratch, lp_value *, length);
  for (size_t i = 0; i < length; i++) {
    if (mask[i] != '1') continue;
    if (present == from->in.count) break;
    in[i] = from->in.data[present++];
  }
  size_t ones = 0;
  for (size_t i = 0; i < length; i++)
    ones += mask[i] == '1';
  if (length > 4096 || ones != from->in.count)
    return lp_error(p->diag, from->loc, "'" LP_MASK_ATTR "' does not fit %zu operands", from->in.count);
  lp_op_set_ins(p->module, op, (int32_t)length, in);
  lp_op_remove_attr(op, LP_MASK_ATTR);
  return LP_OK;
}

static lp_status finish_op(lp_parser *p, pending *from, lp_block *block) {
  lp_op *op = from->op;
  LP_TRY(apply_mask(p, op, from));
  if (from->out.count != (size_t)from->result_count)
    return lp_error(p->diag, from->loc, "%" PRId64 " result names, but %zu result types", from->result_count,
                    from->out.count);
  for (size_t i = 0; i < from->out.count; i++)
    lp_op_add_result(p->module, op, from->out.data[i]);
  if (!op->loc.file && !op->loc.node)
    op->loc = (lp_loc){.file = p->lexer.file, .line = from->loc.line, .col = from->loc.col};
  if (block) lp_op_append(block, op);
  if (!from->result) return LP_OK;
  lp_value **group = LP_NEW_ARRAY(p->scratch, lp_value *, from->out.count);
  for (size_t i = 0; i < from->out.count; i++)
    group[i] = op->out[i];
  return define_value(p, from->result, from->loc, group, (int32_t)from->out.count);
}

static lp_status parse_op_parts(lp_parser *p, pending *op, lp_block *block) {
  op->loc = p->lexer.loc;
  LP_TRY(parse_results(p, op));
  LP_TRY(parse_name(p, op));
  bool module = op->kind == LP_OP_MODULE;
  if (module != (block == NULL))
    return lp_error(p->diag, op->loc, module ? "'builtin.module' inside a module" : "expected 'builtin.module'");
  op->op = module ? p->module->op : lp_op_create(p->module, op->kind, LP_LOC_NONE, 0, NULL, 0, NULL);
  LP_TRY(parse_operands(p, op));
  if (lp_parse_at(p, "(")) LP_TRY(parse_region(p, op->op));
  LP_TRY(parse_attr_dict(p, op->op));
  LP_TRY(lp_parse_expect(p, ":"));
  LP_TRY(parse_type_list(p, op, false));
  LP_TRY(lp_parse_expect(p, "->"));
  LP_TRY(parse_type_list(p, op, true));
  LP_TRY(parse_location(p, op->op));
  return finish_op(p, op, block);
}

static lp_status parse_op(lp_parser *p, lp_block *block) {
  pending op = {0};
  lp_status status = parse_op_parts(p, &op, block);
  lp_vec_free(&op.in);
  lp_vec_free(&op.in_loc);
  lp_vec_free(&op.out);
  return status;
}

static lp_status parse_ops(lp_parser *p, lp_block *block) {
  while (!lp_parse_at(p, "}")) {
    if (p->lexer.kind == LP_TOK_END) return lp_parse_unexpected(p, "'}'");
    LP_TRY(parse_op(p, block));
  }
  return LP_OK;
}

/* ---- modules ----------------------------------------------------------------------------------------------------- */

static void take_module_attrs(lp_parser *p) {
  lp_module *module = p->module;
  const char *name = lp_op_str(module->op, "llmpart.name", NULL);
  if (name) module->name = name;
  lp_op_remove_attr(module->op, "llmpart.name");
  lp_op_remove_attr(module->op, "llmpart.symbols");
}

/* Symbols are numbered in the order the module lists them, which comes after its body in the text: so that terms print
 * in the same order again, they are interned before the body is parsed. */
static void intern_symbols(lp_parser *p, const char *text, size_t size) {
  static const char key[] = "llmpart.symbols = [";
  const char *found = NULL;
  for (const char *at = text; at && (size_t)(at - text) + sizeof key <= size; at++) {
    at = memchr(at, 'l', size - (size_t)(at - text));
    if (!at) break;
    if ((size_t)(text + size - at) > sizeof key && memcmp(at, key, sizeof key - 1) == 0) found = at;
  }
  if (!found) return;
  lp_lexer lexer;
  size_t skipped = (size_t)(found - text) + sizeof key - 1;
  lp_lexer_init(&lexer, "", text + skipped, size - skipped, p->scratch);
  while (lexer.kind == LP_TOK_STRING && p->module->symbols.names.count < 4096) {
    if (lp_parse_is_symbol(lexer.word)) lp_symbols_intern(&p->module->symbols, lexer.word);
    lp_lexer_next(&lexer);
    if (lexer.kind == LP_TOK_PUNCT && strcmp(lexer.word, ",") == 0) lp_lexer_next(&lexer);
  }
}

lp_status lp_module_parse(const char *file, const char *text, size_t size, lp_module **out, lp_diag *diag) {
  lp_parser p = {
      .diag = diag, .module = lp_module_create(file), .scratch = lp_arena_create(), .values = lp_map_create()};
  intern_symbols(&p, text, size);
  lp_lexer_init(&p.lexer, file, text, size, p.module->arena);
  lp_status status = parse_op(&p, NULL);
  if (status == LP_OK && p.lexer.kind != LP_TOK_END) status = lp_parse_unexpected(&p, "end of file");
  if (status == LP_OK) take_module_attrs(&p);
  lp_vec_free(&p.visible);
  lp_map_free(p.values);
  lp_arena_free(p.scratch);
  if (status != LP_OK) {
    lp_module_free(p.module);
    return status;
  }
  *out = p.module;
  return LP_OK;
}
