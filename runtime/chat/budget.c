/* What a rendering may take - memory, steps and depth - and the reports of chat templates. */
#include "runtime/chat/budget.h"

#include "base/utf8.h"

/* A step is a node, an item, or some bytes that are read; an ordinary one takes up to 100 ns. Half of the memory still
 * renders 30 MB of messages; half of the steps, 50,000 messages. The depth needs 600 KB of the thread's stack. */
enum { MOST_MIB = 128, MOST_STEPS = 20 * 1000 * 1000, MOST_DEPTH = 400, STEPS_PER_POLL = 1 << 14 };
enum { BYTES_PER_STEP = 512, CHARACTERS_PER_STEP = 4, NAMES_PER_STEP = 16 };

/* ---- limits ------------------------------------------------------------------------------------------------------ */

void lp_chat_begin(lp_chat *chat) {
  chat->budget = LP_NEW(chat->arena, lp_chat_budget);
  lp_arena_limit(chat->arena, (size_t)MOST_MIB << 20);
}

/* Tells whether nothing is broken yet. */
static bool is_within(const lp_chat *chat) {
  if (chat->budget->broken == LP_CHAT_NO_LIMIT && lp_arena_is_full(chat->arena))
    chat->budget->broken = LP_CHAT_LIMIT_MEMORY;
  return chat->budget->broken == LP_CHAT_NO_LIMIT;
}

bool lp_chat_charge(const lp_chat *chat, size_t steps) {
  lp_chat_budget *budget = chat->budget;
  const lp_watch *watch = chat->input->watch;
  budget->steps += steps < MOST_STEPS ? steps : MOST_STEPS + 1;
  if (budget->steps < budget->next_poll) return true;
  if (!is_within(chat)) return false;
  if (budget->steps > MOST_STEPS)
    budget->broken = LP_CHAT_LIMIT_STEPS;
  else if (watch && watch->is_stopped(watch->user))
    budget->broken = LP_CHAT_LIMIT_TIME;
  else
    budget->next_poll = budget->steps + STEPS_PER_POLL; /* once a limit is broken, each call comes here */
  return budget->broken == LP_CHAT_NO_LIMIT;
}

bool lp_chat_charge_bytes(const lp_chat *chat, size_t bytes) {
  return lp_chat_charge(chat, 1 + bytes / BYTES_PER_STEP);
}

bool lp_chat_charge_text(const lp_chat *chat, size_t bytes) {
  return lp_chat_charge(chat, 1 + bytes / CHARACTERS_PER_STEP);
}

bool lp_chat_charge_names(const lp_chat *chat, size_t count) {
  return lp_chat_charge(chat, count / NAMES_PER_STEP);
}

bool lp_chat_enter(const lp_chat *chat) {
  if (++chat->budget->depth <= MOST_DEPTH) return lp_chat_charge(chat, 1);
  chat->budget->next_poll = 0;
  if (is_within(chat)) chat->budget->broken = LP_CHAT_LIMIT_DEPTH;
  return false;
}

lp_status lp_chat_leave(const lp_chat *chat, size_t at) {
  chat->budget->depth--;
  return is_within(chat) ? LP_OK : lp_chat_error(chat, at, "broken");
}

lp_status lp_chat_check(const lp_chat *chat, size_t at) {
  return is_within(chat) ? LP_OK : lp_chat_error(chat, at, "broken");
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

void *lp_chat_alloc(const lp_chat *chat, size_t count, size_t size) {
  size_t total = 0;
  if (!lp_size_mul(count, size, &total)) total = SIZE_MAX;
  void *data = lp_arena_try(chat->arena, total);
  return lp_chat_charge_bytes(chat, total) ? data : NULL;
}

const char *lp_chat_strndup(const lp_chat *chat, const char *text, size_t size) {
  char *copy = lp_chat_alloc(chat, size + 1, 1);
  if (copy && size) memcpy(copy, text, size);
  return copy ? copy : "";
}

/* What lies before bytes that may grow in place; its size keeps them aligned. */
typedef struct {
  size_t used, capacity;
} growth;

const void *lp_chat_append(const lp_chat *chat, lp_chat_bytes a, bool *grows, lp_chat_bytes b) {
  growth *head = *grows ? (growth *)(uintptr_t)a.data - 1 : NULL;
  size_t size = a.size + b.size; /* neither exceeds what the machine has */
  if (!head || head->used != a.size || head->capacity < size) {
    size_t capacity = *grows ? 2 * size : size + 64;
    head = lp_chat_alloc(chat, sizeof *head + capacity + 1, 1);
    if (!head) return NULL;
    head->capacity = capacity;
    if (a.data) memcpy(head + 1, a.data, a.size);
  }
  lp_chat_charge_bytes(chat, b.size);
  if (b.data) memcpy((char *)(head + 1) + a.size, b.data, b.size);
  ((char *)(head + 1))[size] = '\0';
  head->used = size;
  *grows = true;
  return head + 1;
}

/* ---- reports ----------------------------------------------------------------------------------------------------- */

static const char *limit_text(lp_chat_limit broken, char text[128]) {
  switch (broken) {
  case LP_CHAT_LIMIT_MEMORY:
    (void)snprintf(text, 128, "the template takes more than %d MiB of memory, or more than there is", MOST_MIB);
    return text;
  case LP_CHAT_LIMIT_STEPS:
    (void)snprintf(text, 128, "the template takes too many steps, more than %d", MOST_STEPS);
    return text;
  case LP_CHAT_LIMIT_DEPTH:
    (void)snprintf(text, 128, "values, calls or bodies are nested too deeply, more than %d", MOST_DEPTH);
    return text;
  case LP_CHAT_LIMIT_TIME:
    return "the rendering was stopped: the client left, the request's time has passed, or the server ends";
  case LP_CHAT_NO_LIMIT:
    break;
  }
  return NULL;
}

lp_status lp_chat_error(const lp_chat *chat, size_t at, const char *format, ...) {
  LP_OWNED(lp_buf_free) lp_buf text = {0};
  char message[512], limit[128];
  va_list args;
  int line = 1, column = 1;
  for (size_t i = 0; i < at && i < chat->size; i++) {
    column = chat->source[i] == '\n' ? 1 : column + 1;
    line += chat->source[i] == '\n';
  }
  va_start(args, format);
  vsnprintf(message, sizeof message, format, args);
  va_end(args);
  /* what else seems wrong may follow from the broken limit */
  const char *broken = is_within(chat) ? NULL : limit_text(chat->budget->broken, limit);
  lp_utf8_repair(broken ? broken : message, strlen(broken ? broken : message), &text); /* cut inside a character */
  return lp_error(chat->diag, LP_LOC_FILE(chat->input->file), "chat template, line %d, column %d: %s", line, column,
                  lp_buf_text(&text));
}
