/* Without NCCL a rank says what to install. */
#include <dlfcn.h>
#include <string.h>

#include "runtime/collective/collective.h"
#include "tests/suite.h"

static const char *skip(void) {
  return dlopen("libnccl.so.2", RTLD_NOW) ? "there is an NCCL" : NULL;
}

LP_SKIP_IF(skip);

static bool gather(void *self, const void *part, size_t size, void *all) {
  *(char *)self = *(const char *)part;
  memcpy(all, part, size);
  memcpy((char *)all + size, part, size);
  return true;
}

LP_TEST(says_what_is_missing) {
  char told = 1;
  const lp_collective base = {.count = 2, .self = &told, .all_gather = gather};
  lp_collective out;
  lp_nccl *nccl;
  lp_diag *diag = lp_diag_create();
  ck_assert_int_eq(lp_nccl_open(&base, &nccl, &out, diag), LP_FAILED);
  ck_assert_ptr_null(nccl);
  ck_assert_int_eq(told, 0); /* the other ranks know */
  ck_assert_uint_eq(lp_diag_error_count(diag), 1);
  ck_assert_str_eq(lp_diag_get(diag, 0)->text, "ranks on GPUs need NCCL 2.4 or newer, and there is none");
  ck_assert_ptr_nonnull(strstr(lp_diag_get(diag, 1)->text, "install libnccl2, or nvidia-nccl-cu12 from PyPI"));
  lp_diag_free(diag);
}
