/* APIs other than OpenAI's chat: each is a translation of its requests into those of /v1/chat/completions, and of an
 * answer into its own words. Knows no HTTP and no place. */
#pragma once

#include "runtime/serve/answer.h"

enum { LP_DIALECT_ID = 2 * LP_SPAN_ID };

/* A translated request. Release with lp_translation_free. */
typedef struct {
  lp_buf body;    /* of /v1/chat/completions, or of /v1/completions */
  bool chat;      /* which of them */
  bool counts;    /* only the prompt's tokens are wanted */
  bool plain;     /* a model without a chat template continues the last message */
  bool keeps;     /* `history` is to be kept for a later request */
  lp_buf history; /* the messages, as items of a JSON array without its brackets */
} lp_translation;

/* An answer while it is told. */
typedef struct {
  lp_answer_head head;
  char id[LP_DIALECT_ID + 1];    /* random */
  const lp_json_document *asked; /* the body in the dialect */
  const lp_whole_choice *whole;  /* so far */
  const lp_usage *usage;         /* of the whole answer; of a stream before its end as far as it is known */
  double total_ms, first_ms;     /* since the request; first: to the first piece */
  int64_t events;                /* of the stream */
  bool has_begun, has_text;
} lp_telling;

typedef struct {
  /* Writes the request in other words. `kept`: finds the history of an earlier answer (kept.h), NULL after a failure
   * that it has reported. The diagnostic's text is for the client. */
  lp_status (*translate)(const lp_json *body, const char *earlier, lp_translation *out, lp_diag *diag);
  void (*whole)(const lp_telling *telling, lp_buf *out);
  /* Events of a stream: for a piece of text, for its end, and for its end by a failure. */
  void (*piece)(lp_telling *telling, const char *text, lp_buf *out);
  void (*end)(lp_telling *telling, lp_buf *out);
  void (*fail)(lp_telling *telling, const char *why, lp_buf *out);
  char *(*error)(unsigned status, const char *text); /* the body of an answer with this HTTP status */
  const char *stream_type;                           /* of the content of a stream */
} lp_dialect;

extern const lp_dialect lp_dialect_responses; /* OpenAI's POST /v1/responses */
extern const lp_dialect lp_dialect_messages;  /* Anthropic's POST /v1/messages */
extern const lp_dialect lp_dialect_count;     /* Anthropic's POST /v1/messages/count_tokens */
extern const lp_dialect lp_dialect_chat;      /* Ollama's POST /api/chat */
extern const lp_dialect lp_dialect_generate;  /* Ollama's POST /api/generate */
/* Answers of Ollama's GET /api/tags and POST /api/show, for the models that lp_answer_models lists. */
char *lp_ollama_tags(const char *const model[LP_ROUTE_COUNT]);
char *lp_ollama_show(const char *model);
/* The name without ":latest", which Ollama's clients append, in `room`. */
const char *lp_ollama_model(const char *name, char *room, size_t size);

void lp_translation_free(lp_translation *translation);

/* ---- for the dialects (dialect.c) -------------------------------------------------------------------------------- */

/* LP_USAGE: a member is none of the words " a b c ", and not null. */
LP_MUST_USE lp_status lp_dialect_check(const lp_json *of, const char *words, lp_diag *diag);
/* Writes a member under another name, if the body has it. */
void lp_dialect_copy(lp_json_writer *to, const char *as, const lp_json *body, const char *key);
/* Writes a content: a text, or a list of parts with texts of the types " a b ". */
LP_MUST_USE lp_status lp_dialect_content(lp_json_writer *to, const char *as, const lp_json *content, const char *types,
                                         lp_diag *diag);
void lp_dialect_message(lp_json_writer *to, const char *role, const char *text);
/* A call within "tool_calls". `arguments`: a text of JSON, or a value. */
void lp_dialect_call(lp_json_writer *to, const char *id, const char *name, const lp_json *arguments);
/* A function within "tools". */
void lp_dialect_function(lp_json_writer *to, const lp_json *tool, const char *schema);
/* The "tool_choice" of the one function that `choice` names. */
void lp_dialect_choose(lp_json_writer *to, const lp_json *choice);
/* Writes a text of JSON as a value; {} if it is none. */
void lp_dialect_value(lp_json_writer *to, const char *key, const char *text);
/* "event: TYPE\ndata: " and an object that the caller goes on with; lp_dialect_event_end closes both. */
lp_json_writer lp_dialect_event(lp_buf *out, const char *type);
void lp_dialect_event_end(lp_json_writer *json);
