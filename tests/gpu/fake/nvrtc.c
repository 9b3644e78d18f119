/* A stand-in for NVIDIA's run-time compiler: kernels are compiled for this processor against cuda_host.h, each with an
 * entry that fake/cuda.c calls. The environment sets its behaviour:
 *   LP_FAKE_NVRTC_ARCHS  the GPUs it knows: "80,90" (50 to 90)
 *   LP_FAKE_NVRTC_TENSOR 1: kernels use tensor cores, which cuda_host.h imitates, slowly
 *   LP_FAKE_NVRTC_CHECK  1: a race between threads ends the program with a message (cuda_check.cpp)
 *   LP_FAKE_NVRTC_WITHOUT  N: the N-th barrier of the source, or wait for copies, is left out, to see what notices it
 *   LP_FAKE_NVRTC_LOG    a file that gets the options of each compilation, a line each
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#ifdef LP_FAKE_OLD /* as of CUDA 10.2 */
#define NEWER __attribute__((visibility("hidden")))
enum { MAJOR = 10 };
#else
#define NEWER EXPORT
enum { MAJOR = 12 };
#endif
enum { NVRTC_SUCCESS = 0, NVRTC_ERROR_INVALID_OPTION = 5, NVRTC_ERROR_COMPILATION = 6, MOST_ARCHS = 64 };

typedef struct {
  char *source, *code, log[4096];
  size_t size;
} program;

EXPORT int nvrtcVersion(int *major, int *minor);
NEWER int nvrtcGetNumSupportedArchs(int *count);
NEWER int nvrtcGetSupportedArchs(int *archs);
EXPORT int nvrtcCreateProgram(program **out, const char *source, const char *name, int headers,
                              const char *const *texts, const char *const *names);
EXPORT int nvrtcCompileProgram(program *p, int count, const char *const *options);
EXPORT int nvrtcGetProgramLogSize(program *p, size_t *size);
EXPORT int nvrtcGetProgramLog(program *p, char *log);
NEWER int nvrtcGetCUBINSize(program *p, size_t *size);
NEWER int nvrtcGetCUBIN(program *p, char *code);
EXPORT int nvrtcGetPTXSize(program *p, size_t *size);
EXPORT int nvrtcGetPTX(program *p, char *code);
EXPORT int nvrtcDestroyProgram(program **p);

/* NULL: it cannot be read. */
static char *read_file(const char *path, size_t *size) {
  FILE *file = fopen(path, "rb");
  struct stat facts;
  if (!file) return NULL;
  *size = stat(path, &facts) == 0 ? (size_t)facts.st_size : 0;
  char *data = calloc(1, *size + 1);
  if (!data || fread(data, 1, *size, file) != *size) *size = 0;
  fclose(file);
  return data;
}

static int is_on(const char *setting) {
  const char *text = getenv(setting);
  return text && atoi(text) != 0;
}

static int has_tensor(void) {
  return is_on("LP_FAKE_NVRTC_TENSOR");
}

static int checks(void) {
  return is_on("LP_FAKE_NVRTC_CHECK");
}

static unsigned hash_file(const char *path, unsigned sum) {
  size_t size = 0;
  char *text = read_file(path, &size);
  for (size_t i = 0; i < size; i++)
    sum = sum * 31 + (unsigned char)text[i];
  free(text);
  return sum;
}

/* A hash of the files that kernels are compiled with, so that cached code is not used after they change. */
int nvrtcVersion(int *major, int *minor) {
  unsigned sum = hash_file(LP_TEST_DIR "/cuda_check.cpp", hash_file(LP_TEST_DIR "/cuda_host.h", 0));
  *major = MAJOR;
  *minor = 100 + (int)(sum % 1000000) * 4 + checks() * 2 + has_tensor();
  return NVRTC_SUCCESS;
}

static int known_archs(int out[MOST_ARCHS]) {
  const char *at = getenv("LP_FAKE_NVRTC_ARCHS");
  int count = 0;
  if (!at) at = "50,53,60,61,70,72,75,80,86,87,89,90";
  while (*at != '\0' && count < MOST_ARCHS) {
    char *end;
    out[count++] = (int)strtol(at, &end, 10);
    at = *end == ',' ? end + 1 : end;
  }
  return count;
}

int nvrtcGetNumSupportedArchs(int *count) {
  int archs[MOST_ARCHS];
  *count = known_archs(archs);
  return NVRTC_SUCCESS;
}

int nvrtcGetSupportedArchs(int *archs) {
  int all[MOST_ARCHS], count = known_archs(all);
  memcpy(archs, all, (size_t)count * sizeof *all);
  return NVRTC_SUCCESS;
}

int nvrtcCreateProgram(program **out, const char *source, const char *name, int headers, const char *const *texts,
                       const char *const *names) {
  (void)name, (void)headers, (void)texts, (void)names;
  *out = calloc(1, sizeof **out);
  (*out)->source = strdup(source);
  return NVRTC_SUCCESS;
}

/* ---- compiling --------------------------------------------------------------------------------------------------- */

static int is_known(const char *option) {
  static const char prefix[] = "--gpu-architecture=";
  int archs[MOST_ARCHS], count = known_archs(archs);
  const char *digits = strrchr(option, '_');
  if (strncmp(option, prefix, sizeof prefix - 1) != 0 || !digits) return 0;
  for (int i = 0; i < count; i++)
    if (atoi(digits + 1) == archs[i]) return 1;
  return 0;
}

static void note_compilation(int count, const char *const *options) {
  const char *path = getenv("LP_FAKE_NVRTC_LOG");
  FILE *file = path ? fopen(path, "a") : NULL;
  if (!file) return;
  for (int i = 0; i < count; i++)
    fprintf(file, "%s%s", i ? " " : "", options[i]);
  fputs("\n", file);
  fclose(file);
}

/* Writes an entry for each kernel: the sizes of its parameters, and a function that launches it. */
static void write_entries(FILE *file, const char *source) {
  static const char head[] = "extern \"C\" __global__ void ", bounds[] = "LP_BOUNDS(";
  if (strstr(source, head) == NULL) return;
  fputs("#include <utility>\n"
        "template <class... P, size_t... I>\n"
        "void lp_fake_call(void (*kernel)(P...), unsigned x, unsigned y, unsigned z, int threads, void *const *args,\n"
        "                  std::index_sequence<I...>) {\n"
        "  lp_cuda_host_launch(dim3(x, y, z), threads, [=] { kernel(*(P *)args[I]...); });\n"
        "}\n"
        "template <class... P> size_t lp_fake_size(void (*)(P...), size_t i) {\n"
        "  const size_t sizes[] = {sizeof(P)..., 0};\n"
        "  return i < sizeof...(P) ? sizes[i] : 0;\n"
        "}\n"
        "template <class... P>\n"
        "void lp_fake_launch(void (*kernel)(P...), unsigned x, unsigned y, unsigned z, int threads, void *const *args) "
        "{\n"
        "  lp_fake_call(kernel, x, y, z, threads, args, std::index_sequence_for<P...>());\n"
        "}\n",
        file);
  for (const char *at = source; (at = strstr(at, head)) != NULL;) {
    at += sizeof head - 1;
    if (strncmp(at, bounds, sizeof bounds - 1) == 0) at += strcspn(at, ")") + 2;
    int length = (int)strcspn(at, "( \n");
    fprintf(
        file,
        "extern \"C\" size_t lp_fake_size_%.*s(size_t i) { return lp_fake_size(%.*s, i); }\n"
        "extern \"C\" void lp_fake_launch_%.*s(unsigned x, unsigned y, unsigned z, int threads, void *const *args) {\n"
        "  lp_fake_launch(%.*s, x, y, z, threads, args);\n}\n",
        length, at, length, at, length, at, length, at);
  }
}

/* Overwrites a call with spaces. */
static void leave_out(char *source, int wanted) {
  static const char *const calls[] = {"__syncthreads();", "copies_wait<"};
  for (char *at = source; *at != '\0'; at++)
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
      if (strncmp(at, calls[i], strlen(calls[i])) == 0 && --wanted == 0) memset(at, ' ', strcspn(at, ";"));
}

static int compile_in(program *p, const char *folder) {
  char text[256], from[256], object[256], to[256], said[256], command[2048];
  snprintf(text, sizeof text, "%s/kernels.cuh", folder);
  snprintf(from, sizeof from, "%s/entries.cpp", folder);
  snprintf(object, sizeof object, "%s/entries.o", folder);
  snprintf(to, sizeof to, "%s/kernels.so", folder);
  snprintf(said, sizeof said, "%s/said", folder);
  const char *without = getenv("LP_FAKE_NVRTC_WITHOUT");
  FILE *file = fopen(text, "w");
  if (!file) return NVRTC_ERROR_COMPILATION;
  if (without) leave_out(p->source, atoi(without));
  fputs(p->source, file);
  fclose(file);
  file = fopen(from, "w");
  if (!file) return NVRTC_ERROR_COMPILATION;
  fputs("#include \"kernels.cuh\"\n", file);
  write_entries(file, p->source);
  fclose(file);
  snprintf(command, sizeof command,
           "exec 2>%s; " LP_TEST_CXX
           " -std=c++14 -O1 -Wall -Werror -Wno-unknown-pragmas -Wno-unused-function -fno-strict-aliasing -fPIC "
           "-DLP_TENSOR=%d -DLP_CUDA_HOST='\"" LP_TEST_DIR "/cuda_host.h\"' %s -c %s -o %s && " LP_TEST_CXX
           " -shared -fPIC -O2 %s %s -o %s",
           said, has_tensor(), checks() ? "-DLP_CHECK -fsanitize=thread" : "", from, object, object,
           checks() ? LP_CUDA_CHECK : "", to);
  size_t size = 0;
  int status = system(command) == 0 ? NVRTC_SUCCESS : NVRTC_ERROR_COMPILATION;
  char *log = read_file(said, &size);
  snprintf(p->log, sizeof p->log, "%.*s", (int)sizeof p->log - 1, log ? log : "");
  free(log);
  if (status == NVRTC_SUCCESS) p->code = read_file(to, &p->size);
  unlink(text), unlink(from), unlink(object), unlink(to), unlink(said);
  return status;
}

int nvrtcCompileProgram(program *p, int count, const char *const *options) {
  char folder[] = "/tmp/lp_nvrtc_XXXXXX";
  if (count < 1 || !is_known(options[0])) {
    snprintf(p->log, sizeof p->log, "invalid value for --gpu-architecture");
    return NVRTC_ERROR_INVALID_OPTION;
  }
  note_compilation(count, options);
  if (mkdtemp(folder) == NULL) return NVRTC_ERROR_COMPILATION;
  int status = compile_in(p, folder);
  rmdir(folder);
  return status;
}

/* ---- results ----------------------------------------------------------------------------------------------------- */

int nvrtcGetProgramLogSize(program *p, size_t *size) {
  *size = strlen(p->log) + 1;
  return NVRTC_SUCCESS;
}

int nvrtcGetProgramLog(program *p, char *log) {
  memcpy(log, p->log, strlen(p->log) + 1);
  return NVRTC_SUCCESS;
}

int nvrtcGetCUBINSize(program *p, size_t *size) {
  *size = p->size;
  return NVRTC_SUCCESS;
}

int nvrtcGetCUBIN(program *p, char *code) {
  memcpy(code, p->code, p->size);
  return NVRTC_SUCCESS;
}

int nvrtcGetPTXSize(program *p, size_t *size) {
  return nvrtcGetCUBINSize(p, size);
}

int nvrtcGetPTX(program *p, char *code) {
  return nvrtcGetCUBIN(p, code);
}

int nvrtcDestroyProgram(program **p) {
  free((*p)->source);
  free((*p)->code);
  free(*p);
  *p = NULL;
  return NVRTC_SUCCESS;
}
