/* The seal of a document: its last member holds the SHA-256 of all lines before it, so that a change of any byte is
 * noticed when the document is read. A sealed document is a JSON object that ends with
 *
 *    "seal": "64 lower-case hex digits"
 *   }
 *
 * Any thread may call these functions. */
#pragma once

#include "base/base.h"

/* Appends the seal and the closing brace to `text`, the object's text up to the end of its last member. */
void lp_seal_put(lp_buf *text);
/* Tells whether the text ends with a seal and the seal is that of its lines. Any bytes are safe input. */
bool lp_seal_holds(const char *text, size_t size);
