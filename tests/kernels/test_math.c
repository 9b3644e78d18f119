/* The scalar functions, as generated loops call them, against the C library in double precision. */
#include "kernel_test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double f_sigmoid(double x) {
  return 1 / (1 + exp(-x));
}
static double f_silu(double x) {
  return x / (1 + exp(-x));
}
static double f_quick_gelu(double x) {
  return x / (1 + exp(-1.702 * x));
}
static double f_gelu_erf(double x) {
  return 0.5 * x * erfc(-x / sqrt(2));
}
static double f_gelu_tanh(double x) {
  return x / (1 + exp(-2 * 0.7978845608028654 * (x + 0.044715 * x * x * x)));
}
static double f_softplus(double x) {
  return fmax(x, 0) + log1p(exp(-fabs(x)));
}

typedef struct {
  const char *name;
  math_fn *run;
  double (*reference)(double);
  float from, to;  /* the range in which accuracy is claimed */
  double ulps;     /* relative to the result ... */
  double absolute; /* ... but an error below this is always allowed (cancellation, results near denormal) */
} function;

static const function functions[] = {
    {"exp", math_exp, exp, -103, 88.7f, 2, 1.5e-45},
    {"log", math_log, log, 1e-38f, 3e38f, 2, 0},
    {"log near 1", math_log, log, 0.5f, 2, 2, 0},
    {"tanh", math_tanh, tanh, -12, 12, 4, 0},
    {"sigmoid", math_sigmoid, f_sigmoid, -87, 90, 4, 0},
    {"erf", math_erf, erf, -6, 6, 4, 0},
    {"gelu_erf", math_gelu_erf, f_gelu_erf, -6, 20, 4, 1.2e-7},
    {"gelu_tanh", math_gelu_tanh, f_gelu_tanh, -4, 20, 32, 0}, /* the exponent's rounding, magnified by its size */
    {"quick_gelu", math_quick_gelu, f_quick_gelu, -10, 40, 32, 0},
    {"silu", math_silu, f_silu, -80, 80, 4, 0},
    {"softplus", math_softplus, f_softplus, -80, 80, 4, 0},
    {"sin", math_sin, sin, -1e5f, 1e5f, 2, 1e-10},
    {"cos", math_cos, cos, -1e5f, 1e5f, 2, 1e-10},
};

static double ulp_of(double x) {
  return fmax(ldexp(1, ilogb(fmax(fabs(x), 1e-38)) - 23), 0x1p-149);
}

static void test_function(const function *f) {
  enum { COUNT = 100003 };
  float *x = malloc(COUNT * 4), *y = malloc(COUNT * 4);
  for (int i = 0; i < COUNT; i++) {
    float t = random_float() * 0.5f + 0.5f;
    x[i] = i % 2 || f->from > 0 ? f->from + (f->to - f->from) * t : ldexpf(random_float(), -(int)random_below(20));
    if (f->from > 0 && i % 2) x[i] = f->from * powf(f->to / f->from, t);
  }
  f->run(y, x, COUNT);
  double worst = 0;
  float at = 0;
  for (int i = 0; i < COUNT; i++) {
    double want = f->reference((double)x[i]), error = fabs((double)y[i] - want);
    double ulps = error <= f->absolute ? 0 : error / ulp_of(want);
    if (!(ulps <= worst)) {
      worst = ulps;
      at = x[i];
    }
  }
  if (!(worst <= f->ulps)) kernel_fail("%s is off by %.2f ulp at %.9g", f->name, worst, (double)at);
  free(x);
  free(y);
}

static void test_special(void) {
  float x[17] = {INFINITY, -INFINITY, NAN, 0, -0.0f, 200, -200, 1e30f, -1e30f}, y[17];
#define CHECK(f, i, want) (math_##f(y, x, 17), EXPECT(isnan((float)(want)) ? isnan(y[i]) : y[i] == (float)(want)))
  CHECK(exp, 0, INFINITY);
  CHECK(exp, 1, 0);
  CHECK(exp, 2, NAN);
  CHECK(exp, 3, 1);
  CHECK(exp, 5, INFINITY);
  CHECK(log, 0, INFINITY);
  CHECK(log, 1, NAN);
  CHECK(log, 2, NAN);
  CHECK(log, 3, -INFINITY);
  CHECK(tanh, 0, 1);
  CHECK(tanh, 1, -1);
  CHECK(tanh, 2, NAN);
  CHECK(sigmoid, 0, 1);
  CHECK(sigmoid, 1, 0);
  CHECK(erf, 0, 1);
  CHECK(erf, 1, -1);
  CHECK(erf, 2, NAN);
  CHECK(erf, 7, 1);
  CHECK(erf, 8, -1);
  CHECK(silu, 2, NAN);
  CHECK(silu, 7, 1e30f);
  CHECK(softplus, 0, INFINITY);
  CHECK(softplus, 1, 0);
  CHECK(softplus, 5, 200);
  CHECK(sin, 0, NAN);
  CHECK(sin, 3, 0);
  CHECK(cos, 3, 1);
}

static void test_pow(void) {
  enum { COUNT = 100000 };
  float *a = malloc(COUNT * 4), *b = malloc(COUNT * 4), *y = malloc(COUNT * 4);
  for (int i = 0; i < COUNT; i++) {
    a[i] = expf(random_float() * 20);
    b[i] = random_float() * (i % 2 ? 4 : 0.5f);
    if (i % 5 == 0) {
      a[i] = random_float() * 10;
      b[i] = (float)(random_below(13) - 6);
    }
  }
  math_pow(y, a, b, COUNT);
  for (int i = 0; i < COUNT; i++) {
    double want = pow((double)a[i], (double)b[i]);
    if (fabs(want) < 3e38 && !(fabs((double)y[i] - want) <= 1 * ulp_of(want))) {
      kernel_fail("pow(%.9g, %.9g) is %.9g, not %.9g", (double)a[i], (double)b[i], (double)y[i], want);
      break;
    }
  }
  static const float special[][2] = {{0, 2},        {0, -1},          {-0.0f, 3},    {-2, 0.5f},    {-2, 3},
                                     {-8, 2},       {1, NAN},         {NAN, 0},      {INFINITY, 2}, {INFINITY, -2},
                                     {2, INFINITY}, {0.5f, INFINITY}, {NAN, 1},      {-1, 1e9f},    {-INFINITY, 3},
                                     {1e-30f, 2},   {0, 0},           {-3, 16777215}};
  enum { SPECIAL = sizeof special / sizeof *special };
  for (int i = 0; i < SPECIAL; i++)
    a[i] = special[i][0], b[i] = special[i][1];
  math_pow(y, a, b, SPECIAL);
  for (int i = 0; i < SPECIAL; i++) {
    float want = powf(a[i], b[i]);
    if (!(isnan(want) ? isnan(y[i]) : fabsf(y[i]) == fabsf(want) && signbit(y[i]) == signbit(want)))
      kernel_fail("pow(%g, %g) is %g, not %g", (double)a[i], (double)b[i], (double)y[i], (double)want);
  }
  free(a);
  free(b);
  free(y);
}

void test_math(void) {
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
    test_function(&functions[i]);
  test_special();
  test_pow();
}
