/* Chat templates: they render as in Jinja (golden files of render.py), and unsupported ones are
 * refused. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "runtime/chat/chat.h"
#include "runtime/runtime.h"
#include "tests/suite.h"

static const lp_chat_special specials[] = {{"bos_token", "<s>"}, {"eos_token", "</s>"}};

#define DATA LP_TEST_DIR "/templates/"

enum { MAX_MESSAGES = 8 };

typedef struct {
  bool prompt;
  size_t count;
  lp_chat_message messages[MAX_MESSAGES];
} conversation;

static char *read_file(const char *name, const char *suffix) {
  lp_buf path = {0};
  char *data;
  size_t size;
  lp_buf_printf(&path, "%s%s%s", DATA, name, suffix);
  ck_assert_int_eq(lp_file_read(path.data, &data, &size, NULL), LP_OK);
  lp_buf_free(&path);
  return data;
}

/* \n, \t and \\ in place. */
static void unescape(char *text) {
  char *out = text;
  for (; *text != '\0'; text++) {
    if (*text == '\\') {
      text++;
      *out++ = *text == 'n' ? '\n' : *text == 't' ? '\t' : *text;
    } else {
      *out++ = *text;
    }
  }
  *out = '\0';
}

/* Cuts the next conversation off *rest; messages borrow from it. */
static bool next_conversation(char **rest, conversation *out) {
  char *line = *rest;
  memset(out, 0, sizeof *out);
  if (*line == '\0') return false;
  for (bool head = true; line && *line != '\n' && *line != '\0'; head = false) {
    char *end = strchr(line, '\n');
    if (end) *end = '\0';
    if (head) {
      out->prompt = strcmp(line, "prompt") == 0;
    } else {
      char *content = strstr(line, ": ") + 2;
      content[-2] = '\0';
      unescape(content);
      out->messages[out->count++] = (lp_chat_message){.role = line, .content = content};
    }
    line = end ? end + 1 : line + strlen(line);
  }
  *rest = *line == '\n' ? line + 1 : line;
  return true;
}

static void render(const char *source, const conversation *c, lp_buf *out) {
  lp_diag *diag = lp_diag_create();
  lp_chat_input input = {.file = "t.jinja",
                         .specials = specials,
                         .special_count = LP_COUNT(specials),
                         .messages = c->messages,
                         .count = c->count,
                         .add_generation_prompt = c->prompt};
  if (lp_chat_render(source, strlen(source), &input, out, diag) != LP_OK) {
    ck_assert_uint_eq(lp_diag_error_count(diag), 1);
    const char *text = lp_diag_get(diag, 0)->text, *refusal = strstr(text, "refuses these messages: ");
    lp_buf_printf(out, "error: %s", refusal ? refusal + strlen("refuses these messages: ") : text);
  }
  lp_diag_free(diag);
}

static const char *const templates[] = {"chatml",  "features", "gemma",   "llama2", "llama3",
                                        "mistral", "phi3",     "smollm2", "zephyr"};

LP_LOOP_TEST(golden, 0, LP_COUNT(templates)) {
  char *source = read_file(templates[_i], ".jinja"), *expected = read_file(templates[_i], ".golden");
  char *all = read_file("conversations", ".txt"), *rest = all;
  conversation c;
  lp_buf found = {0};
  for (int i = 0; next_conversation(&rest, &c); i++) {
    lp_buf_printf(&found, "=== %d\n", i);
    render(source, &c, &found);
    lp_buf_puts(&found, "\n");
  }
  ck_assert_str_eq(lp_buf_text(&found), expected);
  lp_buf_free(&found);
  free(all);
  free(source);
  free(expected);
}

/* ---- conversations with tools, against the hashes of conversations.py --------------------------------------- */

static uint32_t fnv(const lp_buf *text) {
  uint32_t hash = 0x811C9DC5u;
  for (size_t i = 0; i < text->size; i++)
    hash = (hash ^ (uint8_t)text->data[i]) * 0x01000193u;
  return hash;
}

static void render_variables(const char *source, const char *json, size_t size, char mark[16]) {
  lp_json_document *document = NULL;
  lp_diag *diag = lp_diag_create();
  lp_buf out = {0};
  ck_assert_int_eq(lp_json_parse("c", json, size, 0, &document, diag), LP_OK);
  lp_json root = lp_json_root("c", document);
  lp_chat_input input = {
      .file = "t", .specials = specials, .special_count = LP_COUNT(specials), .variables = root.value};
  if (lp_chat_render(source, strlen(source), &input, &out, diag) == LP_OK)
    snprintf(mark, 16, "%08x", fnv(&out));
  else
    snprintf(mark, 16, "refused ");
  lp_buf_free(&out);
  lp_json_free(document);
  lp_diag_free(diag);
}

static const char *const families[] = {"deepseek", "features", "gemma3",   "glm4",  "gptoss", "granite3",
                                       "llama31",  "llama4",   "mistral3", "qwen3", "smollm3"};

LP_LOOP_TEST(family, 0, LP_COUNT(families)) {
  lp_buf name = {0};
  lp_buf_printf(&name, "../families/%s", families[_i]);
  char *source = read_file(name.data, ".jinja"), *expected = read_file(name.data, ".expected");
  char *all = read_file("../families/conversations", ".jsonl"), mark[16];
  size_t count = 0;
  for (char *line = all; *line != '\0'; count++) {
    size_t size = strcspn(line, "\n");
    render_variables(source, line, size, mark);
    ck_assert_msg(strncmp(expected + 9 * count, mark, 8) == 0, "%s, conversation %zu: found %s, expected %.8s",
                  families[_i], count, mark, expected + 9 * count);
    line += size + 1;
  }
  ck_assert_uint_eq(count, 50);
  lp_buf_free(&name);
  free(source);
  free(expected);
  free(all);
}

/* ---- by hand ----------------------------------------------------------------------------------------------------- */

static const struct {
  const char *source, *expected;
} refusals[] = {
    {"a\n {% include 'f' %}", "line 2, column 5: the statement 'include' is not supported"},
    {"{% call f() %}{% endcall %}", "'call' needs a macro, found "},
    {"{% macro f() %}{% endmacro %}{% call f() %}{% endcall %}", "the macro 'f' does not call its caller"},
    {"{% call 1 %}{% endcall %}", "'call' without a call"},
    {"{% raw %}{% endraw", "'raw' lacks its 'endraw'"},
    {"{% with a %}{% endwith %}", "expected ="},
    {"{{ 'a' | truncate(2) }}", "the filter 'truncate' of a text"},
    {"{{ [1] | slice(0) }}", "the filter 'slice' of a list"},
    {"{{ [1] | slice(2001) }}", "the filter 'slice' of a list"},
    {"{{ [1] | items }}", "the filter 'items' of a list"},
    {"{{ 1.5 | round(-1) }}", "the filter 'round' of"},
    {"{% for a, b in [[1]] %}{% endfor %}", "1 items for 2 names"},
    {"{% for a in messages recursive %}{% endfor %}", "'recursive' loops"},
    {"{% for a in messages %}", "'for' lacks its 'endfor'"},
    {"{% macro f() %}", "'macro' lacks its 'endmacro'"},
    {"{% if 1 %}{% endfor %}", "'if' lacks its 'endif'"},
    {"{% endif %}", "'endif' without its beginning"},
    {"{{ 1.5x }}", "a number cannot end in a letter"},
    {"{{ a ? }}", "unexpected character '?'"},
    {"{{ 'a }}", "the string is not closed"},
    {"{# a", "the comment is not closed"},
    {"{{ 1", "the tag is not closed"},
    {"{{ 1 2 }}", "expected the end of the tag, found '2'"},
    {"{{ {'a' 1} }}", "expected :, found '1'"},
    {"{{ messages | groupby }}", "the filter 'groupby' of a list"},
    {"{{ messages | map }}", "the filter 'map' of a list"},
    {"{{ 'a' is sameas }}", "the test 'sameas'"},
    {"{{ strftime_now() }}", "'strftime_now' takes a format"},
    {"{{ lipsum() }}", "the function 'lipsum'"},
    {"{{ range(1000000000) }}", "the range is too long"},
    {"{{ 'a'.encode() }}", "the method 'encode' of a text"},
    {"{{ missing.member }}", "an undefined value has no member 'member'"},
    {"{{ missing.strip() }}", "an undefined value has no member 'strip'"},
    {"{{ 'a' + 1 }}", "'+' of a text and a number"},
    {"{{ 1 // 0 }}", "division by zero"},
    {"{{ 1 / 0 }}", "division by zero"},
    {"{{ 9223372036854775807 + 1 }}", "the number is too large"},
    {"{{ 99999999999999999999 }}", "the number is too large"},
    {"{{ 'ab' * 99999999 }}", "the template takes more than 128 MiB of memory"},
    {"{{ '\xEF\xAC\x81' | upper }}", "'upper' does not support all letters of this text"},
    {"{{ '\xCE\xA3' | lower }}", "'lower' does not support all letters of this text"},
    {"{{ messages | map(attribute='role') | length }}", "the filter 'length' of an iterator"},
    {"{{ messages | select | tojson }}", "the filter 'tojson' of an iterator"},
    {"{{ messages | reverse }}", "an iterator cannot be printed"},
    {"{{ messages[0].items }}", "a function cannot be printed"},
    {"{{ [1, 'a'] | sort }}", "the filter 'sort' of a list"},
    {"{{ {'a': 1} | dictsort(by='size') }}", "the filter 'dictsort' of a list"},
    {"{% macro f(a) %}{% endmacro %}{{ f(1, 2) }}", "too many arguments of the macro 'f'"},
    {"{% macro f(a) %}{{ varargs }}{% endmacro %}{{ f(1) }}", "'varargs' of macros is not supported"},
    {"{{ '{:>5}'.format('a') }}", "the method 'format' of a text"},
    {"{{ '{} {}'.format('a') }}", "the method 'format' of a text"},
    {"{{ '{{'[:1].format('a') }}", "the method 'format' of a text"},
    {"{{ 'a}'.format('a') }}", "the method 'format' of a text"},
    {"{{ 'a' | center(10001) }}", "the filter 'center'"},
    {"{{ 7 is divisibleby 0 }}", "the test 'divisibleby'"},
    {"{{ 7 is divisibleby 'a' }}", "the test 'divisibleby'"},
    {"{{ 'a' is divisibleby 2 }}", "the test 'divisibleby'"},
    {"{{ 7 is longer(2) }}", "the test 'longer'"},
    {"{{ 1 | tojson(indent='a') }}", "the filter 'tojson' of a number"},
    {"{{ 1 | tojson(separators=',') }}", "the filter 'tojson' of a number"},
    {"{{ 1 | tojson(sort_keys=true) }}", "the filter 'tojson' of a number"},
    {"{{ '%5d' % 1 }}", "this format is not supported"},
    {"{{ '%s' % ('a', 'b') }}", "the format has too many values"},
    {"{{ dict([('a', 1)]) }}", "'dict' of a list is not supported"},
    {"{{ dict({}, {}) }}", "'dict' takes one mapping"},
    {"{{ namespace({}) }}", "'namespace' takes keyword arguments only"},
    {"{{ messages[::0] }}", "a slice's step is zero"},
    {"{% for a in 7 %}{% endfor %}", "a loop over a number"},
    {"{% for a in messages %}{{ loop.cycle }}{% endfor %}", "'loop.cycle' is not supported"},
    {"{{ namespace() | tojson }}", "the filter 'tojson' of a namespace"},
    {"{{ 10 ** 19 }}", "the number is too large"},
    {"{% macro f(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}", "nested too deeply"},
};

static const struct {
  const char *source, *expected;
} renderings[] = {
    /* hits do not overlap; an affix may be one of several */
    {"{{ 'abcabcab'.count('ab') }} {{ 'aaaaa'.count('aa') }} {{ 'abc'.count('x') }} {{ 'abc'.count('abc') }}",
     "3 2 0 1"},
    {"{{ 'abc'.startswith(['x', 'ab']) }} {{ 'abc'.startswith(['x', 'b']) }} {{ 'abc'.endswith(('bc', 'x')) }} "
     "{{ 'abc'.endswith(('b', 'x')) }} {{ 'ab'.startswith('abc') }}",
     "True False True False False"},
    {"{{ 7 is divisibleby(-1) }}{{ 8 is divisibleby 3 }}{{ 9 is divisibleby 3 }}", "TrueFalseTrue"},
    {"{{ [1] | tojson(indent=none) }}{{ [1] | tojson(indent=0) }}", "[1][\n1\n]"},
    {"a\n  ", "a\n  "},
    /* long texts and the greatest widths */
    {"{{ ('abc' * 9999999) | length }}{{ 'a' * 0 }}{{ 'a' * -1 }}{{ '' * 9223372036854775807 }}", "29999997"},
    {"{{ ('a' | center(10000)) | length }}", "10000"},
    {"{{\r1\t}}{{ 'a\\nb\\r\\n\\rc\\n'.splitlines() }}{{ ''.splitlines() }}", "1['a', 'b', '', 'c'][]"},
    {"a\n  {% if true %}b{% endif %}\n  {{ 1 }}", "a\nb  1"},
    /* statements that are not reached are no errors */
    {"{% if false %}{% include 'f' %}{{ x | unknown }}{% endif %}a", "a"},
    {"{% macro f(a, b='z') %}[{{ a }}{{ b }}]{% endmacro %}{{ f(1) ~ f(2, b=3) }}", "[1z][23]"},
    {"{% set x = 1 %}{% macro f() %}{{ x }}{{ y }}{% endmacro %}{% for y in [7] %}{% set x = 2 %}{{ f() }}{% endfor %}",
     "1"},
    {"{% for k, v in {'a': 1, 'b': 2}.items() %}{{ k }}={{ v }};{% endfor %}", "a=1;b=2;"},
    {"{% for k, v in {'b': 1, 'a': 2} | dictsort %}{{ k }}{{ v }}{% endfor %}", "a2b1"},
    {"{% for a in [1, 2, 3, 4] if a % 2 == 0 %}{{ loop.index }}{{ a }}{% else %}none{% endfor %}", "1224"},
    {"{% for a in [] %}{% else %}none{% endfor %}", "none"},
    {"{% for a in [1, 2, 3] %}{% if a == 2 %}{% continue %}{% endif %}{{ a }}{% endfor %}", "13"},
    {"{% for a in [1, 2, 3] %}{% if a == 2 %}{% break %}{% endif %}{{ a }}{% endfor %}", "1"},
    {"{% for a in 'h\u00e9' %}{{ loop.previtem }}{{ a }}.{% endfor %}", "h.h\xC3\xA9."},
    {"{% set x | upper %}a{% endset %}{{ x }}{% filter trim %} b {% endfilter %}", "Ab"},
    {"{% set a, b = 1, 2 %}{{ a }}{{ b }}", "12"},
    {"{{ [1, 2, 3, 4][::-1] }}{{ 'abcd'[1:-1] }}{{ 'abcd'[::2] }}{{ [1, 2, 3][-2:] }}", "[4, 3, 2, 1]bcac[2, 3]"},
    {"{{ {'a': [1, 2.5, none, true], 'b': 'x\n'} | tojson }}", "{\"a\": [1, 2.5, null, true], \"b\": \"x\\n\"}"},
    {"{{ {'a': [1], 'b': {}} | tojson(indent=2) }}", "{\n  \"a\": [\n    1\n  ],\n  \"b\": {}\n}"},
    {"{{ '\xC3\xA9\xF0\x9F\x98\x80' | tojson(ensure_ascii=true) }}", "\"\\u00e9\\ud83d\\ude00\""},
    {"{{ messages | selectattr('role', 'equalto', 'user') | map(attribute='content') | join(',') }}", "x"},
    {"{{ messages | rejectattr('role', '==', 'user') | list | length }}", "0"},
    {"{{ ['b', 'a'] | sort | join('+') }}{{ [3, 1] | max }}{{ ['A'] | map('lower') | first }}", "a+b3a"},
    {"{{ 1 < 2 < 3 }}{{ 1 < 2 > 5 }}{{ 7 is divisibleby 7 }}{{ 2 is in [1, 2] }}", "TrueFalseTrueTrue"},
    {"{{ 'a' 'b' }}{{ (1, 'x') }}{{ ('y',) }}{{ [\"it's\"] }}", "ab(1, 'x')('y',)[\"it's\"]"},
    {"{{ 'a,b,c'.rsplit(',', 1) }}{{ ' a  b '.split() }}{{ 'aXb'.split('X')[-1] }}", "['a,b', 'c']['a', 'b']b"},
    {"{{ 1e2 is defined }}", "error"},
    {"{{ 7 / 2 }}{{ 1.0 }}{{ 0.1 + 0.2 }}{{ 100000000000000000.0 }}{{ 0.00001 }}",
     "3.51.00.300000000000000041e+171e-05"},
    {"{{ missing | default('d') }}{{ '' | default('e', true) }}{{ missing | length }}{{ missing.a is defined if "
     "missing }}",
     "de0"},
    {"{{ messages[0].get('name', 'n') }}{{ messages[0].name is not defined }}{{ 'role' in messages[0] }}", "nTrueTrue"},
    {"{{ 'a\\nb' | indent(2) }}{{ '<' | e }}{{ dict(a=1).a }}{{ range(3) | list }}", "a\n  b&lt;1[0, 1, 2]"},
    {"{{ strftime_now('%%') }}", "%"},
    {"{{ {'a': 1, 'b': 2}.get('b') }}{{ {'a': 1}.get('a', 2) }}{{ {'a': 1}.get('b', 3) }}", "213"},
    {"{{ '\303\251\303\251a\303\251b\303\251'.strip('\303\251') }}", "a\303\251b"},
    {"{{ [1] | slice(2000) | list | length }}{{ missing | items | list }}", "2000[]"},
    /* functions are values */
    {"{{ strftime_now is defined and range is callable and raise_exception is defined }}", "True"},
    {"{{ 'items' in {'items': 1} }}{{ {'items': 1}['items'] }}{{ {}.items is defined }}{{ {}.get('items') }}",
     "True1TrueNone"},
    /* generators are true, give each item once and take nothing for an empty list */
    {"{% set g = messages | selectattr('role', 'equalto', 'nobody') %}{{ 'y' if g }}{{ g | list }}", "y[]"},
    {"{% set g = [1, 2, 3] | select %}{{ g | first }}{{ 2 in g }}{{ g | list }}{{ g | list }}", "1True[3][]"},
    {"{{ none | selectattr('a') | list }}{{ 0 | map('upper') | list }}{{ (messages | select)[0] is defined }}",
     "[][]False"},
    {"{{ {'a': 1} | items | list }}{{ [1, 1, 2] | unique | list }}{{ [1, 2] | reverse | list }}",
     "[('a', 1)][1, 2][2, 1]"},
    /* order is without case, unless a template asks for it */
    {"{{ ['b', 'A', 'c', 'B'] | sort }}{{ ['b', 'A'] | sort(case_sensitive=true) }}{{ ['b', 'B', 'A'] | unique | list "
     "}}",
     "['A', 'b', 'B', 'c']['A', 'b']['b', 'A']"},
    {"{{ [{'k': 'b', 'v': 2}, {'k': 'a', 'v': 2}, {'k': 'c', 'v': 1}] | sort(attribute='v,k') | map(attribute='k') | "
     "join }}",
     "cab"},
    {"{{ {'b': 1, 'A': 2} | dictsort }}{{ {'b': 1, 'A': 2} | dictsort(by='value', reverse=true) }}",
     "[('A', 2), ('b', 1)][('A', 2), ('b', 1)]"},
    {"{{ [{'v': 1}, {'v': 2}] | sum(attribute='v') }}{{ ['b', 'A', 'C'] | max }}{{ [(1, 2), (1, 1)] | min }}",
     "3C(1, 1)"},
    {"{{ [[1, 2]] | map(attribute='1') | list }}{{ messages | map(attribute='content.0') | list }}", "[2]['x']"},
    {"{% set a = '<' %}{{ a | safe + a ~ 1 }}{{ a ~ (a | e) }}{{ a | e | e }}{{ (a | safe).strip() + a }}{{ a | safe ~ "
     "a }}",
     "<&lt;1<&lt;&lt;<&lt;<<"},
    /* formats and the case of letters */
    {"{{ '{} {1} {a} {{}}'.format('x', 2, a=none) }}{{ '%s-%d%%' % ('a', 7) }}{{ '%s' | format(1.5) }}",
     "x 2 None {}a-7%1.5"},
    {"{{ 'Gr\xC3\xBC\xC3\x9F' | upper }}{{ '\xC3\x89T\xC3\x89'.lower() }}{{ '\xC3\xA9t\xC3\xA9' | capitalize }}",
     "GR\xC3\x9CSS\xC3\xA9t\xC3\xA9\xC3\x89t\xC3\xA9"},
    {"{{ \"it's (a) b-c\" | title }}{{ \"it's\".title() }}", "It's (A) B-CIt'S"},
    {"{{ ['a\xE2\x80\x8B\xC2\xA0\xC3\xA9'] }}{{ 'a  b c '.split(none, 1) }}{{ 'x' | int(7) }}{{ 2 * 'ab' }}",
     "['a\\u200b\\xa0\xC3\xA9']['a', 'b c ']7abab"},
    /* Jinja 3.1.6 gave these texts */
    {"a{% raw %}\n {{ x }} {% if %} {% endraw %}\nb{% raw -%}  {# y #} {%- endraw -%} z",
     "a\n {{ x }} {% if %} b{# y #}z"},
    {"{% set a = 5 %}{% with a = 1, b = a %}{{ a }}{{ b }}{% set c = 3 %}{% endwith %}{{ a }}{{ c }}", "155"},
    {"{% macro f(x) %}<{% for i in x %}{{ caller(i, loop.index) }}{% endfor %}>{% endmacro %}{% for m in [7] %}{% "
     "call(a, n=0) f(['p', 'q']) %}{{ m }}{{ a }}{{ n }};{% endcall %}{% endfor %}",
     "<7p1;7q2;>"},
    {"{% set z = 1 %}{% macro f() %}{% set z = 2 %}{{ z }}{{ caller() }}{{ caller is defined }}{% endmacro %}{% call "
     "f() %}{{ z }}{% set z = 3 %}{% endcall %}{{ z }}",
     "21True1"},
    {"{{ [1, 2, 3] | batch(2) | list }}{{ [1, 2, 3] | batch(2, 'f') | list }}{{ range(7) | slice(3, 'x') | list }}{{ "
     "[1] | slice(2) | list }}",
     "[[1, 2], [3]][[1, 2], [3, 'f']][[0, 1, 2], [3, 4, 'x'], [5, 6, 'x']][[1], []]"},
    {"{{ [{'k': 'b'}, {'k': 'A'}, {'k': 'B'}] | groupby('k') }}{{ [{'k': 1}] | groupby(attribute='k') | "
     "map(attribute='grouper') | list }}",
     "[('A', [{'k': 'A'}]), ('b', [{'k': 'b'}, {'k': 'B'}])][1]"},
    {"{{ 2.675 | round(2) }} {{ 0.5 | round }} {{ 2.5 | round }} {{ 42 | round }} {{ 42 | round(0, 'ceil') }} {{ 42.55 "
     "| round(1, 'floor') }} {{ -3.5 | abs }}",
     "2.67 0.0 2.0 42 42.0 42.5 3.5"},
    {"{{ 'abc' | center(6) }}|{{ 'h\303\251\303\251' | center(8) }}|{{ 'foo bar baz qux' | truncate(9) }}|{{ 'foo bar "
     "baz qux' | truncate(9, true) }}|{{ 'foo bar' | truncate(3) }}",
     " abc  |  h\303\251\303\251   |foo...|foo ba...|foo bar"},
    {"{{ 'foo bar, baz-qux a_b 3 \346\227\245\346\234\254 \303\251' | wordcount }}{{ 'a b/c?d=\303\251' | urlencode "
     "}}{{ '<' | e | forceescape }}{{ ('<' | e) is escaped }}",
     "8a%20b/c%3Fd%3D%C3%A9&amp;lt;True"},
    {"{{ messages[0] | attr('role') is defined }}{% for m in [1, 2, 3] %}{{ loop | attr('index') }}{{ loop.cycle('a', "
     "'b') }}{% endfor %}{% for a in 1, 2 %}{{ a }}{% endfor %}",
     "False1a2b3a12"},
    {"{{ 2 ** 10 }} {{ 2 ** -1 }} {{ 2.0 ** 3 }} {{ -2 ** 2 }} {{ 2 ** 3 ** 2 }} {{ 2 * 3 ** 2 }} {{ 4 ** 0.5 }}",
     "1024 0.5 8.0 4 64 18 2.0"},
    {"{{ dict({'a': 1, 'b': 1}, b=2) }}{{ {'a': 1}.copy() }}", "{'a': 1, 'b': 2}{'a': 1}"},
};

LP_LOOP_TEST(rendered_as_jinja_does, 0, LP_COUNT(renderings)) {
  conversation c = {.count = 1, .messages = {{.role = "user", .content = "x"}}};
  lp_buf found = {0};
  render(renderings[_i].source, &c, &found);
  if (lp_streq(renderings[_i].expected, "error"))
    ck_assert_ptr_eq(strstr(lp_buf_text(&found), "error: chat template"), found.data);
  else
    ck_assert_str_eq(lp_buf_text(&found), renderings[_i].expected);
  lp_buf_free(&found);
}

LP_LOOP_TEST(refused_with_its_place, 0, LP_COUNT(refusals)) {
  conversation c = {.count = 1, .messages = {{.role = "user", .content = "x"}}};
  lp_buf found = {0};
  render(refusals[_i].source, &c, &found);
  ck_assert_msg(found.data && strstr(found.data, "error: chat template, line") == found.data, "%s",
                lp_buf_text(&found));
  ck_assert_msg(strstr(found.data, refusals[_i].expected) != NULL, "found '%s', expected '%s'", found.data,
                refusals[_i].expected);
  lp_buf_free(&found);
}

/* As Python's str.islower and str.isupper: letters of one case, and at least one of them. */
LP_TEST(cases_of_letters) {
  static const struct {
    const char *text, *lower, *upper;
  } cases[] = {{"ab1", "True", "False"}, {"AZ-", "False", "True"}, {"aZ", "False", "False"}, {"Az", "False", "False"},
               {"z", "True", "False"},   {"A", "False", "True"},   {"12", "False", "False"}, {"", "False", "False"}};
  const conversation nothing = {0};
  for (size_t i = 0; i < LP_COUNT(cases); i++) {
    lp_buf source = {0}, found = {0}, wanted = {0};
    lp_buf_printf(&source, "{{ '%s' is lower }} {{ '%s' is upper }}", cases[i].text, cases[i].text);
    lp_buf_printf(&wanted, "%s %s", cases[i].lower, cases[i].upper);
    render(source.data, &nothing, &found);
    ck_assert_str_eq(lp_buf_text(&found), wanted.data);
    lp_buf_free(&source);
    lp_buf_free(&found);
    lp_buf_free(&wanted);
  }
}

LP_TEST(endless_templates_end) {
  conversation c = {.count = 2, .messages = {{.role = "user", .content = "x"}, {.role = "user", .content = "y"}}};
  lp_buf source = {0}, found = {0};
  for (int i = 0; i < 40; i++)
    lp_buf_puts(&source, "{% for a in messages %}");
  for (int i = 0; i < 40; i++)
    lp_buf_puts(&source, "{% endfor %}");
  render(source.data, &c, &found);
  ck_assert_msg(strstr(lp_buf_text(&found), "more than 128 MiB of memory") != NULL, "%.200s", lp_buf_text(&found));
  lp_buf_clear(&source);
  lp_buf_clear(&found);
  for (int i = 0; i < 100000; i++)
    lp_buf_puts(&source, i == 0 ? "{{ 'a'" : "|trim");
  lp_buf_puts(&source, "}}");
  render(source.data, &c, &found);
  ck_assert_ptr_nonnull(strstr(found.data, "nested too deeply"));
  lp_buf_free(&source);
  lp_buf_free(&found);
}
