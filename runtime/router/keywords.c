/* The prompt with which a language model describes a request in keywords, and what is taken of its answer. */
#include <ctype.h>
#include <string.h>

#include "base/utf8.h"
#include "runtime/router/router.h"

enum { MOST_REQUEST = 1000, MOST_KEYWORDS = 80 }; /* bytes */

/* The parts are those of the decision's prompt (P3, Eq. 7): goal, definition, rules, examples, query. A long request is
 * cut: its beginning tells the task. */
void lp_keywords_prompt(const char *request, lp_buf *out) {
  size_t size = strnlen(request, MOST_REQUEST);
  while (size > 0 && !lp_utf8_valid(request, size))
    size--;
  lp_buf_puts(
      out,
      "Goal: describe each generation request in keywords.\nDefinition: keywords name the task, such as chat, "
      "translation, summary, code or mathematics, its topic, and the expected output size: short answer, or long "
      "answer.\nRules: 1. At most four keywords, separated by commas. 2. Requests that take the same work have the "
      "same keywords. 3. Reply only with the keywords.\n\n"
      "Request: What is good morning in French?\nKeywords: translation, short answer\n\n"
      "Request: Write a C function that sorts a list, with tests.\nKeywords: code, long answer\n\nRequest: ");
  for (size_t i = 0; i < size; i++)
    lp_buf_append(out, request[i] == '\n' ? " " : request + i, 1);
  lp_buf_puts(out, "\nKeywords:");
}

/* The first line, in lower case; letters, digits, hyphens, and single spaces and commas between them. */
bool lp_keywords_take(const char *answer, lp_buf *out) {
  size_t begin = out->size, pending = 0; /* 1: a space, 2: a comma comes before the next word */
  while (isspace((unsigned char)*answer))
    answer++;
  for (; *answer && *answer != '\n' && out->size - begin < MOST_KEYWORDS; answer++) {
    unsigned char c = (unsigned char)*answer;
    if (c == ',') pending = 2;
    if (c == ' ' && pending == 0) pending = 1;
    if (!isalnum(c) && c != '-') continue;
    if (pending > 0 && out->size > begin) lp_buf_puts(out, pending == 2 ? ", " : " ");
    pending = 0;
    char lower = (char)tolower(c);
    lp_buf_append(out, &lower, 1);
  }
  return out->size > begin;
}
