/* llmpart service: pairs of models, and the times of their answers. */
#include "runtime/service/service.h"

#include <math.h>

#include "tools/tools.h"

typedef struct {
  double tokens, prompt, penalty, backhaul_ms;
  const char *counting, *format;
} service_flags;

static lp_counting counting_of(const service_flags *flags) {
  return lp_streq(flags->counting, "paper") ? LP_COUNT_PAPER : LP_COUNT_ONCE;
}

static void put_json(const lp_service *service, const service_flags *flags, lp_buf *out) {
  lp_counting counting = counting_of(flags);
  double backhaul = flags->backhaul_ms / 1e3, even = lp_service_break_even(service, flags->penalty, backhaul, counting);
  lp_json_writer json = lp_tool_json(out, 12, "llmpart.service/1");
  lp_json_put_text(&json, "service", service->name);
  lp_json_put_number(&json, "tokens", flags->tokens);
  lp_json_put_text(&json, "counting", flags->counting);
  for (int site = 0; site < LP_SITE_COUNT; site++) {
    const lp_service_model *m = &service->at[site];
    if (!m->model) continue;
    lp_json_put_object(&json, lp_site_names[site]);
    lp_json_put_text(&json, "model", m->model);
    lp_json_put_number(&json, "ttft_ms", m->ttft_s * 1e3);
    lp_json_put_number(&json, "prompt_token_ms", m->prompt_s * 1e3);
    lp_json_put_number(&json, "tpot_ms", m->tpot_s * 1e3);
    lp_json_put_number(&json, "generation_s", lp_generation_s(m, flags->prompt, flags->tokens, counting));
    lp_json_put_end(&json);
  }
  lp_json_put_number(&json, "slope_s", lp_service_slope_s(service, flags->tokens, backhaul, counting));
  lp_json_put_number(&json, "break_even_tokens", even); /* null when there is none */
  lp_json_document_end(&json);
}

static void put_text(const lp_service *service, const service_flags *flags, lp_buf *out) {
  lp_counting counting = counting_of(flags);
  double backhaul = flags->backhaul_ms / 1e3;
  for (int site = 0; site < LP_SITE_COUNT; site++) {
    const lp_service_model *m = &service->at[site];
    if (!m->model) continue;
    lp_buf_printf(out, "%-6s %-16s %g tokens in %.3f s\n", lp_site_names[site], m->model, flags->tokens,
                  lp_generation_s(m, flags->prompt, flags->tokens, counting));
  }
  lp_buf_printf(out, "the cloud takes %.3f s longer, backhaul %g s included\n",
                lp_service_slope_s(service, flags->tokens, backhaul, counting), backhaul);
  double even = lp_service_break_even(service, flags->penalty, backhaul, counting);
  if (isinf(even))
    lp_buf_printf(out, "with a penalty of %g the cloud is better at any length\n", flags->penalty);
  else
    lp_buf_printf(out, "with a penalty of %g the cloud is better below %.3f tokens\n", flags->penalty, even);
}

static lp_status show(const lp_command *command, const lp_texts *args, lp_diag *diag) {
  const service_flags *flags = command->user;
  lp_service *service = NULL;
  lp_buf out = {0};
  LP_TRY(lp_service_load(args->data[1], &service, diag));
  if (lp_streq(flags->format, "yaml"))
    lp_service_print(service, &out);
  else if (lp_streq(flags->format, "json"))
    put_json(service, flags, &out);
  else
    put_text(service, flags, &out);
  lp_status status = lp_tool_write("-", &out, diag);
  lp_service_free(service);
  return status;
}

static lp_status list(const lp_command *command, const lp_texts *args, lp_diag *diag) {
  (void)command, (void)args;
  const char *const *names = NULL;
  size_t count = lp_service_names(&names);
  LP_OWNED(lp_buf_free) lp_buf out = {0};
  lp_status status = LP_OK;
  for (size_t i = 0; i < count && status == LP_OK; i++) {
    lp_service *service = NULL;
    status = lp_service_load(names[i], &service, diag);
    if (status == LP_OK) lp_buf_printf(&out, "%-14s %s\n", service->name, service->title);
    lp_service_free(service);
  }
  if (status == LP_OK) status = lp_tool_write("-", &out, diag);
  return status;
}

static lp_status act(const lp_command *command, const lp_texts *args, lp_diag *diag) {
  static const lp_tool_action actions[] = {{"list", list, 0}, {"show", show, 1}};
  return lp_tool_choose(actions, LP_COUNT(actions), command, args, diag);
}

int lp_tool_service(int argc, char **argv) {
  service_flags flags = {.tokens = 1000, .penalty = 10, .backhaul_ms = 100, .counting = "once", .format = "text"};
  const lp_option options[] = {
      {"--tokens", LP_OPTION_F64, &flags.tokens, "N", "assume an answer of N tokens (1000)"},
      {"--prompt", LP_OPTION_F64, &flags.prompt, "N", "assume a prompt of N tokens, where its length counts (0)"},
      {"--penalty", LP_OPTION_F64, &flags.penalty, "P", "count a missed quality as P seconds of delay (10)"},
      {"--backhaul", LP_OPTION_TIME, &flags.backhaul_ms, "TIME", "add this delay to answers of the cloud (100ms)"},
      {"--counting", LP_OPTION_CHOICE, &flags.counting, "once|paper",
       "compute TTFT + (n - 1) TPOT, or TTFT + n TPOT as the paper does (once)"},
      {"-o", LP_OPTION_CHOICE, &flags.format, "text|json|yaml", "choose the format; yaml has only the figures (text)"},
  };
  const lp_command command = {
      .usage = "llmpart service list | show NAME [--tokens=1000] [--penalty=10] [-o text|json|yaml]",
      .summary = "Pairs of models at the edge and in the cloud, with TTFT and TPOT: published ones, measured by "
                 "`llmpart bench`, or of a\nreport; the time of an answer on either, and where a penalty for "
                 "missed quality makes the cloud better.\nNAME is a name of the list or a YAML file.",
      LP_OPTIONS(options),
      .args = {1, 2},
      .act = act,
      .user = &flags};
  return lp_tool_main(&command, argc, argv);
}
