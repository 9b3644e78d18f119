/* Strings of a length, a pattern or a format. */

#include "runtime/grammar/builder.h"
#include "runtime/grammar/pattern.h"

/* ---- characters as JSON writes them ------------------------------------------------------------------------------ */

typedef LP_VEC(int32_t) node_list;

static int encode(int32_t code, int *bytes) {
  static const int32_t least[] = {0, 0x80, 0x800, 0x10000};
  int size = 1;
  while (size < 4 && code >= least[size])
    size++;
  for (int i = size - 1; i > 0; i--, code >>= 6)
    bytes[i] = 0x80 | (code & 0x3F);
  bytes[0] = size == 1 ? code : ((0xF0 << (4 - size)) & 0xFF) | code;
  return size;
}

/* Ranges of bytes in a row for the characters from `low` to `high`, in UTF-8: split where a byte wraps around. */
static void put_plain(lp_grammar *g, int32_t low, int32_t high, int32_t done, node_list *out) {
  static const int32_t ends[] = {0x7F, 0x7FF, 0xFFFF};
  int from[4] = {0}, to[4] = {0};
  if (low > high) return;
  for (size_t i = 0; i < LP_COUNT(ends); i++)
    if (low <= ends[i] && high > ends[i]) {
      put_plain(g, low, ends[i], done, out);
      put_plain(g, ends[i] + 1, high, done, out);
      return;
    }
  const int size = encode(low, from);
  for (int i = 1; i < size; i++) {
    const int32_t within = (1 << 6 * i) - 1;
    if ((low & ~within) == (high & ~within)) continue;
    const int32_t cut = (low & within) != 0 ? (low | within) + 1 : (high & within) != within ? high & ~within : low;
    if (cut == low) continue;
    put_plain(g, low, cut - 1, done, out);
    put_plain(g, cut, high, done, out);
    return;
  }
  (void)encode(high, to);
  int32_t next = done;
  for (int i = size - 1; i >= 0; i--)
    next = lp_grammar_byte(g, (uint8_t)from[i], (uint8_t)to[i], next);
  lp_vec_push(out, next);
}

/* The characters of a range without those that must be escaped, and without halves of surrogate pairs. */
static void put_range(lp_grammar *g, lp_code_range of, int32_t done, node_list *out) {
  static const lp_code_range plain[] = {{' ', '!'}, {'#', '['}, {']', 0xD7FF}, {0xE000, 0x10FFFF}};
  for (size_t i = 0; i < LP_COUNT(plain); i++)
    put_plain(g, of.low > plain[i].low ? of.low : plain[i].low, of.high < plain[i].high ? of.high : plain[i].high, done,
              out);
  static const char escaped[] = "\"\\\b\f\n\r\t", letter[] = "\"\\bfnrt";
  for (size_t i = 0; escaped[i]; i++)
    if (of.low <= escaped[i] && of.high >= escaped[i]) {
      const uint8_t byte = (uint8_t)letter[i];
      lp_vec_push(out, lp_grammar_byte(g, '\\', '\\', lp_grammar_byte(g, byte, byte, done)));
    }
}

/* A rule for a character of the set; -1: JSON has none. */
static int32_t rule_of(lp_grammar *g, const lp_code_set *set, int32_t done) {
  LP_OWNED(lp_free_at) node_list ways = {0};
  for (size_t i = 0; i < set->count; i++)
    put_range(g, set->data[i], done, &ways);
  int32_t any = ways.count > 0 ? ways.data[0] : -1;
  for (size_t i = 1; i < ways.count; i++)
    any = lp_grammar_split(g, any, ways.data[i]);
  return any;
}

/* ---- states with counts ------------------------------------------------------------------------------------------ */

enum { MOST_PRODUCTS = 1 << 16 };

/* State s after n characters is number s * width + n; the last count stands for all greater ones if `most` < 0. */
typedef struct {
  const lp_regex *pattern;
  int64_t least, most, width;
  int32_t *rule; /* of each set */
  bool *alive;   /* the text can end */
} product;

static int64_t after(const product *p, int64_t count) {
  return count + 1 < p->width ? count + 1 : p->most < 0 ? count : -1;
}

static bool leads_on(const product *p, size_t state, int64_t count) {
  const lp_regex_state *at = &p->pattern->states.data[state];
  const int64_t next = after(p, count);
  if (at->set == LP_REGEX_END) return count >= p->least;
  if (at->set == LP_REGEX_SPLIT) return p->alive[at->next * p->width + count] || p->alive[at->other * p->width + count];
  return next >= 0 && p->rule[at->set] >= 0 && p->alive[at->next * p->width + next];
}

static void find_alive(product *p) {
  for (bool changed = true; changed;) {
    changed = false;
    for (int64_t count = p->width - 1; count >= 0; count--)
      for (size_t state = 0; state < p->pattern->states.count; state++) {
        bool *at = &p->alive[(int64_t)state * p->width + count];
        if (*at || !leads_on(p, state, count)) continue;
        *at = changed = true;
      }
  }
}

/* Defines the nodes, which begin at `first`. */
static void define_nodes(const product *p, lp_grammar *g, int32_t first, int32_t end) {
  for (size_t state = 0; state < p->pattern->states.count; state++) {
    const lp_regex_state *at = &p->pattern->states.data[state];
    for (int64_t count = 0; count < p->width; count++) {
      const int64_t own = (int64_t)state * p->width + count, next = at->next * p->width, other = at->other * p->width;
      int32_t one = end, two = end;
      if (!p->alive[own]) continue;
      if (at->set == LP_REGEX_SPLIT) {
        one = first + (int32_t)((p->alive[next + count] ? next : other) + count);
        two = first + (int32_t)((p->alive[other + count] ? other : next) + count);
      } else if (at->set >= 0) {
        one = two = lp_grammar_call(g, p->rule[at->set], first + (int32_t)(next + after(p, count)));
      }
      g->nodes.data[first + own].next = one;
      g->nodes.data[first + own].other = two;
    }
  }
}

/* Appends the nodes of the texts of `least` to `most` characters (`most` < 0: any number), as they are written in a
 * string of JSON, before `next`. `done` is the node that ends a rule. False: there are no such texts, or too many
 * nodes. */
static bool regex_nodes(const lp_regex *pattern, lp_grammar *grammar, int64_t least, int64_t most, int32_t done,
                        int32_t next, int32_t *out) {
  product p = {.pattern = pattern, .least = least, .most = most, .width = (most < 0 ? least : most) + 1};
  const size_t states = pattern->states.count, size = states * (size_t)p.width;
  if (size > MOST_PRODUCTS) return false;
  p.rule = lp_alloc((pattern->sets.count + 1) * sizeof *p.rule);
  p.alive = lp_alloc(size * sizeof *p.alive);
  for (size_t i = 0; i < pattern->sets.count; i++)
    p.rule[i] = rule_of(grammar, &pattern->sets.data[i], done);
  find_alive(&p);
  const int32_t first = (int32_t)grammar->nodes.count;
  const bool good = p.alive[pattern->start * p.width];
  for (size_t i = 0; good && i < size; i++)
    (void)lp_grammar_split(grammar, next, next);
  if (good) define_nodes(&p, grammar, first, next);
  *out = first + (int32_t)(pattern->start * p.width);
  free(p.rule);
  free(p.alive);
  return good;
}

/* ---- formats ----------------------------------------------------------------------------------------------------- */

#define DAY                                                                                                            \
  "[1-9]\\d{3}-((0[13578]|1[02])-(0[1-9]|[12]\\d|3[01])|(0[469]|11)-(0[1-9]|[12]\\d|30)|02-(0[1-9]|1\\d|2[0-8]))"
#define CLOCK "([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,6})?(Z|[+-]([01]\\d|2[0-3]):[0-5]\\d)"
#define NAME "[A-Za-z0-9]{1,20}(-[A-Za-z0-9]{1,20})?"
#define HOST "(" NAME "\\.){0,3}[A-Za-z]{2,20}"
#define MAIL "[A-Za-z0-9_+-]{1,20}(\\.[A-Za-z0-9_+-]{1,20})?@(" NAME "\\.){1,3}[A-Za-z]{2,12}"
#define BYTE "(25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)"
#define URI                                                                                                            \
  "(https?|ftp|wss?)://[A-Za-z0-9]+(-[A-Za-z0-9]+)*(\\.[A-Za-z0-9]+(-[A-Za-z0-9]+)*)*(:[1-9]\\d{1,3})?"                \
  "(/[A-Za-z0-9._~!$&'()*+,;=:@/-]*)?(\\?[A-Za-z0-9._~!$&'()*+,;=:@/?-]*)?(#[A-Za-z0-9._~/-]*)?"
#define UUID(version) "[0-9a-f]{8}-[0-9a-f]{4}-" version "[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"

/* The formats of JSON Schema (draft 2020-12, validation, 7.3), as texts that all of their readers take: of those of
 * RFC 3339, 4122, 5321, 1123, 2673, 4291, 3986 and 6901 these are many, but not all. NULL: it is refused. Others are
 * annotations. */
static const struct {
  const char *name, *pattern;
} formats[] = {{"date", DAY},
               {"time", CLOCK},
               {"date-time", DAY "T" CLOCK},
               {"duration", "P(\\d{1,3}W|\\d{1,3}D(T\\d{1,2}H(\\d{1,2}M(\\d{1,2}S)?)?)?|T(\\d{1,2}H(\\d{1,2}M(\\d{1,2}"
                            "S)?)?|\\d{1,2}M(\\d{1,2}S)?|\\d{1,2}S))"},
               {"uuid", UUID("[1-5]")},
               {"uuid4", UUID("4")},
               {"email", MAIL},
               {"idn-email", MAIL},
               {"hostname", HOST},
               {"idn-hostname", HOST},
               {"ipv4", BYTE "(\\." BYTE "){3}"},
               {"ipv6", "([0-9a-f]{1,4}:){7}[0-9a-f]{1,4}|([0-9a-f]{1,4}:){1,6}:[0-9a-f]{1,4}|::[0-9a-f]{1,4}"},
               {"uri", URI},
               {"uri-reference", URI},
               {"iri", URI},
               {"iri-reference", URI},
               {"json-pointer", "(/[A-Za-z0-9_.-]*)*"},
               {"relative-json-pointer", "(0|[1-9]\\d{0,3})(#|(/[A-Za-z0-9_.-]*)*)"},
               {"uri-template", NULL},
               {"regex", NULL}};

/* Pydantic's decimal numbers, of which a look ahead refuses those without a digit. */
static const char decimal[] = "^(?!^[-+.]*$)[+-]?0*\\d*\\.?\\d*$";

/* Sets the pattern of the schema's `pattern` or `format`; NULL: any text will do. */
static lp_status find_pattern(lp_builder *b, const lp_json *schema, bool *is_whole, const char **out) {
  lp_json pattern = lp_json_member(schema, "pattern"), format = lp_json_member(schema, "format");
  const char *given = lp_json_text_or(&pattern, NULL);
  *is_whole = false;
  *out = NULL;
  if (pattern.value && !given) return lp_json_error(&pattern, b->diag, "the schema's 'pattern' must be text");
  for (size_t i = 0; i < LP_COUNT(formats); i++) {
    if (!lp_json_equals(&format, formats[i].name)) continue;
    if (!formats[i].pattern || given)
      return lp_json_error(&format, b->diag, "the schema's 'format' %s is not supported%s", formats[i].name,
                           given ? " beside 'pattern'" : "");
    *is_whole = true;
    *out = formats[i].pattern;
  }
  if (given) *out = lp_streq(given, decimal) ? "^[+-]?\\d+(\\.\\d+)?$" : given;
  return LP_OK;
}

static lp_status build_pattern(lp_builder *b, const lp_json *at, const char *text_of, bool is_whole, int64_t least,
                               int64_t most, int32_t *out) {
  LP_OWNED(lp_buf_free) lp_buf whole = {0};
  lp_regex pattern;
  const char *why = NULL;
  lp_status status = LP_OK;
  lp_buf_printf(&whole, is_whole ? "^(%s)$" : "%s", text_of);
  const int32_t end = range(b, '"', '"', b->done);
  if (most > LP_MOST_OF_PATTERN) most = least > LP_MOST_OF_PATTERN ? least : LP_MOST_OF_PATTERN;
  if (!lp_regex_read(lp_buf_text(&whole), &pattern, &why))
    status = lp_json_error(at, b->diag, "the schema's 'pattern' has %s, which is not supported: '%.80s'", why, text_of);
  else if (!regex_nodes(&pattern, b->grammar, least, most, b->done, end, out))
    status = lp_json_error(at, b->diag, "no text of this length has the schema's '%s', or the two are too large",
                           is_whole ? "format" : "pattern");
  *out = range(b, '"', '"', *out);
  lp_regex_free(&pattern);
  return status;
}

lp_status lp_builder_pattern(lp_builder *b, const lp_json *at, const char *pattern, int32_t *out) {
  lp_counted own = {.text = pattern, .item = -3, .node = -1};
  *out = lp_builder_find(b, &own);
  if (*out >= 0) return LP_OK;
  b->tried += LP_TRIED_PATTERN;
  LP_TRY(build_pattern(b, at, pattern, false, 0, -1, &own.node));
  *out = own.node;
  lp_vec_push(&b->counted, own);
  return LP_OK;
}

lp_status lp_builder_text(lp_builder *b, const lp_json *schema, int32_t *out) {
  int64_t least = 0, most = -1;
  const char *pattern = NULL;
  bool is_whole = false;
  LP_TRY(lp_builder_count(b, schema, "minLength", false, LP_MOST_LEAST, &least));
  LP_TRY(lp_builder_count(b, schema, "maxLength", true, INT32_MAX, &most));
  if (most >= 0 && least > most) return lp_builder_none(b, schema, "the schema's 'minLength' exceeds 'maxLength'", out);
  LP_TRY(find_pattern(b, schema, &is_whole, &pattern));
  lp_counted own = {.text = pattern, .item = -2, .least = least, .most = most, .node = -1};
  *out = lp_builder_find(b, &own);
  if (*out >= 0) return LP_OK;
  lp_json at = lp_json_member(schema, is_whole ? "format" : "pattern");
  if (pattern)
    LP_TRY(build_pattern(b, &at, pattern, is_whole, least, most, &own.node));
  else
    own.node = least == 0 && most < 0 ? b->string : lp_builder_string(b, least, most);
  *out = own.node;
  lp_vec_push(&b->counted, own);
  return LP_OK;
}
