/* Finds calls of tools in a model's text, and passes on the rest. */
#include "runtime/serve/tools.h"

#include <sys/random.h>

#include "base/json/writer.h"
#include "runtime/serve/answer.h"

static const char opens[] = "<tool_call>", closes[] = "</tool_call>";

static const char *skip_space(const char *text) {
  return text + strspn(text, " \t\r\n");
}

/* Tells whether the text can still become a call. */
static bool may_call(const char *text) {
  text = skip_space(text);
  size_t size = strlen(text), most = sizeof opens - 1;
  return text[0] == 0 || text[0] == '{' || text[0] == '[' || memcmp(text, opens, size < most ? size : most) == 0;
}

/* ---- reading calls ----------------------------------------------------------------------------------------------- */

typedef struct {
  const lp_completion *request;
  LP_VEC(lp_tool_call) calls; /* texts are owned */
} found_calls;

static void free_calls(found_calls *found) {
  for (size_t i = 0; i < found->calls.count; i++) {
    free((void *)(uintptr_t)found->calls.data[i].id);
    free((void *)(uintptr_t)found->calls.data[i].name);
    free((void *)(uintptr_t)found->calls.data[i].arguments);
  }
  lp_vec_free(&found->calls);
}

static bool is_offered(const lp_completion *request, const char *name) {
  lp_json root = lp_json_root("the request", request->document), tools = lp_json_member(&root, "tools");
  for (size_t i = 0; i < lp_json_count(&tools); i++) {
    lp_json tool = lp_json_item(&tools, i), function = lp_json_member(&tool, "function");
    if (lp_json_equals(LP_MEMBER(&function, "name"), name)) return true;
  }
  return false;
}

/* False: the object calls no function of the request. */
static bool take_call(found_calls *found, const lp_json *object) {
  lp_json arguments = lp_json_member(object, "arguments"), parameters = lp_json_member(object, "parameters");
  const char *name = lp_json_text_or(LP_MEMBER(object, "name"), NULL), *spelled = lp_json_text_or(&arguments, NULL);
  if (!name || !is_offered(found->request, name)) return false;
  if (!arguments.value) arguments = parameters;
  lp_buf text = {0};
  lp_json_writer json = lp_answer_begin(&text);
  if (spelled)
    lp_buf_puts(&text, spelled);
  else if (arguments.value)
    lp_json_put_value(&json, NULL, arguments.value);
  else
    lp_buf_puts(&text, "{}");
  uint64_t number = 0;
  char id[32];
  if (getrandom(&number, sizeof number, 0) < 0) number = found->calls.count;
  (void)snprintf(id, sizeof id, "call_%016" PRIx64, number);
  const lp_tool_call call = {(int64_t)found->calls.count, lp_strdup(id), lp_strdup(name), text.data};
  lp_vec_push(&found->calls, call);
  return true;
}

/* Reads a JSON text of one call or a list of calls. */
static bool take_json(found_calls *found, const char *text, size_t size) {
  lp_json_document *document = NULL;
  if (lp_json_parse("the answer", text, size, LP_JSON_ALLOW_DUPLICATES | LP_JSON_REFUSE_NUL, &document, NULL) != LP_OK)
    return false;
  lp_json root = lp_json_root("the answer", document);
  bool good = lp_json_is(&root, LP_JSON_OBJECT) ? take_call(found, &root) : lp_json_count(&root) > 0;
  for (size_t i = 0; good && lp_json_is(&root, LP_JSON_ARRAY) && i < lp_json_count(&root); i++)
    good = take_call(found, LP_ITEM(&root, i));
  lp_json_free(document);
  return good;
}

/* Reads a text that has calls and nothing else. */
static bool take_text(found_calls *found, const char *text) {
  text = skip_space(text);
  if (!lp_has_prefix(text, opens)) return take_json(found, text, strlen(text));
  while (lp_has_prefix(text, opens)) {
    const char *begin = text + sizeof opens - 1, *end = strstr(begin, closes);
    size_t size = end ? (size_t)(end - begin) : strlen(begin);
    if (!take_json(found, begin, size)) return false;
    text = skip_space(end ? end + sizeof closes - 1 : begin + size);
  }
  return text[0] == 0;
}

/* ---- the sink ---------------------------------------------------------------------------------------------------- */

static bool hand_on(lp_tool_reader *self, int32_t choice, const lp_piece *with) {
  LP_OWNED(lp_buf_free) lp_buf text = self->choice[choice].held;
  self->choice[choice].held = (lp_buf){0};
  lp_piece piece = {.choice = choice, .text = lp_buf_text(&text)};
  if (with) {
    piece.logprobs = with->logprobs;
    piece.logprob_count = with->logprob_count;
    piece.machine = with->machine;
  }
  return self->sink(self->user, &piece);
}

bool lp_tool_reader_put(void *reader, const lp_piece *piece) {
  lp_tool_reader *self = reader;
  lp_buf *held = &self->choice[piece->choice].held;
  if (self->request->tools == LP_TOOLS_NONE || piece->call_count > 0 || self->choice[piece->choice].is_text)
    return self->sink(self->user, piece);
  lp_buf_puts(held, piece->text);
  bool waits = self->request->tools == LP_TOOLS_REQUIRED || may_call(lp_buf_text(held));
  self->choice[piece->choice].is_text = !waits;
  if (!waits) return hand_on(self, piece->choice, piece);
  if (piece->logprob_count == 0) return true;
  const lp_piece only_told = {
      .choice = piece->choice, .text = "", .logprobs = piece->logprobs, .logprob_count = piece->logprob_count};
  return self->sink(self->user, &only_told);
}

static void end_choice(lp_tool_reader *self, int32_t choice) {
  found_calls found = {.request = self->request};
  bool good = take_text(&found, lp_buf_text(&self->choice[choice].held));
  if (good) {
    size_t count = self->request->one_call ? 1 : found.calls.count;
    const lp_piece piece = {.choice = choice, .text = "", .calls = found.calls.data, .call_count = count};
    if (self->usage->finish[choice] == LP_FINISH_STOP) self->usage->finish[choice] = LP_FINISH_TOOLS;
    (void)self->sink(self->user, &piece);
  } else {
    (void)hand_on(self, choice, NULL);
  }
  free_calls(&found);
}

void lp_tool_reader_end(lp_tool_reader *self, bool whole) {
  for (int32_t i = 0; i < LP_MOST_CHOICES; i++) {
    if (whole && self->choice[i].held.size > 0) end_choice(self, i);
    lp_buf_free(&self->choice[i].held);
  }
}
