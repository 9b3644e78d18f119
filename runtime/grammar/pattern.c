/* Reads patterns: a tree by recursive descent, then states from the end of the text to its beginning (Thompson,
 * "Regular expression search algorithm", 1968). */
#include "runtime/grammar/pattern.h"

#include "base/utf8.h"

enum {
  MOST_STATES = 4096,
  MOST_TERMS = 16384,
  MOST_REPEATS = 1000,
  MOST_DEPTH = 32,
  LAST_CODE = 0x10FFFF,
  LAST_ASCII = 0x7F
};

typedef enum { TERM_SET, TERM_ALL, TERM_ANY, TERM_REPEAT, TERM_BEGIN, TERM_END } term_kind;
/* A part of a pattern: a character, parts in a row, alternatives, a repeated part, ^ or $. */
typedef struct {
  term_kind kind;
  int32_t set;          /* TERM_SET */
  int32_t last, before; /* the last part within it, and the part before it; -1: none */
  int32_t least, most;  /* TERM_REPEAT; most -1: any number */
} term;

typedef struct {
  const char *at, *why;
  int depth;
  lp_regex *out;
  LP_VEC(term) terms;
} reader;

static int32_t refuse(reader *r, const char *why) {
  if (!r->why) r->why = why;
  return -1;
}

static int32_t add_term(reader *r, term of) {
  of.before = -1;
  lp_vec_push(&r->terms, of);
  if (r->terms.count > MOST_TERMS) (void)refuse(r, "too many parts");
  return (int32_t)r->terms.count - 1;
}

/* ---- sets of characters ------------------------------------------------------------------------------------------ */

static int by_low(const void *a, const void *b) {
  const lp_code_range *one = a, *other = b;
  return (one->low > other->low) - (one->low < other->low);
}

static void add_range(lp_code_set *set, int32_t low, int32_t high) {
  lp_vec_push(set, ((lp_code_range){low, high}));
}

static void tidy(lp_code_set *set) {
  size_t kept = 0;
  if (set->count > 0) qsort(set->data, set->count, sizeof *set->data, by_low);
  for (size_t i = 0; i < set->count; i++) {
    const lp_code_range now = set->data[i];
    lp_code_range *last = kept > 0 ? &set->data[kept - 1] : NULL;
    if (last && now.low <= last->high + 1)
      last->high = now.high > last->high ? now.high : last->high;
    else
      set->data[kept++] = now;
  }
  set->count = kept;
}

/* The characters up to `last` that the set lacks, without control characters. */
static void invert(lp_code_set *set, int32_t last) {
  lp_code_set other = {0};
  int32_t from = ' ';
  tidy(set);
  for (size_t i = 0; i < set->count; i++) {
    if (set->data[i].low > from) add_range(&other, from, set->data[i].low - 1);
    if (set->data[i].high + 1 > from) from = set->data[i].high + 1;
  }
  if (from <= last) add_range(&other, from, last);
  lp_vec_free(set);
  *set = other;
}

/* \d, \w, \s and their opposites; false: it is another letter. */
static bool add_shorthand(lp_code_set *to, char letter) {
  static const char *const ranges[] = {"d09", "w09AZ__az", "s  \t\n\f\r"};
  const char lower = (char)(letter | 0x20);
  lp_code_set set = {0};
  for (size_t i = 0; i < LP_COUNT(ranges); i++)
    for (const char *at = ranges[i] + 1; ranges[i][0] == lower && *at; at += 2)
      add_range(&set, at[0], at[1]);
  if (set.count == 0) return false;
  if (letter != lower) invert(&set, LAST_ASCII);
  for (size_t i = 0; i < set.count; i++)
    add_range(to, set.data[i].low, set.data[i].high);
  lp_vec_free(&set);
  return true;
}

static int32_t add_set(reader *r, lp_code_set set) {
  tidy(&set);
  lp_vec_push(&r->out->sets, set);
  return add_term(r, (term){.kind = TERM_SET, .set = (int32_t)r->out->sets.count - 1});
}

static int32_t add_character(reader *r, int32_t code) {
  lp_code_set set = {0};
  add_range(&set, code, code);
  return add_set(r, set);
}

static int32_t read_hex(reader *r, int digits) {
  int32_t code = 0;
  for (int i = 0; i < digits; i++, r->at++) {
    static const char hex[] = "0123456789abcdef0123456789ABCDEF";
    const char *at = *r->at ? strchr(hex, *r->at) : NULL;
    if (!at) return refuse(r, "an escape that is cut off");
    code = code << 4 | (int32_t)((at - hex) & 15);
  }
  return code;
}

/* The character after a backslash. */
static int32_t read_escape(reader *r) {
  static const char from[] = "ntrfv0", to[] = "\n\t\r\f\v";
  const char letter = *r->at++;
  const char *at = letter ? strchr(from, letter) : NULL;
  if (at) return to[at - from];
  if (letter == 'x') return read_hex(r, 2);
  if (letter == 'u' && *r->at != '{') return read_hex(r, 4);
  if (letter == 0) return refuse(r, "an escape that is cut off");
  if ((letter >= '1' && letter <= '9') || letter == 'k') return refuse(r, "a reference to a group");
  if ((letter | 0x20) == 'p') return refuse(r, "a class of Unicode");
  if ((letter | 0x20) >= 'a' && (letter | 0x20) <= 'z') return refuse(r, "an escape that is unknown");
  return (unsigned char)letter;
}

static int32_t read_character(reader *r) {
  uint32_t code = 0;
  r->at += lp_utf8_next(r->at, &code);
  return (int32_t)code;
}

/* A member of a class; *is_set: it was a shorthand, which has been added. */
static int32_t read_member(reader *r, lp_code_set *set, bool *is_set) {
  *is_set = false;
  if (*r->at != '\\') return read_character(r);
  r->at++;
  *is_set = add_shorthand(set, *r->at);
  const bool is_bell = *r->at == 'b';
  if (!*is_set && !is_bell) return read_escape(r);
  r->at++;
  return '\b';
}

/* After "[". */
static int32_t read_class(reader *r) {
  lp_code_set set = {0};
  const bool inverts = *r->at == '^';
  bool is_ascii = false, is_set = false;
  r->at += inverts;
  while (!r->why && *r->at && *r->at != ']') {
    const int32_t low = read_member(r, &set, &is_set);
    is_ascii |= is_set;
    if (r->why || is_set) continue;
    int32_t high = low;
    if (r->at[0] == '-' && r->at[1] && r->at[1] != ']') {
      r->at++;
      high = read_member(r, &set, &is_set);
      if (is_set || high < low) (void)refuse(r, "a range that is none");
    }
    add_range(&set, low, high);
  }
  if (*r->at == 0)
    (void)refuse(r, "a class without its end");
  else
    r->at++;
  if (inverts) invert(&set, is_ascii ? LAST_ASCII : LAST_CODE);
  return add_set(r, set);
}

static int32_t any_character(reader *r) {
  lp_code_set set = {0};
  add_range(&set, ' ', LAST_CODE);
  return add_set(r, set);
}

/* ---- the tree ---------------------------------------------------------------------------------------------------- */

static int32_t read_alternatives(reader *r);

/* After "(". */
static int32_t read_group(reader *r) {
  const char *name = r->at[0] == '?' ? r->at + 1 + (r->at[1] == 'P') : ""; /* Python writes ?P<name> */
  if (name[0] == ':') r->at += 2;
  if (name[0] == '<' && name[1] != '=' && name[1] != '!') {
    r->at = name + strcspn(name, ">");
    r->at += *r->at == '>';
  }
  if (r->at[0] == '?') return refuse(r, "a look at what follows or precedes");
  if (++r->depth > MOST_DEPTH) return refuse(r, "too many groups within each other");
  const int32_t group = read_alternatives(r);
  r->depth--;
  if (*r->at != ')') return refuse(r, "a group without its end");
  r->at++;
  return group;
}

/* After a backslash outside of a class. */
static int32_t read_escaped(reader *r) {
  lp_code_set set = {0};
  const char letter = *r->at;
  if ((letter | 0x20) == 'b') return refuse(r, "an end of a word");
  if (letter != 'A' && (letter | 0x20) != 'z' && !add_shorthand(&set, letter)) return add_character(r, read_escape(r));
  r->at++;
  if (set.count > 0) return add_set(r, set);
  return add_term(r, (term){.kind = letter == 'A' ? TERM_BEGIN : TERM_END}); /* as Python writes ^ and $ */
}

static int32_t read_atom(reader *r) {
  const char first = *r->at;
  if (first == '*' || first == '+' || first == '?') return refuse(r, "a repetition of nothing");
  if (!strchr("[(.^$\\", first)) return add_character(r, read_character(r));
  r->at++;
  if (first == '[') return read_class(r);
  if (first == '(') return read_group(r);
  if (first == '.') return any_character(r);
  if (first == '\\') return read_escaped(r);
  return add_term(r, (term){.kind = first == '^' ? TERM_BEGIN : TERM_END});
}

static bool read_count(reader *r, int32_t *out) {
  int64_t count = 0;
  if (*r->at < '0' || *r->at > '9') return false;
  for (; *r->at >= '0' && *r->at <= '9' && count <= MOST_REPEATS; r->at++)
    count = 10 * count + (*r->at - '0');
  if (count > MOST_REPEATS) (void)refuse(r, "more than 1000 repetitions");
  *out = (int32_t)count;
  return true;
}

/* "*", "+", "?", "{2}", "{2,}" or "{2,3}"; false: none of them. */
static bool read_repetition(reader *r, int32_t *least, int32_t *most) {
  const char *begin = r->at;
  *least = *begin == '+';
  *most = *begin == '?' ? 1 : -1;
  if (*begin == '*' || *begin == '+' || *begin == '?') return r->at++, true;
  if (*begin != '{') return false;
  r->at++;
  bool good = read_count(r, least);
  *most = *least;
  if (good && *r->at == ',') {
    r->at++;
    if (!read_count(r, most)) *most = -1;
  }
  good = good && *r->at == '}';
  r->at = good ? r->at + 1 : begin;
  return good;
}

static void put_last(reader *r, int32_t in, int32_t part) {
  r->terms.data[part].before = r->terms.data[in].last;
  r->terms.data[in].last = part;
}

static int32_t read_row(reader *r) {
  const int32_t row = add_term(r, (term){.kind = TERM_ALL, .last = -1});
  while (!r->why && *r->at && *r->at != '|' && *r->at != ')') {
    int32_t part = read_atom(r), least = 0, most = 0;
    while (!r->why && read_repetition(r, &least, &most)) {
      if (most >= 0 && least > most) return refuse(r, "a repetition that is none");
      part = add_term(r, (term){.kind = TERM_REPEAT, .last = part, .least = least, .most = most});
      if (*r->at == '?') r->at++; /* as few as possible: the same texts */
    }
    if (r->why) return -1;
    put_last(r, row, part);
  }
  return row;
}

static int32_t read_alternatives(reader *r) {
  const int32_t any = add_term(r, (term){.kind = TERM_ANY, .last = -1});
  while (!r->why) {
    const int32_t row = read_row(r);
    if (r->why) return -1;
    put_last(r, any, row);
    if (*r->at != '|') break;
    r->at++;
  }
  return any;
}

/* ---- states ------------------------------------------------------------------------------------------------------ */

static int32_t add_state(reader *r, int32_t set, int32_t next, int32_t other) {
  if (r->out->states.count >= MOST_STATES) return refuse(r, "too many parts");
  lp_vec_push(&r->out->states, ((lp_regex_state){set, next, other}));
  return (int32_t)r->out->states.count - 1;
}

static int32_t states_of(reader *r, int32_t part, int32_t next);

/* The parts of a row from its end on. */
static int32_t states_of_row(reader *r, const term *row, int32_t next) {
  for (int32_t part = row->last; part >= 0 && !r->why; part = r->terms.data[part].before)
    next = states_of(r, part, next);
  return next;
}

static int32_t states_of_repeat(reader *r, const term *repeat, int32_t next) {
  int32_t at = next;
  if (repeat->most < 0) {
    at = add_state(r, LP_REGEX_SPLIT, next, next);
    const int32_t body = r->why ? -1 : states_of(r, repeat->last, at);
    if (r->why) return -1;
    r->out->states.data[at].other = body;
  }
  for (int32_t i = repeat->most < 0 ? repeat->least : repeat->most; i > 0 && !r->why; i--) {
    const int32_t after = at;
    at = states_of(r, repeat->last, at);
    if (at == after) return at; /* nothing, however often */
    if (!r->why && i > repeat->least) at = add_state(r, LP_REGEX_SPLIT, next, at);
  }
  return at;
}

static int32_t states_of(reader *r, int32_t part, int32_t next) {
  const term *of = &r->terms.data[part];
  if (of->kind == TERM_SET) return add_state(r, of->set, next, next);
  if (of->kind == TERM_ALL) return states_of_row(r, of, next);
  if (of->kind == TERM_REPEAT) return states_of_repeat(r, of, next);
  if (of->kind != TERM_ANY) return refuse(r, "a ^ or $ within it");
  int32_t any = -1;
  for (int32_t row = of->last; row >= 0 && !r->why; row = r->terms.data[row].before) {
    const int32_t one = states_of(r, row, next);
    any = any < 0 || r->why ? one : add_state(r, LP_REGEX_SPLIT, any, one);
  }
  return any;
}

/* Takes ^ and $ off the ends of a row. */
static void strip(reader *r, int32_t row, bool *begins, bool *ends) {
  int32_t *link = &r->terms.data[row].last;
  *ends = *link >= 0 && r->terms.data[*link].kind == TERM_END;
  if (*ends) *link = r->terms.data[*link].before;
  while (*link >= 0 && r->terms.data[*link].before >= 0)
    link = &r->terms.data[*link].before;
  *begins = *link >= 0 && r->terms.data[*link].kind == TERM_BEGIN;
  if (*begins) *link = -1;
}

/* The alternatives of the whole pattern, each with any text where it has no ^ or $. A group around all is left out. */
static int32_t states_of_whole(reader *r, int32_t any, int32_t end) {
  const term *terms = r->terms.data, *only = &terms[terms[any].last];
  if (only->before < 0 && only->last >= 0 && terms[only->last].before < 0 && terms[only->last].kind == TERM_ANY)
    return states_of_whole(r, only->last, end);
  const int32_t anything = add_term(r, (term){.kind = TERM_REPEAT, .last = any_character(r), .most = -1});
  int32_t all = -1;
  for (int32_t row = r->terms.data[any].last; row >= 0 && !r->why; row = r->terms.data[row].before) {
    bool begins = false, ends = false;
    strip(r, row, &begins, &ends);
    int32_t one = ends ? end : states_of(r, anything, end);
    if (!r->why) one = states_of(r, row, one);
    if (!r->why && !begins) one = states_of(r, anything, one);
    all = all < 0 || r->why ? one : add_state(r, LP_REGEX_SPLIT, all, one);
  }
  return all;
}

bool lp_regex_read(const char *text, lp_regex *out, const char **why) {
  reader r = {.at = text, .out = out};
  *out = (lp_regex){0};
  const int32_t end = add_state(&r, LP_REGEX_END, 0, 0), whole = read_alternatives(&r);
  if (!r.why && *r.at) (void)refuse(&r, "an end of a group without its beginning");
  if (!r.why) out->start = states_of_whole(&r, whole, end);
  lp_vec_free(&r.terms);
  *why = r.why;
  return !r.why;
}

void lp_regex_free(lp_regex *pattern) {
  for (size_t i = 0; i < pattern->sets.count; i++)
    lp_vec_free(&pattern->sets.data[i]);
  lp_vec_free(&pattern->sets);
  lp_vec_free(&pattern->states);
}
