/* Helpers of the kernel tests: threads, random data, comparison with references in double precision. No test framework:
 * the same programs run under qemu for other architectures. */
#ifndef LP_KERNEL_TEST_H
#define LP_KERNEL_TEST_H

/* Tells whether the kernels are C that a sanitizer instruments. Then multiplications and additions are fused in other
 * places than in the optimised bitcode, and results need not be equal to the bit. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define KERNEL_INSTRUMENTED 1
#endif
#endif
#ifndef KERNEL_INSTRUMENTED
#define KERNEL_INSTRUMENTED 0
#endif

#include "variants.h"

#include <stdbool.h>
#include <stddef.h>

/* Reports a failed check; the program's exit status is 1 if there was any. */
void kernel_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
int kernel_failures(void);

#define EXPECT(condition) ((condition) ? (void)0 : kernel_fail("%s:%d: %s", __func__, __LINE__, #condition))

/* Tells whether a run includes the next of the combinations of a variant, sizes and a number of threads: each fourth is
 * of the part "long" (LP_PART), the others are of the part "soak"; without LP_PART all are included. */
bool kernel_included(void);

/* Calls `body` on threads 0 .. threads - 1 at once. */
typedef void kernel_body(void *context, int64_t thread, int64_t threads, lp_barrier *barrier);
void kernel_run(kernel_body *body, void *context, int64_t threads);

/* 64-byte aligned memory filled with NaN, with guards that kernel_free checks: nothing may be written outside. */
void *kernel_alloc(size_t bytes);
void kernel_free(void *memory);

float random_float(void);           /* -1 .. 1, the same sequence on every run */
float *random_floats(size_t count); /* from kernel_alloc */
int64_t random_below(int64_t end);

/* |got - want| <= tolerance * scale, NaN equal to NaN. */
bool near(double got, double want, double scale, double tolerance);

__extension__ typedef _Float16 kernel_half;

/* One function per test file. */
void test_linear(void);
void test_groups(void);
void test_attention(void);
void test_rows(void);
void test_reduce(void);
void test_move(void);
void test_gather(void);
void test_recurrence(void);
void test_math(void);

#endif
