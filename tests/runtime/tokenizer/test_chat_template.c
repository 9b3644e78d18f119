/* Chat templates: as Jinja renders them (golden files of tokenizer/render_chat.py), and what is refused. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "runtime/runtime.h"
#include "runtime/tokenizer/chat_template.h"
#include "tests/suite.h"

#define DATA LP_TEST_DIR "/chat/"

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
                         .bos = "<s>",
                         .eos = "</s>",
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

static const struct {
  const char *source, *expected;
} refusals[] = {
    {"a\n {% macro f() %}", "line 2, column 5: the statement 'macro' is not supported"},
    {"{% for a, b in messages %}{% endfor %}", "a loop over several variables"},
    {"{% for a in messages if a %}{% endfor %}", "'if' in a loop's head"},
    {"{% for a in messages %}", "'for' lacks its 'endfor'"},
    {"{% if 1 %}{% endfor %}", "'if' lacks its 'endif'"},
    {"{% endif %}", "'endif' without its beginning"},
    {"{{ {'a': 1} }}", "dictionaries are not supported"},
    {"{{ (1, 2) }}", "tuples are not supported"},
    {"{{ 1.5 }}", "only whole numbers"},
    {"{{ a ? }}", "unexpected character '?'"},
    {"{{ 'a }}", "the string is not closed"},
    {"{# a", "the comment is not closed"},
    {"{{ 1", "the tag is not closed"},
    {"{{ 1 2 }}", "expected the end of the tag, found '2'"},
    {"{{ 1 < 2 < 3 }}", "chained comparisons"},
    {"{{ messages | selectattr('role') }}", "the filter 'selectattr' of a list"},
    {"{{ 'a' is sameas }}", "the test 'sameas'"},
    {"{{ strftime_now('%d') }}", "the function 'strftime_now'"},
    {"{{ 'a'.encode() }}", "the method 'encode' of a text"},
    {"{{ missing.member }}", "an undefined value has no member 'member'"},
    {"{{ 'a' + 1 }}", "'+' of a text and a number"},
    {"{{ messages }}", "a list cannot be printed"},
    {"{{ 1 // 0 }}", "division by zero"},
    {"{{ 9223372036854775807 + 1 }}", "the number is too large"},
    {"{{ 99999999999999999999 }}", "the number is too large"},
    {"{{ '\xC3\xA9' | upper }}", "'upper' is supported for ASCII text only"},
    {"{% set x %}a{% endset %}", "'set' without '='"},
    {"{{ messages[::2] }}", "slices with a step"},
    {"{% for a in 'text' %}{% endfor %}", "a loop over a text"},
    {"{{ loop.cycle }}", "an undefined value has no member 'cycle'"},
    {"{{ 2 ** 3 }}", "the operator '**' is not supported"},
};

LP_LOOP_TEST(refused_with_its_place, 0, LP_COUNT(refusals)) {
  conversation c = {.count = 1, .messages = {{.role = "user", .content = "x"}}};
  lp_buf found = {0};
  render(refusals[_i].source, &c, &found);
  ck_assert_msg(strstr(lp_buf_text(&found), "error: chat template, line") == found.data, "%s", found.data);
  ck_assert_msg(strstr(found.data, refusals[_i].expected) != NULL, "found '%s', expected '%s'", found.data,
                refusals[_i].expected);
  lp_buf_free(&found);
}

LP_TEST(endless_templates_end) {
  conversation c = {.count = 2, .messages = {{.role = "user", .content = "x"}, {.role = "user", .content = "y"}}};
  lp_buf source = {0}, found = {0};
  for (int i = 0; i < 40; i++)
    lp_buf_puts(&source, "{% for a in messages %}");
  for (int i = 0; i < 40; i++)
    lp_buf_puts(&source, "{% endfor %}");
  render(source.data, &c, &found);
  ck_assert_ptr_nonnull(strstr(lp_buf_text(&found), "takes too many steps"));
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
