/* What requests ask for, and what is wrong with those that are refused. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/serve/request.h"
#include "tests/suite.h"

static const lp_serve_config config = {.max_tokens = 64};
static lp_completion request;
static lp_diag *diag;

static void setup(void) {
  diag = lp_diag_create();
}
static void teardown(void) {
  lp_completion_free(&request);
  lp_diag_free(diag);
}

LP_CASE(.setup = setup, .teardown = teardown);

static lp_status take(bool chat, const char *body) {
  return lp_completion_read(&config, chat, body, strlen(body), &request, diag);
}

#define TEXT(more) "{\"model\":\"m\",\"prompt\":\"a\"," more "}"
#define CHAT(more) "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]," more "}"
#define TOOL "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\"}}]"

static const struct {
  bool chat;
  const char *body, *why;
} wrong[] = {
    {0, "[]", "the body must be a JSON object"},
    {0, "{\"model\":\"m\",\n\"prompt\":}", "line 2, column"},
    {0, "{\"prompt\":\"a\"}", "'model' is missing: edge, cloud or auto"},
    {0, "{\"model\":\"m\"}", "'prompt' must be text that is not empty"},
    {0, "{\"model\":\"m\",\"prompt\":\"\"}", "'prompt' must be text that is not empty"},
    {0, "{\"model\":\"m\",\"prompt\":[]}", "'prompt' must be text that is not empty"},
    {0, "{\"model\":\"m\",\"prompt\":[\"a\",7]}", "'prompt' must be text that is not empty"},
    {0, "{\"model\":\"m\",\"prompt\":[\"a\",\"\"]}", "'prompt' must be text that is not empty"},
    {0, "{\"model\":\"m\",\"prompt\":[\"a\",[1,-1]]}", "'prompt' must be text that is not empty"},
    {0, "{\"model\":\"m\",\"prompt\":[1,\"a\"]}", "'prompt' must be text that is not empty"},
    {0, "{\"model\":\"m\",\"prompt\":[\"1\",\"2\",\"3\",\"4\",\"5\",\"6\",\"7\",\"8\",\"9\"],\"n\":16}",
     "9 prompts with 'n' 16 are 144 answers, at most 128 are given"},
    {0, "{\"model\":\"m\",\"prompt\":[1,-1]}", "'prompt' must be text that is not empty"},
    {0, "{\"model\":\"m\",\"prompt\":[1,2147483648]}", "'prompt' must be text that is not empty"},
    {0, "{\"model\":\"m\",\"prompt\":[1,2.5]}", "'prompt' must be text that is not empty"},
    {0, TEXT("\"max_tokens\":0"), "'max_tokens' must be a number from 1 to"},
    {0, TEXT("\"max_tokens\":1e10"), "'max_tokens' must be a number from 1 to"},
    {0, TEXT("\"max_tokens\":1.5"), "'max_tokens' must be a whole number from 1 to"},
    {0, TEXT("\"max_tokens\":\"4\""), "'max_tokens' must be a number from 1 to"},
    {0, TEXT("\"max_completion_tokens\":0"), "'max_completion_tokens' must be a number from 1 to"},
    {0, TEXT("\"n\":17"), "'n' must be a number from 1 to 16"},
    {0, TEXT("\"temperature\":2.1"), "'temperature' must be a number from 0 to 2"},
    {0, TEXT("\"temperature\":-0.1"), "'temperature' must be a number from 0 to 2"},
    {0, TEXT("\"top_p\":-0.1"), "'top_p' must be a number from 0 to 1"},
    {0, TEXT("\"top_p\":1.1"), "'top_p' must be a number from 0 to 1"},
    {0, TEXT("\"top_k\":-2"), "'top_k' must be a number from -1"},
    {0, TEXT("\"top_k\":1.5"), "'top_k' must be a whole number"},
    {0, TEXT("\"seed\":0.5"), "'seed' must be a whole number"},
    {0, TEXT("\"seed\":18446744073709560000"), "'seed' must be a number from"},
    {0, TEXT("\"stream_options\":5"), "'stream_options' must be an object"},
    {0, TEXT("\"min_p\":2"), "'min_p' must be a number from 0 to 1"},
    {0, TEXT("\"repetition_penalty\":0"), "'repetition_penalty' must be a number from 0.01 to 100"},
    {0, TEXT("\"presence_penalty\":3"), "'presence_penalty' must be a number from -2 to 2"},
    {0, TEXT("\"frequency_penalty\":-3"), "'frequency_penalty' must be a number from -2 to 2"},
    {0, TEXT("\"logit_bias\":[]"), "'logit_bias' must be an object"},
    {0, TEXT("\"logit_bias\":{\"\":1}"), "'logit_bias' must have token numbers"},
    {0, TEXT("\"logit_bias\":{\"1a\":1}"), "'logit_bias' must have token numbers"},
    {0, TEXT("\"logit_bias\":{\"-1\":1}"), "'logit_bias' must have token numbers"},
    {0, TEXT("\"logit_bias\":{\"2147483648\":1}"), "'logit_bias' must have token numbers"},
    {0, TEXT("\"logit_bias\":{\"1\":101}"), "'logit_bias' must have token numbers"},
    {0, TEXT("\"logprobs\":true"), "'logprobs' must be a number from 0 to"},
    {0, TEXT("\"top_logprobs\":2"), "'top_logprobs' belongs to chats"},
    {1, CHAT("\"logprobs\":2"), "'logprobs' must be true or false"},
    {1, CHAT("\"top_logprobs\":2"), "'top_logprobs' requires 'logprobs' to be true"},
    {0, TEXT("\"stop\":\"\""), "'stop' must be text, or a list of texts, none of them empty"},
    {0, TEXT("\"stop\":[\"a\",7]"), "'stop' must be text, or a list of texts, none of them empty"},
    {0, TEXT("\"stop\":[\"\"]"), "'stop' must be text, or a list of texts, none of them empty"},
    {0, TEXT("\"stop\":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]"), "'stop' has 17 texts, at most 16 are taken"},
    {0, TEXT("\"stream\":1"), "'stream' must be true or false"},
    {0, TEXT("\"machines\":1"), "'machines' must be true or false"},
    {0, TEXT("\"local_only\":1"), "'local_only' must be true or false"},
    {0, TEXT("\"keywords\":[\"k\"]"), "'keywords' must be text"},
    {0, TEXT("\"messages\":[]"), "'messages' belongs to chats"},
    {1, CHAT("\"prompt\":\"a\""), "'prompt' belongs to completions"},
    {0, TEXT("\"budget_usd\":-1"), "'budget_usd' must be a number from 0"},
    {0, TEXT("\"response_format\":{\"type\":\"xml\"}"), "'response_format' must have the type text, json_object or"},
    {0, TEXT("\"response_format\":{\"type\":\"json_schema\"}"), "'response_format' must have 'json_schema' with an"},
    {0, TEXT(TOOL), "'tools' belongs to chats"},
    {1, CHAT("\"tools\":{\"a\":1}"), "'tools' must be a list"},
    {1, CHAT("\"tools\":[{\"type\":\"function\"}]"), "'tools[0]' must have the type function, and 'function' with"},
    {1, CHAT("\"tools\":[{\"type\":\"x\",\"function\":{\"name\":\"f\"}}]"), "'tools[0]' must have the type function"},
    {1, CHAT("\"tool_choice\":\"required\""), "'tool_choice' requires 'tools'"},
    {1, CHAT("\"tools\":[],\"tool_choice\":\"required\""), "'tool_choice' requires 'tools'"},
    {1, CHAT(TOOL ",\"tool_choice\":\"some\""), "'tool_choice' must be none, auto, required, or name"},
    {1, CHAT(TOOL ",\"tool_choice\":{\"function\":{\"name\":\"g\"}}"), "'tool_choice' must be none, auto, required"},
    {1, CHAT(TOOL ",\"response_format\":{\"type\":\"json_object\"}"), "'response_format' with 'tools' requires"},
    {1, "{\"model\":\"m\",\"messages\":[]}", "'messages' must be a list of at least one message"},
    {1, "{\"model\":\"m\",\"messages\":[[7]]}", "'messages[0]' must have 'role' and 'content'"},
    {1, "{\"model\":\"m\",\"messages\":[{\"role\":\"a\",\"tool_calls\":[[7]]}]}", "'messages[0].tool_calls' must be"},
    {1, "{\"model\":\"m\",\"messages\":[{\"role\":\"a\",\"tool_calls\":{\"a\":1}}]}",
     "'messages[0].tool_calls' must be"},
    {1, "{\"model\":\"m\",\"messages\":[{\"role\":\"a\",\"tool_calls\":[{\"function\":[7]}]}]}",
     "'messages[0].tool_calls' must be"},
    {1, "{\"model\":\"m\",\"messages\":{}}", "'messages' must be a list of at least one message"},
    {1, "{\"model\":\"m\",\"messages\":[{\"role\":\"user\"}]}", "'messages[0]' must have 'role' and 'content'"},
    {1, "{\"model\":\"m\",\"messages\":[{\"content\":\"a\"}]}", "'messages[0]' must have 'role' and 'content'"},
    {1,
     "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\"},"
     "{\"type\":\"image_url\",\"text\":\"a\"}]}]}",
     "'messages[0].content[1]' has the type 'image_url', and only text is supported"},
    {1, "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\"}]}]}",
     "'messages[0]' must have 'role' and 'content'"},
    {1, "{\"model\":\"m\",\"messages\":[{\"role\":\"a\",\"content\":\"a\",\"function_call\":{\"name\":\"f\"}}]}",
     "'messages[0].function_call' is not supported"},
    /* members of other servers, with another value than their usual one */
    {0, TEXT("\"echo\":true"), "'echo' is not supported"},
    {0, TEXT("\"suffix\":\"a\""), "'suffix' is not supported"},
    {0, TEXT("\"best_of\":2"), "'best_of' is not supported"},
    {0, TEXT("\"num_beams\":2"), "'num_beams' is not supported"},
    {0, TEXT("\"typical_p\":0.5"), "'typical_p' is not supported"},
    {0, TEXT("\"length_penalty\":0"), "'length_penalty' is not supported"},
    {0, TEXT("\"repeat_penalty\":1.1"), "'repeat_penalty' is not supported"},
    {0, TEXT("\"modalities\":[\"text\",\"audio\"]"), "'modalities' is not supported"},
    {0, TEXT("\"modalities\":[\"audio\"]"), "'modalities' is not supported"},
    {0, TEXT("\"reasoning_effort\":\"low\""), "'reasoning_effort' is not supported"},
    {0, TEXT("\"verbosity\":\"low\""), "'verbosity' is not supported"},
    {0, TEXT("\"chat_template_kwargs\":{\"a\":1}"), "'chat_template_kwargs' belongs to chats"},
    {1, CHAT("\"chat_template_kwargs\":[]"), "'chat_template_kwargs' must be an object"},
    {1, CHAT("\"chat_template_kwargs\":{\"tools\":null}"), "'chat_template_kwargs.tools' is not supported"},
    {1, "{\"model\":\"m\",\"messages\":[{\"role\":\"assistant\",\"content\":\"a\",\"prefix\":true}]}",
     "'messages[0].prefix' is not supported"},
    {1, CHAT("\"enable_thinking\":false"), "'enable_thinking' is not supported"},
    {1, CHAT("\"skip_special_tokens\":false"), "'skip_special_tokens' is not supported"},
    {1, CHAT("\"add_generation_prompt\":false"), "'add_generation_prompt' is not supported"},
    {1, CHAT("\"do_sample\":false"), "'do_sample' is not supported"},
    {1, CHAT("\"no_such_member\":{}"), "'no_such_member' is not supported"},
    {0, TEXT("\"min_tokens\":1"), "'min_tokens' is not supported"},
    {0, TEXT("\"mirostat\":1"), "'mirostat' is not supported"},
    {0, TEXT("\"dry_multiplier\":1"), "'dry_multiplier' is not supported"},
    {0, TEXT("\"xtc_probability\":1"), "'xtc_probability' is not supported"},
    {0, TEXT("\"bad_words\":[\"a\"]"), "'bad_words' is not supported"},
};

LP_LOOP_TEST(refused, 0, (int)LP_COUNT(wrong)) {
  ck_assert_int_ne(take(wrong[_i].chat, wrong[_i].body), LP_OK);
  ck_assert_uint_eq(lp_diag_count(diag), 1);
  const char *why = lp_diag_get(diag, 0)->text;
  ck_assert_msg(lp_has_prefix(why, wrong[_i].why), "%s", why);
}

/* More tokens than the server gives are cut, with a note. */
LP_TEST(the_limit_of_tokens) {
  ck_assert_int_eq(take(false, TEXT("\"max_tokens\":64")), LP_OK);
  ck_assert_int_eq(request.max_tokens, 64);
  ck_assert_str_eq(request.note, "");
  lp_completion_free(&request);
  ck_assert_int_eq(take(false, TEXT("\"max_tokens\":65")), LP_OK);
  ck_assert_int_eq(request.max_tokens, 64);
  ck_assert_str_eq(request.note, "'max_tokens' 65 is cut to 64, the limit of this server");
  lp_completion_free(&request);
  ck_assert_int_eq(take(false, TEXT("\"max_completion_tokens\":2147483647")), LP_OK);
  ck_assert_int_eq(request.max_tokens, 64);
  ck_assert_str_eq(request.note, "'max_completion_tokens' 2147483647 is cut to 64, the limit of this server");
}

/* A server with one place asks it; among several the client chooses. */
LP_TEST(requests_without_a_model) {
  static const char *const bodies[] = {"{\"prompt\":\"a\"}", "{\"model\":null,\"prompt\":\"a\"}",
                                       "{\"model\":\"\",\"prompt\":\"a\"}"};
  const lp_serve_config one = {.max_tokens = 64, .edge.bundle = "b"};
  const lp_serve_config two = {.max_tokens = 64, .edge.bundle = "b", .url = "u"};
  for (size_t i = 0; i < LP_COUNT(bodies); i++) {
    ck_assert_int_eq(lp_completion_read(&one, false, bodies[i], strlen(bodies[i]), &request, diag), LP_OK);
    ck_assert_str_eq(request.model, "auto");
    lp_completion_free(&request);
  }
  for (size_t i = 0; i < 2; i++) {
    ck_assert_int_ne(lp_completion_read(&two, false, bodies[i], strlen(bodies[i]), &request, diag), LP_OK);
    lp_completion_free(&request);
  }
  ck_assert_int_ne(lp_completion_read(&one, false, "{\"model\":7,\"prompt\":\"a\"}", 24, &request, diag), LP_OK);
}

/* Members of other servers with the value that means their absence. */
LP_TEST(usual_values_are_taken) {
  ck_assert_int_eq(take(false, TEXT("\"echo\":false,\"suffix\":null,\"best_of\":1,\"num_beams\":1,\"typical_p\":1.0,"
                                    "\"length_penalty\":1,\"min_tokens\":0,\"mirostat\":0,\"dry_multiplier\":0,"
                                    "\"xtc_probability\":0.0,\"bad_words\":[],\"guided_json\":{},\"tools\":[],"
                                    "\"modalities\":[\"text\"],\"reasoning_effort\":\"none\",\"repeat_penalty\":1,"
                                    "\"tool_choice\":\"auto\",\"skip_special_tokens\":true,\"unknown\":null,"
                                    "\"user\":\"u\",\"metadata\":{\"a\":\"b\"},\"store\":true")),
                   LP_OK);
  ck_assert_ptr_null(request.only_engine);
  ck_assert_int_eq(request.tools, LP_TOOLS_NONE);
}

LP_TEST(defaults) {
  ck_assert_int_eq(take(false, "{\"model\":\"m\",\"prompt\":\"a\"}"), LP_OK);
  ck_assert_str_eq(request.prompt, "a");
  ck_assert_int_eq(request.max_tokens, 64);
  ck_assert_int_eq(request.choices, 1);
  ck_assert(isnan(request.sampling.temperature) && isnan(request.sampling.top_p));
  ck_assert_int_eq(request.sampling.top_k, -1);
  ck_assert_int_eq(request.decoding.top_logprobs, -1);
  ck_assert_double_eq(request.decoding.repetition_penalty, 1);
  ck_assert(!request.stream && !request.stream_usage && !request.machines && !request.local_only);
  ck_assert(isinf(request.budget_usd));
  ck_assert_int_eq(request.format, LP_FORMAT_TEXT);
  ck_assert_ptr_null(request.only_engine);
  ck_assert_str_eq(request.keywords, "text, short prompt");
}

LP_TEST(seeds) {
  static const struct {
    const char *member;
    int64_t seed;
  } cases[] = {{TEXT("\"seed\":9223372036854775807,\"top_p\":0"), INT64_MAX},
               {TEXT("\"seed\":-9223372036854775808,\"top_p\":0.5"), INT64_MIN},
               {TEXT("\"seed\":9007199254740993"), INT64_C(9007199254740993)},
               {TEXT("\"seed\":5.0"), 5},
               {TEXT("\"seed\":9223372036854775808"), INT64_MIN},
               {TEXT("\"seed\":18446744073709551615"), -1}};
  for (size_t i = 0; i < LP_COUNT(cases); i++) {
    ck_assert_int_eq(take(false, cases[i].member), LP_OK);
    ck_assert_int_eq((int64_t)request.sampling.seed, cases[i].seed);
    if (i < 2) ck_assert_double_eq(request.sampling.top_p, i == 0 ? 1e-6 : 0.5);
    lp_completion_free(&request);
  }
}

LP_TEST(values_at_their_ends) {
  ck_assert_int_eq(
      take(false, TEXT("\"max_tokens\":1,\"n\":16,\"temperature\":2,\"top_p\":1,\"top_k\":-1,\"seed\":-1,\"min_p\":1,"
                       "\"repetition_penalty\":100,\"presence_penalty\":-2,\"frequency_penalty\":2,\"logprobs\":0,"
                       "\"logit_bias\":{\"0\":-100,\"2147483647\":100},\"stop\":\"x\",\"stream\":true,"
                       "\"stream_options\":{\"include_usage\":true},\"machines\":true,\"budget_usd\":0,"
                       "\"local_only\":true,\"keywords\":\"k\"")),
      LP_OK);
  ck_assert_int_eq(request.max_tokens, 1);
  ck_assert_int_eq(request.choices, 16);
  ck_assert_double_eq(request.sampling.temperature, 2);
  ck_assert_double_eq(request.sampling.top_p, 1);
  ck_assert_int_eq(request.sampling.top_k, 0); /* off */
  ck_assert_uint_eq(request.sampling.seed, UINT64_MAX);
  ck_assert_double_eq(request.decoding.min_p, 1);
  ck_assert_double_eq(request.decoding.repetition_penalty, 100);
  ck_assert_double_eq(request.decoding.presence_penalty, -2);
  ck_assert_double_eq(request.decoding.frequency_penalty, 2);
  ck_assert_int_eq(request.decoding.top_logprobs, 0);
  ck_assert_uint_eq(request.decoding.bias_count, 2);
  ck_assert_int_eq(request.bias[0].token, 0);
  ck_assert(isinf(request.bias[0].amount) && request.bias[0].amount < 0); /* banned */
  ck_assert_int_eq(request.bias[1].token, INT32_MAX);
  ck_assert_double_eq(request.bias[1].amount, 100);
  ck_assert_uint_eq(request.stop_count, 1);
  ck_assert_str_eq(request.stop[0], "x");
  ck_assert(request.stream && request.stream_usage && request.machines && request.local_only);
  ck_assert_double_eq(request.budget_usd, 0);
  ck_assert_str_eq(request.keywords, "k");
}

LP_TEST(what_a_template_is_given) {
  ck_assert_int_eq(take(true, CHAT("\"chat_template_kwargs\":{}")), LP_OK);
  ck_assert(!request.has_more && !request.template_variables);
  lp_completion_free(&request);
  ck_assert_int_eq(take(true, CHAT("\"chat_template_kwargs\":{\"enable_thinking\":false}")), LP_OK);
  ck_assert(request.template_variables && !request.has_more);
  lp_completion_free(&request);
  ck_assert_int_eq(take(true, "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"a\","
                              "\"name\":\"n\",\"prefix\":false}]}"),
                   LP_OK);
  ck_assert(request.has_more);
}

LP_TEST(prompts_of_tokens) {
  static const char *const bodies[] = {"{\"model\":\"m\",\"prompt\":[0,2147483647]}",
                                       "{\"model\":\"m\",\"prompt\":[[0,2147483647]]}"};
  for (size_t i = 0; i < LP_COUNT(bodies); i++) {
    ck_assert_int_eq(take(false, bodies[i]), LP_OK);
    ck_assert_str_eq(request.prompt, "");
    ck_assert_uint_eq(request.prompt_tokens.count, 2);
    ck_assert_int_eq(request.prompt_tokens.data[1], INT32_MAX);
    lp_completion_free(&request);
  }
  ck_assert_int_eq(take(false, "{\"model\":\"m\",\"prompt\":[\"ab\"]}"), LP_OK);
  ck_assert_str_eq(request.prompt, "ab");
}

LP_TEST(several_prompts) {
  ck_assert_int_eq(take(false, "{\"model\":\"m\",\"prompt\":[\"ab\",[7,8],\"c\"],\"n\":2}"), LP_OK);
  ck_assert_uint_eq(request.prompts, 3);
  ck_assert_int_eq(lp_completion_answers(&request), 6);
  ck_assert_str_eq(request.prompt, "ab");
  ck_assert_uint_eq(request.prompt_tokens.count, 0);
  ck_assert_int_eq(lp_completion_take_prompt(&request, 1, diag), LP_OK);
  ck_assert_str_eq(request.prompt, "");
  ck_assert_uint_eq(request.prompt_tokens.count, 2);
  ck_assert_int_eq(request.prompt_tokens.data[1], 8);
  ck_assert_int_eq(lp_completion_take_prompt(&request, 2, diag), LP_OK);
  ck_assert_str_eq(request.prompt, "c");
  ck_assert_uint_eq(request.prompt_tokens.count, 0);
}

LP_TEST(chats) {
  ck_assert_int_eq(
      take(true, "{\"model\":\"m\",\"messages\":[{\"role\":\"system\",\"content\":\"s\"},{\"role\":\"assistant\","
                 "\"tool_calls\":[{\"id\":\"i\"}]},{\"role\":\"tool\",\"content\":[{\"type\":\"text\",\"text\":\"b\"},"
                 "{\"type\":\"text\",\"text\":\"c\"}]}],\"logprobs\":true,\"top_logprobs\":3," TOOL
                 ",\"tool_choice\":{\"type\":\"function\",\"function\":{\"name\":\"f\"}},"
                 "\"parallel_tool_calls\":false}"),
      LP_OK);
  ck_assert_uint_eq(request.count, 3);
  ck_assert_str_eq(request.messages[1].content, "");
  ck_assert_str_eq(request.messages[2].content, "bc");
  ck_assert(request.has_more && request.one_call);
  ck_assert_int_eq(request.decoding.top_logprobs, 3);
  ck_assert_int_eq(request.tools, LP_TOOLS_REQUIRED);
  ck_assert_str_eq(request.tool, "f");
  ck_assert_str_eq(request.only_engine, "logprobs");
  ck_assert_msg(lp_has_prefix(request.keywords, "tools ") && strstr(request.keywords, ", short prompt"), "%s",
                request.keywords);
}

/* The words for the router: the task, and the length of the prompt. */
LP_TEST(descriptions) {
  static const struct {
    size_t size;
    const char *words;
  } sizes[] = {{199, "text, short prompt"}, {200, "text, prompt"}, {1999, "text, prompt"}, {2000, "text, long prompt"}};
  for (size_t i = 0; i < LP_COUNT(sizes); i++) {
    char body[2100];
    (void)snprintf(body, sizeof body, "{\"model\":\"m\",\"prompt\":\"%0*d\"}", (int)sizes[i].size, 0);
    ck_assert_int_eq(take(false, body), LP_OK);
    ck_assert_str_eq(request.keywords, sizes[i].words);
    lp_completion_free(&request);
  }
  ck_assert_int_eq(take(true, "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"```\"}]}"), LP_OK);
  ck_assert_str_eq(request.keywords, "code, short prompt");
  lp_completion_free(&request);
  ck_assert_int_eq(take(true, CHAT("\"response_format\":{\"type\":\"json_object\"}")), LP_OK);
  ck_assert_str_eq(request.keywords, "json, short prompt");
  ck_assert_str_eq(request.only_engine, "response_format");
}

/* The first member that only batched passes support. */
LP_TEST(members_of_the_engine) {
  static const struct {
    const char *body, *member;
  } cases[] = {{TEXT("\"n\":2"), "n"},
               {TEXT("\"min_p\":0.1"), "min_p"},
               {TEXT("\"repetition_penalty\":1.1"), "repetition_penalty"},
               {TEXT("\"presence_penalty\":-0.1"), "presence_penalty"},
               {TEXT("\"frequency_penalty\":0.1"), "frequency_penalty"},
               {TEXT("\"logit_bias\":{\"1\":1}"), "logit_bias"},
               {TEXT("\"logprobs\":0"), "logprobs"}};
  for (size_t i = 0; i < LP_COUNT(cases); i++) {
    ck_assert_int_eq(take(false, cases[i].body), LP_OK);
    ck_assert_str_eq(request.only_engine, cases[i].member);
    lp_completion_free(&request);
  }
}
