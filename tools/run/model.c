/* Compiles a model that is given in place of a bundle, into a cache: see model.h. */
#include "tools/run/model.h"

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/path.h"

/* Tells whether the path is a model, not a bundle. */
static bool is_model(const char *path) {
  static const char *const inside[] = {"config.json", "model.onnx", "decoder_model.onnx", "decoder_model_merged.onnx"};
  if (!lp_path_is_folder(path))
    return lp_path_exists(path) && (lp_has_suffix(path, ".onnx") || lp_has_suffix(path, ".gguf"));
  LP_OWNED(lp_free_at) char *manifest = lp_path_join(path, "manifest.json");
  bool found = false;
  for (size_t i = 0; i < LP_COUNT(inside) && !lp_path_exists(manifest) && !found; i++) {
    LP_OWNED(lp_free_at) char *file = lp_path_join(path, inside[i]);
    found = lp_path_exists(file);
  }
  return found;
}

#ifdef LP_HAS_COMPILER
/* A number for the files of a folder, or of a file's folder, by name, size and time: weights and tokenizer lie beside
 * a model. */
static uint64_t hash_files(const char *folder) {
  uint64_t sum = 0;
  DIR *all = opendir(folder);
  for (const struct dirent *entry; all && (entry = readdir(all));) {
    LP_OWNED(lp_free_at) char *path = lp_path_join(folder, entry->d_name);
    struct stat info;
    if (stat(path, &info) == 0 && S_ISREG(info.st_mode)) {
      const int64_t of[] = {info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec};
      sum += lp_hash_bytes(entry->d_name, strlen(entry->d_name), lp_hash_bytes((const char *)of, sizeof of, 1));
    }
  }
  if (all) (void)closedir(all);
  return sum;
}

/* NULL: there is no home. */
static char *cache_folder(void) {
  const char *root = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  if (root && root[0] == '/') return lp_path_join(root, "llmpart/models");
  return home && home[0] == '/' ? lp_path_join(home, ".cache/llmpart/models") : NULL;
}

/* Makes a folder and those around it; what cannot be made is found out when it is written to. */
static void make_folders(char *path) {
  for (char *at = path + 1; (at = strchr(at, '/')); at++) {
    *at = '\0';
    (void)mkdir(path, 0777);
    *at = '/';
  }
  (void)mkdir(path, 0777);
}

/* FOLDER/NAME-HASH.llmpart */
static char *path_of(const char *folder, const char *given) {
  char *real = realpath(given, NULL),
       *beside = lp_path_is_folder(real ? real : given) ? NULL : lp_path_dir(real ? real : given);
  const char *path = real ? real : given;
  const uint64_t hash = lp_hash_bytes(LP_VERSION, strlen(LP_VERSION),
                                      lp_hash_bytes(path, strlen(path), hash_files(beside ? beside : path)));
  lp_buf out = {0};
  lp_buf_printf(&out, "%s/%.80s-%016" PRIx64 ".llmpart", folder, lp_path_base(path), hash);
  free(beside);
  free(real);
  return out.data;
}

/* Compiles in a process of its own, whose memory is its own too. */
static lp_status compile(const char *model, const char *out, lp_diag *diag) {
  int status = 0;
  const pid_t pid = fork();
  if (pid == 0) {
    (void)dup2(STDERR_FILENO, STDOUT_FILENO);
    (void)execl("/proc/self/exe", "llmpart", "compile", model, "--device=host", "-o", out, "--quiet", (char *)NULL);
    _exit(127);
  }
  if (pid < 0) return lp_error(diag, LP_LOC_FILE(model), "cannot start the compiler: %s", strerror(errno));
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
    continue;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return LP_OK;
  return lp_error(diag, LP_LOC_FILE(model), "it does not compile: `llmpart support %s` says more", model);
}

static lp_status bundle_of_model(const char *model, char **out, lp_diag *diag) {
  char *folder = cache_folder();
  if (!folder)
    return lp_error(diag, LP_LOC_FILE(model),
                    "a model, and there is neither XDG_CACHE_HOME nor HOME for its bundle: compile it with -o");
  make_folders(folder);
  *out = path_of(folder, model);
  free(folder);
  if (lp_path_exists(*out)) return LP_OK;
  lp_note(diag, LP_LOC_FILE(model), "a model: it is compiled for this machine once, into %s", *out);
  return compile(model, *out, diag);
}
#endif

lp_status lp_tool_bundle_of(const char *given, char **out, lp_diag *diag) {
  *out = NULL;
  LP_TRY(lp_tool_refuse_id(given, diag));
#ifdef LP_HAS_COMPILER
  if (is_model(given)) {
    const lp_status status = bundle_of_model(given, out, diag);
    if (status == LP_OK) return LP_OK;
    free(*out);
    *out = NULL;
    return status;
  }
#endif
  *out = lp_strdup(given);
  return LP_OK;
}
