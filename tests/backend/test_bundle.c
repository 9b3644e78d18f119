/* Bundles: the files of the manifest exist, weights are a valid safetensors file, equal input gives equal bytes, and a
 * failure leaves no files. */
#include "backend/constants.h"
#include "base/digest.h"
#include "base/dir.h"
#include "base/file.h"
#include "base/path.h"
#include "harness.h"
#include "tests/suite.h"

#include <dirent.h>
#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Tokens to logits on two sides: the device embeds and sends, the cloud multiplies and adds a bias; the table serves
 * both. */
static const char text[] =
    "\"builtin.module\"() ({\n"
    "  \"llmpart.state\"() {append_axis = 2 : i64, dtype = \"f32\", index = 0 : i64, name = \"layer.0.k\", shape = "
    "#llmpart.polys<\"b, 2, c, 4\">} : () -> ()\n"
    "  \"llmpart.func\"() ({\n"
    "  ^bb0(%0: tensor<?x?xi64, [\"b\", \"s\"]>):\n"
    "    %1 = \"llmpart.weight\"() {file = \"FILE\", length = 320 : i64, offset = 0 : i64} : () -> tensor<10x8xf32>\n"
    "    %2 = \"op.gather\"(%1, %0) {axis = 0 : i64, buffer = array<i64: 1>, segment = 0 : i64, side = \"device\"} : "
    "(tensor<10x8xf32>, tensor<?x?xi64, [\"b\", \"s\"]>) -> tensor<?x?x8xf32, [\"b\", \"s\"]>\n"
    "    \"comm.send\"(%2) {from = \"device\", tag = 0 : i64, to = \"cloud\"} : (tensor<?x?x8xf32, [\"b\", \"s\"]>) -> "
    "()\n"
    "    %3 = \"comm.recv\"() {buffer = array<i64: 0>, from = \"device\", tag = 0 : i64, to = \"cloud\"} : () -> "
    "tensor<?x?x8xf32, [\"b\", \"s\"]>\n"
    "    %4 = \"op.reshape\"(%3) {buffer = array<i64: 0>, segment = 0 : i64, side = \"cloud\"} : (tensor<?x?x8xf32, "
    "[\"b\", \"s\"]>) -> tensor<?x?x2x4xf32, [\"b\", \"s\"]>\n"
    "    %5 = \"op.kv_append\"(%4) {buffer = array<i64: -1>, layout = \"bshd\", segment = 0 : i64, side = \"cloud\", "
    "state = 0 : i64} : (tensor<?x?x2x4xf32, [\"b\", \"s\"]>) -> tensor<?x2x?x4xf32, [\"b\", \"p + s\"]>\n"
    "    %7 = \"llmpart.weight\"() {file = \"FILE\", length = 40 : i64, offset = 0 : i64} : () -> tensor<10xf32>\n"
    "    %6 = \"op.linear\"(%3, %1, %7) {buffer = array<i64: 1>, segment = 0 : i64, side = \"cloud\", transpose_b = "
    "true} "
    ": "
    "(tensor<?x?x8xf32, [\"b\", \"s\"]>, tensor<10x8xf32>, tensor<10xf32>) -> tensor<?x?x10xf32, [\"b\", \"s\"]>\n"
    "    \"llmpart.return\"(%6) : (tensor<?x?x10xf32, [\"b\", \"s\"]>) -> ()\n"
    "  }) {arg_buffer_cloud = array<i64: -1>, arg_buffer_device = array<i64: 0>, input_roles = [\"tokens\"], inputs = "
    "[\"input_ids\"], output_roles = [\"logits\"], outputs = [\"logits\"], slot_cloud = array<i64: 0, 1>, slot_device "
    "= "
    "array<i64: 0, 1>, sym_name = \"decode\"} : () -> ()\n"
    "}) {llmpart.name = \"m.onnx\", llmpart.symbols = [\"b\", \"s\", \"p\", \"r\", \"c\", \"t\"]} : () -> ()\n";

static char *folder; /* of this test; its content goes at the end */
static lp_diag *diag;

static void set_up(void) {
  folder = harness_temporary("-bundles");
  ck_assert_int_eq(mkdir(folder, 0777), 0);
  diag = lp_diag_create();
}

static void tear_down(void) {
  lp_dir_abandon(folder);
  free(folder);
  lp_diag_free(diag);
}

LP_CASE(.setup = set_up, .teardown = tear_down, .timeout = 120);

static lp_module *parse(const char *weights) {
  lp_buf whole = {0};
  const char *from = text;
  for (const char *at; (at = strstr(from, "FILE")); from = at + 4) {
    lp_buf_append(&whole, from, (size_t)(at - from));
    lp_buf_puts(&whole, weights);
  }
  lp_buf_puts(&whole, from);
  lp_module *module = NULL;
  lp_status status = lp_module_parse("m.mlir", lp_buf_text(&whole), whole.size, &module, diag);
  if (status != LP_OK) ck_abort_msg("%s", lp_diag_get(diag, 0)->text);
  module->directory = folder;
  lp_buf_free(&whole);
  return module;
}

static void write_weights(float step) {
  float data[80];
  for (int i = 0; i < 80; i++)
    data[i] = step * (float)i;
  char *path = lp_path_join(folder, "w.bin");
  ck_assert_int_eq(lp_file_write(path, data, sizeof data, diag), LP_OK);
  free(path);
}

/* Calls of the progress, the first of which may end the process, and what the first reported. */
typedef struct {
  int calls, deadly; /* the number of the call that kills; 0: none */
  uint64_t taken;
} progress;

static void on_progress(void *user, const char *place, const char *what, uint64_t done, uint64_t all) {
  progress *p = user;
  (void)place, (void)what;
  ck_assert_uint_gt(all, 0);
  if (p->calls++ == 0) p->taken = done;
  if (p->calls == p->deadly) (void)kill(getpid(), SIGKILL);
}

static lp_status write_watched(const char *weights, const char *name, const char *backend, progress *watched) {
  lp_module *module = parse(weights);
  lp_bundle_request request = {.backend = {lp_backend_find(backend), lp_backend_find(backend)},
                               .options = {{.side = LP_SIDE_DEVICE, .march = "x86-64-v3", .opt_level = 3},
                                           {.side = LP_SIDE_CLOUD, .march = "armv8-a", .opt_level = 3}},
                               .report_json = "{}\n",
                               .context = 128,
                               .vocab = 10,
                               .progress = watched ? on_progress : NULL,
                               .user = watched};
  char *path = lp_path_join(folder, name);
  lp_status status = lp_bundle_write(module, &request, path, diag);
  free(path);
  lp_module_free(module);
  return status;
}

static lp_status write_bundle(const char *weights, const char *name, const char *backend) {
  return write_watched(weights, name, backend, NULL);
}

static char *read_file(const char *bundle, const char *name, size_t *size) {
  char *inner = lp_path_join(bundle, name), *path = lp_path_join(folder, inner), *data = NULL;
  if (lp_file_read(path, &data, size, diag) != LP_OK) ck_abort_msg("cannot read %s", path);
  free(path);
  free(inner);
  return data;
}

static json_t *read_manifest(const char *bundle) {
  size_t size;
  char *data = read_file(bundle, "manifest.json", &size);
  json_t *root = json_loadb(data, size, JSON_REJECT_DUPLICATES, NULL);
  ck_assert_ptr_nonnull(root);
  free(data);
  return root;
}

static const char *text_at(const json_t *object, const char *key) {
  const char *value = json_string_value(json_object_get(object, key));
  ck_assert_msg(value != NULL, "no text '%s'", key);
  return value;
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

static void check_files(const json_t *root, const char *bundle) {
  const char *name;
  json_t *file;
  json_object_foreach(json_object_get(root, "files"), name, file) {
    size_t size;
    char hex[65], *data = read_file(bundle, name, &size);
    lp_sha256 sha;
    lp_sha256_init(&sha);
    lp_sha256_update(&sha, data, size);
    lp_sha256_hex(&sha, hex);
    ck_assert_str_eq(text_at(file, "sha256"), hex);
    ck_assert_int_eq(json_integer_value(json_object_get(file, "bytes")), (int64_t)size);
    ck_assert_uint_eq(strtoul(text_at(file, "crc32c"), NULL, 16), lp_crc32c(0, data, size));
    free(data);
  }
}

/* "input send run output" */
static void step_names(const json_t *program, lp_buf *out) {
  size_t index;
  json_t *step;
  json_array_foreach(json_object_get(program, "steps"), index, step) {
    lp_buf_printf(out, "%s%s", index ? " " : "", text_at(step, "op"));
  }
}

LP_TEST(manifest_describes_the_bundle) {
  write_weights(1);
  ck_assert_int_eq(write_bundle("w.bin", "a.llmpart", "cpu"), LP_OK);
  json_t *root = read_manifest("a.llmpart");
  ck_assert_str_eq(text_at(root, "schema"), "llmpart.bundle/1");
  ck_assert_str_eq(text_at(root, "name"), "m");
  ck_assert_uint_eq(json_object_size(json_object_get(root, "files")), 6);
  check_files(root, "a.llmpart");
  json_t *sides = json_object_get(root, "sides"), *state = json_array_get(json_object_get(root, "states"), 0);
  ck_assert_str_eq(text_at(json_object_get(sides, "device"), "triple"), "x86_64-unknown-linux-gnu");
  ck_assert_str_eq(text_at(json_object_get(sides, "cloud"), "triple"), "aarch64-unknown-linux-gnu");
  ck_assert_str_eq(json_string_value(json_array_get(json_object_get(state, "sides"), 0)), "cloud");
  ck_assert_uint_eq(json_array_size(json_object_get(state, "sides")), 1);
  json_t *program = json_object_get(json_object_get(root, "programs"), "decode");
  lp_buf steps = {0};
  step_names(program, &steps);
  ck_assert_str_eq(lp_buf_text(&steps), "input run send run output");
  ck_assert_int_eq(json_integer_value(json_object_get(json_object_get(program, "buffers"), "device")), 3);
  lp_buf_free(&steps);
  json_decref(root);
}

/* Data begins at a multiple of 64; tensors follow each other without gap or overlap, and each has the size of its
 * shape. */
LP_TEST(weights_are_valid_safetensors) {
  write_weights(1);
  ck_assert_int_eq(write_bundle("w.bin", "a.llmpart", "cpu"), LP_OK);
  static const struct {
    const char *path, *dtype;
    int64_t bytes;
  } cases[] = {{"device/weights.safetensors", "F32", 320}, {"cloud/weights.safetensors", "F32", 32 * 8 * 4 + 32 * 4}};
  for (size_t i = 0; i < LP_COUNT(cases); i++) {
    size_t size;
    uint64_t header;
    char *data = read_file("a.llmpart", cases[i].path, &size);
    memcpy(&header, data, 8);
    ck_assert_uint_eq((header + 8) % 64, 0);
    json_t *root = json_loadb(data + 8, header, 0, NULL), *tensor;
    ck_assert_ptr_nonnull(root);
    const char *name;
    int64_t end = 0;
    json_object_foreach(root, name, tensor) {
      json_t *offsets = json_object_get(tensor, "data_offsets"), *dim;
      int64_t bytes = 4;
      size_t k;
      json_array_foreach(json_object_get(tensor, "shape"), k, dim) bytes *= json_integer_value(dim);
      ck_assert_str_eq(text_at(tensor, "dtype"), cases[i].dtype);
      ck_assert_int_eq(json_integer_value(json_array_get(offsets, 0)), end);
      end = json_integer_value(json_array_get(offsets, 1));
      ck_assert_int_eq(bytes, end - json_integer_value(json_array_get(offsets, 0)));
    }
    ck_assert_int_eq(end, cases[i].bytes);
    ck_assert_uint_eq(size, 8 + header + (uint64_t)end);
    json_decref(root);
    free(data);
  }
}

LP_TEST(equal_input_gives_equal_bytes) {
  write_weights(1);
  ck_assert_int_eq(write_bundle("w.bin", "a.llmpart", "cpu"), LP_OK);
  ck_assert_int_eq(write_bundle("w.bin", "b.llmpart", "cpu"), LP_OK);
  size_t size[2];
  char *data[2] = {read_file("a.llmpart", "manifest.json", &size[0]),
                   read_file("b.llmpart", "manifest.json", &size[1])};
  ck_assert_uint_eq(size[0], size[1]); /* it holds every other file's hash */
  ck_assert_mem_eq(data[0], data[1], size[0]);
  free(data[0]);
  free(data[1]);
}

static int entries(void) {
  DIR *dir = opendir(folder);
  int count = 0;
  ck_assert_ptr_nonnull(dir);
  for (const struct dirent *entry; (entry = readdir(dir));)
    count += entry->d_name[0] != '.' || strlen(entry->d_name) > 2;
  closedir(dir);
  return count;
}

/* ---- compilations that were killed ------------------------------------------------------------------------------- */

static void check_equal(const char *bundle, const char *wanted) {
  size_t size[2];
  char *data[2] = {read_file(bundle, "manifest.json", &size[0]), read_file(wanted, "manifest.json", &size[1])};
  ck_assert_uint_eq(size[0], size[1]);
  ck_assert_mem_eq(data[0], data[1], size[0]);
  json_t *root = read_manifest(bundle);
  check_files(root, bundle);
  json_decref(root);
  char *path = lp_path_join(folder, bundle);
  ck_assert_int_eq(lp_bundle_check_path(path, diag), LP_OK); /* it holds nothing else */
  free(path);
  free(data[0]);
  free(data[1]);
}

/* Kills a compilation in its call `deadly` of the progress; false: it has fewer. */
static bool kill_one(const char *name, int deadly) {
  progress watched = {.deadly = deadly};
  int status = 0;
  const pid_t child = fork();
  if (child == 0) _exit(write_watched("w.bin", name, "cpu", &watched) == LP_OK ? 0 : 1);
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
  return WIFSIGNALED(status);
}

static uint64_t weights_size(const char *bundle, const char *name) {
  size_t size;
  free(read_file(bundle, name, &size));
  return size;
}

/* Each place has a call for its code, its header and each constant: one of the device, two of the cloud. A constant is
 * finished once the next call comes. */
LP_TEST(finished_weights_are_taken_over) {
  write_weights(1);
  ck_assert_int_eq(write_bundle("w.bin", "whole.llmpart", "cpu"), LP_OK);
  const uint64_t device = weights_size("whole.llmpart", "device/weights.safetensors"),
                 cloud = weights_size("whole.llmpart", "cloud/weights.safetensors");
  int deadly = 1;
  for (; kill_one("a.llmpart", deadly); deadly++) {
    progress watched = {0};
    ck_assert_int_eq(write_watched("w.bin", "a.llmpart", "cpu", &watched), LP_OK);
    if (deadly < 4)
      ck_assert_uint_eq(watched.taken, 0);
    else if (deadly < 7)
      ck_assert_uint_eq(watched.taken, device);
    else
      ck_assert(watched.taken > device && watched.taken < device + cloud);
    check_equal("a.llmpart", "whole.llmpart");
    ck_assert_int_eq(entries(), 3); /* w.bin and two bundles: what was left is gone */
  }
  ck_assert_int_eq(deadly, 8);
}

/* A second compilation may be killed too. */
LP_TEST(what_was_taken_over_is_taken_over_again) {
  write_weights(1);
  ck_assert_int_eq(write_bundle("w.bin", "whole.llmpart", "cpu"), LP_OK);
  ck_assert(kill_one("a.llmpart", 4));
  ck_assert(kill_one("a.llmpart", 1));
  progress watched = {0};
  ck_assert_int_eq(write_watched("w.bin", "a.llmpart", "cpu", &watched), LP_OK);
  ck_assert_uint_eq(watched.taken, weights_size("whole.llmpart", "device/weights.safetensors"));
  check_equal("a.llmpart", "whole.llmpart");
}

LP_TEST(weights_of_a_changed_source_are_made_again) {
  write_weights(1);
  ck_assert(kill_one("a.llmpart", 7));
  write_weights(2);
  progress watched = {0};
  ck_assert_int_eq(write_watched("w.bin", "a.llmpart", "cpu", &watched), LP_OK);
  ck_assert_uint_eq(watched.taken, 0);
  ck_assert_int_eq(write_bundle("w.bin", "whole.llmpart", "cpu"), LP_OK);
  check_equal("a.llmpart", "whole.llmpart");
}

/* The path of a file in the folder that the killed compilation of a.llmpart left. */
static char *path_in_left(const char *name) {
  DIR *dir = opendir(folder);
  char *path = NULL;
  ck_assert_ptr_nonnull(dir);
  for (const struct dirent *entry; (entry = readdir(dir)) && !path;)
    if (lp_has_prefix(entry->d_name, ".a.llmpart.temporary-")) {
      char *left = lp_path_join(folder, entry->d_name);
      path = lp_path_join(left, name);
      free(left);
    }
  closedir(dir);
  ck_assert_ptr_nonnull(path);
  return path;
}

LP_TEST(weights_that_were_spoiled_are_made_again) {
  static const char *const names[] = {"device/weights.safetensors", ".finished"};
  write_weights(1);
  ck_assert_int_eq(write_bundle("w.bin", "whole.llmpart", "cpu"), LP_OK);
  for (size_t i = 0; i < LP_COUNT(names); i++) {
    ck_assert(kill_one("a.llmpart", 4));
    char *path = path_in_left(names[i]);
    FILE *file = fopen(path, "r+e");
    ck_assert_ptr_nonnull(file);
    (void)fseek(file, i == 0 ? -1 : 3, i == 0 ? SEEK_END : SEEK_SET); /* the last element, or the key */
    (void)fputc('!', file);
    (void)fclose(file);
    free(path);
    progress watched = {0};
    ck_assert_int_eq(write_watched("w.bin", "a.llmpart", "cpu", &watched), LP_OK);
    ck_assert_uint_eq(watched.taken, 0);
    check_equal("a.llmpart", "whole.llmpart");
  }
}

/* ---- units ------------------------------------------------------------------------------------------------------- */

enum { UNIT_BYTES = 100000, UNITS = 31 };

/* Every second turn of two units takes longer, so that threads finish in another order. */
static void make_unit(const void *user, int64_t index, void *scratch, void *out) {
  (void)user;
  memset(scratch, (int)index, UNIT_BYTES);
  if (index / 2 % 2 == 0) (void)usleep(2000);
  memcpy(out, scratch, UNIT_BYTES);
}

LP_TEST(units_are_put_in_order) {
  const lp_units units = {.count = UNITS, .bytes = UNIT_BYTES, .scratch = UNIT_BYTES, .make = make_unit};
  char *path = lp_path_join(folder, "units");
  lp_writer *writer;
  size_t size;
  ck_assert_int_eq(lp_writer_open(path, &writer, diag), LP_OK);
  lp_put_units(writer, &units);
  ck_assert_int_eq(lp_writer_commit(writer, diag), LP_OK);
  free(path);
  char *data = read_file("", "units", &size);
  ck_assert_uint_eq(size, (size_t)UNITS * UNIT_BYTES);
  for (size_t i = 0; i < size; i++)
    ck_assert_msg(data[i] == (char)(i / UNIT_BYTES), "byte %zu is of unit %d", i, data[i]);
  free(data);
}

LP_TEST(failure_leaves_nothing) {
  write_weights(1);
  ck_assert_int_eq(write_bundle("absent.bin", "a.llmpart", "cpu"), LP_FAILED);
  ck_assert_uint_eq(lp_diag_error_count(diag), 1);
  ck_assert_int_eq(entries(), 1); /* w.bin */
  lp_diag_clear(diag);
  ck_assert_int_eq(write_bundle("w.bin", "absent/a.llmpart", "cpu"), LP_FAILED);
  ck_assert_uint_eq(lp_diag_error_count(diag), 1);
  ck_assert_int_eq(entries(), 1);
  lp_diag_clear(diag);
  ck_assert_int_eq(write_bundle("w.bin", "w.bin", "cpu"), LP_FAILED); /* a file is in the way */
  ck_assert_int_eq(entries(), 1);
}

/* A weight that its file cuts short. */
LP_TEST(short_weight_is_refused) {
  char *path = lp_path_join(folder, "w.bin");
  ck_assert_int_eq(lp_file_write(path, "1234", 4, diag), LP_OK);
  free(path);
  ck_assert_int_eq(write_bundle("w.bin", "a.llmpart", "cpu"), LP_FAILED);
  ck_assert_ptr_nonnull(strstr(lp_diag_get(diag, 0)->text, "320 bytes"));
  ck_assert_int_eq(entries(), 1);
}

LP_TEST(null_backend_writes_a_bundle) {
  ck_assert_int_eq(write_bundle("absent.bin", "a.llmpart", "null"), LP_OK);
  json_t *root = read_manifest("a.llmpart");
  ck_assert_uint_eq(json_object_size(json_object_get(root, "files")), 2); /* plan and report */
  json_decref(root);
}
