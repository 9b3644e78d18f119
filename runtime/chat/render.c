/* Renders a chat template: walks the tree that the parser made. */
#include "runtime/chat/filters.h"

typedef struct {
  const lp_chat *chat;
  lp_chat_variable *scope; /* the innermost first */
  lp_buf *out;
  int macros;                /* that are running */
  lp_chat_variable *globals; /* the scope of the template's own level, while a loop or macro runs; else NULL */
  lp_chat_value captured;    /* the text of the innermost finished block */
  enum { GOES_ON, BREAKS, CONTINUES } flow;
} renderer;

static lp_status evaluate(renderer *r, const lp_chat_node *node, lp_chat_value *out);
static lp_status render(renderer *r, const lp_chat_node *list);

/* ---- variables --------------------------------------------------------------------------------------------------- */

static void declare(renderer *r, const char *name, lp_chat_value value) {
  lp_chat_variable *variable = LP_CHAT_NEW(r->chat, lp_chat_variable, 1);
  if (!variable) return;
  *variable = (lp_chat_variable){.name = name, .value = value, .next = r->scope};
  r->scope = variable;
}

static lp_chat_value find_variable(const renderer *r, const char *name) {
  const lp_chat_variable *variable = lp_chat_find_variable(r->chat, r->scope, name);
  return variable ? variable->value : (lp_chat_value){0};
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
  if (out->kind == LP_CHAT_UNDEFINED && r->macros > 0 && (lp_streq(name, "varargs") || lp_streq(name, "kwargs")))
    return lp_chat_error(r->chat, node->at, "'%s' of macros is not supported", name);
  return LP_OK;
}

/* ---- expressions ------------------------------------------------------------------------------------------------- */

static lp_status evaluate_args(renderer *r, const lp_chat_node *list, lp_chat_args *args) {
  *args = (lp_chat_args){0};
  for (const lp_chat_node *arg = list; arg; arg = arg->next) {
    bool named = arg->kind == LP_CHAT_IS_KEYWORD;
    if (args->count == LP_CHAT_MOST_ARGS) return lp_chat_error(r->chat, arg->at, "too many arguments");
    args->name[args->count] = named ? arg->text : NULL;
    LP_TRY(evaluate(r, named ? arg->a : arg, &args->value[args->count]));
    args->count++;
  }
  return LP_OK;
}

static size_t count_nodes(const lp_chat_node *list) {
  size_t count = 0;
  for (; list; list = list->next)
    count++;
  return count;
}

/* Evaluates the items of a list, or alternating keys and values of a mapping. Of equal keys the last one remains. */
static lp_status evaluate_list(renderer *r, const lp_chat_node *node, lp_chat_value *out) {
  size_t count = count_nodes(node->b), made = 0;
  lp_chat_value *items = LP_CHAT_NEW(r->chat, lp_chat_value, count);
  LP_TRY(lp_chat_check(r->chat, node->at));
  for (const lp_chat_node *item = node->b; item; item = item->next)
    LP_TRY(evaluate(r, item, &items[made++]));
  *out = lp_chat_list(items, count);
  out->tuple = node->integer != 0;
  if (node->kind == LP_CHAT_IS_LIST) return LP_OK;
  size_t pairs = 0;
  for (size_t i = 0; i < count / 2; i++) {
    size_t at = 0;
    while (at < pairs && !lp_chat_equals(r->chat, &items[2 * at], &items[2 * i]))
      at++;
    items[2 * at] = items[2 * i];
    items[2 * at + 1] = items[2 * i + 1];
    if (at == pairs) pairs++;
  }
  *out = (lp_chat_value){.kind = LP_CHAT_DICT, .size = pairs, .items = items};
  return LP_OK;
}

static lp_status evaluate_slice(renderer *r, const lp_chat_node *node, lp_chat_value *out) {
  const lp_chat_node *nodes[3] = {node->b, node->c, node->d};
  lp_chat_value object, bounds[3] = {{0}, {0}, {0}};
  LP_TRY(evaluate(r, node->a, &object));
  for (int i = 0; i < 3; i++)
    if (nodes[i]) LP_TRY(evaluate(r, nodes[i], &bounds[i]));
  return lp_chat_slice(r->chat, node, &object, bounds, out);
}

static lp_chat_value macro_value(const renderer *r, const lp_chat_node *node, lp_chat_variable *scope) {
  lp_chat_macro *macro = LP_CHAT_NEW(r->chat, lp_chat_macro, 1);
  if (!macro) return (lp_chat_value){0};
  *macro = (lp_chat_macro){node, scope};
  return (lp_chat_value){.kind = LP_CHAT_MACRO, .macro = macro};
}

/* Runs the body with its parameters and the variables that it sees. The value is the text that it prints. `caller`:
 * NULL, or what the body knows by that name. */
static lp_status call_macro(renderer *r, const lp_chat_node *node, const lp_chat_macro *called,
                            const lp_chat_args *args, const lp_chat_value *caller, lp_chat_value *out) {
  const lp_chat_node *macro = called->node;
  lp_chat_variable *outer = r->scope, *globals = r->globals;
  lp_buf text = {.arena = r->chat->arena}, *before = r->out;
  size_t index = 0;
  if (args->count > count_nodes(macro->targets))
    return lp_chat_error(r->chat, node->at, "too many arguments of the macro '%s'", macro->text);
  if (!globals) r->globals = outer;
  r->scope = called->scope ? called->scope : r->globals;
  declare(r, "caller", caller ? *caller : (lp_chat_value){0});
  for (const lp_chat_node *p = macro->targets; p; p = p->next, index++) {
    const lp_chat_value *given = lp_chat_arg(args, index, p->text);
    lp_chat_value value = {0};
    if (given)
      value = *given;
    else if (p->a)
      LP_TRY(evaluate(r, p->a, &value));
    declare(r, p->text, value);
  }
  r->out = &text;
  r->macros++;
  lp_status status = render(r, macro->b);
  r->macros--;
  r->out = before;
  r->scope = outer;
  r->globals = globals;
  r->flow = GOES_ON;
  *out = lp_chat_keep(&text);
  return status;
}

static lp_status call_function(renderer *r, const lp_chat_node *node, const lp_chat_args *args, lp_chat_value *out) {
  lp_chat_value callee = find_variable(r, node->a->text);
  if (callee.kind == LP_CHAT_MACRO) return call_macro(r, node, callee.macro, args, NULL, out);
  if (callee.kind == LP_CHAT_FUNCTION) return lp_chat_call(r->chat, node->a, callee.text, args, out);
  return lp_chat_error(r->chat, node->a->at, "the function '%s' is not supported", node->a->text);
}

static lp_status evaluate_call(renderer *r, const lp_chat_node *node, lp_chat_value *out) {
  const lp_chat_node *callee = node->a;
  lp_chat_args args;
  lp_chat_value object;
  LP_TRY(evaluate_args(r, node->b, &args));
  if (callee->kind == LP_CHAT_IS_MEMBER) {
    LP_TRY(evaluate(r, callee->a, &object));
    return lp_chat_method(r->chat, callee, &object, callee->text, &args, out);
  }
  if (callee->kind == LP_CHAT_IS_NAME) return call_function(r, node, &args, out);
  return lp_chat_error(r->chat, node->at, "this call is not supported");
}

/* Evaluates the links of a < b < c up to the first that is false. */
static lp_status evaluate_chain(renderer *r, const lp_chat_node *node, lp_chat_value *out) {
  lp_chat_value left, right;
  LP_TRY(evaluate(r, node->a, &left));
  *out = lp_chat_bool(true);
  for (const lp_chat_node *link = node->b; link && lp_chat_is_true(out); link = link->next) {
    LP_TRY(evaluate(r, link->a, &right));
    LP_TRY(lp_chat_binary(r->chat, link, link->text, &left, &right, out));
    left = right;
  }
  return LP_OK;
}

static lp_status evaluate_binary(renderer *r, const lp_chat_node *node, lp_chat_value *out) {
  lp_chat_value right;
  LP_TRY(evaluate(r, node->a, out));
  bool is_or = lp_streq(node->text, "or"), is_and = lp_streq(node->text, "and");
  if (is_or || is_and) return lp_chat_is_true(out) == is_or ? LP_OK : evaluate(r, node->b, out);
  LP_TRY(evaluate(r, node->b, &right));
  lp_chat_value left = *out;
  bool formats = left.kind == LP_CHAT_STRING && lp_streq(node->text, "%"), several = right.kind == LP_CHAT_LIST;
  if (formats && several && right.tuple) return lp_chat_format(r->chat, node, &left, right.items, right.size, out);
  if (formats && !several) return lp_chat_format(r->chat, node, &left, &right, 1, out);
  return lp_chat_binary(r->chat, node, node->text, &left, &right, out);
}

static lp_status evaluate_choice(renderer *r, const lp_chat_node *node, lp_chat_value *out) {
  lp_chat_value condition;
  LP_TRY(evaluate(r, node->b, &condition));
  const lp_chat_node *chosen = lp_chat_is_true(&condition) ? node->a : node->c;
  *out = (lp_chat_value){0};
  return chosen ? evaluate(r, chosen, out) : LP_OK;
}

/* Evaluates operators with one operand; node->a has been evaluated to `value`. */
static lp_status apply(renderer *r, const lp_chat_node *node, const lp_chat_value *value, lp_chat_value *out) {
  lp_chat_args args;
  lp_chat_value key;
  bool truth;
  switch (node->kind) {
  case LP_CHAT_IS_MEMBER:
    if (!lp_chat_has_method(value, node->text)) return lp_chat_member(r->chat, node, value, node->text, out);
    *out = (lp_chat_value){.kind = LP_CHAT_FUNCTION, .text = node->text}; /* before a mapping's member of that name */
    return LP_OK;
  case LP_CHAT_IS_INDEX:
    LP_TRY(evaluate(r, node->b, &key));
    return lp_chat_index(r->chat, node, value, &key, out);
  case LP_CHAT_IS_FILTER:
    LP_TRY(evaluate_args(r, node->b, &args));
    return lp_chat_filter(r->chat, node, node->text, value, &args, out);
  case LP_CHAT_IS_TEST:
    LP_TRY(evaluate_args(r, node->b, &args));
    LP_TRY(lp_chat_test(r->chat, node, node->text, value, &args, &truth));
    *out = lp_chat_bool(truth != (node->integer != 0));
    return LP_OK;
  case LP_CHAT_IS_NOT:
    *out = lp_chat_bool(!lp_chat_is_true(value));
    return LP_OK;
  default:
    return lp_chat_negate(r->chat, node, value, out);
  }
}

static lp_status evaluate_node(renderer *r, const lp_chat_node *node, lp_chat_value *out) {
  lp_chat_value operand;
  switch (node->kind) {
  case LP_CHAT_IS_TEXT:
    *out = lp_chat_text(node->text, node->size);
    return LP_OK;
  case LP_CHAT_IS_INTEGER:
    *out = lp_chat_number(node->integer);
    return LP_OK;
  case LP_CHAT_IS_REAL:
    *out = (lp_chat_value){.kind = LP_CHAT_REAL, .real = node->real};
    return LP_OK;
  case LP_CHAT_IS_CAPTURED:
    *out = r->captured;
    return LP_OK;
  case LP_CHAT_IS_NAME:
    return evaluate_name(r, node, out);
  case LP_CHAT_IS_LIST:
  case LP_CHAT_IS_DICT:
    return evaluate_list(r, node, out);
  case LP_CHAT_IS_SLICE:
    return evaluate_slice(r, node, out);
  case LP_CHAT_IS_CALL:
    return evaluate_call(r, node, out);
  case LP_CHAT_IS_BINARY:
    return evaluate_binary(r, node, out);
  case LP_CHAT_IS_CHAIN:
    return evaluate_chain(r, node, out);
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
  if (lp_chat_enter(r->chat)) LP_TRY(evaluate_node(r, node, out));
  return lp_chat_leave(r->chat, node->at);
}

/* ---- statements -------------------------------------------------------------------------------------------------- */

/* Assigns the value to one name, or its items to several names. */
static lp_status assign(renderer *r, const lp_chat_node *node, const lp_chat_value *value) {
  lp_chat_value list = lp_chat_list(value, 1);
  const lp_chat_node *name = node->targets;
  if (name->next && !lp_chat_iterate(r->chat, value, &list))
    return lp_chat_error(r->chat, node->at, "%s has no items to take apart", lp_chat_kind_name(value));
  if (list.size != count_nodes(name))
    return lp_chat_error(r->chat, node->at, "%zu items for %zu names", list.size, count_nodes(name));
  for (size_t i = 0; name; name = name->next, i++)
    declare(r, name->text, list.items[i]);
  return LP_OK;
}

/* Selects the items for which the loop's condition holds. */
static lp_status filter_items(renderer *r, const lp_chat_node *node, lp_chat_value *list) {
  lp_chat_value *items = LP_CHAT_NEW(r->chat, lp_chat_value, list->size), condition;
  LP_TRY(lp_chat_check(r->chat, node->at));
  lp_chat_variable *outer = r->scope;
  size_t made = 0;
  for (size_t i = 0; i < list->size; i++) {
    LP_TRY(assign(r, node, &list->items[i]));
    LP_TRY(evaluate(r, node->d, &condition));
    if (lp_chat_is_true(&condition)) items[made++] = list->items[i];
    r->scope = outer;
  }
  *list = lp_chat_list(items, made);
  return LP_OK;
}

static lp_status render_for(renderer *r, const lp_chat_node *node) {
  lp_chat_value value, list;
  LP_TRY(evaluate(r, node->a, &value));
  if (!lp_chat_iterate(r->chat, &value, &list))
    return lp_chat_error(r->chat, node->at, "a loop over %s is not supported", lp_chat_kind_name(&value));
  if (node->d) LP_TRY(filter_items(r, node, &list));
  if (list.size == 0) return render(r, node->c);
  lp_chat_variable *outer = r->scope, *inner;
  lp_chat_loop *loop = LP_CHAT_NEW(r->chat, lp_chat_loop, 1);
  LP_TRY(lp_chat_check(r->chat, node->at));
  *loop = (lp_chat_loop){.list = list};
  bool outermost = !r->globals;
  if (outermost) r->globals = outer;
  declare(r, "loop", (lp_chat_value){.kind = LP_CHAT_LOOP, .loop = loop});
  inner = r->scope;
  bool ended = false; /* Jinja runs `else` unless one turn of the loop reached the end of its body */
  for (; loop->index < list.size && r->flow != BREAKS; loop->index++) {
    LP_TRY(assign(r, node, &list.items[loop->index]));
    r->flow = GOES_ON;
    LP_TRY(render(r, node->b));
    ended |= r->flow == GOES_ON;
    r->scope = inner; /* variables that the body sets end with it */
  }
  r->scope = outer;
  r->flow = GOES_ON;
  if (outermost) r->globals = NULL;
  return ended ? LP_OK : render(r, node->c);
}

static lp_status render_set(renderer *r, const lp_chat_node *node) {
  lp_chat_value value;
  LP_TRY(evaluate(r, node->a, &value));
  const lp_chat_node *name = node->targets;
  if (!name->b) return assign(r, node, &value);
  lp_chat_value space = find_variable(r, name->text);
  if (space.kind != LP_CHAT_SPACE) return lp_chat_error(r->chat, node->at, "'%s' is not a namespace", name->text);
  lp_chat_variable *variable = lp_chat_find_variable(r->chat, *space.space, name->b->text);
  if (!variable) {
    variable = LP_CHAT_NEW(r->chat, lp_chat_variable, 1);
    LP_TRY(lp_chat_check(r->chat, node->at));
    *variable = (lp_chat_variable){.name = name->b->text, .next = *space.space};
    *space.space = variable;
  }
  variable->value = value;
  return LP_OK;
}

/* Passes the text of the body through the filters into the variable or to the output. Variables that the body sets end
 * with it. */
static lp_status render_capture(renderer *r, const lp_chat_node *node) {
  lp_chat_variable *outer = r->scope;
  lp_buf text = {.arena = r->chat->arena}, *before = r->out;
  lp_chat_value value;
  r->out = &text;
  lp_status status = render(r, node->b);
  r->out = before;
  r->scope = outer;
  r->captured = lp_chat_keep(&text);
  LP_TRY(status);
  LP_TRY(evaluate(r, node->a, &value));
  return node->targets ? assign(r, node, &value) : lp_chat_print(r->chat, node->at, &value, r->out);
}

/* Values see the variables outside. Variables that the body sets end with it. */
static lp_status render_with(renderer *r, const lp_chat_node *node) {
  lp_chat_variable *outer = r->scope, *made = outer;
  bool outermost = !r->globals;
  for (const lp_chat_node *name = node->targets; name; name = name->next) {
    lp_chat_value value;
    r->scope = outer;
    LP_TRY(evaluate(r, name->a, &value));
    r->scope = made;
    declare(r, name->text, value);
    made = r->scope;
  }
  r->scope = made;
  if (outermost) r->globals = outer;
  lp_status status = render(r, node->b);
  if (outermost) r->globals = NULL;
  r->scope = outer;
  return status;
}

static lp_status render_call(renderer *r, const lp_chat_node *node) {
  const lp_chat_node *call = node->a, *name = call->a;
  lp_chat_args args;
  lp_chat_value callee = {0}, caller = macro_value(r, node->b, r->scope), text;
  LP_TRY(evaluate_args(r, call->b, &args));
  if (name->kind == LP_CHAT_IS_NAME) callee = find_variable(r, name->text);
  if (callee.kind != LP_CHAT_MACRO)
    return lp_chat_error(r->chat, node->at, "'call' needs a macro, found %s", lp_chat_kind_name(&callee));
  if (!callee.macro->node->integer)
    return lp_chat_error(r->chat, node->at, "the macro '%s' does not call its caller", name->text);
  LP_TRY(call_macro(r, call, callee.macro, &args, &caller, &text));
  return lp_chat_print(r->chat, node->at, &text, r->out);
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
  case LP_CHAT_DO_CAPTURE:
    return render_capture(r, node);
  case LP_CHAT_DO_MACRO:
    declare(r, node->text, macro_value(r, node, NULL));
    return LP_OK;
  case LP_CHAT_DO_WITH:
    return render_with(r, node);
  case LP_CHAT_DO_CALL:
    return render_call(r, node);
  case LP_CHAT_DO_BREAK:
  case LP_CHAT_DO_CONTINUE:
    r->flow = node->kind == LP_CHAT_DO_BREAK ? BREAKS : CONTINUES;
    return LP_OK;
  case LP_CHAT_DO_REFUSE:
    return lp_chat_error(r->chat, node->at, "the statement '%s' is not supported", node->text);
  default:
    return render_set(r, node);
  }
}

static lp_status render(renderer *r, const lp_chat_node *list) {
  for (const lp_chat_node *node = list; node && r->flow == GOES_ON; node = node->next) {
    if (lp_chat_enter(r->chat)) LP_TRY(render_one(r, node));
    LP_TRY(lp_chat_leave(r->chat, node->at));
  }
  return LP_OK;
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

static lp_chat_value message_value(const renderer *r, const lp_chat_message *message) {
  const char *members[2][2] = {{"role", message->role}, {"content", message->content}};
  lp_chat_value *items = LP_CHAT_NEW(r->chat, lp_chat_value, 4);
  for (size_t i = 0; items && i < 2; i++) {
    const char *text = members[i][1];
    items[2 * i] = lp_chat_text(members[i][0], strlen(members[i][0]));
    items[2 * i + 1] = text ? lp_chat_text(text, strlen(text)) : (lp_chat_value){.kind = LP_CHAT_NONE};
  }
  return (lp_chat_value){.kind = LP_CHAT_DICT, .size = items ? 2 : 0, .items = items};
}

static void declare_inputs(renderer *r) {
  const lp_chat_input *input = r->chat->input;
  for (const char *const *name = lp_chat_functions; *name; name++)
    declare(r, *name, (lp_chat_value){.kind = LP_CHAT_FUNCTION, .text = *name});
  lp_chat_value *items = LP_CHAT_NEW(r->chat, lp_chat_value, input->count);
  for (size_t i = 0; items && i < input->count; i++)
    items[i] = message_value(r, &input->messages[i]);
  declare(r, "messages", lp_chat_list(items, items ? input->count : 0));
  declare(r, "add_generation_prompt", lp_chat_bool(input->add_generation_prompt));
  for (size_t i = 0; i < input->special_count; i++)
    declare(r, input->specials[i].name, lp_chat_text(input->specials[i].text, strlen(input->specials[i].text)));
  declare(r, "tools", (lp_chat_value){.kind = LP_CHAT_NONE});
  declare(r, "documents", (lp_chat_value){.kind = LP_CHAT_NONE});
  const lp_json_value *more = input->variables;
  for (size_t i = 0; more && i < more->size; i++) {
    const lp_json_value *key = &more->items[2 * i];
    declare(r, lp_chat_strndup(r->chat, key->text, key->size), lp_chat_from_json(r->chat, key + 1));
  }
}

static lp_status render_source(lp_chat *chat, const char *source, size_t size, lp_buf *out) {
  lp_buf text = {.arena = chat->arena};
  renderer r = {.chat = chat, .out = &text};
  const lp_chat_token *tokens;
  lp_chat_node *tree;
  lp_chat_set_source(chat, source, size);
  declare_inputs(&r);
  LP_TRY(lp_chat_tokenize(chat, &tokens));
  LP_TRY(lp_chat_parse(chat, tokens, &tree));
  LP_TRY(render(&r, tree));
  char *data = realloc(out->data, out->size + text.size + 1);
  if (!data) return lp_chat_error(chat, 0, "there is no memory for a text of %zu bytes", text.size);
  *out = (lp_buf){.data = data, .size = out->size, .capacity = out->size + text.size + 1};
  lp_buf_append(out, lp_buf_text(&text), text.size);
  return LP_OK;
}

lp_status lp_chat_render(const char *source, size_t size, const lp_chat_input *input, lp_buf *out, lp_diag *diag) {
  lp_chat chat = {.input = input, .arena = lp_arena_create(), .diag = diag};
  lp_chat_begin(&chat);
  lp_status status = render_source(&chat, source, size, out);
  if (status != LP_OK && input->broken) *input->broken = chat.budget->broken;
  lp_arena_free(chat.arena);
  return status;
}
