/* Writes the deployment of a fleet: see fleet.h. */
#include "fleet/deploy.h"
#include "base/dir.h"
#include "base/file.h"
#include "base/path.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <sys/stat.h>

extern const char lp_fleet_sandbox[]; /* tools/install/sandbox.conf */

/* ---- pools ------------------------------------------------------------------------------------------------------- */

/* `name` as a DNS label of at most 48 letters: "My Board,price=1" gives "my-board-price-1". */
static void put_label(const char *name, lp_buf *out) {
  const size_t from = out->size;
  for (; *name && out->size - from < 48; name++) {
    const bool plain = isalnum((unsigned char)*name) && (unsigned char)*name < 128;
    if (plain || (out->size > from && out->data[out->size - 1] != '-'))
      lp_buf_printf(out, "%c", plain ? tolower((unsigned char)*name) : '-');
  }
  if (out->size > from && out->data[out->size - 1] == '-') lp_buf_puts(out, "x");
  if (out->size == from) lp_buf_puts(out, "x");
}

static void name_label(char *out, size_t size, const char *prefix, int64_t index, const char *name) {
  LP_OWNED(lp_buf_free) lp_buf text = {0};
  if (prefix) lp_buf_printf(&text, "%s-%" PRId64 "-", prefix, index);
  put_label(name, &text);
  (void)snprintf(out, size, "%s", lp_buf_text(&text));
}

/* Requests in flight at a machine, spare ones among them. */
static double in_flight(const lp_fleet_spec *spec, const lp_fleet_plan *plan, const lp_fleet_pool *pool) {
  double answer = 0, sum = 0;
  for (size_t i = 0; i < spec->lengths.count; i++)
    answer += spec->lengths.data[i].weight * spec->lengths.data[i].answer;
  for (size_t i = 0; i < spec->classes.count; i++) {
    const lp_fleet_times *times = &plan->place[i].times;
    if (pool->classes >> i & 1)
      sum += spec->classes.data[i].share * spec->rate *
             (times->value_s[LP_FLEET_TTFT][0] + (answer - 1) * times->value_s[LP_FLEET_TPOT][0]);
  }
  return sum / (double)pool->count;
}

static lp_deploy_pool describe(const lp_fleet_spec *spec, const lp_fleet_plan *plan, int32_t index) {
  const lp_fleet_pool *pool = &plan->pool[index];
  const lp_load_lengths lengths = lp_fleet_lengths(spec);
  lp_deploy_pool out = {.spec = spec, .pool = pool, .kind = &spec->kinds.data[pool->kind], .is_serve = pool->cut == 0};
  name_label(out.machine, sizeof out.machine, NULL, 0, out.kind->machine->name);
  const char *region = lp_fleet_region_of(spec, out.kind->region).name;
  if (region) name_label(out.region, sizeof out.region, NULL, 0, region);
  name_label(out.name, sizeof out.name, "pool", index, out.kind->machine->name);
  const double longest = (double)lengths.longest / (double)(lengths.kept > 0 ? lengths.kept : 1);
  out.cache_mib = (int64_t)ceil(pool->session_bytes * ((double)(pool->sessions - 1) + fmax(1, longest)) / 1048576);
  for (size_t i = 0; i < spec->lengths.count; i++)
    out.longest = (int64_t)fmax((double)out.longest, ceil(spec->lengths.data[i].answer));
  out.requests_a_pod = in_flight(spec, plan, pool);
  return out;
}

/* The first class of a pool. */
static size_t first_class(const lp_fleet_pool *pool) {
  size_t i = 0;
  while (!(pool->classes >> i & 1))
    i++;
  return i;
}

static lp_status check_devices(const lp_fleet_spec *spec, const lp_fleet_plan *plan, lp_diag *diag) {
  for (size_t i = 0; i < spec->classes.count; i++) {
    if (plan->place[i].pool < 0 || plan->pool[plan->place[i].pool].cut == 0) continue;
    const lp_fleet_class *one = &spec->classes.data[i],
                         *first = &spec->classes.data[first_class(&plan->pool[plan->place[i].pool])];
    if (!lp_streq(one->device_name, first->device_name))
      return lp_error_as(LP_INFEASIBLE, diag, LP_LOC_FILE(spec->path),
                         "pool %" PRId32
                         " serves '%s' on %s and '%s' on %s in one cut, and a worker serves one bundle: "
                         "plan classes with different devices as fleets of their own to deploy them",
                         plan->place[i].pool, first->name, first->device_name, one->name, one->device_name);
  }
  return LP_OK;
}

/* ---- bundles ----------------------------------------------------------------------------------------------------- */

/* A text as one word of a shell. */
static void put_word(const char *text, lp_buf *out) {
  lp_buf_puts(out, "'");
  for (; *text; text++)
    if (*text == '\'')
      lp_buf_puts(out, "'\\''");
    else
      lp_buf_printf(out, "%c", *text);
  lp_buf_puts(out, "'");
}

static void put_option(const char *option, const char *text, lp_buf *out) {
  if (!text) return;
  lp_buf_printf(out, " --%s=", option);
  put_word(text, out);
}

/* What all bundles have in common. They are planned for the longest request. */
static void put_rest(const lp_fleet_spec *spec, const char *name, lp_buf *out) {
  lp_fleet_length longest = spec->lengths.data[0];
  for (size_t i = 1; i < spec->lengths.count; i++) {
    const lp_fleet_length *other = &spec->lengths.data[i];
    if (other->prompt + other->answer > longest.prompt + longest.answer) longest = *other;
  }
  lp_buf_printf(out,
                " --isl=%.0f --osl=%.0f --kv-dtype=%s \"$@\" \\\n"
                "  -o \"$here/bundles/%s.llmpart\"\n",
                ceil(longest.prompt), ceil(longest.answer), spec->kv_dtype ? spec->kv_dtype : "f32", name);
}

/* A bundle of one half: `machine` runs all layers. */
static void put_whole(const lp_fleet_spec *spec, const char *name, const char *machine, const char *dtype,
                      lp_buf *out) {
  lp_buf_puts(out, "\"$llmpart\" compile \"$model\"");
  put_option("device", machine, out);
  put_option("dtype-device", dtype, out);
  put_rest(spec, name, out);
}

static void put_split(const lp_deploy_pool *pool, lp_buf *out) {
  const lp_fleet_spec *spec = pool->spec;
  const lp_fleet_class *class = &spec->classes.data[first_class(pool->pool)];
  lp_buf_puts(out, "\"$llmpart\" compile \"$model\"");
  put_option("device", class->device_name, out);
  put_option("cloud", pool->kind->name, out);
  put_option("link", lp_fleet_region_of(spec, pool->kind->region).link_name[first_class(pool->pool)], out);
  put_option("dtype-device", spec->dtype_device, out);
  put_option("dtype-cloud", spec->dtype_cloud, out);
  lp_buf_printf(out, " --cut=%" PRId64, pool->pool->cut - 1);
  if (pool->pool->exits) lp_buf_printf(out, " --exits=%" PRId64, spec->exits.layer);
  put_rest(spec, pool->name, out);
}

static void put_names(const lp_fleet_spec *spec, unsigned classes, lp_buf *out) {
  for (size_t i = 0; i < spec->classes.count; i++)
    if (classes >> i & 1)
      lp_buf_printf(out, "%s %.*s", classes & ((1u << i) - 1) ? "," : "",
                    (int)strcspn(spec->classes.data[i].name, "\r\n"), spec->classes.data[i].name);
  lp_buf_puts(out, "\n");
}

/* The absolute path of a file that exists, or else the path as it is. */
static void put_absolute(const char *path, lp_buf *out) {
  LP_OWNED(lp_free_at) char *absolute = realpath(path, NULL);
  put_word(absolute ? absolute : path, out);
}

static void put_compile(const lp_fleet_spec *spec, const lp_fleet_plan *plan, lp_buf *out) {
  char *folder = lp_path_dir(spec->path), name[80];
  lp_buf_puts(out, "#!/bin/sh\n"
                   "# Compiles the bundles of this deployment into bundles/ beside this script; arguments are further "
                   "options of\n# `llmpart compile`.\nset -eu\n"
                   "here=$(cd \"$(dirname \"$0\")\" && pwd)\n"
                   "llmpart=${LLMPART:-llmpart}\n");
  if (spec->model) {
    lp_buf_puts(out, "model=");
    put_absolute(spec->model, out);
    lp_buf_puts(out, "\n");
  } else {
    lp_buf_puts(out, "model=${MODEL:?is to name the file of the model, of which the fleet has only the shape}\n"
                     "model=$(realpath \"$model\")\n");
  }
  lp_buf_puts(out, "cd ");
  put_absolute(folder, out);
  lp_buf_puts(out, " # to which files of machines and links are relative\nmkdir -p \"$here/bundles\"\n");
  for (int32_t i = 0; i < plan->pools; i++) {
    const lp_deploy_pool pool = describe(spec, plan, i);
    lp_buf_printf(out, "\n# %s:", pool.is_serve ? "All layers in the cloud" : "Split, for the devices and the workers");
    put_names(spec, pool.pool->classes, out);
    if (pool.is_serve)
      put_whole(spec, pool.name, pool.kind->name, spec->dtype_cloud, out);
    else
      put_split(&pool, out);
  }
  for (size_t i = 0; i < spec->classes.count; i++) {
    if (plan->place[i].pool >= 0) continue;
    lp_buf_puts(out, "\n# All layers on the device:");
    put_names(spec, 1u << i, out);
    name_label(name, sizeof name, "class", (int64_t)i, spec->classes.data[i].name);
    put_whole(spec, name, spec->classes.data[i].device_name, spec->dtype_device, out);
  }
  free(folder);
}

/* ---- servers and units ------------------------------------------------------------------------------------------- */

/* What a server compares itself with. Its window has, up to a day, twice the requests that a p99 takes. */
static void put_prediction(const lp_fleet_plan *plan, const lp_deploy_pool *pool, lp_buf *out) {
  lp_fleet_times times;
  double rate;
  lp_fleet_serve_times(pool->spec, plan, pool->pool, &times, &rate);
  lp_buf_printf(out, "prediction:\n  window: %.0fs\n  rate: %.9g\n  busy: %.9g\n",
                fmin(86400, fmax(600, ceil(2000 / rate))), rate, pool->pool->peak_busy);
  for (int i = LP_FLEET_TTFT; i <= LP_FLEET_TPOT; i++) {
    if (times.value_s[i][0] <= 0) continue; /* answers of one token have no TPOT */
    lp_buf_printf(out, "  %s: {", lp_fleet_figure_names[i]);
    for (int k = 0; k < LP_FLEET_QUANTILES; k++)
      lp_buf_printf(out, "%s %s: %.9gms", k > 0 ? "," : "", lp_fleet_quantile_names[k], 1e3 * times.value_s[i][k]);
    lp_buf_puts(out, " }\n");
  }
}

static void put_serve(const lp_deploy_pool *pool, lp_buf *out) {
  lp_buf_printf(out,
                "# A machine of %s. Clients show the key in the environment variable LLMPART_KEY.\n"
                "listen: 0.0.0.0:%d\n"
                "key_env: LLMPART_KEY\n"
                "max_tokens: %" PRId64 "\n"
                "drain: 30s\n"
                "edge: { bundle: bundles/%s.llmpart, parallel: %" PRId64 ", kv_cache: %" PRId64
                "MiB, prompt_stretch: %g, prompt_turn: %" PRId64 " }\n",
                pool->name, LP_DEPLOY_SERVE_PORT, pool->longest, pool->name, pool->pool->sessions, pool->cache_mib,
                pool->pool->policy.stretch, pool->pool->policy.turn);
}

static void put_unit(const lp_deploy_pool *pool, lp_buf *out) {
  lp_buf_printf(out,
                "# For each of the %" PRId64 " machines of %s, with the deployment's folder at " LP_DEPLOY_ROOT ".\n"
                "# /etc/llmpart/deployment.env sets %s.\n"
                "[Unit]\n"
                "Description=llmpart %s of %s\n"
                "Wants=network-online.target\n"
                "After=network-online.target\n\n"
                "[Service]\n"
                "Type=exec\n"
                "EnvironmentFile=/etc/llmpart/deployment.env\n",
                pool->pool->count, pool->name, pool->is_serve ? "LLMPART_KEY" : "LLMPART_METRICS_KEY",
                pool->is_serve ? "serve" : "worker", pool->name);
  if (pool->is_serve)
    lp_buf_printf(out, "ExecStart=/usr/bin/llmpart serve " LP_DEPLOY_ROOT "/%s.serve.yaml\nTimeoutStopSec=60\n",
                  pool->name);
  else
    lp_buf_printf(out,
                  "LoadCredential=link.key:/etc/llmpart/link.key\n"
                  "ExecStart=/usr/bin/llmpart worker " LP_DEPLOY_ROOT "/bundles/%s.llmpart --listen=0.0.0.0:%d "
                  "--key-file=%%d/link.key --context-budget=%" PRId64 "MiB --prompt-stretch=%g --metrics=0.0.0.0:%d\n",
                  pool->name, LP_DEPLOY_WORKER_PORT, pool->cache_mib, pool->pool->policy.stretch,
                  LP_DEPLOY_METRICS_PORT);
  lp_buf_printf(out, "Restart=on-failure\nStateDirectory=llmpart-%s\nWorkingDirectory=%%S/llmpart-%s\n%s", pool->name,
                pool->name, lp_fleet_sandbox);
  if (pool->kind->machine->kind == LP_MACHINE_GPU)
    lp_buf_puts(out, "\n# A GPU's driver has device files, and makes code.\n[Service]\nPrivateDevices=no\n"
                     "MemoryDenyWriteExecute=no\n");
}

/* ---- the folder -------------------------------------------------------------------------------------------------- */

/* Writes a file of the folder, and empties the text. */
static lp_status put_file(const char *folder, const char *under, const char *name, const char *ending, lp_buf *text,
                          lp_diag *diag) {
  LP_OWNED(lp_buf_free) lp_buf path = {0};
  lp_buf_printf(&path, "%s/%s%s%s", folder, under, name, ending);
  const lp_status status = lp_file_write(lp_buf_text(&path), lp_buf_text(text), text->size, diag);
  lp_buf_free(text);
  return status;
}

static lp_status put_pool(const char *folder, const lp_fleet_plan *plan, const lp_deploy_pool *pool, lp_diag *diag) {
  lp_buf text = {0};
  if (pool->is_serve) {
    put_serve(pool, &text);
    put_prediction(plan, pool, &text);
    LP_TRY(put_file(folder, "", pool->name, ".serve.yaml", &text, diag));
  }
  put_unit(pool, &text);
  LP_TRY(put_file(folder, "systemd/llmpart-", pool->name, ".service", &text, diag));
  lp_deploy_kubernetes(pool, &text);
  return put_file(folder, "kubernetes/", pool->name, ".yaml", &text, diag);
}

static lp_status make_folder(const char *folder, const char *name, lp_diag *diag) {
  LP_OWNED(lp_free_at) char *path = lp_path_join(folder, name);
  const lp_status status =
      mkdir(path, 0777) == 0 ? LP_OK : lp_error(diag, LP_LOC_FILE(path), "cannot make it: %s", strerror(errno));
  return status;
}

static lp_status fill(const lp_fleet_spec *spec, const lp_fleet_plan *plan, const char *folder, lp_diag *diag) {
  lp_buf text = {0};
  lp_fleet_write(spec, plan, "json", &text);
  LP_TRY(put_file(folder, "fleet", "", ".json", &text, diag));
  put_compile(spec, plan, &text);
  LP_TRY(put_file(folder, "compile", "", ".sh", &text, diag));
  if (plan->pools == 0) return LP_OK;
  LP_TRY(make_folder(folder, "systemd", diag));
  LP_TRY(make_folder(folder, "kubernetes", diag));
  for (int32_t i = 0; i < plan->pools; i++) {
    const lp_deploy_pool pool = describe(spec, plan, i);
    LP_TRY(put_pool(folder, plan, &pool, diag));
  }
  return LP_OK;
}

lp_status lp_fleet_check_folder(const char *path, lp_diag *diag) {
  if (lp_dir_is_vacant(path)) return LP_OK;
  return lp_error(diag, LP_LOC_FILE(path), "the folder is not empty: name another one for the deployment, or empty it");
}

lp_status lp_fleet_deploy(const lp_fleet_spec *spec, const lp_fleet_plan *plan, const char *path, lp_diag *diag) {
  char *folder;
  LP_TRY(check_devices(spec, plan, diag));
  LP_TRY(lp_fleet_check_folder(path, diag));
  LP_TRY(lp_dir_begin(path, &folder, diag));
  lp_status status = fill(spec, plan, folder, diag);
  if (status == LP_OK)
    status = lp_dir_commit(folder, path, diag);
  else
    lp_dir_abandon(folder);
  free(folder);
  return status;
}
