/* The loader of shared objects: code that was linked as emitted code is works, other objects are refused, and damaged
 * ones are refused or harmless. */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "runtime/bundle/object.h"
#include "tests/suite.h"

static char *data;
static size_t size;

static void read_object(const char *path) {
  ck_assert_int_eq(lp_file_read(path, &data, &size, NULL), LP_OK);
}
static void teardown(void) {
  free(data);
}

LP_CASE(.teardown = teardown);

static lp_object *open_object(void) {
  lp_object *object = NULL;
  ck_assert_int_eq(lp_object_open("code.so", data, size, &object, NULL), LP_OK);
  return object;
}

static void expect_refused(const char *text) {
  lp_diag *diag = lp_diag_create();
  lp_object *object = NULL;
  ck_assert_int_eq(lp_object_open("code.so", data, size, &object, diag), LP_FAILED);
  ck_assert_ptr_null(object);
  ck_assert_uint_eq(lp_diag_error_count(diag), 1);
  const lp_diag_entry *entry = lp_diag_get(diag, 0);
  ck_assert_msg(strstr(entry->text, text), "wanted '%s' in '%s'", text, entry->text);
  ck_assert_str_eq(entry->loc.file, "code.so");
  lp_diag_free(diag);
}

/* ISO C has no conversion from object to function pointers. */
typedef union {
  void *found;
  int (*sum)(int a, int b);
  void (*copy)(char *to, const char *from, size_t bytes);
} symbol;

LP_TEST(code_and_data_work) {
  read_object(LP_TEST_OBJECT);
  lp_object *object = open_object();
  const symbol sum = {lp_object_find(object, "lp_sum")}, copy = {lp_object_find(object, "lp_copy")};
  int *number = lp_object_find(object, "lp_number"), *zeros = lp_object_find(object, "lp_zeros");
  const char *const *words = lp_object_find(object, "lp_words");
  ck_assert(sum.found && copy.found && number && zeros && words);
  ck_assert_int_eq(sum.sum(1, 2), 45);
  *number = -3; /* lp_place points to it */
  ck_assert_int_eq(sum.sum(1, 2), 0);
  ck_assert_str_eq(words[1], "two");
  for (int i = 0; i < 1000; i++)
    ck_assert_int_eq(zeros[i], 0);
  char to[8] = "";
  copy.copy(to, "copied", 7);
  ck_assert_str_eq(to, "copied");
  lp_object_close(object);
}

/* Two loads of one file share nothing. */
LP_TEST(objects_are_apart) {
  read_object(LP_TEST_OBJECT);
  lp_object *first = open_object(), *second = open_object();
  int *one = lp_object_find(first, "lp_number"), *other = lp_object_find(second, "lp_number");
  *one = 7;
  ck_assert_int_eq(*other, 42);
  lp_object_close(first);
  ck_assert_int_eq(*other, 42);
  lp_object_close(second);
  lp_object_close(NULL);
}

LP_TEST(absent_symbols_are_not_found) {
  read_object(LP_TEST_OBJECT);
  lp_object *object = open_object();
  static const char *const names[] = {"", "lp_su", "lp_summ", "memcpy", "nothing"};
  for (size_t i = 0; i < LP_COUNT(names); i++)
    ck_assert_ptr_null(lp_object_find(object, names[i]));
  lp_object_close(object);
}

LP_TEST(other_imports_are_refused) {
  read_object(LP_TEST_FOREIGN_OBJECT);
  expect_refused("the code cannot be loaded: it imports 'abort'");
}

/* Segments that take no memory are none. */
LP_TEST(objects_without_segments_are_refused) {
  read_object(LP_TEST_OBJECT);
  Elf64_Ehdr head;
  memcpy(&head, data, sizeof head);
  for (size_t i = 0; i < head.e_phnum; i++) {
    Elf64_Phdr at;
    memcpy(&at, data + head.e_phoff + i * sizeof at, sizeof at);
    if (at.p_type == PT_LOAD) at.p_type = PT_NULL;
    memcpy(data + head.e_phoff + i * sizeof at, &at, sizeof at);
  }
  expect_refused("it has no segments");
}

/* Each change is found before those above it. */
LP_TEST(other_files_are_refused) {
  read_object(LP_TEST_OBJECT);
  data[18] = 0; /* e_machine */
  expect_refused("it is for another processor");
  data[16] = 2; /* e_type: a program */
  expect_refused("it is no shared object");
  data[0] = 'E';
  expect_refused("it is no shared object");
  size = 10;
  expect_refused("it is too short");
}

/* Opens damaged bytes and looks a symbol up. They must do no harm; code that is not run cannot. */
static void try_to_open(const char *bytes, size_t count) {
  lp_diag *diag = lp_diag_create();
  lp_object *object = NULL;
  lp_status status = lp_object_open("code.so", bytes, count, &object, diag);
  ck_assert_uint_eq(lp_diag_error_count(diag), status == LP_OK ? 0 : 1);
  if (object) (void)lp_object_find(object, "lp_sum");
  lp_object_close(object);
  lp_diag_free(diag);
}

LP_TEST(truncated_objects_do_no_harm) {
  read_object(LP_TEST_OBJECT);
  for (size_t count = 0; count < size; count += 1 + count / 64) {
    char *part = malloc(count + 1); /* exactly its bytes, so that reading beyond them is found */
    memcpy(part, data, count);
    try_to_open(part, count);
    free(part);
  }
}

LP_TEST(damaged_objects_do_no_harm) {
  static const unsigned char flips[] = {0x01, 0x80, 0xff};
  read_object(LP_TEST_OBJECT);
  for (size_t at = 0; at < size; at++)
    for (size_t i = 0; i < LP_COUNT(flips); i++) {
      data[at] = (char)(data[at] ^ flips[i]);
      try_to_open(data, size);
      data[at] = (char)(data[at] ^ flips[i]);
    }
}
