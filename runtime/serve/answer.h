/* Writes the JSON of answers, and collects the pieces of those that are not streamed. The caller releases each result
 * with free(). */
#pragma once

#include "base/json/writer.h"
#include "runtime/serve/place/logprobs.h"

/* The members of an answer that are the same in all of its parts. */
typedef struct {
  const lp_completion *request;
  const char *id, *model;
  int64_t created; /* Unix time */
} lp_answer_head;

typedef struct {
  int64_t index;
  lp_buf id, name, arguments;
} lp_whole_call;

typedef struct {
  lp_buf text;
  lp_logprobs logprobs;
  LP_VEC(lp_whole_call) calls;
  size_t characters; /* of the tokens that were streamed */
  lp_finish finish;
} lp_whole_choice;

typedef struct {
  lp_whole_choice choice[LP_MOST_ANSWERS];
} lp_whole;

void lp_whole_put(lp_whole *whole, const lp_piece *piece);
/* Frees the choices [first, first + count), and leaves them empty. */
void lp_whole_drop(lp_whole *whole, int32_t first, int32_t count);

/* Appends a choice as a message of a chat. */
void lp_answer_put_message(const lp_whole_choice *choice, lp_buf *out);
char *lp_answer_whole(const lp_answer_head *head, const lp_whole *whole, const lp_usage *usage);
/* A chunk of a stream. The first chunk of a chat's choice names the role. `characters`: of the choice's tokens before
 * it. */
char *lp_answer_chunk(const lp_answer_head *head, const lp_piece *piece, bool first, size_t characters);
/* The last chunk of a choice. */
char *lp_answer_chunk_end(const lp_answer_head *head, int32_t choice, lp_finish finish);
/* The chunk after the last one, with the token counts, for clients that request it. */
char *lp_answer_chunk_usage(const lp_answer_head *head, const lp_usage *usage);
const char *lp_finish_name(lp_finish finish); /* in OpenAI's terms */
char *lp_answer_error(const char *type, const char *text);
/* A prompt that exceeds the context of every model that may answer, in OpenAI's terms: clients shorten it, and do not
 * ask again. `param`: the member that is too long. */
char *lp_answer_too_long(const char *param, const char *text);
/* The request names no model of the server, in OpenAI's terms. */
char *lp_answer_no_model(const char *text);
char *lp_answer_status(const char *status); /* {"status":"ok"} */
/* The places and their models; `model[route]` NULL: there is no such place. `embeddings`: the model of embeddings, or
 * NULL. */
char *lp_answer_models(const char *const model[LP_ROUTE_COUNT], const char *embeddings);
/* Tells whether that list has `id`. */
bool lp_answer_has_model(const char *const model[LP_ROUTE_COUNT], const char *embeddings, const char *id);
char *lp_answer_model(const char *id); /* its entry */
/* Appends that there is no model `id`, and the names that there are. */
void lp_answer_name_models(const char *const model[LP_ROUTE_COUNT], const char *embeddings, const char *id,
                           lp_buf *out);
