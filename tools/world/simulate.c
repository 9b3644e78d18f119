/* llmpart simulate: users, link, queues and policies of a scenario. */
#include "base/path.h"
#include "runtime/simulate/fleet.h"

#ifdef LP_HAS_ROUTER
#include "runtime/router/simulated.h"
#endif
#ifdef LP_HAS_COMPILER
#include "tools/mpi/mpi.h"
#endif
#include "tools/tools.h"

typedef struct {
  lp_texts outputs;
  const char *figure;
  int64_t runs, seed, threads;
  lp_peers peers; /* count 0: not under mpirun */
#ifdef LP_HAS_ROUTER
  lp_policy_spec spec; /* parameters of the decider */
#endif
} simulate_flags;

/* "json", "csv", "html" or "svg", or the path of a file with that ending; NULL: neither. */
static const char *form_of(const char *text) {
  static const char *const forms[] = {"json", "csv", "html", "svg"};
  const char *dot = strrchr(text, '.'), *form = dot ? dot + 1 : text;
  for (size_t i = 0; i < LP_COUNT(forms); i++)
    if (lp_streq(form, forms[i])) return forms[i];
  return NULL;
}

static lp_status find_figure(const char *name, size_t *out, lp_diag *diag) {
  for (*out = 0; *out < lp_sim_figure_count; (*out)++)
    if (lp_streq(name, lp_sim_figure_names[*out])) return LP_OK;
  lp_report_error(diag, LP_LOC_FILE("--figure"), "there is no figure '%s'", name);
  lp_note_near(diag, LP_LOC_NONE, name, lp_sim_figure_names, lp_sim_figure_count);
  return LP_USAGE;
}

static lp_status write_text(const char *where, const char *form, lp_buf *text, lp_diag *diag) {
  return lp_tool_write(lp_streq(where, form) ? "-" : where, text, diag);
}

static lp_status write_result(const lp_sim_result *result, const char *where, size_t figure, lp_diag *diag) {
  lp_buf out = {0};
  const char *form = form_of(where);
  if (lp_streq(form, "json"))
    lp_sim_print_json(result, &out);
  else if (lp_streq(form, "csv"))
    lp_sim_print_csv(result, &out);
  else if (lp_streq(form, "html"))
    lp_sim_print_html(result, &out);
  else
    lp_sim_print_svg(result, figure, &out);
  return write_text(where, form, &out, diag);
}

/* A fleet has no svg. */
static lp_status run_fleet(const char *path, const simulate_flags *flags, lp_diag *diag) {
  lp_sim_fleet *fleet = NULL;
  for (size_t i = 0; i < flags->outputs.count; i++)
    if (lp_streq(form_of(flags->outputs.data[i]), "svg"))
      return lp_error_as(LP_USAGE, diag, LP_LOC_FILE("-o"),
                         "'%s': a fleet's simulation is written as json, csv or html", flags->outputs.data[i]);
  LP_TRY(lp_sim_fleet_load(path, &fleet, diag));
  if (flags->runs > 0) fleet->runs = flags->runs;
  if (flags->seed >= 0) fleet->seed = flags->seed;
  lp_sim_fleet_point *point = LP_NEW_ARRAY(fleet->arena, lp_sim_fleet_point, fleet->values);
  const lp_sim_options options = {(int32_t)flags->threads, flags->peers.count ? &flags->peers : NULL};
  lp_status status = lp_sim_fleet_run(fleet, &options, point, diag);
  for (size_t i = 0; i < flags->outputs.count && status == LP_OK && flags->peers.rank == 0; i++) {
    lp_buf text = {0};
    const char *form = form_of(flags->outputs.data[i]);
    if (lp_streq(form, "json"))
      lp_sim_fleet_print_json(fleet, point, &text);
    else if (lp_streq(form, "csv"))
      lp_sim_fleet_print_csv(fleet, point, &text);
    else
      lp_sim_fleet_print_html(fleet, point, &text);
    status = write_text(flags->outputs.data[i], form, &text, diag);
  }
  lp_sim_fleet_free(fleet);
  return status;
}

static lp_status run(const char *path, const simulate_flags *flags, const lp_sim_policies *policies, size_t figure,
                     lp_diag *diag) {
  lp_sim_scenario *scenario = NULL;
  LP_TRY(lp_sim_scenario_load(path, policies, &scenario, diag));
  if (flags->runs > 0) scenario->runs = flags->runs;
  if (flags->seed >= 0) scenario->seed = flags->seed;
  lp_sim_result result;
  const lp_sim_options options = {(int32_t)flags->threads, flags->peers.count ? &flags->peers : NULL};
  lp_status status = lp_sim_run(scenario, &options, &result, diag);
  for (size_t i = 0; i < flags->outputs.count && status == LP_OK && flags->peers.rank == 0; i++)
    status = write_result(&result, flags->outputs.data[i], figure, diag);
  lp_sim_result_free(&result);
  lp_sim_scenario_free(scenario);
  return status;
}

#ifdef LP_HAS_ROUTER
/* Adds the policies that learn when the router's library is present, and the one that reads text when its model is. */
static lp_status run_with_learners(const char *path, simulate_flags *flags, size_t figure, lp_diag *diag) {
  LP_OWNED(lp_free_at) char *model = lp_path_library("router-model.llmpart");
  lp_router_sim *learners = NULL;
  bool there = lp_path_exists(model) || lp_streq(flags->spec.model, "embedded");
  flags->spec.embedded = there ? model : NULL;
  flags->spec.key = getenv("LLMPART_ROUTER_KEY");
  lp_status status = lp_router_sim_open(&flags->spec, &learners, diag);
  if (status == LP_OK) {
    lp_sim_policies policies = lp_router_sim_policies(learners);
    status = run(path, flags, &policies, figure, diag);
  }
  lp_router_sim_close(learners);
  return status;
}
#endif

static lp_status simulate(const lp_command *command, const lp_texts *args, lp_diag *diag) {
  simulate_flags *flags = command->user;
  const char *path = args->data[0];
  if (flags->outputs.count == 0) lp_vec_push(&flags->outputs, "json");
  for (size_t i = 0; i < flags->outputs.count; i++)
    if (!form_of(flags->outputs.data[i]))
      return lp_error_as(LP_USAGE, diag, LP_LOC_NONE, "'-o %s' is neither json, csv, html, svg nor a file that ends so",
                         flags->outputs.data[i]);
  size_t figure = 0;
  LP_TRY(find_figure(flags->figure, &figure, diag));
#ifdef LP_HAS_COMPILER
  lp_mpi_end_function *end_mpi = NULL;
  LP_TRY(lp_tool_begin_mpi(&flags->peers, &end_mpi, "--threads needs none", diag));
#endif
#ifdef LP_HAS_ROUTER
  lp_status status =
      lp_sim_fleet_is(path) ? run_fleet(path, flags, diag) : run_with_learners(path, flags, figure, diag);
#else
  lp_status status =
      lp_sim_fleet_is(path) ? run_fleet(path, flags, diag) : run(path, flags, &lp_sim_plain_policies, figure, diag);
#endif
#ifdef LP_HAS_COMPILER
  if (end_mpi) end_mpi((int)status);
#endif
  return status;
}

int lp_tool_simulate(int argc, char **argv) {
  simulate_flags flags = {.figure = "delay", .seed = -1};
  const lp_option options[] = {
      {"-o", LP_OPTION_TEXTS, &flags.outputs, "json|csv|html|svg|FILE",
       "write to stdout in this form, or to a file of that ending; repeatable (json)"},
      {"--figure", LP_OPTION_TEXT, &flags.figure, "NAME",
       "draw this figure with svg: delay, reward, quality, regret, learning-reward, learning-quality or "
       "learning-regret (delay)"},
      {"--runs", LP_OPTION_POSITIVE, &flags.runs, "N", "make N runs, whatever the scenario says"},
      {"--seed", LP_OPTION_I64, &flags.seed, "N", "use this seed, whatever the scenario says"},
      {"--threads", LP_OPTION_COUNT, &flags.threads, "N", "use N threads (the machine's cores)"},
#ifdef LP_HAS_ROUTER
      {"--model", LP_OPTION_TEXT, &flags.spec.model, "MODEL",
       "set the decider of router, router-paper, latest and greedy: lookup, embedded, a bundle or an API's base "
       "(lookup)"},
      {"--model-name", LP_OPTION_TEXT, &flags.spec.model_name, "NAME",
       "name the model at the API, whose key is in LLMPART_ROUTER_KEY"},
      {"--timeout", LP_OPTION_TIME, &flags.spec.timeout_ms, "TIME", "wait at most this long for the API (300ms)"},
#endif
  };
  const lp_command command = {
      .usage = "llmpart simulate SCENARIO.yaml|FLEET.json [-o json|csv|html|svg|FILE] [--runs=N] [--seed=N]",
      .summary = "Simulates users, the radio link, queues at the edge and in the cloud, and the policies that decide "
                 "between the two.\nPrints mean delay, reward and quality of each policy with 95 % intervals, over the "
                 "varied quantity. The same seed gives\nthe same numbers.",
      LP_OPTIONS(options),
      .args = {1, 1},
      .act = simulate,
      .user = &flags};
  int status = lp_tool_main(&command, argc, argv);
  lp_vec_free(&flags.outputs);
  return status;
}
