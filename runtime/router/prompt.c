/* Writes the prompt as text. Its parts are those of P3, Eq. (7) to (9): description {goal, definition, rules}, examples
 * {keywords, decision, reward, evaluation}, query. */
#include "runtime/router/router.h"

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
  for (size_t i = 0; i < prompt->count; i++) {
    const lp_experience *e = &prompt->examples[i];
    lp_buf_printf(out, "Keywords: %s\nDecision: %s\nReward: %.3f\nEvaluation: %s\n\n", e->keywords,
                  lp_route_name(e->route), e->reward, e->good ? "good" : "bad");
  }
  lp_buf_printf(out, "Keywords: %s\nDecision:", prompt->keywords);
}
