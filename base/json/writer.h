/* The one writer of JSON: streams a document into a buffer, members in the order of the calls.
 *
 *   lp_json_writer w = lp_json_document_begin(out, (lp_json_style){.indent = 2}, "llmpart.report/1");
 *   lp_json_put_text(&w, "model", name);
 *   lp_json_document_end(&w);
 *
 * Every call takes the member's key: NULL for an item of an array and for the document itself. */
#pragma once

#include "base/json/reader.h"

typedef struct {
  int indent;        /* spaces a level, one member a line; 0: all on one line */
  int digits;        /* significant digits of numbers; 0: 17, which read back as the same double */
  bool marks_reals;  /* numbers always show a '.' or an 'e', exponents are short: 1.0, 1e-5 */
  bool has_no_space; /* "a":1,"b":2 */
} lp_json_style;

enum { LP_JSON_MAX_DEPTH = LP_JSON_MAX_NESTING + 32 }; /* deep enough to write every document that was read */

/* The layout of a container's items. */
typedef enum {
  LP_JSON_BROKEN, /* each on a line, and so does the bracket that closes it */
  LP_JSON_LINES,  /* each on a line, the bracket after the last one */
  LP_JSON_FLAT    /* on one line */
} lp_json_layout;

typedef struct {
  lp_buf *out;
  lp_json_style style;
  int depth;  /* number of open containers */
  int indent; /* number of those open containers that are not flat */
  bool first; /* nothing precedes the next member in its container */
  struct {
    char close;
    lp_json_layout layout;
  } open[LP_JSON_MAX_DEPTH];
} lp_json_writer;

lp_json_writer lp_json_writer_begin(lp_buf *out, lp_json_style style);
/* A document that is an object with its schema as the first member; its end is the end of a line. */
lp_json_writer lp_json_document_begin(lp_buf *out, lp_json_style style, const char *schema);
void lp_json_document_end(lp_json_writer *writer);

/* These open a container; lp_json_put_end closes the innermost one. A flat container is written on one line with
 * everything in it. */
void lp_json_put_object(lp_json_writer *writer, const char *key);
void lp_json_put_array(lp_json_writer *writer, const char *key);
void lp_json_put_flat_object(lp_json_writer *writer, const char *key);
void lp_json_put_flat_array(lp_json_writer *writer, const char *key);
/* Opens an array with each item on a line of its own, also inside a flat container. */
void lp_json_put_lines(lp_json_writer *writer, const char *key);
void lp_json_put_end(lp_json_writer *writer);

void lp_json_put_text(lp_json_writer *writer, const char *key, const char *text); /* writes null for NULL */
void lp_json_put_bytes(lp_json_writer *writer, const char *key, const char *text, size_t size); /* may hold NUL */
void lp_json_put_number(lp_json_writer *writer, const char *key, double value);                 /* not finite: null */
void lp_json_put_numbers(lp_json_writer *writer, const char *key, const double *list, size_t count); /* flat */
void lp_json_put_fixed(lp_json_writer *writer, const char *key, double value, int decimals);         /* "%.3f" */
void lp_json_put_integer(lp_json_writer *writer, const char *key, int64_t value);
void lp_json_put_bool(lp_json_writer *writer, const char *key, bool value);
void lp_json_put_null(lp_json_writer *writer, const char *key);
void lp_json_put_poly(lp_json_writer *writer, const char *key, const lp_poly *poly,
                      const lp_symbols *symbols); /* text */
/* Writes a value that was read, with everything in it. */
void lp_json_put_value(lp_json_writer *writer, const char *key, const lp_json_value *value);
/* Writes the key and its separators; the caller then appends one value to the buffer. */
void lp_json_put_key(lp_json_writer *writer, const char *key);

/* The text as a JSON string, quotes included; U+FFFD stands for each part that is not UTF-8. */
void lp_json_quote(const char *text, lp_buf *out);
