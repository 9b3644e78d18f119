/* Characters that are in one class in Unicode 14, the version of Debian 12's libraries, and in another in that which a
 * part of `tokenizers` has (unicode.c). */
#pragma once

#include "base/base.h"

/* Ranges of characters that Unicode 15 and 16 added or put into other classes, sorted: first, last, and a
 * character that has long been in these classes. */
extern const uint32_t lp_newer[];
extern const size_t lp_newer_count;

/* The character itself, or the one that it is like. */
uint32_t lp_unicode_older(uint32_t code);
/* The lower case of an upper case letter that Unicode 14 does not have as one, or the character itself. */
uint32_t lp_unicode_lower(uint32_t code);
/* Tell whether the character is newer than Unicode 9; or, if it is a mark, punctuation or a control, than 8. */
bool lp_unicode_since_10(uint32_t code);
bool lp_unicode_since_9(uint32_t code);
/* Appends these characters, since version 10 or 9, as items of a class of a pattern. */
void lp_unicode_append_since(int version, lp_buf *out);
