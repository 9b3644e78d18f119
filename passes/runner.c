/* The runner: finds passes by name, reads pipeline text, runs, verifies, prints and times. */
#include "base/clock.h"
#include "passes/options.h"
#include "passes/passes.h"
#include "passes/state.h"

#define LP_PASS(id, name) extern const lp_pass lp_pass_##id;
#include "passes/passes.def"

static const lp_pass *const passes[] = {
#define LP_PASS(id, name) &lp_pass_##id,
#include "passes/passes.def"
};

size_t lp_pass_list(const lp_pass *const **list) {
  *list = passes;
  return LP_COUNT(passes);
}

const lp_pass *lp_pass_find(const char *name) {
  for (size_t i = 0; i < LP_COUNT(passes); i++)
    if (lp_streq(passes[i]->name, name)) return passes[i];
  return NULL;
}

/* ---- pipelines --------------------------------------------------------------------------------------------------- */

typedef struct {
  const lp_pass *pass;
  const char *options; /* or NULL */
} pass_step;

typedef LP_VEC(pass_step) steps;

static lp_status unknown_pass(const char *name, lp_diag *diag) {
  const char *names[LP_COUNT(passes)];
  for (size_t i = 0; i < LP_COUNT(passes); i++)
    names[i] = passes[i]->name;
  lp_status status = lp_error_as(LP_USAGE, diag, LP_LOC_NONE, "unknown pass '%s'", name);
  lp_note_near(diag, LP_LOC_NONE, name, names, LP_COUNT(names));
  return status;
}

static const char *pipeline_named(const char *name) {
  static const struct {
    const char *name;
    const char *const *text;
  } named[] = {{"layers", &lp_pipeline_layers},
               {"ops", &lp_pipeline_ops},
               {"placed", &lp_pipeline_placed},
               {"full", &lp_pipeline_full}};
  for (size_t i = 0; i < LP_COUNT(named); i++)
    if (lp_streq(named[i].name, name)) return *named[i].text;
  return NULL;
}

static lp_status pipeline_parse(const char *text, lp_arena *arena, steps *out, lp_diag *diag) {
  for (const char *at = text + strspn(text, ", "); *at; at += strspn(at, ", ")) {
    size_t length = strcspn(at, ",{ ");
    const char *name = lp_arena_strndup(arena, at, length), *options = NULL;
    at += length;
    if (*at == '{') {
      const char *close = strchr(at, '}');
      if (!close) return lp_error_as(LP_USAGE, diag, LP_LOC_NONE, "'{' without '}' after pass '%s'", name);
      options = lp_arena_strndup(arena, at + 1, (size_t)(close - at - 1));
      at = close + 1;
    }
    if (*at && !strchr(", ", *at))
      return lp_error_as(LP_USAGE, diag, LP_LOC_NONE, "expected ',' after pass '%s', found '%s'", name, at);
    const char *inner = pipeline_named(name);
    if (inner && !options) {
      LP_TRY(pipeline_parse(inner, arena, out, diag));
      continue;
    }
    const lp_pass *pass = lp_pass_find(name);
    if (!pass) return unknown_pass(name, diag);
    LP_TRY(lp_pass_options_check(pass, options, diag));
    lp_vec_push(out, ((pass_step){pass, options}));
  }
  return LP_OK;
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

static lp_status needs_check(const lp_module *module, const lp_pass *pass, lp_module_state is, lp_diag *diag) {
  lp_loc loc = LP_LOC_FILE(module->name);
  if (is >= LP_STATE_PLACED && pass->needs < LP_STATE_PLACED)
    return lp_error(diag, loc, "pass '%s' works on '@main', this module is %s already", pass->name,
                    lp_module_state_name(is));
  if (is >= pass->needs) return LP_OK;
  lp_status status = lp_error(diag, loc, "pass '%s' needs a module that is %s, this one is %s", pass->name,
                              lp_module_state_name(pass->needs), lp_module_state_name(is));
  lp_note(diag, loc, "%s: %s", lp_module_state_name(pass->needs), lp_module_state_meaning(pass->needs));
  return status;
}

/* The fault lies in the pass, or in the text that it read. */
static lp_status makes_check(const lp_module *module, const lp_pass *pass, lp_module_state before, lp_diag *diag) {
  lp_module_state is = lp_module_state_of(module), least = before < pass->breaks ? before : pass->makes;
  if (least < pass->makes) least = pass->makes;
  if (is >= least) return LP_OK;
  return lp_error(diag, LP_LOC_FILE(module->name), "pass '%s' left a module that is %s, should be %s", pass->name,
                  lp_module_state_name(is), lp_module_state_name(least));
}

static lp_status run_step(lp_module *module, const pass_step *step, lp_pass_context *context,
                          const lp_run_options *options) {
  lp_module_state before = lp_module_state_of(module);
  LP_TRY(needs_check(module, step->pass, before, context->diag));
  double start = options->time ? lp_now_ms() : 0;
  context->options = step->options;
  LP_TRY(step->pass->run(module, context));
  LP_TRY(makes_check(module, step->pass, before, context->diag));
  lp_arena_reset(context->scratch);
  if (options->time) options->time(options->user, step->pass->name, lp_now_ms() - start);
  if (options->print && (options->print_after_all || lp_streq(options->print_after, step->pass->name)))
    options->print(options->user, step->pass->name, module);
  if (!options->verify_each) return LP_OK;
  lp_status status = lp_module_verify(module, context->diag);
  if (status != LP_OK) lp_note(context->diag, LP_LOC_FILE(module->name), "after pass '%s'", step->pass->name);
  return status;
}

lp_status lp_passes_run(lp_module *module, const char *pipeline, const lp_compile_request *request,
                        const lp_run_options *options, lp_diag *diag) {
  static const lp_compile_request no_request = {.isl = 512, .osl = 128, .batch = 1, .generation = true};
  static const lp_run_options no_options = {.verify_each = true};
  LP_OWNED(lp_arena_free_at) lp_arena *text = lp_arena_create(), *scratch = lp_arena_create();
  lp_pass_context context = {.diag = diag, .request = request ? request : &no_request, .scratch = scratch};
  LP_OWNED(lp_free_at) steps todo = {0};
  lp_status status = pipeline_parse(pipeline, text, &todo, diag);
  for (size_t i = 0; status == LP_OK && i < todo.count; i++)
    status = run_step(module, &todo.data[i], &context, options ? options : &no_options);
  return status;
}
