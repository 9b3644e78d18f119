/* The files that a tokenizer has beside its tokenizer.json. A bundle holds copies under the same names. */
#pragma once

/* In the order in which they are read. */
enum { LP_TOKENIZER_COMPANIONS = 4 };
static const char *const lp_tokenizer_companions[LP_TOKENIZER_COMPANIONS] = {
    "tokenizer_config.json", "special_tokens_map.json", "chat_template.jinja",
    "additional_chat_templates/tool_use.jinja"};
