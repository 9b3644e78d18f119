/* The inside of a document, for parse.c and reader.c. */
#pragma once

#include "base/json/reader.h"

struct lp_json_document {
  lp_arena *arena; /* the items of containers */
  char *text;      /* all texts, unescaped, a NUL after each */
  lp_json_value root;
};
