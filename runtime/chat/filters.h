/* Functions, filters, tests and methods of chat templates. */
#pragma once

#include "runtime/chat/value.h"

/* ---- functions (function.c) -------------------------------------------------------------------------------------- */

extern const char *const lp_chat_functions[]; /* the names of Jinja's and transformers' functions, then NULL */
/* Calls the function of that name. */
LP_MUST_USE lp_status lp_chat_call(const lp_chat *chat, const lp_chat_node *node, const char *name,
                                   const lp_chat_args *args, lp_chat_value *out);

/* ---- filters, tests and methods ---------------------------------------------------------------------------------- */

/* Calls a method of a text; *known is false when there is no method of that name (text.c). */
LP_MUST_USE lp_status lp_chat_text_method(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *object,
                                          const char *name, const lp_chat_args *args, bool *known, lp_chat_value *out);
/* Jinja's filter `title`, which begins words elsewhere than Python's method. */
LP_MUST_USE lp_status lp_chat_title(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *value,
                                    lp_chat_value *out);
LP_MUST_USE lp_status lp_chat_lower(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *value,
                                    lp_chat_value *out);
/* Filters of texts that Python's methods do not have, and Python's center; *known is false when there is no such filter
 * (words.c). */
LP_MUST_USE lp_status lp_chat_word_filter(const lp_chat *chat, const lp_chat_node *node, const char *name,
                                          const lp_chat_value *text, const lp_chat_args *args, bool *known,
                                          lp_chat_value *out);
/* Python's text % values. */
LP_MUST_USE lp_status lp_chat_format(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *text,
                                     const lp_chat_value *values, size_t count, lp_chat_value *out);
/* Applies a filter to the items of `value` (list.c). */
LP_MUST_USE lp_status lp_chat_list_filter(const lp_chat *chat, const lp_chat_node *node, const char *name,
                                          const lp_chat_value *value, const lp_chat_args *args, lp_chat_value *out);
/* The member of that dotted name, in which numbers are indices. */
LP_MUST_USE lp_status lp_chat_attribute(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *item,
                                        const lp_chat_value *name, lp_chat_value *out);
LP_MUST_USE lp_status lp_chat_join(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *list,
                                   const lp_chat_args *args, lp_chat_value *out);
/* The pairs of a mapping, each a tuple; dictsort(case_sensitive, by, reverse) when `args` is given. */
LP_MUST_USE lp_status lp_chat_pairs(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *dict,
                                    const lp_chat_args *args, lp_chat_value *out);
LP_MUST_USE lp_status lp_chat_filter(const lp_chat *chat, const lp_chat_node *node, const char *name,
                                     const lp_chat_value *value, const lp_chat_args *args, lp_chat_value *out);
LP_MUST_USE lp_status lp_chat_test(const lp_chat *chat, const lp_chat_node *node, const char *name,
                                   const lp_chat_value *value, const lp_chat_args *args, bool *out);
/* object.name(args) */
LP_MUST_USE lp_status lp_chat_method(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *object,
                                     const char *name, const lp_chat_args *args, lp_chat_value *out);
