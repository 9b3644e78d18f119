/* The prompt of `llmpart run`. */
#pragma once

#include "runtime/runtime.h"

typedef struct {
  const char *text, *chat, *system, *tokens; /* NULL: not given; `system` needs `chat` */
  const char *said;                          /* `chat` where the model has a chat template, else `text` */
  const char *features;                      /* a file, for an encoder that reads no text */
  const char *decoder_tokens;                /* the decoder begins with these, where an encoder reads the prompt */
  int64_t batch;                             /* number of copies of the prompt */
  bool control_tokens;                       /* special tokens in text and chat become tokens */
  const char *file;                          /* the path of the bundle, for diagnostics */
} lp_prompt_flags;

/* Release with lp_run_prompt_free. */
typedef struct {
  lp_tokens ids;           /* [batch][length] */
  LP_VEC(int64_t) lengths; /* [batch] they may differ where an encoder reads the prompt; `length` is the first */
  int64_t batch, length;
} lp_run_prompt;
void lp_run_prompt_free(lp_run_prompt *prompt);
/* "1,2,3;4,5,6": a row for each sequence of the batch. `option` names the text in messages. */
LP_MUST_USE lp_status lp_prompt_read_rows(const char *text, const char *option, lp_run_prompt *out, lp_diag *diag);

/* Makes `said` one of chat and text. */
void lp_prompt_settle(lp_prompt_flags *flags, const lp_bundle *bundle);
/* The number of text, chat, said, tokens and features that are given. */
int lp_prompts_given(const lp_prompt_flags *flags);
/* Reads the prompt. A resumed run without a prompt takes that of its session; `saved` is NULL when no session is
 * resumed. With features the prompt is empty. Returns LP_USAGE when the flags contradict each other. The caller
 * releases `out` also after a failure. */
LP_MUST_USE lp_status lp_prompt_read(const lp_prompt_flags *flags, const lp_saved_session *saved,
                                     const lp_bundle *bundle, lp_run_prompt *out, lp_diag *diag);
