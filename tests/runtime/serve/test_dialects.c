/* Requests and answers in the words of other APIs: dialects.txt has for each request ("DIALECT JSON") what it becomes
 * or why it is refused ("= TEXT"), and the answers to a request, whole and streamed. LP_WRITE_DIALECTS=FILE writes what
 * was found. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "runtime/serve/dialects/dialect.h"
#include "tests/suite.h"

static const struct {
  const char *name;
  const lp_dialect *dialect;
} dialects[] = {{"responses", &lp_dialect_responses},
                {"messages", &lp_dialect_messages},
                {"count", &lp_dialect_count},
                {"chat", &lp_dialect_chat},
                {"generate", &lp_dialect_generate}};

static const lp_dialect *find(const char *name, size_t size) {
  for (size_t i = 0; i < LP_COUNT(dialects); i++)
    if (strlen(dialects[i].name) == size && strncmp(dialects[i].name, name, size) == 0) return dialects[i].dialect;
  ck_abort_msg("no dialect: %.*s", (int)size, name);
}

static void translate(const lp_dialect *dialect, const lp_json *body, lp_buf *out) {
  lp_translation made = {.body = {0}};
  lp_diag *diag = lp_diag_create();
  if (dialect->translate(body, NULL, &made, diag) == LP_OK)
    lp_buf_printf(out, "%s%s%s%s%s", lp_buf_text(&made.body), made.chat ? " chat" : "", made.counts ? " counts" : "",
                  made.plain ? " plain" : "", made.keeps ? " keeps" : "");
  else
    lp_buf_puts(out, lp_diag_get(diag, 0)->text);
  lp_translation_free(&made);
  lp_diag_free(diag);
}

/* Lines "= TEXT" for each line of a text. */
static void put_lines(const char *text, lp_buf *out) {
  for (size_t length; *text; text += length + (text[length] == '\n')) {
    length = strcspn(text, "\n");
    if (length > 0) lp_buf_printf(out, "= %.*s\n", (int)length, text);
  }
}

static void put(lp_buf *to, const char *text) {
  lp_buf_puts(to, text);
}

/* The answers of a text and a call, of a text that was cut, of one that a stop text ended, and of a refused call; two
 * of them as streams. */
static void answer(const lp_dialect *dialect, const lp_json_document *asked, lp_buf *out) {
  for (int kind = 0; kind < 4; kind++) {
    lp_whole_choice whole = {.finish = kind == 0   ? LP_FINISH_TOOLS
                                       : kind == 1 ? LP_FINISH_LENGTH
                                       : kind == 2 ? LP_FINISH_STOP
                                                   : LP_FINISH_FILTER};
    lp_usage usage = {.prompt_tokens = 7, .cached_tokens = kind == 1 ? 9 : 3, .tokens = 5, .queue_ms = 1};
    lp_whole_call call = {.index = 0};
    if (kind == 2) usage.stopped_by = "END";
    if (kind < 3) put(&whole.text, "Hi");
    put(&call.id, "c1"), put(&call.name, "f"), put(&call.arguments, kind == 0 ? "{\"a\":[1]}" : "broken");
    if (kind != 1) lp_vec_push(&whole.calls, call);
    lp_telling telling = {.head = {.model = "m", .created = 86400},
                          .id = "0123",
                          .asked = asked,
                          .whole = &whole,
                          .usage = &usage,
                          .total_ms = 9,
                          .first_ms = kind == 3 ? 0 : 4};
    lp_buf text = {0};
    dialect->whole(&telling, &text);
    put_lines(lp_buf_text(&text), out);
    lp_buf_clear(&text);
    if (kind == 0) dialect->piece(&telling, "", &text), dialect->piece(&telling, "Hi", &text);
    if (kind == 0 || kind == 3) dialect->end(&telling, &text);
    if (kind == 3) (dialect->fail)(&telling, "lost", &text);
    put_lines(lp_buf_text(&text), out);
    lp_buf_free(&text);
    lp_buf_free(&whole.text);
    lp_vec_free(&whole.calls);
    lp_buf_free(&call.id), lp_buf_free(&call.name), lp_buf_free(&call.arguments);
  }
  static const unsigned statuses[] = {400, 401, 403, 404, 413, 429, 500, 503};
  for (size_t i = 0; i < LP_COUNT(statuses); i++) {
    char *text = dialect->error(statuses[i], "no");
    put_lines(text, out);
    free(text);
  }
}

/* "answers DIALECT JSON": the answers to this request. */
static void run_line(const char *line, size_t size, lp_buf *out) {
  const bool answers = strncmp(line, "answers ", 8) == 0;
  const char *name = line + (answers ? 8 : 0);
  const size_t length = strcspn(name, " ");
  const lp_dialect *dialect = find(name, length);
  const char *json = name + length + 1;
  lp_json_document *document = NULL;
  ck_assert_int_eq(lp_json_parse("dialects.txt", json, size - (size_t)(json - line), 0, &document, NULL), LP_OK);
  lp_buf_printf(out, "%.*s\n", (int)size, line);
  lp_json body = lp_json_root("the request", document);
  if (answers) {
    answer(dialect, document, out);
  } else {
    lp_buf text = {0};
    translate(dialect, &body, &text);
    put_lines(lp_buf_text(&text), out);
    lp_buf_free(&text);
  }
  lp_json_free(document);
}

LP_TEST(requests_and_answers) {
  char *data = NULL;
  size_t size = 0;
  lp_buf found = {0};
  ck_assert_int_eq(lp_file_read(LP_TEST_DIR "/dialects.txt", &data, &size, NULL), LP_OK);
  for (const char *at = data; *at; at += strcspn(at, "\n") + 1)
    if (*at != '=') run_line(at, strcspn(at, "\n"), &found);
  const char *to = getenv("LP_WRITE_DIALECTS");
  if (to) ck_assert_int_eq(lp_file_write(to, found.data, found.size, NULL), LP_OK);
  const char *want = data, *have = lp_buf_text(&found);
  for (int line = 1; *want || *have; line++) {
    const size_t wanted = strcspn(want, "\n"), had = strcspn(have, "\n");
    ck_assert_msg(wanted == had && memcmp(want, have, had) == 0, "line %d: found '%.*s', wanted '%.*s'", line, (int)had,
                  have, (int)wanted, want);
    want += wanted + 1, have += had + 1;
  }
  lp_buf_free(&found);
  free(data);
}

LP_TEST(names_of_ollama) {
  char room[8];
  ck_assert_str_eq(lp_ollama_model("m:latest", room, sizeof room), "m");
  ck_assert_str_eq(lp_ollama_model("m:late", room, sizeof room), "m:late");
  ck_assert_str_eq(lp_ollama_model("1234567890:latest", room, sizeof room), "1234567");
  static const char *const models[LP_ROUTE_COUNT] = {"a", "b", "a"};
  char *tags = lp_ollama_tags(models), *show = lp_ollama_show("a");
  ck_assert(strstr(tags, "\"name\":\"a\"") && strstr(tags, "\"name\":\"b\""));
  ck_assert(!strstr(strstr(tags, "\"name\":\"a\"") + 1, "\"name\":\"a\""));
  ck_assert(strstr(show, "\"general.basename\":\"a\"") && strstr(show, "[\"completion\",\"tools\"]"));
  free(tags);
  free(show);
}
