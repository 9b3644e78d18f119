/* Python with ONNX Runtime as a child process; onnxruntime.py describes the messages. */
#include "tools/equal/onnxruntime.h"
#include "frontend/frontend.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NO_PACKAGE = 2, MOST_TEXT = 1 << 16 };

struct lp_onnxruntime {
  const char *model; /* borrowed */
  char *embedding;   /* owned; NULL: there is no such file beside the model */
  pid_t pid;
  int socket;
  bool refused;
};

extern char **environ;
extern const char lp_onnxruntime_script[];

static const char *python(void) {
  const char *own = getenv("LLMPART_PYTHON");
  return own && own[0] ? own : "python3";
}

/* ---- bytes ------------------------------------------------------------------------------------------------------- */

/* If Python has ended, the write fails, without a SIGPIPE. */
static lp_status put(const lp_onnxruntime *r, const void *data, size_t size, lp_diag *diag) {
  for (const char *at = data; size > 0;) {
    ssize_t sent = send(r->socket, at, size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return lp_error(diag, LP_LOC_FILE(r->model), "lost '%s': %s", python(), strerror(errno));
    at += sent;
    size -= (size_t)sent;
  }
  return LP_OK;
}

static lp_status get(const lp_onnxruntime *r, void *data, size_t size, lp_diag *diag) {
  for (char *at = data; size > 0;) {
    ssize_t got = recv(r->socket, at, size, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return lp_error(diag, LP_LOC_FILE(r->model), "'%s' ended without an answer", python());
    at += got;
    size -= (size_t)got;
  }
  return LP_OK;
}

static lp_status put_word(const lp_onnxruntime *r, int64_t word, lp_diag *diag) {
  return put(r, &word, sizeof word, diag);
}

static lp_status put_text(const lp_onnxruntime *r, const char *text, lp_diag *diag) {
  return put(r, text, strlen(text), diag);
}

/* Reads the status word of an answer. If it is not 0, a text follows, which becomes the diagnostic. */
static lp_status get_status(lp_onnxruntime *r, lp_diag *diag) {
  int64_t status, length;
  r->refused = false;
  LP_TRY(get(r, &status, sizeof status, diag));
  if (status == 0) return LP_OK;
  LP_TRY(get(r, &length, sizeof length, diag));
  size_t size = length < 0 ? 0 : length > MOST_TEXT ? MOST_TEXT : (size_t)length;
  LP_OWNED(lp_free_at) char *text = lp_alloc(size + 1);
  lp_status got = get(r, text, size, diag);
  if (got == LP_OK && status == NO_PACKAGE) {
    lp_report_error(diag, LP_LOC_FILE("--against"), "'%s' has no ONNX Runtime: %s", python(), text);
    lp_note(diag, LP_LOC_NONE, "PyPI's package 'onnxruntime' provides it; LLMPART_PYTHON names the Python that has it");
  } else if (got == LP_OK) {
    lp_report_error(diag, LP_LOC_FILE(r->model), "ONNX Runtime: %s", text);
    r->refused = true;
  }
  return LP_FAILED;
}

/* ---- the process ------------------------------------------------------------------------------------------------- */

/* Starts Python with its end of the socket as descriptor 0 and with stderr as its output. */
static int spawn(lp_onnxruntime *r, int its_end, int64_t threads) {
  char count[24];
  (void)snprintf(count, sizeof count, "%" PRId64, threads);
  const char *argv[] = {python(), "-c", lp_onnxruntime_script, r->model, count, r->embedding, NULL};
  posix_spawn_file_actions_t actions;
  int failure = posix_spawn_file_actions_init(&actions);
  if (failure != 0) return failure;
  failure = posix_spawn_file_actions_adddup2(&actions, its_end, STDIN_FILENO);
  if (failure == 0) failure = posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  if (failure == 0) failure = posix_spawnp(&r->pid, argv[0], &actions, NULL, (char *const *)(uintptr_t)argv, environ);
  (void)posix_spawn_file_actions_destroy(&actions);
  return failure;
}

static lp_status start(lp_onnxruntime *r, int64_t threads, lp_diag *diag) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return lp_error(diag, LP_LOC_FILE(python()), "cannot make a socket: %s", strerror(errno));
  r->socket = ends[0];
  int failure = spawn(r, ends[1], threads);
  (void)close(ends[1]);
  if (failure == 0) return get_status(r, diag);
  r->pid = 0;
  lp_status status = lp_error(diag, LP_LOC_FILE("--against"), "cannot run '%s': %s", python(), strerror(failure));
  lp_note(diag, LP_LOC_NONE, "LLMPART_PYTHON names a Python that has PyPI's package 'onnxruntime'");
  return status;
}

lp_status lp_onnxruntime_open(const char *model, int64_t threads, lp_onnxruntime **out, lp_diag *diag) {
  lp_onnxruntime *r = lp_alloc(sizeof *r);
  *r = (lp_onnxruntime){.model = model, .embedding = lp_onnx_find_embedding(model), .socket = -1};
  lp_status status = start(r, threads, diag);
  if (status == LP_OK)
    *out = r;
  else
    lp_onnxruntime_close(r);
  return status;
}

void lp_onnxruntime_close(lp_onnxruntime *r) {
  if (!r) return;
  if (r->socket >= 0) (void)close(r->socket); /* Python ends when it reads the end of the socket */
  while (r->pid > 0 && waitpid(r->pid, NULL, 0) < 0 && errno == EINTR) {
  }
  free(r->embedding);
  free(r);
}

bool lp_onnxruntime_refused(const lp_onnxruntime *r) {
  return r && r->refused;
}

/* ---- arrays ------------------------------------------------------------------------------------------------------ */

static const struct {
  lp_dtype dtype;
  int64_t onnx; /* TensorProto.DataType */
} types[] = {{LP_F32, 1},  {LP_U8, 2},   {LP_I8, 3},   {LP_U16, 4},  {LP_I16, 5},  {LP_I32, 6},  {LP_I64, 7},
             {LP_BOOL, 9}, {LP_F16, 10}, {LP_F64, 11}, {LP_U32, 12}, {LP_U64, 13}, {LP_BF16, 16}};

static lp_status measure(const lp_onnxruntime *r, const lp_array *array, size_t *size, lp_diag *diag) {
  *size = (size_t)lp_dtype_bits(array->dtype) / 8;
  for (int32_t i = 0; i < array->rank; i++)
    if (array->dim[i] < 0 || !lp_size_mul(*size, (size_t)array->dim[i], size))
      return lp_error(diag, LP_LOC_FILE(r->model), "an array is too large");
  return LP_OK;
}

static lp_status put_array(const lp_onnxruntime *r, const lp_named_array *input, lp_diag *diag) {
  const lp_array *array = &input->array;
  size_t size, type = 0;
  while (type < LP_COUNT(types) && types[type].dtype != array->dtype)
    type++;
  if (type == LP_COUNT(types))
    return lp_error(diag, LP_LOC_FILE(r->model), "input '%s' is %s, which cannot be given to ONNX Runtime", input->name,
                    lp_dtype_name(array->dtype));
  LP_TRY(measure(r, array, &size, diag));
  LP_TRY(put_word(r, types[type].onnx, diag));
  LP_TRY(put_word(r, array->rank, diag));
  LP_TRY(put(r, array->dim, (size_t)array->rank * sizeof *array->dim, diag));
  LP_TRY(put_word(r, (int64_t)strlen(input->name), diag));
  LP_TRY(put_word(r, (int64_t)size, diag));
  LP_TRY(put_text(r, input->name, diag));
  return put(r, array->data, size, diag);
}

static lp_status get_array(const lp_onnxruntime *r, lp_arena *arena, lp_array *out, lp_diag *diag) {
  int64_t head[2], bytes;
  size_t size, type = 0;
  LP_TRY(get(r, head, sizeof head, diag));
  while (type < LP_COUNT(types) && types[type].onnx != head[0])
    type++;
  if (type == LP_COUNT(types) || head[1] < 0 || head[1] > LP_MAX_RANK)
    return lp_error(diag, LP_LOC_FILE(r->model), "ONNX Runtime gave an array of type %" PRId64 " and rank %" PRId64,
                    head[0], head[1]);
  *out = (lp_array){.dtype = types[type].dtype, .rank = (int32_t)head[1]};
  LP_TRY(get(r, out->dim, (size_t)head[1] * sizeof *out->dim, diag));
  LP_TRY(get(r, &bytes, sizeof bytes, diag));
  LP_TRY(measure(r, out, &size, diag));
  if (bytes != (int64_t)size) return lp_error(diag, LP_LOC_FILE(r->model), "ONNX Runtime gave an array of wrong size");
  out->data = lp_arena_alloc(arena, size + 1);
  return get(r, out->data, size, diag);
}

lp_status lp_onnxruntime_run(lp_onnxruntime *r, const lp_named_array *inputs, size_t count, const char *const *wanted,
                             size_t wanted_count, lp_arena *arena, lp_array *found, lp_diag *diag) {
  LP_TRY(put_word(r, (int64_t)count, diag));
  LP_TRY(put_word(r, (int64_t)wanted_count, diag));
  for (size_t i = 0; i < count; i++)
    LP_TRY(put_array(r, &inputs[i], diag));
  for (size_t i = 0; i < wanted_count; i++) {
    LP_TRY(put_word(r, (int64_t)strlen(wanted[i]), diag));
    LP_TRY(put_text(r, wanted[i], diag));
  }
  LP_TRY(get_status(r, diag));
  for (size_t i = 0; i < wanted_count; i++)
    LP_TRY(get_array(r, arena, &found[i], diag));
  return LP_OK;
}
