/* Bundles: the files of the manifest exist, weights are a valid safetensors file, equal input gives equal bytes, and a
 * failure leaves no files. */
#include "base/digest.h"
#include "base/dir.h"
#include "base/file.h"
#include "base/path.h"
#include "harness.h"
#include "tests/suite.h"

#include <dirent.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Tokens to logits on two sides: the device embeds and sends, the cloud multiplies; the table serves both. */
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
    "    %6 = \"op.linear\"(%3, %1) {buffer = array<i64: 1>, segment = 0 : i64, side = \"cloud\", transpose_b = true} "
    ": "
    "(tensor<?x?x8xf32, [\"b\", \"s\"]>, tensor<10x8xf32>) -> tensor<?x?x10xf32, [\"b\", \"s\"]>\n"
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
  const char *at = strstr(text, "FILE");
  lp_buf_append(&whole, text, (size_t)(at - text));
  lp_buf_puts(&whole, weights);
  lp_buf_puts(&whole, at + 4);
  lp_module *module = NULL;
  lp_status status = lp_module_parse("m.mlir", lp_buf_text(&whole), whole.size, &module, diag);
  if (status != LP_OK) ck_abort_msg("%s", lp_diag_get(diag, 0)->text);
  module->directory = folder;
  lp_buf_free(&whole);
  return module;
}

static void write_weights(void) {
  float data[80];
  for (int i = 0; i < 80; i++)
    data[i] = (float)i;
  char *path = lp_path_join(folder, "w.bin");
  ck_assert_int_eq(lp_file_write(path, data, sizeof data, diag), LP_OK);
  free(path);
}

static lp_status write_bundle(const char *weights, const char *name, const char *backend) {
  lp_module *module = parse(weights);
  lp_bundle_request request = {.backend = {lp_backend_find(backend), lp_backend_find(backend)},
                               .options = {{.side = LP_SIDE_DEVICE, .march = "x86-64-v3", .opt_level = 3},
                                           {.side = LP_SIDE_CLOUD, .march = "armv8-a", .opt_level = 3}},
                               .report_json = "{}\n",
                               .context = 128,
                               .vocab = 10};
  char *path = lp_path_join(folder, name);
  lp_status status = lp_bundle_write(module, &request, path, diag);
  free(path);
  lp_module_free(module);
  return status;
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
  write_weights();
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
  write_weights();
  ck_assert_int_eq(write_bundle("w.bin", "a.llmpart", "cpu"), LP_OK);
  static const struct {
    const char *path, *dtype;
    int64_t bytes;
  } cases[] = {{"device/weights.safetensors", "F32", 320}, {"cloud/weights.safetensors", "F32", 32 * 8 * 4}};
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
      ck_assert_int_eq(bytes, cases[i].bytes);
    }
    ck_assert_int_eq(end, cases[i].bytes);
    ck_assert_uint_eq(size, 8 + header + (uint64_t)end);
    json_decref(root);
    free(data);
  }
}

LP_TEST(equal_input_gives_equal_bytes) {
  write_weights();
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

LP_TEST(failure_leaves_nothing) {
  write_weights();
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
