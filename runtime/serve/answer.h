/* The JSON of answers. Each result is released with free(). */
#ifndef LP_SERVE_ANSWER_H
#define LP_SERVE_ANSWER_H

#include "base/json/writer.h"
#include "runtime/serve/site.h"

/* The layout of all answers: compact, numbers that read back as the same double. */
lp_json_writer lp_answer_begin(lp_buf *out);

char *lp_answer_whole(const lp_completion *request, const char *id, const char *model, const char *text,
                      const lp_usage *usage);
/* A chunk of a stream; `finish` NULL: not the last. The first one of a chat names the role. */
char *lp_answer_chunk(const lp_completion *request, const char *id, const char *model, const char *text, bool first,
                      const char *finish);
/* The chunk after the last one, for clients that asked for it: only the token counts. */
char *lp_answer_chunk_usage(const lp_completion *request, const char *id, const char *model, const lp_usage *usage);
char *lp_answer_error(const char *type, const char *text);
char *lp_answer_status(const char *status); /* {"status":"ok"} */
char *lp_answer_models(const lp_serve_config *config);
/* Why an answer ended, in the API's word; borrowed for ever. */
const char *lp_answer_finish(const lp_usage *usage);

#endif
