/* Rules of any JSON, and of strings and lists of limited length. */

#include "runtime/grammar/builder.h"

/* Limits: digits of a number, spaces of an indentation, characters that stand side by side without calls. */
enum { MOST_DIGITS = 15, MOST_SPACES = 16, FEW = 16 };

/* Nothing, a space, or a new line and an indentation. */
static int32_t space_rule(lp_builder *b) {
  int32_t next = b->done;
  for (int i = 0; i < MOST_SPACES; i++)
    next = either(b, b->done, range(b, ' ', ' ', next));
  return either(b, b->done, either(b, range(b, ' ', ' ', b->done), range(b, '\n', '\n', next)));
}

/* A character of a string: a plain one or an escape. */
static int32_t character_rule(lp_builder *b) {
  static const char escapes[] = "\"\\/bfnrt";
  int32_t any = -1;
  for (int i = 0; i < LP_PLAIN_FORMS; i++) {
    const int *form = lp_plain_forms[i];
    int32_t next = b->done;
    for (int k = 6; k >= 0; k -= 2)
      if (form[k + 1]) next = range(b, form[k], form[k + 1], next);
    any = i == 0 ? next : either(b, any, next);
  }
  int32_t escaped = range(b, escapes[0], escapes[0], b->done);
  for (size_t i = 1; escapes[i]; i++)
    escaped = either(b, escaped, range(b, escapes[i], escapes[i], b->done));
  return either(b, any, range(b, '\\', '\\', escaped));
}

/* Up to `count` characters and the end of the string. All strings share these nodes. */
static int32_t up_to(lp_builder *b, int64_t count) {
  const int32_t end = range(b, '"', '"', b->done);
  if (b->up_to.count == 0) lp_vec_push(&b->up_to, end);
  while (b->up_to.count <= (size_t)count) {
    const int32_t more = either(b, end, call(b, b->character, b->up_to.data[b->up_to.count - 1]));
    lp_vec_push(&b->up_to, more);
  }
  return b->up_to.data[count];
}

/* `count` characters, the many by rules that double. */
static int32_t exactly(lp_builder *b, int64_t count, int32_t next) {
  if (count <= FEW) {
    for (; count > 0; count--)
      next = call(b, b->character, next);
    return next;
  }
  for (int i = 0; count >> i > 0; i++) {
    if (b->exact.count <= (size_t)i) {
      const int32_t half = i == 0 ? b->character : b->exact.data[i - 1];
      const int32_t rule = i == 0 ? half : call(b, half, call(b, half, b->done));
      lp_vec_push(&b->exact, rule);
    }
    if (count >> i & 1) next = call(b, b->exact.data[i], next);
  }
  return next;
}

int32_t lp_builder_string(lp_builder *b, int64_t least, int64_t most) {
  int32_t rest;
  if (most < 0) {
    rest = declare(b);
    define(b, rest, either(b, range(b, '"', '"', b->done), call(b, b->character, rest)));
  } else {
    rest = up_to(b, most - least < LP_MOST_CHARACTERS ? most - least : LP_MOST_CHARACTERS);
  }
  return range(b, '"', '"', exactly(b, least, rest));
}

/* Up to `most` digits. */
static int32_t digits(lp_builder *b, int most, int32_t next) {
  int32_t node = next;
  for (int i = 0; i < most; i++)
    node = either(b, next, range(b, '0', '9', node));
  return node;
}

static int32_t whole(lp_builder *b, int32_t next) {
  int32_t some = either(b, range(b, '0', '0', next), range(b, '1', '9', digits(b, MOST_DIGITS - 1, next)));
  return either(b, some, range(b, '-', '-', some));
}

static int32_t number_rule(lp_builder *b) {
  int32_t power = range(b, '0', '9', digits(b, 1, b->done));
  int32_t sign = either(b, power, either(b, range(b, '+', '+', power), range(b, '-', '-', power)));
  int32_t exponent = either(b, b->done, either(b, range(b, 'e', 'e', sign), range(b, 'E', 'E', sign)));
  int32_t fraction = range(b, '.', '.', range(b, '0', '9', digits(b, MOST_DIGITS - 1, exponent)));
  return whole(b, either(b, exponent, fraction));
}

int32_t lp_builder_items(lp_builder *b, const lp_builder_list *list) {
  const int32_t end = call(b, b->space, range(b, list->close, list->close, b->done));
  const int64_t first = (int64_t)list->first_count, most = list->item < 0 && list->most < 0 ? first : list->most;
  int32_t next = end;
  if (most < 0) {
    const int32_t loop = declare(b);
    const int32_t more = call(b, b->space, range(b, ',', ',', call(b, b->space, call(b, list->item, loop))));
    define(b, loop, either(b, end, more));
    next = loop;
  }
  int64_t open = list->least > first ? list->least : first;
  if (open == 0) open = 1; /* of a list without end: the comma comes from the second item on */
  for (int64_t i = most < 0 ? open : most; i > 0; i--) {
    next = call(b, b->space, call(b, i <= first ? list->first[i - 1] : list->item, next));
    if (i > 1) next = range(b, ',', ',', next);
    if (i > list->least) next = either(b, end, next);
  }
  return range(b, list->open, list->open, next);
}

int32_t lp_builder_find(const lp_builder *b, const lp_counted *wanted) {
  for (size_t i = b->counted.count, end = i > LP_LOOKED_AT ? i - LP_LOOKED_AT : 0; i-- > end;) {
    const lp_counted *at = &b->counted.data[i];
    const bool alike = at->text && wanted->text ? lp_streq(at->text, wanted->text) : at->text == wanted->text;
    if (alike && at->item == wanted->item && at->least == wanted->least && at->most == wanted->most) return at->node;
  }
  return -1;
}

int32_t lp_builder_same_items(lp_builder *b, const lp_builder_list *list) {
  lp_counted own = {.item = list->item, .least = list->least, .most = list->most};
  own.node = lp_builder_find(b, &own);
  if (own.node < 0) {
    own.node = lp_builder_items(b, list);
    lp_vec_push(&b->counted, own);
  }
  return own.node;
}

int32_t lp_builder_any_of(lp_builder *b, const int32_t *node, size_t count) {
  const size_t half = count / 2;
  if (count == 1) return node[0];
  return either(b, lp_builder_any_of(b, node, half), lp_builder_any_of(b, node + half, count - half));
}

void lp_builder_define_plain(lp_builder *b) {
  b->done = lp_grammar_return(b->grammar);
  b->space = space_rule(b);
  b->character = character_rule(b);
  b->string = lp_builder_string(b, 0, -1);
  b->integer = whole(b, b->done);
  b->number = number_rule(b);
  b->value = declare(b);
  b->array = lp_builder_items(b, &(lp_builder_list){.open = '[', .close = ']', .item = b->value, .most = -1});
  int32_t member =
      call(b, b->string, call(b, b->space, range(b, ':', ':', call(b, b->space, call(b, b->value, b->done)))));
  b->object = lp_builder_items(b, &(lp_builder_list){.open = '{', .close = '}', .item = member, .most = -1});
  int32_t any = either(b, b->string, either(b, b->number, either(b, b->object, b->array)));
  any = either(
      b, any,
      either(b, text(b, "true", 4, b->done), either(b, text(b, "false", 5, b->done), text(b, "null", 4, b->done))));
  define(b, b->value, any);
}

void lp_builder_free(lp_builder *b) {
  lp_vec_free(&b->rules);
  lp_vec_free(&b->counted);
  lp_vec_free(&b->up_to);
  lp_vec_free(&b->exact);
  lp_vec_free(&b->pairs);
  lp_diag_free(b->none);
  lp_arena_free(b->arena);
}
