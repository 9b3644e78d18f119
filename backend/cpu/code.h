/* What the CPU has to run of a side: programs, segments and calls, each call with its rule and constants. */
#ifndef LP_CPU_CODE_H
#define LP_CPU_CODE_H

#include "backend/cpu/constants/constants.h"
#include "backend/program.h"

typedef struct cpu_rule cpu_rule;

enum { CPU_FEW_ROWS = 4 }; /* lpk_linear multiplies so many rows without scratch */

/* One operator to run. */
typedef struct {
  lp_side_call base; /* first: see lp_side_program */
  const cpu_rule *rule;
  const cpu_constant **constant; /* [in_count], NULL where the operand is none */
  const lp_poly *scratch;        /* NULL: none */
  const lp_poly *scratch_rows;   /* scratch is used only for more than CPU_FEW_ROWS of these; NULL: always */
} cpu_call;

typedef struct {
  lp_module *module;
  lp_arena *arena;
  lp_side_programs programs;
  lp_constants constants;
} cpu_code;

LP_MUST_USE lp_status cpu_code_create(lp_module *module, lp_side side, lp_arena *arena, cpu_code **out, lp_diag *diag);
void cpu_code_free(cpu_code *code); /* NULL is allowed */

static inline cpu_call *cpu_call_at(const lp_side_segment *segment, size_t index) {
  return (cpu_call *)segment->calls.data[index];
}
/* Does the instance for a call take the address of an operand? */
bool cpu_operand_passed(const cpu_call *call, int32_t index);

#endif
