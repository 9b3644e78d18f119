/* UTF-8 text from outside: finds, measures and replaces the parts that are not UTF-8. */
#pragma once

#include "base/base.h"

/* The length of the character at text[0], 1 to 4 bytes. 0: the bytes are not UTF-8, and *bad is the length of the
 * longest prefix of a character (at least 1), which becomes one U+FFFD (Unicode 16, section 3.9). */
size_t lp_utf8_length(const char *text, size_t size, size_t *bad);
uint32_t lp_utf8_read(const char *text, size_t length); /* `text` is valid */
/* Reads the first character of valid text, which is not empty. Returns its length. */
size_t lp_utf8_next(const char *text, uint32_t *code);
void lp_utf8_write(uint32_t code, lp_buf *out);
/* Appends `text`, with U+FFFD in place of each invalid part. */
void lp_utf8_repair(const char *text, size_t size, lp_buf *out);
bool lp_utf8_valid(const char *text, size_t size);
size_t lp_utf8_count(const char *text, size_t size); /* characters: the bytes that do not continue one */
/* Tells whether the character has the Unicode property White_Space. */
bool lp_utf8_is_space(uint32_t code);
