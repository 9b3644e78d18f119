/* Passes keep what functions compute: a module, as it is and with each one thing changed (change.h), has the same
 * values before and after each pass from fold to fuse, or is refused with an error. */
#ifndef LP_TESTS_PASSES_VALUES_H
#define LP_TESTS_PASSES_VALUES_H

#include "ir/ir.h"

typedef struct {
  int tried;    /* modules that verify */
  int computed; /* those that the reference interpreter computes, at least when they are decomposed */
  int wrong;    /* with another value after a pass; stderr says which */
} values_tally;

typedef struct {
  const char *pass;
  bool changes; /* values: those before it are not compared with those after it */
} values_step;

/* Runs those of the passes that the module's state admits, up to one that refuses it with an error. False: one of them
 * changed a value. */
bool values_keep(lp_module *module, const char *name, const values_step *step, size_t count, values_tally *t);

/* Between them modules may have weights, whose numbers are made up. */
void values_begin(void);
void values_end(void);

/* Tries the module of this text, part `part` of `file`, and all its changes. */
void values_try_module(const char *file, int part, const char *text, size_t size, values_tally *t);

#endif
