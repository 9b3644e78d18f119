/* Patterns of tokenizer.json on Oniguruma, the engine of `tokenizers`, so that they mean the same.
 *
 * Only the tables differ: Debian 12's Oniguruma has Unicode 14, that of `tokenizers` Unicode 16. The encoding below is
 * its UTF-8 with a class of a newer character that is the class of an older one (unicode.c). */
#include <oniguruma.h>
#include <pthread.h>
#include <time.h>

#include "runtime/tokenizer/pattern.h"
#include "runtime/tokenizer/unicode.h"

struct lp_pattern {
  regex_t *code;
};

/* ---- the encoding ------------------------------------------------------------------------------------------------ */

static OnigEncodingType encoding; /* constant after the first pattern */
static OnigCtype first_block;     /* classes from here on are blocks, to which unassigned characters belong */

static OnigCtype class_of(const char *property) {
  OnigUChar *name = (OnigUChar *)property;
  return (OnigCtype)OnigEncodingUTF8.property_name_to_ctype(&OnigEncodingUTF8, name, name + strlen(property));
}

/* A sorted set of characters as Oniguruma has it: the number of ranges, and the first and last character of each. */
typedef LP_VEC(OnigCodePoint) char_set;

static bool has(const OnigCodePoint *set, OnigCodePoint code) {
  size_t low = 0, high = set[0];
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (set[2 * middle + 2] < code)
      low = middle + 1;
    else
      high = middle;
  }
  return low < set[0] && set[2 * low + 1] <= code;
}

static void add_range(char_set *out, OnigCodePoint first, OnigCodePoint last) {
  if (first > last) return;
  lp_vec_push(out, first);
  lp_vec_push(out, last);
  out->data[0]++;
}

/* Writes `old` to `out`, with newer characters where those are that they are like. */
static void renew(const OnigCodePoint *old, char_set *out) {
  size_t at = 0;
  out->count = 0;
  lp_vec_push(out, 0);
  for (size_t i = 0; i <= old[0]; i++) {
    OnigCodePoint first = i < old[0] ? old[2 * i + 1] : UINT32_MAX, last = i < old[0] ? old[2 * i + 2] : 0;
    for (; at < lp_newer_count && (lp_newer[3 * at] < first || lp_newer[3 * at] <= last); at++) {
      if (lp_newer[3 * at] >= first) {
        add_range(out, first, lp_newer[3 * at] - 1);
        first = lp_newer[3 * at + 1] + 1;
      }
      if (has(old, lp_newer[3 * at + 2])) add_range(out, lp_newer[3 * at], lp_newer[3 * at + 1]);
    }
    add_range(out, first, last);
  }
}

static _Thread_local char_set *renewed; /* the set that is asked for, while a pattern compiles */

/* Appends two disjoint sets as one. */
static void unite(const OnigCodePoint *a, const OnigCodePoint *b, char_set *out) {
  lp_vec_push(out, 0);
  for (size_t i = 0, j = 0; i < a[0] || j < b[0];) {
    bool first = j == b[0] || (i < a[0] && a[2 * i + 1] < b[2 * j + 1]);
    const OnigCodePoint *range = first ? &a[2 * i++ + 1] : &b[2 * j++ + 1];
    add_range(out, range[0], range[1]);
  }
}

/* Since Oniguruma 6.9.9 [[:punct:]] has all symbols, while \p{Punct} is still \p{P}. */
static int get_ctype_code_range(OnigCtype ctype, OnigCodePoint *one_byte, const OnigCodePoint *ranges[]) {
  int rc = OnigEncodingUTF8.get_ctype_code_range(ctype, one_byte, ranges);
  if (rc != 0 || ctype >= first_block) return rc;
  char_set both = {0};
  if (ctype == ONIGENC_CTYPE_PUNCT) {
    const OnigCodePoint *symbols;
    (void)OnigEncodingUTF8.get_ctype_code_range(class_of("S"), one_byte, &symbols);
    unite(*ranges, symbols, &both);
  }
  renew(ctype == ONIGENC_CTYPE_PUNCT ? both.data : *ranges, renewed);
  lp_vec_free(&both);
  *ranges = renewed->data;
  return rc;
}

/* Refuses the properties, which no published tokenizer uses, whose older characters changed as well. */
static int property_name_to_ctype(OnigEncoding self, OnigUChar *name, OnigUChar *end) {
  static const char *const changed[] = {"ID_Continue",   "XID_Continue",      "Diacritic",
                                        "Extender",      "Sentence_Terminal", "Terminal_Punctuation",
                                        "Grapheme_Base", "Grapheme_Extend"};
  int ctype = OnigEncodingUTF8.property_name_to_ctype(self, name, end);
  for (size_t i = 0; i < LP_COUNT(changed); i++)
    if (ctype == (int)class_of(changed[i])) return ONIGERR_INVALID_CHAR_PROPERTY_NAME;
  return ctype == ONIGENC_CTYPE_PUNCT ? (int)class_of("P") : ctype;
}

static int is_code_ctype(OnigCodePoint code, OnigCtype ctype) {
  return OnigEncodingUTF8.is_code_ctype(ctype < first_block ? lp_unicode_older(code) : code, ctype);
}

static int apply_all_case_fold(OnigCaseFoldType flag, OnigApplyAllCaseFoldFunc apply, void *arg) {
  int rc = OnigEncodingUTF8.apply_all_case_fold(flag, apply, arg);
  for (size_t i = 0; i < lp_newer_count; i++)
    for (OnigCodePoint upper = lp_newer[3 * i]; rc == 0 && upper <= lp_newer[3 * i + 1]; upper++) {
      OnigCodePoint lower = lp_unicode_lower(upper);
      if (lower == upper) continue;
      rc = apply(upper, &lower, 1, arg);
      if (rc == 0) rc = apply(lower, &upper, 1, arg);
    }
  return rc;
}

static void initialize(void) {
  encoding = OnigEncodingUTF8;
  first_block = class_of("In_Basic_Latin");
  encoding.property_name_to_ctype = property_name_to_ctype;
  encoding.get_ctype_code_range = get_ctype_code_range;
  encoding.is_code_ctype = is_code_ctype;
  encoding.apply_all_case_fold = apply_all_case_fold;
  (void)onig_initialize((OnigEncoding[]){&encoding}, 1);
}

static void initialize_once(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  (void)pthread_once(&once, initialize);
}

bool lp_pattern_is_word(uint32_t code) {
  OnigCodePoint one_byte;
  const OnigCodePoint *words;
  (void)OnigEncodingUTF8.get_ctype_code_range(ONIGENC_CTYPE_WORD, &one_byte, &words);
  return has(words, lp_unicode_older(code)) || code == 0x200C || code == 0x200D;
}

/* ---- patterns ---------------------------------------------------------------------------------------------------- */

lp_pattern *lp_pattern_create(const char *text, size_t size, bool literal, char **why) {
  const OnigUChar *source = (const OnigUChar *)text;
  OnigErrorInfo info;
  char_set set = {0};
  lp_pattern *pattern = lp_alloc(sizeof *pattern);
  initialize_once();
  renewed = &set;
  int rc = onig_new(&pattern->code, source, source + size, ONIG_OPTION_NONE, &encoding,
                    literal ? ONIG_SYNTAX_ASIS : ONIG_SYNTAX_DEFAULT, &info);
  renewed = NULL;
  lp_vec_free(&set);
  if (rc == ONIG_NORMAL) return pattern;
  OnigUChar reason[ONIG_MAX_ERROR_MESSAGE_LEN] = {0};
  onig_error_code_to_str(reason, rc, &info);
  LP_OWNED(lp_buf_free) lp_buf message = {0};
  lp_buf_printf(&message, "does not compile: %s", (const char *)reason);
  *why = lp_strdup(message.data);
  free(pattern);
  return NULL;
}

void lp_pattern_free(lp_pattern *pattern) {
  if (!pattern) return;
  onig_free(pattern->code);
  free(pattern);
}

/* ---- matches ----------------------------------------------------------------------------------------------------- */

/* A pattern is data of a model, and some take time that is exponential in the text: each search has a limit of steps
 * back (that of `tokenizers`) and of stack (48 bytes an entry), and all searches of a matcher one of time, which is
 * looked at after so many searches, since a look takes as long as two, and before one takes more than a few steps. */
enum { MAX_STEPS_BACK = 10000000, FEW_STEPS_BACK = 10000, MAX_STACK = 1 << 23 };
enum { SEARCHES = 1 << 6 };
static const double max_seconds = 10, bytes_a_second = 1 << 20;

static double cpu_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

void lp_matcher_init(lp_matcher *matcher, const lp_pattern *pattern) {
  OnigMatchParam *limits = onig_new_match_param();
  (void)onig_initialize_match_param(limits);
  (void)onig_set_match_stack_limit_size_of_match_param(limits, MAX_STACK);
  *matcher = (lp_matcher){.pattern = pattern, .groups = onig_region_new(), .limits = limits};
  matcher->deadline = cpu_seconds() + max_seconds;
}

void lp_matcher_free(lp_matcher *matcher) {
  onig_region_free(matcher->groups, 1);
  onig_free_match_param(matcher->limits);
}

void lp_matcher_reset(lp_matcher *matcher, const char *text, size_t size) {
  matcher->text = text;
  matcher->size = size;
  matcher->from = 0;
  matcher->matched = false;
  matcher->deadline += (double)size / bytes_a_second;
}

static int search_within(lp_matcher *m, unsigned long steps_back) {
  const OnigUChar *text = (const OnigUChar *)m->text, *end = text + m->size;
  (void)onig_set_retry_limit_in_search_of_match_param(m->limits, steps_back);
  return onig_search_with_param(m->pattern->code, text, end, text + m->from, end, m->groups, ONIG_OPTION_NONE,
                                m->limits);
}

static int search(lp_matcher *m) {
  unsigned long most = MAX_STEPS_BACK + 100 * (m->size - m->from); /* a search may begin at each character */
  if (++m->searches % SEARCHES == 0 && cpu_seconds() > m->deadline) return ONIGERR_RETRY_LIMIT_IN_SEARCH_OVER;
  for (unsigned long steps = FEW_STEPS_BACK;; steps *= 2) {
    int rc = search_within(m, steps);
    if (rc != ONIGERR_RETRY_LIMIT_IN_SEARCH_OVER || steps > most || cpu_seconds() > m->deadline) return rc;
  }
}

/* As in Oniguruma's find_iter, an empty match right after the last match is skipped. */
int lp_matcher_next(lp_matcher *m, size_t *start, size_t *end) {
  while (m->from <= m->size) {
    int rc = search(m);
    if (rc < 0) return rc == ONIG_MISMATCH ? 0 : -1;
    const OnigRegion *groups = m->groups;
    *start = (size_t)groups->beg[0];
    *end = (size_t)groups->end[0];
    if (*end < *start || *start < m->from) return -1; /* \K in a lookaround */
    if (*start != *end || !m->matched || m->last_end != *end) {
      m->from = m->last_end = *end;
      m->matched = true;
      return 1;
    }
    do
      m->from++;
    while (m->from < m->size && (m->text[m->from] & 0xC0) == 0x80);
  }
  return 0;
}
