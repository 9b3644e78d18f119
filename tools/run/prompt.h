/* The prompt of `llmpart run`. */
#ifndef LP_TOOLS_RUN_PROMPT_H
#define LP_TOOLS_RUN_PROMPT_H

#include "runtime/runtime.h"

typedef struct {
  const char *text, *chat, *system, *tokens; /* NULL: not given; `system` needs `chat` */
  int64_t batch;                             /* number of copies of the prompt */
  bool control_tokens;                       /* special tokens in text and chat become tokens */
  const char *file;                          /* the path of the bundle, for diagnostics */
} lp_prompt_flags;

typedef struct {
  lp_tokens ids; /* [batch][length]; release with lp_vec_free */
  int64_t batch, length;
} lp_run_prompt;

/* The number of text, chat and tokens that are given. */
int lp_prompts_given(const lp_prompt_flags *flags);
/* Reads the prompt. A resumed run without a prompt takes that of its session; `saved` is NULL when no session is
 * resumed. Returns LP_USAGE when the flags contradict each other. The caller releases `ids` also after a failure. */
LP_MUST_USE lp_status lp_prompt_read(const lp_prompt_flags *flags, const lp_saved_session *saved,
                                     const lp_bundle *bundle, lp_run_prompt *out, lp_diag *diag);

#endif
