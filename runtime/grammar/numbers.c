/* Numbers within bounds: decimal digits are compared with those of the bounds one by one, and the rest of the division
 * by `multipleOf` is carried along. */
#include <math.h>

#include "runtime/grammar/builder.h"

/* Digits before and after the point; the greatest factor of `multipleOf`, after its point is moved. */
enum { WHOLE = 15, FRACTION = 15, DIGITS = WHOLE + FRACTION, MOST_FACTOR = 10000, USUAL_FRACTION = 6 };

/* A bound of a number without its sign. */
typedef struct {
  char digit[DIGITS + 1];
  int count;   /* of digits before the point, at least 1 */
  bool strict; /* the bound itself is excluded */
} bound;

typedef struct {
  lp_builder *b;
  bool whole, has_high, any_places; /* no "multipleOf" limits the digits after the point */
  bound low, high;
  int32_t factor, shift; /* the number times 10^shift is a multiple of the factor */
  int fraction;          /* the most digits after the point */
  /* Of the current length: */
  int length, places; /* digits before the point, and at most after it */
  int32_t *known;     /* the nodes by position, tightness and rest; -2: unknown, -1: there is none */
} range_of_numbers;

/* ---- digits ------------------------------------------------------------------------------------------------------ */

/* The digits of |value|. A bound that lies between two such numbers excludes the one that is beyond it. */
static void set_bound(bound *out, double value, bool strict, bool is_low) {
  char text[DIGITS + 40];
  (void)snprintf(text, sizeof text, "%0*.*f", DIGITS + 1, FRACTION, fabs(value));
  const double read = strtod(text, NULL);
  *out = (bound){.count = 1, .strict = strict || (is_low ? read < fabs(value) : read > fabs(value))};
  memcpy(out->digit, text, WHOLE);
  memcpy(out->digit + WHOLE, text + WHOLE + 1, FRACTION);
  for (int i = 0; i < WHOLE; i++)
    if (out->digit[i] != '0' && WHOLE - i > out->count) out->count = WHOLE - i;
}

/* Tells whether the digits from the position on are zeros; the first digit of the length has position 0. */
static bool is_zero_from(const range_of_numbers *r, const bound *of, int position) {
  for (int i = WHOLE - r->length + position; i < DIGITS; i++)
    if (of->digit[i] != '0') return false;
  return true;
}

static bool may_end(const range_of_numbers *r, int position, bool by_low, bool by_high, int32_t rest) {
  if (position < r->length) return false;
  if (by_low && (!is_zero_from(r, &r->low, position) || r->low.strict)) return false;
  if (by_high && is_zero_from(r, &r->high, position) && r->high.strict) return false;
  int64_t left = rest;
  for (int i = position - r->length; i < r->shift; i++)
    left = left * 10 % r->factor;
  return left % r->factor == 0;
}

static int32_t node_at(range_of_numbers *r, int position, bool by_low, bool by_high, int32_t rest);

/* A digit, and what follows. Digits with the same continuation are one range. */
static int32_t digit_at(range_of_numbers *r, int position, bool by_low, bool by_high, int32_t rest) {
  const int at = WHOLE - r->length + position;
  int32_t all = -1, same = -1;
  int from = 0;
  for (int digit = '0'; digit <= '9' + 1; digit++) {
    const bool is_first = position == 0 && r->length > 1 && digit == '0';
    bool out =
        digit > '9' || is_first || (by_low && digit < r->low.digit[at]) || (by_high && digit > r->high.digit[at]);
    const int32_t next = out ? -1
                             : node_at(r, position + 1, by_low && digit == r->low.digit[at],
                                       by_high && digit == r->high.digit[at], (rest * 10 + digit - '0') % r->factor);
    if (next == same) continue;
    if (same >= 0) {
      const int32_t one = range(r->b, from, digit - 1, same);
      all = all < 0 ? one : either(r->b, all, one);
    }
    from = digit;
    same = next;
  }
  return all;
}

/* The rest as far as it matters: k further digits multiply it by 10^k, so that it counts by factor / gcd(factor, 10^k)
 * only. */
static int32_t reduced(const range_of_numbers *r, int position, int32_t rest) {
  int32_t by = r->factor;
  for (int i = position; i < r->length + r->shift; i++)
    by /= (by % 2 == 0 ? 2 : 1) * (by % 5 == 0 ? 5 : 1);
  return rest % by;
}

static int32_t node_at(range_of_numbers *r, int position, bool by_low, bool by_high, int32_t rest) {
  const int place = position - r->length + WHOLE; /* the same for each length, where nothing is tight */
  rest = reduced(r, position, rest);
  int32_t *known = &r->known[((place * 2 + by_low) * 2 + by_high) * r->factor + rest];
  if (*known != -2 || r->b->grammar->nodes.count > LP_GRAMMAR_MOST_NODES) return *known;
  int32_t node = -1;
  if (position < r->length + r->places) node = digit_at(r, position, by_low, by_high, rest);
  if (position == r->length && node >= 0) node = range(r->b, '.', '.', node);
  if (may_end(r, position, by_low, by_high, rest)) node = node < 0 ? r->b->done : either(r->b, node, r->b->done);
  *known = node;
  return node;
}

/* Forgets the nodes of another length that would differ in this one. */
static void begin_length(range_of_numbers *r, int length) {
  const int places = r->fraction < WHOLE - length ? r->fraction : WHOLE - length;
  const bool all = length == 1 || places != r->places;
  for (int place = 0; place <= DIGITS; place++)
    for (int tight = all ? 0 : 1; tight < 4; tight++)
      for (int32_t rest = 0; rest < r->factor; rest++)
        r->known[(place * 4 + tight) * r->factor + rest] = -2;
  r->length = length;
  r->places = places;
}

/* The numbers from low to high, without a sign; -1: there are none. */
static int32_t magnitudes(range_of_numbers *r) {
  int32_t all = -1;
  r->known = lp_alloc((size_t)(DIGITS + 1) * 4 * (size_t)r->factor * sizeof *r->known);
  for (int length = 1; length <= (r->has_high ? r->high.count : WHOLE); length++) {
    begin_length(r, length);
    if (length < r->low.count) continue;
    const int32_t one = digit_at(r, 0, length == r->low.count, r->has_high && length == r->high.count, 0);
    if (one >= 0) all = all < 0 ? one : either(r->b, all, one);
  }
  free(r->known);
  return all;
}

/* ---- keywords ---------------------------------------------------------------------------------------------------- */

typedef struct {
  double low, high; /* infinite: none */
  bool low_strict, high_strict;
} interval;

/* "minimum" and "exclusiveMinimum", which is a number, or in older drafts true beside the other; `sign` -1: those of
 * the maximum. */
static lp_status read_bound(lp_builder *b, const lp_json *schema, double sign, double *out, bool *strict) {
  lp_json plain = lp_json_member(schema, sign > 0 ? "minimum" : "maximum"),
          exclusive = lp_json_member(schema, sign > 0 ? "exclusiveMinimum" : "exclusiveMaximum");
  double value = 0;
  *out = -sign * INFINITY;
  *strict = lp_json_is_true(&exclusive);
  if (lp_json_is_given(&plain)) LP_TRY(lp_json_number(&plain, -INFINITY, INFINITY, out, b->diag));
  if (!lp_json_is_given(&exclusive) || lp_json_is(&exclusive, LP_JSON_BOOL)) return LP_OK;
  LP_TRY(lp_json_number(&exclusive, -INFINITY, INFINITY, &value, b->diag));
  if (sign * value < sign * *out) return LP_OK;
  *out = value;
  *strict = true;
  return LP_OK;
}

/* "multipleOf": a whole number up to 10,000 with its point moved, such as 5, 0.01 or 0.25. */
static lp_status read_factor(range_of_numbers *r, const lp_json *schema) {
  lp_json at = lp_json_member(schema, "multipleOf");
  double factor = 1;
  r->factor = 1;
  r->shift = 0;
  r->fraction = r->whole ? 0 : USUAL_FRACTION;
  r->any_places = !r->whole && !lp_json_is_given(&at);
  if (!lp_json_is_given(&at)) return LP_OK;
  LP_TRY(lp_json_number(&at, 1e-9, 1e9, &factor, r->b->diag));
  while (r->shift < 9 && fabs(factor - round(factor)) > 1e-9 * factor) {
    factor *= 10;
    r->shift++;
  }
  if (fabs(factor - round(factor)) > 1e-9 * factor || (int64_t)factor > MOST_FACTOR)
    return lp_json_error(&at, r->b->diag,
                         "the schema's 'multipleOf' has too many digits: at most %d with the point moved", MOST_FACTOR);
  r->factor = (int32_t)round(factor);
  if (!r->whole) r->fraction = r->shift;
  return LP_OK;
}

/* More digits after the point where those of a bound ask for it. */
static void widen(range_of_numbers *r, const bound *of) {
  for (int i = WHOLE; i < DIGITS; i++)
    if (of->digit[i] != '0' && i - WHOLE + 1 > r->fraction) r->fraction = i - WHOLE + 1;
}

/* The numbers of one sign. */
static int32_t half(range_of_numbers *r, const interval *of, bool negative) {
  const double low = negative ? -of->high : of->low, high = negative ? -of->low : of->high;
  const bool low_strict = negative ? of->high_strict : of->low_strict;
  const bool high_strict = negative ? of->low_strict : of->high_strict;
  const int usual = r->fraction;
  if (high < 0 || (negative && high == 0) || low >= 1e15) return -1;
  set_bound(&r->low, low > 0 ? low : 0, low >= 0 ? low_strict : false, true);
  if (negative && low <= 0) r->low.strict = true; /* no -0 */
  r->has_high = high < 1e15;
  if (r->has_high) set_bound(&r->high, high, high_strict, false);
  if (r->any_places) {
    widen(r, &r->low);
    if (r->has_high) widen(r, &r->high);
  }
  const int32_t node = magnitudes(r);
  r->fraction = usual;
  return node < 0 || !negative ? node : range(r->b, '-', '-', node);
}

lp_status lp_builder_number(lp_builder *b, const lp_json *schema, bool whole, int32_t *out) {
  static const char *const keys[] = {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"};
  bool limits = false;
  range_of_numbers r = {.b = b, .whole = whole};
  interval of;
  for (size_t i = 0; i < LP_COUNT(keys); i++)
    limits |= lp_json_is_given(LP_MEMBER(schema, keys[i]));
  *out = whole ? b->integer : b->number;
  if (!limits) return LP_OK;
  LP_TRY(read_bound(b, schema, 1, &of.low, &of.low_strict));
  LP_TRY(read_bound(b, schema, -1, &of.high, &of.high_strict));
  LP_TRY(read_factor(&r, schema));
  const int32_t positive = half(&r, &of, false), negative = half(&r, &of, true);
  if (b->grammar->nodes.count > LP_GRAMMAR_MOST_NODES)
    return lp_json_error(schema, b->diag, "the schema's 'multipleOf' needs too many states");
  *out = positive < 0 ? negative : negative < 0 ? positive : either(b, positive, negative);
  return *out >= 0 ? LP_OK : lp_builder_none(b, schema, "no number lies within the schema's bounds", out);
}
