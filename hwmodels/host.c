/* The machine that llmpart runs on: measured once (host_measure.c), then read back from the user's cache folder, so
 * that two compilations on one machine give the same plan. */
#include "base/cores.h"
#include "base/file.h"
#include "base/path.h"
#include "hwmodels/hwmodels_internal.h"

#include <ctype.h>
#include <math.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- figures from the system ---- */

static size_t core_count(void) {
  cpu_set_t set;
  int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  return count > 0 ? (size_t)count : 1;
}

/* The size of the last-level cache as the system lists it for the first core; 0 when it lists none. */
static double listed_cache_bytes(void) {
  double bytes = 0;
  for (int index = 0; index < 8; index++) {
    char path[64], *text = NULL, *unit = NULL;
    size_t size = 0;
    (void)snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/size", index);
    if (lp_file_read(path, &text, &size, NULL) != LP_OK) break;
    double value = strtod(text, &unit);
    bytes = fmax(bytes, value * (*unit == 'K' ? 1 << 10 : *unit == 'M' ? 1 << 20 : 1));
    free(text);
  }
  return bytes;
}

/* In a virtual machine sysconf multiplies the size by the number of cores and may give ten times too much. */
static double cache_bytes(void) {
  double listed = listed_cache_bytes();
  if (listed > 0) return listed;
  long level3 = sysconf(_SC_LEVEL3_CACHE_SIZE), level2 = sysconf(_SC_LEVEL2_CACHE_SIZE);
  return level3 > 0 ? (double)level3 : level2 > 0 ? (double)level2 : 0;
}

static const char *cpu_name(lp_arena *arena) {
  char *text = NULL;
  size_t size = 0;
  const char *name = "a processor that does not name itself";
  if (lp_file_read("/proc/cpuinfo", &text, &size, NULL) != LP_OK) return name;
  const char *line = strstr(text, "model name");
  const char *value = line ? strstr(line, ": ") : NULL;
  if (value) name = lp_arena_strndup(arena, value + 2, strcspn(value + 2, "\n"));
  free(text);
  return name;
}

double lp_hw_rounded(double value) {
  char text[32];
  snprintf(text, sizeof text, "%.3g", value);
  return strtod(text, NULL);
}

static void fill_in(lp_machine *m, size_t cores) {
  const double cache = cache_bytes();
  const lp_host_rates rates = lp_host_measure(cores, cache);
  const double flops = lp_hw_rounded(rates.flops);
  m->kind = LP_MACHINE_CPU;
  static const char *const measured = "measured here, all cores at once";
  static const char *const widened = "as f32, which f16 and bf16 are widened to";
  struct {
    lp_hw_figure figure;
    double value;
    const char *source;
  } rows[] = {
      {LP_HW_PEAK_F32, flops, measured},
      {LP_HW_PEAK_F16, flops, widened},
      {LP_HW_PEAK_BF16, flops, widened},
      {LP_HW_BANDWIDTH, lp_hw_rounded(rates.bandwidth), measured},
      {LP_HW_MEMORY, (double)lp_machine_memory(), "sysconf, or the control group's limit"},
      {LP_HW_CACHE, cache, "the last level, as the system lists it"},
      {LP_HW_CACHE_BANDWIDTH, lp_hw_rounded(rates.cache_bandwidth), measured},
      {LP_HW_COMPUTE_UTILISATION, 0.8, "assumed: the share of the multiply-add rate that a blocked GEMM reaches"},
      {LP_HW_MEMORY_UTILISATION, 0.9, "assumed: the share of the read rate that a GEMV reaches"},
      {LP_HW_LAUNCH, 0.002, "assumed: one barrier and the loop around it"},
      {LP_HW_PRICE, lp_hw_rounded((double)cores * 0.0446 / 3600),
       "USD 0.0446 per vCPU and hour: AWS c7i on demand, us-east-1, 2024"},
      {LP_HW_POWER, (double)cores * 5, "assumed: 5 W per core"},
  };
  for (size_t i = 0; i < LP_COUNT(rows); i++) {
    m->figure[rows[i].figure] = rows[i].value;
    m->source[rows[i].figure] = rows[i].source;
  }
}

/* ---- cache ---- */

/* A sanitizer slows the measurement many times, so such a build keeps a file of its own. */
#if defined(__SANITIZE_ADDRESS__)
#define BUILD "-sanitized"
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define BUILD "-sanitized"
#endif
#endif
#if !defined(BUILD)
#define BUILD ""
#endif

/* Appends the letters and digits of a title in small letters, with one '-' for what is between them. */
static void put_plain(const char *title, lp_buf *out) {
  for (const char *c = title; *c; c++)
    if (isalnum((unsigned char)*c))
      lp_buf_printf(out, "%c", tolower((unsigned char)*c));
    else if (out->size > 0 && out->data[out->size - 1] != '-')
      lp_buf_puts(out, "-");
}

/* The file for a machine of this title, so that machines may share the folder; NULL when there is no cache folder. */
static char *cache_path(const char *title) {
  const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  if (!(cache && *cache == '/') && !(home && *home == '/')) return NULL;
  LP_OWNED(lp_free_at) char *root = cache && *cache == '/' ? lp_strdup(cache) : lp_path_join(home, ".cache");
  LP_OWNED(lp_free_at) char *folder = lp_path_join(root, "llmpart");
  mkdir(root, 0777);
  mkdir(folder, 0777);
  LP_OWNED(lp_buf_free) lp_buf name = {0};
  lp_buf_puts(&name, "host-" LP_VERSION BUILD "-");
  put_plain(title, &name);
  lp_buf_puts(&name, ".yaml");
  return lp_path_join(folder, lp_buf_text(&name));
}

/* The kept measurement, if it was made on this processor with this number of cores. */
static lp_machine *kept(const char *path, const char *title) {
  char *text = NULL;
  size_t size = 0;
  lp_machine *machine = NULL;
  if (lp_file_read(path, &text, &size, NULL) != LP_OK) return NULL;
  lp_status status = lp_hw_parse(path, text, size, &machine, NULL);
  free(text);
  if (status == LP_OK && lp_streq(machine->title, title)) return machine;
  lp_hw_free(machine);
  return NULL;
}

bool lp_hw_keep_host(const lp_machine *machine) {
  LP_OWNED(lp_free_at) char *path = cache_path(machine->title);
  LP_OWNED(lp_buf_free) lp_buf text = {0};
  lp_hw_print(machine, &text);
  return path && lp_file_write(path, text.data, text.size, NULL) == LP_OK;
}

/* Creates the machine without figures. */
static lp_machine *create_host(size_t cores) {
  lp_machine *machine = lp_alloc(sizeof *machine);
  machine->arena = lp_arena_create();
  machine->predictor = &lp_hw_roofline;
  machine->name = "host";
  machine->target = lp_target_host;
  machine->title = lp_arena_format(machine->arena, "%s, %zu cores", cpu_name(machine->arena), cores);
  return machine;
}

lp_machine *lp_hw_measure_host(void) {
  size_t cores = core_count();
  lp_machine *machine = create_host(cores);
  fill_in(machine, cores);
  return machine;
}

/* The file that the environment names in place of a measurement; NULL: none. */
static const char *given_file(void) {
  const char *path = getenv("LLMPART_HOST");
  return path && *path ? path : NULL;
}

static lp_status load_given(const char *path, lp_machine **out, lp_diag *diag) {
  char *text = NULL;
  size_t size = 0;
  LP_TRY(lp_file_read(path, &text, &size, diag));
  lp_status status = lp_hw_parse(path, text, size, out, diag);
  free(text);
  if (status != LP_OK) return status;
  (*out)->name = "host";
  (*out)->target = lp_target_host;
  return LP_OK;
}

bool lp_hw_host_is_given(void) {
  return given_file() != NULL;
}

char *lp_hw_host_path(void) {
  lp_machine *machine = create_host(core_count());
  char *path = cache_path(machine->title);
  lp_hw_free(machine);
  return path;
}

lp_status lp_hw_host(lp_machine **out, lp_diag *diag) {
  *out = NULL;
  if (given_file()) return load_given(given_file(), out, diag);
  size_t cores = core_count();
  lp_machine *machine = create_host(cores);
  char *path = cache_path(machine->title);
  lp_machine *old = path ? kept(path, machine->title) : NULL;
  if (old) {
    lp_hw_free(machine);
    machine = old;
    machine->target = lp_target_host; /* files of older versions lack it */
  } else {
    fill_in(machine, cores);
    (void)lp_hw_keep_host(machine); /* A folder that cannot be written is not an error: the next use measures again. */
  }
  free(path);
  *out = machine;
  return LP_OK;
}
