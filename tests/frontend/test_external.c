/* External data: only regular files of the model's folder, at offsets and lengths that they have. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "frontend/frontend.h"
#include "tests/frontend/onnx_writer.h"
#include "tests/suite.h"

static const float numbers[2] = {3, 4};

/* y = x + w, w of f32[2] at `offset` of `location`. */
static lp_buf with_weight(lp_buf tensor) {
  lp_buf graph = {0};
  onnx_input(&graph, "x", ONNX_F32, "n 2");
  onnx_initializer(&graph, tensor);
  onnx_add(&graph, onnx_node("Add", "x w", "y"));
  onnx_output(&graph, "y", ONNX_F32, NULL);
  return onnx_model(&graph, 17);
}

static lp_buf located(const char *location) {
  return with_weight(onnx_external("w", ONNX_F32, "2", location, "0", "8"));
}

/* Imports the model. `text` NULL: expects the weight 3 4; else expects one error that contains `text`. The folder
 * stays. */
static void expect(lp_buf model, const char *text) {
  lp_diag *diag = lp_diag_create();
  lp_module *module = onnx_import(&model, diag);
  lp_tensor tensor;
  ck_assert_msg((module == NULL) == (text != NULL), "%s", onnx_message(diag, 0));
  ck_assert_uint_eq(lp_diag_error_count(diag), text != NULL);
  if (text) ck_assert_msg(strstr(onnx_message(diag, 0), text), "found '%s', wanted '%s'", onnx_message(diag, 0), text);
  if (module) {
    const lp_op *sum = onnx_result(module, 0);
    ck_assert_int_eq(lp_weight_data(module, lp_op_in(sum, 1), &tensor, diag), LP_OK);
    ck_assert_int_eq(memcmp(tensor.data, numbers, sizeof numbers), 0);
  }
  lp_module_free(module);
  lp_diag_free(diag);
}

static void link_to(const char *target, const char *name) {
  ck_assert_int_eq(symlink(target, onnx_path(name)), 0);
}

/* The path of a file next to the test's folder, in a buffer that the next call overwrites. */
static const char *outside(void) {
  static char path[512];
  snprintf(path, sizeof path, "%s.outside", onnx_folder());
  ck_assert_int_eq(lp_file_write(path, numbers, sizeof numbers, NULL), LP_OK);
  return path;
}

LP_TEST(files_of_the_folder) {
  onnx_write("w.bin", numbers, sizeof numbers);
  ck_assert_int_eq(mkdir(onnx_path("deep"), 0777), 0);
  onnx_write("deep/w.bin", numbers, sizeof numbers);
  expect(located("w.bin"), NULL);
  expect(located("./w.bin"), NULL);
  expect(located("deep/w.bin"), NULL);
  expect(located("deep//./w.bin"), NULL);
  onnx_cleanup();
}

LP_TEST(links_within_the_folder) {
  onnx_write("w.bin", numbers, sizeof numbers);
  ck_assert_int_eq(mkdir(onnx_path("deep"), 0777), 0);
  link_to("w.bin", "same");
  link_to("deep/../same", "chain");
  link_to("../w.bin", "deep/up");
  link_to("deep", "folder");
  expect(located("same"), NULL);
  expect(located("chain"), NULL);
  expect(located("deep/up"), NULL);
  expect(located("folder/up"), NULL);
  onnx_cleanup();
}

LP_TEST(ways_out) {
  char target[600];
  const char *file = outside(), *name = lp_path_base(file);
  ck_assert_int_eq(mkdir(onnx_path("deep"), 0777), 0);
  snprintf(target, sizeof(target), "../%s", name);
  expect(located(file), "is absolute");
  expect(located(target), "climbs with '..'");
  expect(located("deep/../../w.bin"), "climbs with '..'");
  expect(located(".."), "climbs with '..'");
  expect(located("..\\w.bin"), "has a backslash");
  expect(located(""), "is empty");
  link_to(target, "relative");
  link_to(file, "absolute");
  link_to("..", "deep/parent");
  link_to("../..", "deep/grandparent");
  expect(located("relative"), "leads out of the folder through a symbolic link");
  expect(located("absolute"), "leads out of the folder through a symbolic link");
  snprintf(target, sizeof(target), "deep/grandparent/%s", name);
  expect(located(target), "leads out of the folder through a symbolic link");
  expect(located("deep/parent"), "is not a regular file");
  link_to("loop", "loop");
  expect(located("loop"), "goes through too many symbolic links");
  ck_assert_int_eq(unlink(file), 0);
  onnx_cleanup();
}

LP_TEST(what_is_no_file) {
  ck_assert_int_eq(mkdir(onnx_path("deep"), 0777), 0);
  ck_assert_int_eq(mkfifo(onnx_path("pipe"), 0666), 0); /* opening it would wait for a writer */
  expect(located("pipe"), "is not a regular file");
  expect(located("deep"), "is not a regular file");
  expect(located("deep/"), "is not a regular file");
  expect(located("nothing"), "its file 'nothing' does not exist");
  expect(located("pipe/w.bin"), "does not exist");
  onnx_cleanup();
}

LP_TEST(a_name_with_nul) {
  lp_buf tensor = {0}, entry = {0};
  onnx_write("w.bin", numbers, sizeof numbers);
  onnx_varint(&tensor, 1, 2);
  onnx_varint(&tensor, 2, ONNX_F32);
  onnx_text(&tensor, 8, "w");
  onnx_text(&entry, 1, "location");
  onnx_bytes(&entry, 2, "w.bin\0/../../etc/passwd", 23);
  onnx_sub(&tensor, 13, &entry);
  onnx_varint(&tensor, 14, 1);
  expect(with_weight(tensor), "has a NUL byte in it");
  onnx_cleanup();
}

LP_TEST(two_locations) {
  lp_buf tensor = onnx_external("w", ONNX_F32, "2", "w.bin", "0", "8"), entry = {0};
  onnx_text(&entry, 1, "location");
  onnx_text(&entry, 2, "other.bin");
  onnx_sub(&tensor, 13, &entry);
  expect(with_weight(tensor), "tensor 'w' has two external locations");
  onnx_cleanup();
}

LP_TEST(numbers_that_are_none) {
  static const char *const offsets[] = {"-4", "+4", " 4", "4 ", "0x10", "1e3", "", "99999999999999999999"};
  onnx_write("w.bin", numbers, sizeof numbers);
  for (size_t i = 0; i < LP_COUNT(offsets); i++)
    expect(with_weight(onnx_external("w", ONNX_F32, "2", "w.bin", offsets[i], "8")), "is not a size");
  expect(with_weight(onnx_external("w", ONNX_F32, "2", "w.bin", "9223372036854775807", "8")), "which has 8");
  onnx_cleanup();
}

/* Offsets beyond 2 and 4 GiB, in a file that takes no room. */
LP_TEST(beyond_four_gigabytes) {
  int64_t offset = ((int64_t)5 << 30) + 4096;
  char text[32];
  onnx_write("w.bin", "", 0);
  int fd = open(onnx_path("w.bin"), O_WRONLY);
  ck_assert_int_ge(fd, 0);
  bool room = pwrite(fd, numbers, sizeof numbers, offset) == (ssize_t)sizeof numbers;
  close(fd);
  snprintf(text, sizeof text, "%" PRId64, offset);
  if (room) expect(with_weight(onnx_external("w", ONNX_F32, "2", "w.bin", text, "8")), NULL);
  snprintf(text, sizeof text, "%" PRId64, offset + 4);
  if (room) expect(with_weight(onnx_external("w", ONNX_F32, "2", "w.bin", text, "8")), "ends at byte 5368713228");
  onnx_cleanup();
}

/* The named file is trusted, also if it is a link; external data lies in the folder of the link, not of its target. */
LP_TEST(a_model_behind_a_link) {
  lp_buf model = with_weight(onnx_tensor("w", ONNX_F32, "2", numbers, sizeof numbers));
  ck_assert_int_eq(mkdir(onnx_path("blobs"), 0777), 0);
  onnx_write("blobs/0123", model.data, model.size);
  lp_buf_free(&model);
  ck_assert_int_eq(mkdir(onnx_path("snapshot"), 0777), 0);
  link_to("../blobs/0123", "snapshot/model.onnx");
  lp_module *module = NULL;
  ck_assert_int_eq(lp_onnx_import(onnx_path("snapshot/model.onnx"), NULL, &module, NULL), LP_OK);
  lp_module_free(module);
  onnx_cleanup();
}

/* Two tensors of one region are tied weights; those that share a part are an exporter's mistake. */
LP_TEST(overlaps) {
  lp_diag *diag = lp_diag_create();
  float data[4] = {3, 4, 5, 6};
  onnx_write("w.bin", data, sizeof data);
  for (int shift = 0; shift <= 8; shift += 4) {
    char offset[8];
    snprintf(offset, sizeof offset, "%d", shift);
    lp_buf graph = {0};
    onnx_input(&graph, "x", ONNX_F32, "n 2");
    onnx_initializer(&graph, onnx_external("v", ONNX_F32, "2", "w.bin", "0", "8"));
    onnx_initializer(&graph, onnx_external("w", ONNX_F32, "2", "w.bin", offset, "8"));
    onnx_add(&graph, onnx_node("Sum", "x v w", "y"));
    onnx_output(&graph, "y", ONNX_F32, NULL);
    lp_buf model = onnx_model(&graph, 17);
    lp_module *module = onnx_import(&model, diag);
    ck_assert(module != NULL);
    ck_assert_uint_eq(lp_diag_count(diag), shift == 4);
    if (shift == 4) ck_assert(strstr(onnx_message(diag, 0), "'v' and 'w' overlap in 'w.bin' from byte 4 on"));
    lp_diag_clear(diag);
    lp_module_free(module);
  }
  lp_diag_free(diag);
  onnx_cleanup();
}
