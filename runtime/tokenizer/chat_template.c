/* Renders a chat template: walks the tree that the parser made. */
#include "runtime/tokenizer/chat_template.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 400, MAX_STEPS = 1000 * 1000, MAX_OUTPUT = 1 << 26 };

typedef struct {
  const lp_chat *chat;
  lp_chat_variable *scope; /* the innermost first */
  lp_buf *out;
  int depth;
  int64_t steps;
} renderer;

static lp_status evaluate(renderer *r, const lp_chat_node *node, lp_chat_value *out);
static lp_status render(renderer *r, const lp_chat_node *list);

/* ---- variables --------------------------------------------------------------------------------------------------- */

static void declare(renderer *r, const char *name, lp_chat_value value) {
  lp_chat_variable *variable = LP_NEW(r->chat->arena, lp_chat_variable);
  *variable = (lp_chat_variable){.name = name, .value = value, .next = r->scope};
  r->scope = variable;
}

static lp_chat_value find_variable(const renderer *r, const char *name) {
  for (const lp_chat_variable *v = r->scope; v; v = v->next)
    if (lp_streq(v->name, name)) return v->value;
  return (lp_chat_value){0};
}

static lp_status evaluate_name(const renderer *r, const lp_chat_node *node, lp_chat_value *out) {
  const char *name = node->text;
  if (lp_streq(name, "true") || lp_streq(name, "True"))
    *out = lp_chat_bool(true);
  else if (lp_streq(name, "false") || lp_streq(name, "False"))
    *out = lp_chat_bool(false);
  else if (lp_streq(name, "none") || lp_streq(name, "None"))
    *out = (lp_chat_value){.kind = LP_CHAT_NONE};
  else
    *out = find_variable(r, name);
  return LP_OK;
}

/* ---- expressions ------------------------------------------------------------------------------------------------- */

enum { MAX_ARGS = 16 };

static lp_status evaluate_args(renderer *r, const lp_chat_node *list, lp_chat_value args[MAX_ARGS], size_t *count) {
  *count = 0;
  for (const lp_chat_node *arg = list; arg; arg = arg->next) {
    if (*count == MAX_ARGS) return lp_chat_error(r->chat, arg->at, "too many arguments");
    if (arg->kind == LP_CHAT_IS_KEYWORD)
      return lp_chat_error(r->chat, arg->at, "the argument '%s=' is not supported", arg->text);
    LP_TRY(evaluate(r, arg, &args[(*count)++]));
  }
  return LP_OK;
}

static lp_status evaluate_list(renderer *r, const lp_chat_node *node, lp_chat_value *out) {
  size_t count = 0;
  for (const lp_chat_node *item = node->b; item; item = item->next)
    count++;
  lp_chat_value *items = LP_NEW_ARRAY(r->chat->arena, lp_chat_value, count);
  *out = (lp_chat_value){.kind = LP_CHAT_LIST, .size = count, .items = items};
  for (const lp_chat_node *item = node->b; item; item = item->next)
    LP_TRY(evaluate(r, item, items++));
  return LP_OK;
}

/* One end of a slice, counted from the end when negative, held within the list. */
static lp_status evaluate_bound(renderer *r, const lp_chat_node *node, size_t count, size_t fallback, size_t *out) {
  lp_chat_value value;
  *out = fallback;
  if (!node) return LP_OK;
  LP_TRY(evaluate(r, node, &value));
  if (value.kind == LP_CHAT_NONE) return LP_OK;
  if (value.kind != LP_CHAT_NUMBER) return lp_chat_error(r->chat, node->at, "a number was expected");
  int64_t at = value.integer < 0 ? value.integer + (int64_t)count : value.integer;
  *out = at < 0 ? 0 : (size_t)at > count ? count : (size_t)at;
  return LP_OK;
}

static lp_status evaluate_slice(renderer *r, const lp_chat_node *node, lp_chat_value *out) {
  size_t start, end;
  LP_TRY(evaluate(r, node->a, out));
  if (out->kind != LP_CHAT_LIST)
    return lp_chat_error(r->chat, node->at, "a slice of %s is not supported", lp_chat_kind_name(out));
  LP_TRY(evaluate_bound(r, node->b, out->size, 0, &start));
  LP_TRY(evaluate_bound(r, node->c, out->size, out->size, &end));
  out->items += start;
  out->size = end > start ? end - start : 0;
  return LP_OK;
}

static lp_status make_namespace(renderer *r, const lp_chat_node *args, lp_chat_value *out) {
  lp_chat_variable **space = LP_NEW(r->chat->arena, lp_chat_variable *);
  for (const lp_chat_node *arg = args; arg; arg = arg->next) {
    if (arg->kind != LP_CHAT_IS_KEYWORD)
      return lp_chat_error(r->chat, arg->at, "'namespace' takes keyword arguments only");
    lp_chat_variable *variable = LP_NEW(r->chat->arena, lp_chat_variable);
    variable->name = arg->text;
    LP_TRY(evaluate(r, arg->a, &variable->value));
    variable->next = *space;
    *space = variable;
  }
  *out = (lp_chat_value){.kind = LP_CHAT_SPACE, .space = space};
  return LP_OK;
}

static lp_status evaluate_call(renderer *r, const lp_chat_node *node, lp_chat_value *out) {
  const lp_chat_node *callee = node->a;
  lp_chat_value args[MAX_ARGS], object;
  size_t count;
  if (callee->kind == LP_CHAT_IS_NAME && lp_streq(callee->text, "namespace")) return make_namespace(r, node->b, out);
  LP_TRY(evaluate_args(r, node->b, args, &count));
  if (callee->kind == LP_CHAT_IS_MEMBER) {
    LP_TRY(evaluate(r, callee->a, &object));
    return lp_chat_method(r->chat, callee, &object, callee->text, args, count, out);
  }
  if (callee->kind != LP_CHAT_IS_NAME) return lp_chat_error(r->chat, node->at, "this call is not supported");
  if (lp_streq(callee->text, "raise_exception") && count == 1 && args[0].kind == LP_CHAT_STRING)
    return lp_chat_error(r->chat, callee->at, "the template refuses these messages: %s", args[0].text);
  return lp_chat_error(r->chat, callee->at, "the function '%s' is not supported", callee->text);
}

static lp_status evaluate_binary(renderer *r, const lp_chat_node *node, lp_chat_value *out) {
  lp_chat_value right;
  LP_TRY(evaluate(r, node->a, out));
  bool is_or = lp_streq(node->text, "or"), is_and = lp_streq(node->text, "and");
  if (is_or || is_and) return lp_chat_is_true(out) == is_or ? LP_OK : evaluate(r, node->b, out);
  LP_TRY(evaluate(r, node->b, &right));
  lp_chat_value left = *out;
  return lp_chat_binary(r->chat, node, &left, &right, out);
}

static lp_status evaluate_choice(renderer *r, const lp_chat_node *node, lp_chat_value *out) {
  lp_chat_value condition;
  LP_TRY(evaluate(r, node->b, &condition));
  const lp_chat_node *chosen = lp_chat_is_true(&condition) ? node->a : node->c;
  *out = (lp_chat_value){0};
  return chosen ? evaluate(r, chosen, out) : LP_OK;
}

/* Operators on one operand: node->a has been evaluated to `value`. */
static lp_status apply(renderer *r, const lp_chat_node *node, const lp_chat_value *value, lp_chat_value *out) {
  lp_chat_value args[MAX_ARGS];
  size_t count;
  bool truth;
  switch (node->kind) {
  case LP_CHAT_IS_MEMBER:
    return lp_chat_member(r->chat, node, value, node->text, out);
  case LP_CHAT_IS_INDEX:
    LP_TRY(evaluate(r, node->b, &args[0]));
    return lp_chat_index(r->chat, node, value, &args[0], out);
  case LP_CHAT_IS_FILTER:
    LP_TRY(evaluate_args(r, node->b, args, &count));
    return lp_chat_filter(r->chat, node, value, args, count, out);
  case LP_CHAT_IS_TEST:
    LP_TRY(lp_chat_test(r->chat, node, value, &truth));
    *out = lp_chat_bool(truth);
    return LP_OK;
  case LP_CHAT_IS_NOT:
    *out = lp_chat_bool(!lp_chat_is_true(value));
    return LP_OK;
  default:
    break;
  }
  if (value->kind != LP_CHAT_NUMBER || value->integer == INT64_MIN)
    return lp_chat_error(r->chat, node->at, "'-' of %s is not supported", lp_chat_kind_name(value));
  *out = *value;
  out->integer = -value->integer;
  return LP_OK;
}

static lp_status evaluate_node(renderer *r, const lp_chat_node *node, lp_chat_value *out) {
  lp_chat_value operand;
  switch (node->kind) {
  case LP_CHAT_IS_TEXT:
    *out = lp_chat_text(node->text, node->size);
    return LP_OK;
  case LP_CHAT_IS_INTEGER:
    *out = (lp_chat_value){.kind = LP_CHAT_NUMBER, .integer = node->integer};
    return LP_OK;
  case LP_CHAT_IS_NAME:
    return evaluate_name(r, node, out);
  case LP_CHAT_IS_LIST:
    return evaluate_list(r, node, out);
  case LP_CHAT_IS_SLICE:
    return evaluate_slice(r, node, out);
  case LP_CHAT_IS_CALL:
    return evaluate_call(r, node, out);
  case LP_CHAT_IS_BINARY:
    return evaluate_binary(r, node, out);
  case LP_CHAT_IS_CHOICE:
    return evaluate_choice(r, node, out);
  default:
    break;
  }
  LP_TRY(evaluate(r, node->a, &operand));
  return apply(r, node, &operand, out);
}

static lp_status evaluate(renderer *r, const lp_chat_node *node, lp_chat_value *out) {
  *out = (lp_chat_value){0};
  if (++r->depth > MAX_DEPTH) return lp_chat_error(r->chat, node->at, "nested too deeply");
  if (++r->steps > MAX_STEPS) return lp_chat_error(r->chat, node->at, "the template takes too many steps");
  LP_TRY(evaluate_node(r, node, out));
  r->depth--;
  return LP_OK;
}

/* ---- statements -------------------------------------------------------------------------------------------------- */

static lp_status render_for(renderer *r, const lp_chat_node *node) {
  lp_chat_value list;
  LP_TRY(evaluate(r, node->a, &list));
  if (list.kind == LP_CHAT_UNDEFINED) return LP_OK;
  if (list.kind != LP_CHAT_LIST)
    return lp_chat_error(r->chat, node->at, "a loop over %s is not supported", lp_chat_kind_name(&list));
  lp_chat_variable *outer = r->scope;
  lp_chat_loop *loop = LP_NEW(r->chat->arena, lp_chat_loop);
  loop->count = list.size;
  for (; loop->index < list.size; loop->index++) {
    declare(r, "loop", (lp_chat_value){.kind = LP_CHAT_LOOP, .loop = loop});
    declare(r, node->text, list.items[loop->index]);
    LP_TRY(render(r, node->b));
    r->scope = outer; /* what the body sets ends with it */
  }
  return LP_OK;
}

static lp_status render_set(renderer *r, const lp_chat_node *node) {
  lp_chat_value value;
  LP_TRY(evaluate(r, node->a, &value));
  if (!node->b) {
    declare(r, node->text, value);
    return LP_OK;
  }
  lp_chat_value space = find_variable(r, node->text);
  if (space.kind != LP_CHAT_SPACE) return lp_chat_error(r->chat, node->at, "'%s' is not a namespace", node->text);
  lp_chat_variable *variable = LP_NEW(r->chat->arena, lp_chat_variable);
  *variable = (lp_chat_variable){.name = node->b->text, .value = value, .next = *space.space};
  *space.space = variable;
  return LP_OK;
}

static lp_status render_one(renderer *r, const lp_chat_node *node) {
  lp_chat_value value;
  switch (node->kind) {
  case LP_CHAT_DO_TEXT:
    lp_buf_append(r->out, node->text, node->size);
    return LP_OK;
  case LP_CHAT_DO_OUTPUT:
    LP_TRY(evaluate(r, node->a, &value));
    return lp_chat_print(r->chat, node->at, &value, r->out);
  case LP_CHAT_DO_IF:
    LP_TRY(evaluate(r, node->a, &value));
    return render(r, lp_chat_is_true(&value) ? node->b : node->c);
  case LP_CHAT_DO_FOR:
    return render_for(r, node);
  default:
    return render_set(r, node);
  }
}

static lp_status render(renderer *r, const lp_chat_node *list) {
  for (const lp_chat_node *node = list; node; node = node->next) {
    if (++r->steps > MAX_STEPS || r->out->size > MAX_OUTPUT)
      return lp_chat_error(r->chat, node->at, "the template takes too many steps");
    LP_TRY(render_one(r, node));
  }
  return LP_OK;
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

static void declare_inputs(renderer *r) {
  const lp_chat_input *input = r->chat->input;
  lp_chat_value *items = LP_NEW_ARRAY(r->chat->arena, lp_chat_value, input->count);
  for (size_t i = 0; i < input->count; i++)
    items[i] = (lp_chat_value){.kind = LP_CHAT_MESSAGE, .message = &input->messages[i]};
  declare(r, "messages", (lp_chat_value){.kind = LP_CHAT_LIST, .size = input->count, .items = items});
  declare(r, "add_generation_prompt", lp_chat_bool(input->add_generation_prompt));
  declare(r, "bos_token", lp_chat_text(input->bos, strlen(input->bos)));
  declare(r, "eos_token", lp_chat_text(input->eos, strlen(input->eos)));
  declare(r, "tools", (lp_chat_value){.kind = LP_CHAT_NONE});
  declare(r, "documents", (lp_chat_value){.kind = LP_CHAT_NONE});
}

lp_status lp_chat_render(const char *source, size_t size, const lp_chat_input *input, lp_buf *out, lp_diag *diag) {
  lp_chat chat = {.input = input, .arena = lp_arena_create(), .diag = diag};
  lp_chat_tokens tokens = {0};
  lp_chat_node *tree = NULL;
  renderer r = {.chat = &chat, .out = out};
  size_t start = out->size;
  lp_chat_set_source(&chat, source, size);
  declare_inputs(&r);
  lp_status status = lp_chat_tokenize(&chat, &tokens);
  if (status == LP_OK) status = lp_chat_parse(&chat, &tokens, &tree);
  if (status == LP_OK) status = render(&r, tree);
  if (status != LP_OK && out->size > start) {
    out->size = start;
    out->data[start] = '\0';
  }
  lp_vec_free(&tokens);
  lp_arena_free(chat.arena);
  return status;
}
