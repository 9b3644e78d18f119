/* The inside of a document, for parse.c and reader.c. */
#ifndef LP_JSON_DOCUMENT_H
#define LP_JSON_DOCUMENT_H

#include "base/json/reader.h"

struct lp_json_document {
  lp_arena *arena; /* the items of containers */
  char *text;      /* all texts, unescaped, a NUL after each */
  lp_json_value root;
};

#endif
