/* Writes the JSON of answers. The caller releases each result with free(). */
#ifndef LP_SERVE_ANSWER_H
#define LP_SERVE_ANSWER_H

#include "base/json/writer.h"
#include "runtime/serve/site.h"

/* The layout of all answers: compact, with numbers that parse to the same double. */
lp_json_writer lp_answer_begin(lp_buf *out);

char *lp_answer_whole(const lp_completion *request, const char *id, const char *model, const char *text,
                      const lp_usage *usage);
/* A chunk of a stream; `finish` NULL: not the last one. The first chunk of a chat names the role. */
char *lp_answer_chunk(const lp_completion *request, const char *id, const char *model, const char *text, bool first,
                      const char *finish);
/* The chunk after the last one, with the token counts, for clients that request it. */
char *lp_answer_chunk_usage(const lp_completion *request, const char *id, const char *model, const lp_usage *usage);
char *lp_answer_error(const char *type, const char *text);
char *lp_answer_status(const char *status); /* {"status":"ok"} */
char *lp_answer_models(const lp_serve_config *config);
/* The reason why an answer ended, in the API's terms; static text. */
const char *lp_answer_finish(const lp_usage *usage);

#endif
