/* The JSON of answers. */
#include <stdlib.h>
#include <string.h>

#include "runtime/serve/answer.h"
#include "tests/suite.h"

static lp_completion request;
static const lp_answer_head head = {.request = &request, .id = "7", .model = "m", .created = 5};

static void setup(void) {
  request = (lp_completion){.choices = 1, .prompts = 1, .decoding = {.top_logprobs = -1}};
}

LP_CASE(.setup = setup);

static void is(char *found, const char *wanted) {
  ck_assert_str_eq(found, wanted);
  free(found);
}

/* A message that was cut to its room ends within a character. */
LP_TEST(errors_are_utf8) {
  is(lp_answer_error("t", "a\xC3"),
     "{\"error\":{\"message\":\"a\xEF\xBF\xBD\",\"type\":\"t\",\"param\":null,\"code\":null}}");
  is(lp_answer_error("t", "a\xE2\x82"),
     "{\"error\":{\"message\":\"a\xEF\xBF\xBD\",\"type\":\"t\",\"param\":null,\"code\":null}}");
  is(lp_answer_error("t", "\xE2\x82\xAC\""),
     "{\"error\":{\"message\":\"\xE2\x82\xAC\\\"\",\"type\":\"t\",\"param\":null,\"code\":null}}");
}

static const char *const models[LP_ROUTE_COUNT] = {[LP_ROUTE_EDGE] = "mine", [LP_ROUTE_CLOUD] = "mine"};

/* A name is quoted up to 80 bytes: whole characters of 1 to 4 bytes that end there, or before a part of one. */
LP_LOOP_TEST(quoted_names_are_cut_within_a_character, 0, 4) {
  static const char *const characters[] = {"m", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80"};
  const char *one = characters[_i];
  const size_t size = strlen(one);
  for (size_t before = 76; before <= 80; before++) {
    const size_t whole = (80 - before) / size, part = (80 - before) % size;
    lp_buf id = {0}, text = {0}, wanted = {0};
    lp_buf_printf(&wanted, "{\"error\":{\"message\":\"there is no model '");
    for (size_t i = 0; i < before; i++) {
      lp_buf_append(&id, "a", 1);
      lp_buf_append(&wanted, "a", 1);
    }
    for (size_t i = 0; i < 5; i++)
      lp_buf_append(&id, one, size);
    for (size_t i = 0; i < whole; i++)
      lp_buf_append(&wanted, one, size);
    lp_buf_printf(&wanted,
                  "%s': wanted auto, edge, cloud, mine, "
                  "e\",\"type\":\"invalid_request_error\",\"param\":\"model\",\"code\":\"model_not_found\"}}",
                  part > 0 ? "\xEF\xBF\xBD" : "");
    lp_answer_name_models(models, "e", lp_buf_text(&id), &text);
    is(lp_answer_no_model(lp_buf_text(&text)), lp_buf_text(&wanted));
    lp_buf_free(&id);
    lp_buf_free(&text);
    lp_buf_free(&wanted);
  }
}

LP_TEST(prompts_that_are_too_long) {
  is(lp_answer_too_long("messages", "a"), "{\"error\":{\"message\":\"a\",\"type\":\"invalid_request_error\","
                                          "\"param\":\"messages\",\"code\":\"context_length_exceeded\"}}");
}

#define TEXT "{\"id\":\"cmpl-7\",\"object\":\"text_completion\",\"created\":5,\"model\":\"m\",\"choices\":["
#define CHAT(object)                                                                                                   \
  "{\"id\":\"chatcmpl-7\",\"object\":\"chat.completion" object "\",\"created\":5,\"model\":\"m\",\"choices\":["

LP_TEST(whole_texts) {
  lp_whole whole = {0};
  lp_usage usage = {.prompt_tokens = 3, .tokens = 4, .cached_tokens = 2};
  whole.choice[0].finish = LP_FINISH_LENGTH;
  lp_whole_put(&whole, &(lp_piece){.text = "a"});
  lp_whole_put(&whole, &(lp_piece){.text = "b"});
  is(lp_answer_whole(&head, &whole, &usage), TEXT
     "{\"index\":0,\"logprobs\":null,\"finish_reason\":\"length\",\"text\":\"ab\"}],\"usage\":{\"prompt_tokens\":3,"
     "\"completion_tokens\":4,\"total_tokens\":7,\"prompt_tokens_details\":{\"cached_tokens\":2}}}");
  usage.prompt_tokens = -1; /* unknown */
  whole.choice[0].finish = LP_FINISH_FILTER;
  is(lp_answer_whole(&head, &whole, &usage),
     TEXT "{\"index\":0,\"logprobs\":null,\"finish_reason\":\"content_filter\",\"text\":\"ab\"}]}");
  lp_whole_drop(&whole, 0, LP_MOST_ANSWERS);
}

/* Parts of a call with one index are one call; without text the content is null. */
LP_TEST(whole_chats) {
  lp_whole whole = {0};
  lp_usage usage = {.prompt_tokens = 0};
  whole.choice[0].finish = LP_FINISH_TOOLS;
  const lp_tool_call begin = {0, "i", "f", "{\"a\""}, rest = {0, NULL, NULL, ":1}"};
  request.chat = true;
  request.choices = 2;
  lp_whole_put(&whole, &(lp_piece){.text = "", .calls = &begin, .call_count = 1});
  lp_whole_put(&whole, &(lp_piece){.text = "", .calls = &rest, .call_count = 1});
  lp_whole_put(&whole, &(lp_piece){.choice = 1, .text = ""});
  is(lp_answer_whole(&head, &whole, &usage),
     CHAT("") "{\"index\":0,\"logprobs\":null,\"finish_reason\":\"tool_calls\",\"message\":{\"role\":\"assistant\","
              "\"content\":null,\"tool_calls\":[{\"id\":\"i\",\"type\":\"function\",\"function\":{\"name\":\"f\","
              "\"arguments\":\"{\\\"a\\\":1}\"}}]}},{\"index\":1,\"logprobs\":null,\"finish_reason\":\"stop\","
              "\"message\":{"
              "\"role\":\"assistant\",\"content\":\"\"}}],\"usage\":{\"prompt_tokens\":0,\"completion_tokens\":0,"
              "\"total_tokens\":0,\"prompt_tokens_details\":{\"cached_tokens\":0}}}");
  lp_whole_drop(&whole, 0, LP_MOST_ANSWERS);
}

/* The first id of a call counts; parts without one add nothing to it. */
LP_TEST(a_call_has_its_first_id) {
  static const char *const none[] = {NULL, "i", NULL, "k"}, *const first[] = {"i", NULL, "k"};
  lp_whole whole = {0};
  for (size_t i = 0; i < LP_COUNT(none); i++)
    lp_whole_put(&whole, &(lp_piece){.text = "", .calls = &(lp_tool_call){0, none[i], NULL, "x"}, .call_count = 1});
  for (size_t i = 0; i < LP_COUNT(first); i++)
    lp_whole_put(&whole, &(lp_piece){.text = "", .calls = &(lp_tool_call){1, first[i], "f", "y"}, .call_count = 1});
  ck_assert_uint_eq(whole.choice[0].calls.count, 2);
  for (size_t i = 0; i < 2; i++)
    ck_assert_str_eq(lp_buf_text(&whole.choice[0].calls.data[i].id), "i");
  ck_assert_str_eq(lp_buf_text(&whole.choice[0].calls.data[0].arguments), "xxxx");
  ck_assert_str_eq(lp_buf_text(&whole.choice[0].calls.data[1].arguments), "yyy");
  lp_whole_drop(&whole, 0, LP_MOST_ANSWERS);
}

LP_TEST(chunks) {
  const lp_usage known = {.prompt_tokens = 0, .tokens = 1}, unknown = {.prompt_tokens = -1};
  const lp_tool_call rest = {1, NULL, NULL, "x"};
  is(lp_answer_chunk(&head, &(lp_piece){.text = "a", .machine = "d"}, true, 0),
     TEXT "{\"index\":0,\"finish_reason\":null,\"text\":\"a\"}],\"machine\":\"d\"}");
  is(lp_answer_chunk_end(&head, 2, LP_FINISH_STOP), TEXT "{\"index\":2,\"finish_reason\":\"stop\",\"text\":\"\"}]}");
  is(lp_answer_chunk_end(&head, 0, LP_FINISH_ERROR), TEXT "{\"index\":0,\"finish_reason\":\"error\",\"text\":\"\"}]}");
  is(lp_answer_chunk_usage(&head, &unknown), TEXT "],\"usage\":null}");
  is(lp_answer_chunk_usage(&head, &known),
     TEXT "],\"usage\":{\"prompt_tokens\":0,\"completion_tokens\":1,\"total_tokens\":1,\"prompt_tokens_details\":{"
          "\"cached_tokens\":0}}}");
  request.chat = true;
  is(lp_answer_chunk(&head, &(lp_piece){.text = ""}, true, 0),
     CHAT(".chunk") "{\"index\":0,\"finish_reason\":null,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}");
  is(lp_answer_chunk(&head, &(lp_piece){.text = "", .calls = &rest, .call_count = 1}, false, 0),
     CHAT(".chunk") "{\"index\":0,\"finish_reason\":null,\"delta\":{\"tool_calls\":[{\"index\":1,\"function\":{"
                    "\"arguments\":"
                    "\"x\"}}]}}]}");
  is(lp_answer_chunk_end(&head, 0, LP_FINISH_TOOLS),
     CHAT(".chunk") "{\"index\":0,\"finish_reason\":\"tool_calls\",\"delta\":{}}]}");
}

/* A model that two places serve is named once. */
LP_TEST(models) {
#define MODEL(id) "{\"id\":\"" id "\",\"object\":\"model\",\"created\":0,\"owned_by\":\"llmpart\"}"
  const char *const names[LP_ROUTE_COUNT] = {[LP_ROUTE_EDGE] = "m", [LP_ROUTE_CLOUD] = "m"};
  is(lp_answer_models(names, NULL),
     "{\"object\":\"list\",\"data\":[" MODEL("m") "," MODEL("auto") "," MODEL("edge") "," MODEL("cloud") "]}");
}
