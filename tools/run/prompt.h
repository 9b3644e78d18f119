/* The prompt of `llmpart run`. */
#ifndef LP_TOOLS_RUN_PROMPT_H
#define LP_TOOLS_RUN_PROMPT_H

#include "runtime/runtime.h"

typedef struct {
  const char *text, *chat, *system, *tokens; /* NULL: not given; system only with chat */
  int64_t batch;                             /* the prompt so many times */
  bool control_tokens;                       /* special tokens in text and chat are tokens */
  const char *file;                          /* the path of the bundle, for diagnostics */
} lp_prompt_flags;

typedef struct {
  lp_tokens ids; /* [batch][length]; release with lp_vec_free */
  int64_t batch, length;
} lp_run_prompt;

/* How many of text, chat and tokens are given. */
int lp_prompts_given(const lp_prompt_flags *flags);
/* Without a prompt of its own a resumed run takes that of its session; `saved` NULL: none is resumed. LP_USAGE: the
 * flags contradict each other. `ids` are released also after a failure. */
LP_MUST_USE lp_status lp_prompt_read(const lp_prompt_flags *flags, const lp_saved_session *saved,
                                     const lp_bundle *bundle, lp_run_prompt *out, lp_diag *diag);

#endif
