/* What a rendering of a chat template may take: hostile ones end with the name of the limit that they break, soon and
 * in little memory, and ordinary loops that append take linear time. */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/base.h"
#include "runtime/chat/chat.h"
#include "tests/suite.h"

LP_CASE(.timeout = 600);

/* CPU time and memory of one rendering, sanitizers included. */
static const double most_ms = 20000;
enum { MOST_KB = 1 << 20 };

static long peak_kb(void) {
  struct rusage usage;
  ck_assert_int_eq(getrusage(RUSAGE_SELF, &usage), 0);
  return usage.ru_maxrss;
}

/* Renders into *out, after a failure its report. */
static lp_chat_limit render(const char *source, lp_chat_input input, lp_buf *out) {
  lp_chat_limit broken = LP_CHAT_NO_LIMIT;
  lp_diag *diag = lp_diag_create();
  input.file = "t.jinja";
  input.broken = &broken;
  if (lp_chat_render(source, strlen(source), &input, out, diag) != LP_OK) {
    ck_assert_uint_eq(lp_diag_error_count(diag), 1);
    ck_assert_uint_eq(out->size, 0);
    lp_buf_puts(out, lp_diag_get(diag, 0)->text);
  }
  lp_diag_free(diag);
  return broken;
}

/* ---- hostile templates ------------------------------------------------------------------------------------------- */

#define NS "{% set ns = namespace(s='ab', l=[1]) %}{% for a in range(99999) %}"
#define END "{% endfor %}"
#define TEXT "{% set s = 'ab' * 500000 %}{% for a in range(99999) %}"
#define LIST "{% set l = range(99999) | list %}{% for a in range(99999) %}"
#define DEEP                                                                                                           \
  "{% set ns = namespace(l=[1], m=[1]) %}{% for a in range(90000) %}{% set ns.l = [ns.l] %}{% set ns.m = [ns.m] "      \
  "%}" END
#define WIDE                                                                                                           \
  "{% set ns = namespace(l=[1], m=[1]) %}{% for a in range(50) %}{% set ns.l = [ns.l, ns.l] %}{% set ns.m = [ns.m, "   \
  "ns.m] %}" END

static const struct {
  const char *source;
  lp_chat_limit limit;
} hostile[] = {
    /* depth: whatever walks through a value */
    {DEEP "{{ ns.l | tojson }}", LP_CHAT_LIMIT_DEPTH},
    {DEEP "{{ ns.l | tojson(indent=2) }}", LP_CHAT_LIMIT_DEPTH},
    {DEEP "{{ ns.l }}", LP_CHAT_LIMIT_DEPTH},
    {DEEP "{{ ns.l ~ '' }}", LP_CHAT_LIMIT_DEPTH},
    {DEEP "{{ ns.l | string }}", LP_CHAT_LIMIT_DEPTH},
    {DEEP "{{ [ns.l] | join }}", LP_CHAT_LIMIT_DEPTH},
    {DEEP "{{ ns.l == ns.m }}", LP_CHAT_LIMIT_DEPTH},
    {DEEP "{{ ns.l in [ns.m] }}", LP_CHAT_LIMIT_DEPTH},
    {DEEP "{{ ns.l < ns.m }}", LP_CHAT_LIMIT_DEPTH},
    {DEEP "{{ [ns.l, ns.m] | sort }}", LP_CHAT_LIMIT_DEPTH},
    {DEEP "{{ [ns.l, ns.m] | unique | list }}", LP_CHAT_LIMIT_DEPTH},
    {DEEP "{{ {ns.l: 1, ns.m: 2} }}", LP_CHAT_LIMIT_DEPTH},
    {DEEP "{{ '%s' % (ns.l,) }}", LP_CHAT_LIMIT_DEPTH},
    {DEEP "{{ '{}'.format(ns.l) }}", LP_CHAT_LIMIT_DEPTH},
    {"{% macro f(n) %}{{ f(n + 1) }}{% endmacro %}{{ f(0) }}", LP_CHAT_LIMIT_DEPTH},
    {"{% macro f(n) %}{% if 1 %}{% if 1 %}{% for a in [1] %}{% call(b) f(n) %}{{ n }}{% endcall %}" END
     "{% endif %}{% endif %}{{ caller() }}{% endmacro %}{% call(b) f(0) %}{% endcall %}",
     LP_CHAT_LIMIT_DEPTH},
    /* steps: values that share their parts are trees of 2^50 */
    {WIDE "{{ ns.l == ns.m }}", LP_CHAT_LIMIT_STEPS},
    {WIDE "{{ ns.l in [ns.m] }}", LP_CHAT_LIMIT_STEPS},
    {WIDE "{{ ns.l < ns.m }}", LP_CHAT_LIMIT_STEPS},
    {WIDE "{{ [ns.l, ns.m] | sort }}", LP_CHAT_LIMIT_STEPS},
    {WIDE "{{ ns.l | tojson }}", LP_CHAT_LIMIT_MEMORY},
    {WIDE "{{ ns.l }}", LP_CHAT_LIMIT_MEMORY},
    {TEXT "{% if 'x' in s %}{% endif %}" END, LP_CHAT_LIMIT_STEPS},
    {TEXT "{% if 'x' is in s %}{% endif %}" END, LP_CHAT_LIMIT_STEPS},
    {TEXT "{% if s == s %}{% endif %}" END, LP_CHAT_LIMIT_STEPS},
    {TEXT "{% if s < s %}{% endif %}" END, LP_CHAT_LIMIT_STEPS},
    {TEXT "{% if s | length %}{% endif %}" END, LP_CHAT_LIMIT_STEPS},
    {TEXT "{% if s | wordcount %}{% endif %}" END, LP_CHAT_LIMIT_STEPS},
    {TEXT "{% if s.count('x') %}{% endif %}" END, LP_CHAT_LIMIT_STEPS},
    {TEXT "{% if s.find('x') %}{% endif %}" END, LP_CHAT_LIMIT_STEPS},
    {TEXT "{% if s.strip('xba') %}{% endif %}" END, LP_CHAT_LIMIT_STEPS},
    {TEXT "{% if s.startswith([s]) %}{% endif %}" END, LP_CHAT_LIMIT_STEPS},
    {TEXT "{% if s is upper %}{% endif %}" END, LP_CHAT_LIMIT_STEPS},
    {TEXT "{% if s[1:] %}{% endif %}" END, LP_CHAT_LIMIT_STEPS},
    {TEXT "{% if s[-1] %}{% endif %}" END, LP_CHAT_LIMIT_STEPS},
    {TEXT "{% if s | int %}{% endif %}" END, LP_CHAT_LIMIT_STEPS},
    {TEXT "{% if {'a': 1}[s] %}{% endif %}" END, LP_CHAT_LIMIT_STEPS},
    {"{% set s = 'a' * 1000000 %}{{ s.rsplit('a' * 500000 ~ 'b') }}", LP_CHAT_LIMIT_STEPS},
    {"{% set s = 'b' * 1000000 %}{{ s.strip('a' * 500000 ~ 'b') }}", LP_CHAT_LIMIT_STEPS},
    {"{% set s = '{}'.format('}' * 1000000) %}{{ s.format() }}", LP_CHAT_NO_LIMIT},
    {LIST "{% if 'x' in l %}{% endif %}" END, LP_CHAT_LIMIT_STEPS},
    {LIST "{% if l | max %}{% endif %}" END, LP_CHAT_LIMIT_STEPS},
    {LIST "{% if l | sum %}{% endif %}" END, LP_CHAT_LIMIT_STEPS},
    {LIST "{% if l == l %}{% endif %}" END, LP_CHAT_LIMIT_STEPS},
    {"{% set l = range(2000) | list %}{% for a in range(99999) %}{% if l | unique | list %}{% endif %}" END,
     LP_CHAT_LIMIT_STEPS},
    {"{% for a in range(99999) %}{% for b in range(9) %}{% for c in 'abcdefgh' %}" END END END, LP_CHAT_LIMIT_MEMORY},
    {"{% macro f() %}{% if 1 %}{% endif %}{% endmacro %}{% for a in range(99999) %}{% for b in range(99) %}{% if f() %}"
     "{% endif %}" END END,
     LP_CHAT_LIMIT_MEMORY},
    /* memory: what makes values and texts */
    {NS "{% set ns.s = ns.s + ns.s %}" END, LP_CHAT_LIMIT_MEMORY},
    {NS "{% set ns.s = ns.s ~ ns.s %}" END, LP_CHAT_LIMIT_MEMORY},
    {NS "{% set ns.s = 'a' ~ ns.s %}" END, LP_CHAT_LIMIT_MEMORY},
    {NS "{% set ns.l = ns.l + ns.l %}" END, LP_CHAT_LIMIT_MEMORY},
    {NS "{% set ns.l = [0] + ns.l %}" END, LP_CHAT_LIMIT_MEMORY},
    {NS "{% set ns.s = ns.s.replace('a', 'aa') %}" END, LP_CHAT_LIMIT_MEMORY},
    {NS "{% set ns.s = ns.s | escape ~ '<' * 9999 %}" END, LP_CHAT_LIMIT_MEMORY},
    {NS "{% set ns.s = ns.s | tojson %}" END, LP_CHAT_LIMIT_MEMORY},
    {NS "{% set ns.s = ns.s * 2 %}" END, LP_CHAT_LIMIT_MEMORY},
    {NS "{% set ns.s = '%s%s' % (ns.s, ns.s) %}" END, LP_CHAT_LIMIT_MEMORY},
    {NS "{% set ns.s = '{0}{0}'.format(ns.s) %}" END, LP_CHAT_LIMIT_MEMORY},
    {NS "{% set ns.s = ns.s.join([ns.s, ns.s]) %}" END, LP_CHAT_LIMIT_MEMORY},
    {NS "{% set ns.s = [ns.s, ns.s] | join %}" END, LP_CHAT_LIMIT_MEMORY},
    {NS "{% set ns.s = ns.s ~ '\\n' | indent(1000) %}" END, LP_CHAT_LIMIT_MEMORY},
    {NS "{% set t %}{{ ns.s }}{{ ns.s }}{% endset %}{% set ns.s = t %}" END, LP_CHAT_LIMIT_MEMORY},
    {NS "{{ ns.s * 9999 }}" END, LP_CHAT_LIMIT_MEMORY},
    {"{% macro f(s) %}{{ s }}{{ s }}{{ f(s ~ s) }}{% endmacro %}{{ f('ab') }}", LP_CHAT_LIMIT_MEMORY},
    {TEXT "{% if s.split('a') %}{% endif %}" END, LP_CHAT_LIMIT_MEMORY},
    {TEXT "{% if s | list %}{% endif %}" END, LP_CHAT_LIMIT_MEMORY},
    {TEXT "{% if s | upper %}{% endif %}" END, LP_CHAT_LIMIT_STEPS},
    {TEXT "{% if s | urlencode %}{% endif %}" END, LP_CHAT_LIMIT_MEMORY},
    {TEXT "{% if s[::-1] %}{% endif %}" END, LP_CHAT_LIMIT_MEMORY},
    {TEXT "{% if s | center(9999) %}{% endif %}" END, LP_CHAT_LIMIT_MEMORY},
    {TEXT "{% if s | truncate(9999) %}{% endif %}" END, LP_CHAT_LIMIT_MEMORY},
    {LIST "{% if l | reverse %}{% endif %}" END, LP_CHAT_LIMIT_MEMORY},
    {LIST "{% if l | map('string') %}{% endif %}" END, LP_CHAT_LIMIT_MEMORY},
    {LIST "{% if l | select('odd') %}{% endif %}" END, LP_CHAT_LIMIT_MEMORY},
    {LIST "{% if l[::2] %}{% endif %}" END, LP_CHAT_LIMIT_MEMORY},
    {LIST "{% if range(99999) %}{% endif %}" END, LP_CHAT_LIMIT_MEMORY},
    {LIST "{% if (l | slice(2000, 1)) %}{% endif %}" END, LP_CHAT_LIMIT_MEMORY},
    {"{{ 'ab' * 9223372036854775807 }}", LP_CHAT_LIMIT_MEMORY},
};

LP_LOOP_TEST(hostile_templates_end, 0, LP_COUNT(hostile)) {
  static const char *const texts[] = {[LP_CHAT_NO_LIMIT] = "",
                                      [LP_CHAT_LIMIT_MEMORY] = "more than 128 MiB of memory",
                                      [LP_CHAT_LIMIT_STEPS] = "too many steps, more than 20000000",
                                      [LP_CHAT_LIMIT_DEPTH] = "nested too deeply, more than 400"};
  const double begin_ms = lp_suite_cpu_ms();
  lp_buf source = {0}, found = {0};
  lp_buf_printf(&source, "\n%s", hostile[_i].source);
  const lp_chat_limit broken = render(source.data, (lp_chat_input){0}, &found);
  ck_assert_msg(broken == hostile[_i].limit && strstr(lp_buf_text(&found), texts[broken]), "%s: found %.200s",
                hostile[_i].source, lp_buf_text(&found));
  if (broken != LP_CHAT_NO_LIMIT) ck_assert_ptr_eq(strstr(found.data, "chat template, line 2, column "), found.data);
  ck_assert_double_lt(lp_suite_cpu_ms() - begin_ms, most_ms);
  ck_assert_int_lt(peak_kb(), MOST_KB);
  lp_buf_free(&source);
  lp_buf_free(&found);
}

/* Long sources: the parser's work is linear, and what it makes is counted. */
LP_LOOP_TEST(long_sources_end, 0, 6) {
  static const char *const parts[][3] = {
      {"{{ 1", "<1", "}}"},         {"{{ [1", ",1", "]}}"},   {"{{ {1: 1", ",1: 1", "}}}"},
      {"{% set a", ",a", "= 1 %}"}, {"{{ 'a' ", "'a'", "}}"}, {"{% macro f(a", ",a", ") %}{% endmacro %}{{ f() }}"}};
  const double begin_ms = lp_suite_cpu_ms();
  lp_buf source = {0}, found = {0};
  lp_buf_puts(&source, parts[_i][0]);
  for (int i = 0; i < 200000; i++)
    lp_buf_puts(&source, parts[_i][1]);
  lp_buf_puts(&source, parts[_i][2]);
  (void)render(source.data, (lp_chat_input){0}, &found);
  ck_assert_double_lt(lp_suite_cpu_ms() - begin_ms, most_ms);
  ck_assert_int_lt(peak_kb(), MOST_KB);
  lp_buf_free(&source);
  lp_buf_free(&found);
}

/* ---- the end from outside ---------------------------------------------------------------------------------------- */

static bool stops_later(void *user) {
  int *left = user;
  ck_assert_int_ge(*left, 0); /* once it is told to end, it does not ask again */
  return (*left)-- == 0;
}

LP_TEST(stopped) {
  int left = 3;
  const lp_watch watch = {stops_later, &left};
  lp_buf found = {0};
  ck_assert_int_eq(render("{% for a in range(99999) %}{% endfor %}", (lp_chat_input){.watch = &watch}, &found),
                   LP_CHAT_LIMIT_TIME);
  ck_assert_ptr_nonnull(strstr(found.data, "line 1, column 4: the rendering was stopped"));
  ck_assert_int_eq(left, -1);
  lp_buf_free(&found);
}

#ifndef __has_feature
#define __has_feature(name) 0
#endif
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !__has_feature(address_sanitizer)
/* The machine's memory ends before the limit: an error, not the end of the process. */
LP_TEST(no_memory) {
  static char line[256];
  long pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (!file) return;
  if (fgets(line, sizeof line, file)) pages = strtol(line, NULL, 10);
  (void)fclose(file);
  const struct rlimit limit = {(rlim_t)pages * 4096 + (48 << 20), RLIM_INFINITY};
  lp_buf found = {0};
  ck_assert_int_eq(setrlimit(RLIMIT_AS, &limit), 0);
  ck_assert_int_eq(render(NS "{% set ns.s = ns.s + ns.s %}" END, (lp_chat_input){0}, &found), LP_CHAT_LIMIT_MEMORY);
  ck_assert_int_eq(render("{% set s = 'a' * 30000000 %}{{ s }}{{ s }}", (lp_chat_input){0}, &(lp_buf){0}),
                   LP_CHAT_LIMIT_MEMORY);
  ck_assert_ptr_nonnull(strstr(found.data, "128 MiB of memory, or more than there is"));
  lp_buf_free(&found);
}
#endif

/* ---- ordinary loops ---------------------------------------------------------------------------------------------- */

enum { MANY = 14000, SIZE = 66 };

/* As the template of DeepSeek joins system messages; lists and captured blocks likewise. */
LP_TEST(loops_that_append_are_linear) {
  static const char source[] =
      "{% set ns = namespace(s='', first=true, l=[], n=0) %}{% for m in messages %}{% if m.role == 'system' %}"
      "{% if ns.first %}{% set ns.s = ns.s + m['content'] %}{% set ns.first = false %}{% else %}"
      "{% set ns.s = ns.s + '\n\n' + m['content'] %}{% endif %}{% set ns.l = ns.l + [m.content | trim] %}"
      "{% set ns.n = ns.n + 1 %}{% endif %}{% endfor %}{{ ns.s }}|{{ ns.l | join('\n\n') }}|{{ ns.n }}";
  static lp_chat_message messages[MANY];
  static char contents[MANY][SIZE + 1];
  lp_buf found = {0}, joined = {0}, wanted = {0};
  for (int i = 0; i < MANY; i++) {
    (void)snprintf(contents[i], sizeof contents[i], "%0*d", SIZE - 2, i);
    messages[i] = (lp_chat_message){"system", contents[i]};
    lp_buf_printf(&joined, "%s%s", i > 0 ? "\n\n" : "", contents[i]);
  }
  lp_buf_printf(&wanted, "%s|%s|%d", joined.data, joined.data, MANY);
  const double begin_ms = lp_suite_cpu_ms();
  const long before_kb = peak_kb();
  (void)render(source, (lp_chat_input){.messages = messages, .count = MANY}, &found);
  ck_assert_msg(lp_streq(lp_buf_text(&found), wanted.data), "%.200s", lp_buf_text(&found));
  ck_assert_double_lt(lp_suite_cpu_ms() - begin_ms, 5000);
  ck_assert_int_lt(peak_kb() - before_kb, 256 << 10);
  lp_buf_free(&found);
  lp_buf_free(&joined);
  lp_buf_free(&wanted);
}

/* A text or list that grew in place is another value than what it grew from. Jinja 3.1.6 gave these texts. */
LP_TEST(growing_changes_no_value) {
  static const char *const cases[][2] = {
      {"{% set a = 'x' ~ 'y' %}{% set b = a ~ '1' %}{% set c = a ~ '2' %}{{ a }} {{ b }} {{ c }}", "xy xy1 xy2"},
      {"{% set a = [1] + [2] %}{% set b = a + [3] %}{% set c = a + [4] %}{{ a }}{{ b }}{{ c }}",
       "[1, 2][1, 2, 3][1, 2, 4]"},
      {"{% set a = '1' ~ '2' %}{% set b = a ~ '3' %}{{ a | int }}{{ a | float }}{{ a is eq '12' }}{{ b }}",
       "1212.0True123"},
      {"{% set a = 'x' ~ 'y' %}{{ a ~ a ~ a }}{{ a[1:] ~ 'z' }}{{ a }}", "xyxyxyyzxy"},
      {"{% set k = 'rol' ~ 'e' %}{% set l = k ~ 's' %}{{ {'role': 1, 'roles': 2}[k] }}"
       "{{ [{'role': 3}] | map(attribute=k) | list }}{{ [2, 1] | map('str' ~ 'ing') | join }}",
       "1[3]21"},
      {"{% set m = 'odd' ~ '' %}{% set n = m ~ 'x' %}{{ [1, 2] | select(m) | list }}{{ 2.5 | round(0, 'floorx'[:5]) }}"
       "{{ {'b': 1} | dictsort(by='keys'[:3]) }}{{ strftime_now('%%x'[:2]) }}",
       "[1]2.0[('b', 1)]%"},
      {"{% set ns = namespace(l=[1]) %}{% for a in [1, 2] %}{% for b in ns.l %}{% set ns.l = ns.l + [b] %}{% endfor %}"
       "{% endfor %}{{ ns.l }}",
       "[1, 1, 1, 1]"},
      {"{% set ns = namespace(a=1) %}{% set m = ns %}{% set ns.a = 2 %}{{ m.a }}{% set ns.b = 3 %}{{ m.b }}", "23"},
      {"{{ 'a,b'.split(',')[0] ~ 'c' }}{{ ' a '.strip() ~ 'b' }}{{ 'abc'[::-1][0] }}{{ 'h\u00e9llo'[1:3] }}"
       "{{ 'h\u00e9llo'[-4] }}{{ (1, 2, 3)[1:] }}",
       "acabc\xC3\xA9l\xC3\xA9(2, 3)"},
  };
  for (size_t i = 0; i < LP_COUNT(cases); i++) {
    lp_buf found = {0};
    (void)render(cases[i][0], (lp_chat_input){0}, &found);
    ck_assert_str_eq(lp_buf_text(&found), cases[i][1]);
    lp_buf_free(&found);
  }
}
