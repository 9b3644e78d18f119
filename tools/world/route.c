/* llmpart route: decides where one request goes, records its outcome, and compares policies on the recorded
 * outcomes. */
#include "base/path.h"
#include "base/units.h"
#include "runtime/router/backends.h"
#include "runtime/router/judge.h"
#include "runtime/router/store.h"
#include "tools/tools.h"

#include <math.h>

/* ---- the request ------------------------------------------------------------------------------------------------- */

typedef struct {
  const char *keywords, *offer, *rule;
  const char *backends; /* a file, or NULL: the other members then mean nothing */
  double prompt_tokens, tokens, most_tokens, budget_usd;
  const char *up, *down; /* rates of the user's link; NULL: those of the file */
  int64_t user;          /* of the radio profile of the file; 0: none */
  bool local_only;
  int64_t busy; /* number of requests at the edge */
} request_flags;

/* The request, and the routes that constraints refused. */
typedef struct {
  lp_router_request request;
  lp_buf keywords, refused; /* the texts to which the request refers */
  double up_bps, down_bps;  /* 0: not given */
} made_request;

static void free_request(made_request *request) {
  lp_buf_free(&request->keywords);
  lp_buf_free(&request->refused);
}

static lp_status read_route(const char *option, const char *name, lp_route *out, lp_diag *diag) {
  if (lp_route_parse(name, out)) return LP_OK;
  return lp_error_as(LP_USAGE, diag, LP_LOC_FILE(option), "'%s' is no route; wanted edge, cloud or split", name);
}

static lp_status read_offer(const char *text, unsigned *out, lp_diag *diag) {
  *out = 0;
  char *copy = lp_strdup(text), *rest = NULL;
  lp_status status = LP_OK;
  for (char *at = strtok_r(copy, ", ", &rest); at && status == LP_OK; at = strtok_r(NULL, ", ", &rest)) {
    lp_route route = LP_ROUTE_EDGE;
    status = read_route("--offer", at, &route, diag);
    *out |= 1u << route;
  }
  free(copy);
  if (status == LP_OK && *out == 0)
    status = lp_error_as(LP_USAGE, diag, LP_LOC_FILE("--offer"), "wanted at least one route");
  return status;
}

static lp_status read_rate(const char *option, const char *text, double *bps, lp_diag *diag) {
  if (!text || lp_parse_rate_bps(text, bps, diag, LP_LOC_FILE(option)) == LP_OK) return LP_OK;
  return LP_USAGE;
}

static lp_status weigh(const request_flags *flags, made_request *out, lp_diag *diag) {
  lp_backends *backends = NULL;
  LP_TRY(lp_backends_load(flags->backends, &backends, diag));
  lp_demand demand = {.prompt_tokens = flags->prompt_tokens,
                      .tokens = flags->tokens,
                      .most_tokens = flags->most_tokens,
                      .local_only = flags->local_only,
                      .budget_usd = flags->budget_usd > 0 ? flags->budget_usd : INFINITY,
                      .up_bps = out->up_bps,
                      .down_bps = out->down_bps,
                      .user = flags->user};
  lp_status status = lp_backends_check_user(backends, flags->user, LP_LOC_FILE("--user"), diag);
  if (status == LP_OK) lp_backends_weigh(backends, &demand, flags->busy, &out->request, &out->keywords, &out->refused);
  lp_backends_free(backends);
  LP_TRY(status);
  if (out->request.offered != 0) return LP_OK;
  return lp_error(diag, LP_LOC_FILE(flags->backends), "no route can take the request: %s", lp_buf_text(&out->refused));
}

/* Returns LP_USAGE for contradictory flags, LP_FAILED when no route is left. Release with free_request. */
static lp_status make_request(const request_flags *flags, made_request *out, lp_diag *diag) {
  *out = (made_request){0};
  const char *offer = flags->backends ? "edge,cloud,split" : "edge,cloud";
  LP_TRY(read_offer(flags->offer ? flags->offer : offer, &out->request.offered, diag));
  LP_TRY(read_route("--rule", flags->rule, &out->request.rule, diag));
  LP_TRY(read_rate("--up", flags->up, &out->up_bps, diag));
  LP_TRY(read_rate("--down", flags->down, &out->down_bps, diag));
  lp_buf_puts(&out->keywords, flags->keywords);
  lp_status status = flags->backends ? weigh(flags, out, diag) : LP_OK;
  out->request.keywords = lp_buf_text(&out->keywords);
  if (status != LP_OK) free_request(out);
  return status;
}

typedef struct {
  lp_policy_spec spec;
  request_flags request;
  const char *pool, *replay_log, *replay_mode, *format;
  double epsilon, half_life, rate, reward;
  int64_t seed, outcome, explain, memory;
  bool bad;
} route_flags;

/* ---- printing ---------------------------------------------------------------------------------------------------- */

/* Writes the delays of the routes for which they are known. */
static void put_delays(lp_json_writer *json, const lp_router_request *request) {
  bool any = false;
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++) {
    if (request->delay_s[route] <= 0) continue;
    if (!any) lp_json_put_object(json, "delay_s");
    any = true;
    lp_json_put_number(json, lp_route_name(route), request->delay_s[route]);
  }
  if (any) lp_json_put_end(json);
}

/* A decision, and its number in the pool; 0: it is not recorded. `refused` may be "". */
typedef struct {
  const lp_router_request *request;
  const char *refused;
  const lp_decision *decision;
  int64_t id;
} decided;

static void put_json(const decided *d, lp_buf *out) {
  lp_json_writer json = lp_tool_json(out, 9, "llmpart.route/1");
  lp_json_put_text(&json, "keywords", d->request->keywords);
  lp_json_put_text(&json, "route", lp_route_name(d->decision->route));
  lp_json_put_text(&json, "source", lp_decision_source_name(d->decision->source));
  lp_json_put_object(&json, "probability");
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++)
    if (lp_route_offered(d->request->offered, route))
      lp_json_put_number(&json, lp_route_name(route), d->decision->probability[route]);
  lp_json_put_end(&json);
  lp_json_put_number(&json, "propensity", d->decision->propensity);
  if (d->id > 0) lp_json_put_integer(&json, "id", d->id);
  put_delays(&json, d->request);
  if (d->refused[0]) lp_json_put_text(&json, "refused", d->refused);
  if (d->decision->reason[0]) lp_json_put_text(&json, "reason", d->decision->reason);
  lp_json_put_end(&json);
}

static void put_text(const decided *d, lp_buf *out) {
  lp_buf_printf(out, "%s (%s", lp_route_name(d->decision->route), lp_decision_source_name(d->decision->source));
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++)
    if (lp_route_offered(d->request->offered, route))
      lp_buf_printf(out, ", %s %.3f", lp_route_name(route), d->decision->probability[route]);
  lp_buf_puts(out, ")");
  if (d->id > 0) lp_buf_printf(out, " as decision %" PRId64, d->id);
  if (d->decision->reason[0]) lp_buf_printf(out, ": %s", d->decision->reason);
  if (d->refused[0]) lp_buf_printf(out, "\n%s", d->refused);
}

/* Ends the line and writes it; frees `out`. */
static lp_status print(lp_buf *out, lp_diag *diag) {
  lp_buf_puts(out, "\n");
  return lp_tool_write("-", out, diag);
}

static lp_status print_decision(const route_flags *flags, const decided *d, lp_diag *diag) {
  lp_buf out = {0};
  (lp_streq(flags->format, "json") ? put_json : put_text)(d, &out);
  return print(&out, diag);
}

static void put_judgement_json(const route_flags *flags, const lp_judgement *found, lp_buf *out) {
  lp_json_writer json = lp_tool_json(out, 9, "llmpart.route-replay/1");
  lp_json_put_text(&json, "policy", flags->spec.policy);
  lp_json_put_integer(&json, "decisions", found->decisions);
  lp_json_put_integer(&json, "agreed", found->agreed);
  lp_json_put_number(&json, "logged_reward_s", found->logged_reward);
  lp_json_put_number(&json, "ips_reward_s", found->ips_reward);
  lp_json_put_number(&json, "snips_reward_s", found->snips_reward);
  lp_json_put_number(&json, "effective_decisions", found->effective);
  lp_json_put_end(&json);
}

static void put_judgement_text(const route_flags *flags, const lp_judgement *found, lp_buf *out) {
  lp_buf_printf(out,
                "%s agrees with %" PRId64 " of %" PRId64
                " decisions; mean reward %.3f s as logged, %.3f s estimated (rests on %.0f decisions)",
                flags->spec.policy, found->agreed, found->decisions, found->logged_reward, found->snips_reward,
                found->effective);
}

/* ---- one decision ------------------------------------------------------------------------------------------------ */

/* Learns from the pool, decides, and records the decision there. */
static lp_status decide_with(const route_flags *flags, const lp_router_request *request, lp_store *store,
                             lp_decision *decision, int64_t *id, lp_diag *diag) {
  lp_policy *policy = NULL;
  LP_TRY(lp_policy_open_taught(&flags->spec, store, flags->memory, &policy, diag));
  policy->decide(policy, request, decision);
  policy->close(policy);
  return store ? lp_store_decision(store, request, decision, id, diag) : LP_OK;
}

static lp_status decide(const route_flags *flags, lp_store *store, lp_diag *diag) {
  made_request made;
  lp_decision decision;
  int64_t id = 0;
  LP_TRY(make_request(&flags->request, &made, diag));
  lp_status status = decide_with(flags, &made.request, store, &decision, &id, diag);
  if (status == LP_OK)
    status = print_decision(flags, &(decided){&made.request, lp_buf_text(&made.refused), &decision, id}, diag);
  free_request(&made);
  return status;
}

/* ---- outcomes ---------------------------------------------------------------------------------------------------- */

static lp_status explain(const route_flags *flags, lp_store *store, lp_diag *diag) {
  LP_OWNED(lp_arena_free_at) lp_arena *arena = lp_arena_create();
  lp_stored stored;
  lp_status status = lp_store_get(store, flags->explain, arena, &stored, diag);
  if (status == LP_OK)
    status = print_decision(flags, &(decided){&stored.request, "", &stored.decision, stored.id}, diag);
  return status;
}

static lp_status judge(const route_flags *flags, lp_diag *diag) {
  lp_store *log = NULL;
  lp_policy *policy = NULL;
  lp_judgement found;
  if (!lp_path_exists(flags->replay_log)) return lp_error(diag, LP_LOC_FILE(flags->replay_log), "no such file");
  LP_TRY(lp_store_open(flags->replay_log, &log, diag));
  lp_status status = lp_policy_open(&flags->spec, &policy, diag);
  if (status == LP_OK) {
    status = lp_policy_judge(policy, log, &found, diag);
    policy->close(policy);
  }
  lp_store_close(log);
  if (status != LP_OK) return status;
  if (found.decisions == 0) return lp_error(diag, LP_LOC_FILE(flags->replay_log), "no decision has an outcome yet");
  lp_buf out = {0};
  (lp_streq(flags->format, "json") ? put_judgement_json : put_judgement_text)(flags, &found, &out);
  return print(&out, diag);
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

static lp_status check_flags(route_flags *flags, lp_diag *diag) {
  int tasks =
      (flags->request.keywords != NULL) + (flags->outcome > 0) + (flags->explain > 0) + (flags->replay_log != NULL);
  if (tasks != 1)
    return lp_error_as(LP_USAGE, diag, LP_LOC_NONE, "wanted one of --keywords, --outcome, --explain and --replay");
  if ((flags->outcome > 0 || flags->explain > 0) && !flags->pool)
    return lp_error_as(LP_USAGE, diag, LP_LOC_NONE, "--outcome and --explain need --pool");
  if (flags->epsilon < 0 || flags->epsilon > 1 || flags->half_life < 0 || flags->rate < 0 || flags->rate > 1)
    return lp_error_as(LP_USAGE, diag, LP_LOC_NONE,
                       "--epsilon and --rate lie between 0 and 1, --half-life is 0 or more");
  if (!lp_replay_mode_parse(flags->replay_mode, &flags->spec.options.replay))
    return lp_error_as(LP_USAGE, diag, LP_LOC_FILE("--replay-mode"), "wanted ema, reward, strict or latest");
  flags->spec.options.rate = flags->rate;
  flags->spec.options.exploration = (lp_exploration){flags->epsilon, flags->half_life, (uint64_t)flags->seed};
  return LP_OK;
}

static lp_status route(const lp_command *command, const lp_texts *args, lp_diag *diag) {
  (void)args;
  route_flags *flags = command->user;
  LP_TRY(check_flags(flags, diag));
  LP_OWNED(lp_free_at) char *embedded = lp_path_library("router-model.llmpart");
  flags->spec.embedded = embedded;
  flags->spec.key = getenv("LLMPART_ROUTER_KEY");
  lp_store *store = NULL;
  lp_status status = flags->pool ? lp_store_open(flags->pool, &store, diag) : LP_OK;
  if (status == LP_OK) {
    if (flags->replay_log)
      status = judge(flags, diag);
    else if (flags->outcome > 0)
      status = lp_store_outcome(store, flags->outcome, flags->reward, !flags->bad, diag);
    else if (flags->explain > 0)
      status = explain(flags, store, diag);
    else
      status = decide(flags, store, diag);
  }
  lp_store_close(store);
  return status;
}

// NOLINTNEXTLINE(readability-function-size): a table
int lp_tool_route(int argc, char **argv) {
  route_flags flags = {.spec = {.policy = "router", .model = "embedded"},
                       .request = {.rule = "edge", .tokens = 256},
                       .replay_mode = "ema",
                       .format = "text",
                       .epsilon = 0.1,
                       .rate = 0.1};
  const lp_option options[] = {
      {"--keywords", LP_OPTION_TEXT, &flags.request.keywords, "WORDS",
       "decide the request with these keywords: \"code, long answer\""},
      {"--offer", LP_OPTION_TEXT, &flags.request.offer, "ROUTES",
       "choose among these routes (edge,cloud; with --backends also split)"},
      {"--rule", LP_OPTION_TEXT, &flags.request.rule, "ROUTE", "take this route when the model fails (edge)"},
      {"--backends", LP_OPTION_TEXT, &flags.request.backends, "FILE.yaml",
       "read the machines or services of the routes; those that may not take the request are not offered"},
      {"--prompt-tokens", LP_OPTION_F64, &flags.request.prompt_tokens, "N", "set the tokens of the prompt (0)"},
      {"--tokens", LP_OPTION_F64, &flags.request.tokens, "N", "set the expected tokens of the answer (256)"},
      {"--max-tokens", LP_OPTION_F64, &flags.request.most_tokens, "N",
       "set the most tokens of the answer (as expected)"},
      {"--up", LP_OPTION_TEXT, &flags.request.up, "RATE", "set the rate of the user's own uplink (that of --backends)"},
      {"--down", LP_OPTION_TEXT, &flags.request.down, "RATE",
       "set the rate of the user's own downlink (that of --backends)"},
      {"--user", LP_OPTION_I64, &flags.request.user, "N",
       "take the rates of user N of the radio profile in --backends (the median of all)"},
      {"--local-only", LP_OPTION_FLAG, &flags.request.local_only, NULL, "keep the request at the edge"},
      {"--budget", LP_OPTION_F64, &flags.request.budget_usd, "USD", "limit the cost of the request (0: no limit)"},
      {"--edge-busy", LP_OPTION_COUNT, &flags.request.busy, "N", "assume that N requests are at the edge already (0)"},
      {"--pool", LP_OPTION_TEXT, &flags.pool, "FILE.db|URL",
       "learn from this SQLite file, or from the PostgreSQL database at this URL, and note the decision there"},
      {"--memory", LP_OPTION_I64, &flags.memory, "N", "learn only from the newest N outcomes (0: all)"},
      {"--outcome", LP_OPTION_ID, &flags.outcome, "ID", "note the outcome of decision ID: --reward, --bad"},
      {"--reward", LP_OPTION_SIGNED, &flags.reward, "SECONDS",
       "give the reward of --outcome: target minus delay minus penalty"},
      {"--bad", LP_OPTION_FLAG, &flags.bad, NULL, "note that the outcome missed the requested quality"},
      {"--explain", LP_OPTION_ID, &flags.explain, "ID", "print a noted decision again"},
      {"--replay", LP_OPTION_TEXT, &flags.replay_log, "FILE.db", "decide a log anew and estimate the reward"},
      {"--policy", LP_OPTION_CHOICE, &flags.spec.policy,
       "router|latest|greedy|q-table|dqn|rule|quickest|edge|cloud|split|random", "decide by this policy (router)"},
      {"--model", LP_OPTION_TEXT, &flags.spec.model, "MODEL",
       "set the model that the router asks: embedded, lookup, a bundle or an API's base http://HOST/v1"},
      {"--model-name", LP_OPTION_TEXT, &flags.spec.model_name, "NAME",
       "name the model at the API, whose key is in LLMPART_ROUTER_KEY"},
      {"--timeout", LP_OPTION_TIME, &flags.spec.timeout_ms, "TIME", "wait at most this long for the API (300ms)"},
      {"--replay-mode", LP_OPTION_TEXT, &flags.replay_mode, "MODE",
       "keep of each experience: ema, reward, strict or latest (ema)"},
      {"--rate", LP_OPTION_F64, &flags.rate, "R", "set the least weight of a new reward in ema (0.1)"},
      {"--epsilon", LP_OPTION_F64, &flags.epsilon, "E", "draw a route at random with this probability (0.1)"},
      {"--half-life", LP_OPTION_F64, &flags.half_life, "N", "halve epsilon after every N decisions (0: never)"},
      {"--seed", LP_OPTION_I64, &flags.seed, "N", "set the seed of random routes"},
      {"-o", LP_OPTION_CHOICE, &flags.format, "text|json", "choose the format (text)"},
  };
  const lp_command command = {"llmpart route --keywords=WORDS [options]",
                              "Decides where a request goes by the outcomes of earlier ones. --outcome notes one; "
                              "--replay judges a policy on a log.",
                              options,
                              LP_COUNT(options),
                              {0, 0},
                              route,
                              &flags,
                              NULL,
                              false};
  return lp_tool_main(&command, argc, argv);
}
