/* What a rendering may take. All its memory comes from an arena with a limit, in which nothing is freed, and all its
 * work is charged in steps; so bytes that are copied count as bytes of memory. A limit that is broken stays broken: it
 * replaces the text of the next report, which the walk through the tree makes at the node at the latest. */
#pragma once

#include "runtime/chat/chat.h"

typedef struct {
  size_t steps, next_poll;
  int depth;
  lp_chat_limit broken;
} lp_chat_budget;

typedef struct {
  const lp_chat_input *input;
  lp_arena *arena;
  lp_chat_budget *budget;
  lp_diag *diag;
  const char *source; /* newlines normalized */
  size_t size;
} lp_chat;

void lp_chat_begin(lp_chat *chat); /* makes the budget of chat->arena */
/* Adds `steps` to those that the rendering has taken. False: a limit is broken, and the caller returns. */
bool lp_chat_charge(const lp_chat *chat, size_t steps);
bool lp_chat_charge_bytes(const lp_chat *chat, size_t bytes); /* that are read at the speed of memory */
bool lp_chat_charge_text(const lp_chat *chat, size_t bytes);  /* that are read character by character */
bool lp_chat_charge_names(const lp_chat *chat, size_t count); /* that are compared */
/* Around each call that may recurse: a level of depth, and a step. False: a limit is broken. */
bool lp_chat_enter(const lp_chat *chat);
/* Reports a broken limit at byte `at` of the source. */
LP_MUST_USE lp_status lp_chat_leave(const lp_chat *chat, size_t at);
LP_MUST_USE lp_status lp_chat_check(const lp_chat *chat, size_t at);
/* NULL: a limit is broken. The memory is zeroed. */
void *lp_chat_alloc(const lp_chat *chat, size_t count, size_t size);
#define LP_CHAT_NEW(chat, type, count) ((type *)lp_chat_alloc((chat), (size_t)(count), sizeof(type)))
const char *lp_chat_strndup(const lp_chat *chat, const char *text, size_t size); /* "": a limit is broken */

typedef struct {
  const void *data;
  size_t size;
} lp_chat_bytes;
/* a and then b, with a NUL after them; NULL: a limit is broken. Where a came from here and nothing was appended to it
 * since, b is written after it in place, so that a loop of appends takes linear time. *grows: a came from here; it
 * becomes true. */
const void *lp_chat_append(const lp_chat *chat, lp_chat_bytes a, bool *grows, lp_chat_bytes b);

/* Reports an error at byte `at` of the source, or the limit that is broken. */
LP_MUST_USE lp_status lp_chat_error(const lp_chat *chat, size_t at, const char *format, ...) LP_PRINTF(3, 4);
