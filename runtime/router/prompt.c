/* Writes the prompts of decisions and of keywords as text. The parts of a decision's are those of P3, Eq. (7) to (9):
 * description {goal, definition, rules}, examples {keywords, decision, reward, evaluation}, query. */
#include "base/utf8.h"
#include "runtime/router/router.h"

#include <ctype.h>

static void put_offered(unsigned offered, lp_buf *out) {
  static const char *const meanings[LP_ROUTE_COUNT] = {
      "edge (a small model near the user: quick)",
      "cloud (a large model far away: better answers, slower)",
      "split (one model across both)",
  };
  const char *between = "";
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++) {
    if (!lp_route_offered(offered, route)) continue;
    lp_buf_printf(out, "%s%s", between, meanings[route]);
    between = ", ";
  }
}

static void put_description(unsigned offered, lp_buf *out) {
  lp_buf_puts(out, "Goal: choose where to run each generation request so that its reward is greatest.\nDefinition: the "
                   "decision is one of ");
  put_offered(offered, out);
  lp_buf_puts(out,
              ". The reward falls with the delay and with a penalty where the quality asked for was missed. Keywords "
              "name the task, the length of the prompt and the expected output size.\n"
              "Rules: 1. An example with the keywords of the query tells most. 2. Of examples with the same "
              "keywords, follow the decision with the greater reward. 3. Avoid decisions evaluated as bad. 4. Reply "
              "only with the "
              "decision.\n\n");
}

void lp_prompt_text(const lp_prompt *prompt, lp_buf *out) {
  put_description(prompt->offered, out);
  LP_FOR_EACH(const lp_experience, e, prompt->examples, prompt->count)
    lp_buf_printf(out, "Keywords: %s\nDecision: %s\nReward: %.3f\nEvaluation: %s\n\n", e->keywords,
                  lp_route_name(e->route), e->reward, e->good ? "good" : "bad");
  lp_buf_printf(out, "Keywords: %s\nDecision:", prompt->keywords);
}

/* ---- keywords ---------------------------------------------------------------------------------------------------- */

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
