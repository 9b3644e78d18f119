/* Calls of tools in a model's text, which may come in any pieces. */
#include <stdlib.h>
#include <string.h>

#include "runtime/serve/tools.h"
#include "tests/suite.h"

#define TOOLS                                                                                                          \
  "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\"}},"                                                  \
  "{\"type\":\"function\",\"function\":{\"name\":\"g\"}}]"
#define CHAT(more) "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]," TOOLS more "}"

static lp_completion request;
static lp_usage usage;
static lp_tool_reader reader;
static lp_buf seen; /* the texts, and of each call "[INDEX NAME ARGUMENTS]" */
static size_t told, ids;

static bool take(void *user, const lp_piece *piece) {
  (void)user;
  lp_buf_puts(&seen, piece->text);
  LP_FOR_EACH(const lp_tool_call, call, piece->calls, piece->call_count) {
    lp_buf_printf(&seen, "[%" PRId64 " %s %s]", call->index, call->name, call->arguments);
    ids += strlen(call->id) == strlen("call_0123456789abcdef");
  }
  told += piece->logprob_count;
  return strstr(lp_buf_text(&seen), "leave") == NULL;
}

static void begin(const char *body) {
  static const lp_serve_config config = {.max_tokens = 64};
  ck_assert_int_eq(lp_completion_read(&config, true, body, strlen(body), &request, NULL), LP_OK);
  reader = (lp_tool_reader){.request = &request, .sink = take, .usage = &usage};
  usage.finish[0] = usage.finish[1] = LP_FINISH_STOP;
}

static void teardown(void) {
  lp_completion_free(&request);
  lp_buf_free(&seen);
}

LP_CASE(.teardown = teardown);

static bool put(const char *text) {
  return lp_tool_reader_put(&reader, &(lp_piece){.text = text});
}

/* What the client has after the text, in pieces of `size` bytes. */
static const char *read_in(const char *text, size_t size) {
  char piece[512];
  for (size_t at = 0; at < strlen(text); at += size) {
    (void)snprintf(piece, sizeof piece, "%.*s", (int)size, text + at);
    ck_assert(put(piece));
  }
  lp_tool_reader_end(&reader, true);
  return lp_buf_text(&seen);
}

static const struct {
  const char *text, *seen;
  bool calls;
} texts[] = {
    {"{\"name\":\"f\",\"arguments\":{\"a\":1}}", "[0 f {\"a\":1}]", true},
    {" \n{\"name\":\"g\",\"parameters\":{\"a\":[2]}} ", "[0 g {\"a\":[2]}]", true},
    {"{\"name\":\"f\",\"arguments\":\"{\\\"a\\\":1}\"}", "[0 f {\"a\":1}]", true},
    {"{\"name\":\"f\"}", "[0 f {}]", true},
    {"[{\"name\":\"f\"},{\"name\":\"g\"}]", "[0 f {}][1 g {}]", true},
    {"<tool_call>{\"name\":\"f\"}</tool_call>\n<tool_call>{\"name\":\"g\"}</tool_call>", "[0 f {}][1 g {}]", true},
    {"<tool_call>{\"name\":\"f\"}", "[0 f {}]", true},
    /* no calls */
    {"plain", "plain", false},
    {"{\"name\":\"h\"}", "{\"name\":\"h\"}", false},
    {"{\"name\":7}", "{\"name\":7}", false},
    {"[]", "[]", false},
    {"[{\"name\":\"f\"},7]", "[{\"name\":\"f\"},7]", false},
    {"{\"name\":\"f\"", "{\"name\":\"f\"", false},
    {"<tool_call>{\"name\":\"f\"}</tool_call> and text", "<tool_call>{\"name\":\"f\"}</tool_call> and text", false},
    {"<tool_calls>", "<tool_calls>", false},
    {"<tool", "<tool", false},
};

LP_LOOP_TEST(what_texts_become, 0, (int)LP_COUNT(texts)) {
  for (size_t size = 1; size <= 64; size *= 4) {
    begin(CHAT(""));
    lp_buf_clear(&seen);
    ids = 0;
    ck_assert_str_eq(read_in(texts[_i].text, size), texts[_i].seen);
    ck_assert_int_eq(usage.finish[0], texts[_i].calls ? LP_FINISH_TOOLS : LP_FINISH_STOP);
    ck_assert_int_eq(ids > 0, texts[_i].calls);
    lp_completion_free(&request);
  }
}

/* Text that can be no call goes on at once, and what follows it too. */
LP_TEST(text_does_not_wait) {
  begin(CHAT(""));
  ck_assert(put(" <tool"));
  ck_assert_str_eq(lp_buf_text(&seen), "");
  ck_assert(put("box"));
  ck_assert_str_eq(lp_buf_text(&seen), " <toolbox");
  ck_assert(put("{\"name\":\"f\"}"));
  ck_assert_str_eq(lp_buf_text(&seen), " <toolbox{\"name\":\"f\"}");
  ck_assert(!put(" leave"));
  lp_tool_reader_end(&reader, true);
  ck_assert_str_eq(lp_buf_text(&seen), " <toolbox{\"name\":\"f\"} leave");
}

/* The first piece of text says whether the client wants more. */
LP_TEST(a_client_that_leaves) {
  begin(CHAT(""));
  ck_assert(!put("leave"));
}

LP_TEST(a_required_call_waits) {
  begin(CHAT(",\"tool_choice\":\"required\""));
  ck_assert(put("text"));
  ck_assert_str_eq(lp_buf_text(&seen), "");
  lp_tool_reader_end(&reader, true);
  ck_assert_str_eq(lp_buf_text(&seen), "text");
}

LP_TEST(without_tools_all_is_text) {
  begin(CHAT(",\"tool_choice\":\"none\""));
  ck_assert(put("{\"name\":\"f\"}"));
  ck_assert_str_eq(lp_buf_text(&seen), "{\"name\":\"f\"}");
}

/* A place that finds calls by itself. */
LP_TEST(calls_go_on_at_once) {
  begin(CHAT(""));
  const lp_tool_call call = {2, "call_0123456789abcdef", "f", "{}"};
  ck_assert(lp_tool_reader_put(&reader, &(lp_piece){.text = "", .calls = &call, .call_count = 1}));
  ck_assert_str_eq(lp_buf_text(&seen), "[2 f {}]");
}

/* The first call of several; an answer that its length ended has that reason. */
LP_TEST(one_call_only) {
  begin(CHAT(",\"parallel_tool_calls\":false"));
  usage.finish[0] = LP_FINISH_LENGTH;
  ck_assert_str_eq(read_in("[{\"name\":\"g\"},{\"name\":\"f\"}]", 64), "[0 g {}]");
  ck_assert_int_eq(usage.finish[0], LP_FINISH_LENGTH);
}

/* Tokens are told when they come, even if their text waits; an answer that failed has no calls. */
LP_TEST(tokens_are_told_at_once) {
  begin(CHAT(""));
  const lp_answer_logprob token = {0};
  ck_assert(
      lp_tool_reader_put(&reader, &(lp_piece){.text = "{\"name\":\"f\"}", .logprobs = &token, .logprob_count = 1}));
  ck_assert_uint_eq(told, 1);
  ck_assert_str_eq(lp_buf_text(&seen), "");
  lp_tool_reader_end(&reader, false);
  ck_assert_str_eq(lp_buf_text(&seen), "");
}

LP_TEST(choices_are_apart) {
  begin(CHAT(",\"n\":2"));
  ck_assert(lp_tool_reader_put(&reader, &(lp_piece){.choice = 1, .text = "text"}));
  ck_assert(lp_tool_reader_put(&reader, &(lp_piece){.choice = 0, .text = "{\"name\":"}));
  ck_assert(lp_tool_reader_put(&reader, &(lp_piece){.choice = 1, .text = " {"}));
  ck_assert(lp_tool_reader_put(&reader, &(lp_piece){.choice = 0, .text = "\"f\"}"}));
  lp_tool_reader_end(&reader, true);
  ck_assert_str_eq(lp_buf_text(&seen), "text {[0 f {}]");
  ck_assert_int_eq(usage.finish[1], LP_FINISH_STOP);
}
